// SPDX-License-Identifier: Apache-2.0
// What is read to measure memory is what a step reads, whatever the weights are stored as.
#include "session/session.h"
#include "support/kinds.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#define MODEL STINT_TESTS_DIR "/models/novels-2"

static stint_model *open_model(const char *path) {
    stint_model *m = NULL;
    if (stint_model_open(path, NULL, &m) != STINT_OK) fail_msg("%s", stint_error_text());
    return m;
}

static stint_session *open_session(const stint_model *m) {
    stint_session_options o = {.size = sizeof o, .n_context = 64, .n_threads = 2};
    stint_session *s = NULL;
    if (stint_session_open(m, &o, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

static void assert_reads(stint_session *s, uint64_t least, uint64_t most) {
    stint_read_rate rate = {.size = sizeof rate};
    assert_int_equal(stint_session_read_rate(s, &rate), STINT_OK);
    assert_true(rate.seconds > 0.0);
    assert_in_range(rate.bytes, least, most);
}

static void check_source(const char *path) {
    stint_model *m = open_model(path);
    stint_session *s = open_session(m);
    stint_model_info info = {.size = sizeof info};
    assert_int_equal(stint_model_describe(m, &info), STINT_OK);
    assert_reads(s, info.bytes_per_decoded_token, info.bytes_per_decoded_token);
    stint_session_close(s);
    stint_model_close(m);
}

static void source_models(void **state) {
    (void)state;
    check_source(MODEL);
    check_source(ts_shared("fixtures/models/mixtral"));
}

static void packages_at_every_precision(void **state) {
    (void)state;
    char path[600];
    stint_prepare_options o = {.size = sizeof o,
                               .n_tokens = 300,
                               .outliers = STINT_OUTLIERS_NONE,
                               .bits_low = 2,
                               .bits_high = 4};
    snprintf(path, sizeof path, "%s/m.stint", ts_temp_folder());
    ts_prepare(MODEL, path, &o);
    stint_model *m = open_model(path);
    stint_session *s = open_session(m);
    static const uint32_t precisions[] = {8, 2, 3, 4, 8};
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++) {
        stint_precision p = {.size = sizeof p, .prefill = precisions[i], .n_steps = 1};
        p.steps[0].bits = precisions[i];
        assert_int_equal(stint_session_set_precision(s, &p), STINT_OK);
        uint64_t all = stint_model_bytes_per_token(m, precisions[i]);
        // Scales of rows are left out of what is read: of rows as short as these a fifteenth.
        assert_reads(s, precisions[i] == ST_PRECISION_INT8 ? all : all * 9 / 10, all);
    }
    stint_session_close(s);
    stint_model_close(m);
}

static void what_is_not_in_memory_is_refused(void **state) {
    (void)state;
    char path[600];
    stint_read_rate rate = {.size = sizeof rate};
    snprintf(path, sizeof path, "%s/m.stint", ts_temp_folder()); // of the test before
    stint_model_options lazy = {.size = sizeof lazy, .lazy = true};
    stint_model *m = NULL;
    assert_int_equal(stint_model_open(path, &lazy, &m), STINT_OK);
    stint_session_options o = {.size = sizeof o, .n_context = 64, .memory = 100 << 20};
    stint_session *s = NULL;
    assert_int_equal(stint_session_open(m, &o, &s), STINT_OK);
    assert_int_equal(stint_session_read_rate(s, &rate), STINT_E_UNSUPPORTED);
    assert_int_equal(stint_session_read_rate(s, NULL), STINT_E_ARG);
    assert_int_equal(stint_session_read_rate(NULL, &rate), STINT_E_ARG);
    stint_session_close(s);
    stint_model_close(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(source_models),
                                       cmocka_unit_test(packages_at_every_precision),
                                       cmocka_unit_test(what_is_not_in_memory_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
