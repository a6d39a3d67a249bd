// SPDX-License-Identifier: Apache-2.0
#include "support/pair.h"

#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static stint_session *open_session(const stint_model *model, const stint_session_options *options) {
    stint_session *s = NULL;
    if (stint_session_open(model, options, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

struct ts_pair ts_pair_open(const stint_model *model, const stint_session_options *options,
                            size_t longest) {
    stint_session_options host = *options;
    host.device = "cpu";
    host.npu_memory = 0;
    struct ts_pair p = {.sessions = {open_session(model, &host), open_session(model, options)},
                        .vocab = model->config.vocab};
    for (int i = 0; i < 2; i++) p.logits[i] = malloc(longest * p.vocab * sizeof(float));
    return p;
}

void ts_pair_close(struct ts_pair *p) {
    for (int i = 0; i < 2; i++) {
        stint_session_close(p->sessions[i]);
        free(p->logits[i]);
    }
}

void ts_pair_expect_same(const struct ts_pair *p, size_t n) {
    assert_memory_equal(p->logits[1], p->logits[0], n * p->vocab * sizeof(float));
}

void ts_pair_prompt(struct ts_pair *p, uint32_t sequence, size_t n) {
    int32_t *ids = malloc(n * sizeof *ids);
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)ts_random_below(TS_PAIR_IDS);
    for (int i = 0; i < 2; i++)
        if (stint_session_eval(p->sessions[i], sequence, ids, n, true, p->logits[i]) != STINT_OK)
            fail_msg("%s", stint_error_text());
    free(ids);
    ts_pair_expect_same(p, n);
}

void ts_pair_truncate(struct ts_pair *p, uint32_t sequence, size_t length) {
    for (int i = 0; i < 2; i++)
        assert_int_equal(stint_session_truncate(p->sessions[i], sequence, length), STINT_OK);
}

void ts_pair_save_and_load(struct ts_pair *p) {
    char path[256];
    if (stint_session_length(p->sessions[0], 1) == 0) return;
    snprintf(path, sizeof path, "%s/sequence", ts_temp_folder());
    for (int i = 0; i < 2; i++)
        if (stint_session_save(p->sessions[i], 1, path) != STINT_OK ||
            stint_session_load(p->sessions[i], 0, path) != STINT_OK)
            fail_msg("%s", stint_error_text());
}
