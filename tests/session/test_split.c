// SPDX-License-Identifier: Apache-2.0
// Prompts over two processors give the same bits as over one, in every order; failures and
// cancelling leave the session as it was.
#include "session/session.h"

#include "support/kinds.h"
#include "support/support.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { N_IDS = 150, VOCAB = 4096 };

static stint_model *models[2]; // in float, a package with shadowed linears
static char package[600];
static int32_t ids[N_IDS];

static int open_models(void **state) {
    (void)state;
    stint_prepare_options options = {
        .size = sizeof options, .outliers = STINT_OUTLIERS_SHARE, .n_tokens = 600};
    snprintf(package, sizeof package, "%s/novels.stint", ts_temp_folder());
    const char *source = STINT_TESTS_DIR "/models/novels-2";
    ts_prepare(source, package, &options);
    if (stint_model_open(source, NULL, &models[0]) != STINT_OK ||
        stint_model_open(package, NULL, &models[1]) != STINT_OK)
        fail_msg("%s", stint_error_text());
    for (size_t i = 0; i < N_IDS; i++) ids[i] = (int32_t)ts_random_below(4000);
    return 0;
}

static int close_models(void **state) {
    (void)state;
    stint_model_close(models[0]);
    stint_model_close(models[1]);
    return 0;
}

static stint_session *open_session(const stint_model *model, uint32_t chunk_len, uint32_t npu,
                                   uint32_t cpu, const char *order) {
    stint_session *s = NULL;
    stint_session_options options = {.size = sizeof options,
                                     .n_context = 400,
                                     .n_threads = 2,
                                     .chunk_len = chunk_len,
                                     .npu_threads = npu,
                                     .cpu_threads = cpu,
                                     .order = order};
    if (stint_session_open(model, &options, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

// Two prompts after each other and a token: [2 + 1, vocab] last logits, or those of the first
// prompt, all.
static float *evaluate(stint_session *s, bool all) {
    float *logits = calloc((all ? N_IDS : 3) * VOCAB, sizeof *logits);
    stint_status status = stint_session_eval(s, 0, ids, N_IDS, all, logits);
    if (!all && status == STINT_OK)
        status = stint_session_eval(s, 0, ids, N_IDS / 2, false, logits + VOCAB);
    if (!all && status == STINT_OK)
        status = stint_session_eval(s, 0, ids, 1, false, logits + 2 * VOCAB);
    if (status != STINT_OK) fail_msg("%s", stint_error_text());
    return logits;
}

static void check_split(const stint_model *model, bool all, const float *wanted, size_t n) {
    static const uint32_t chunks[] = {16, 50, 256};
    static const uint32_t threads[][2] = {{1, 1}, {2, 1}, {1, 3}, {0, 1}};
    for (int i = 0; st_policies[i]; i++)
        for (size_t c = 0; c < 3; c++) {
            if (ts_is_emulated() && c != (size_t)i % 3) continue;
            const uint32_t *t = threads[((size_t)i + c) % 4];
            stint_session *s = open_session(model, chunks[c], t[0], t[1], st_policies[i]->name);
            stint_prefill_info info = {.size = sizeof info};
            float *got = evaluate(s, all);
            assert_memory_equal(got, wanted, n * VOCAB * sizeof *got);
            assert_int_equal(stint_session_prefill(s, &info), STINT_OK);
            assert_string_equal(info.order, st_policies[i]->name);
            assert_true(info.bubble_rate >= 0.0 && info.bubble_rate < 1.0);
            free(got);
            stint_session_close(s);
        }
}

static void results_do_not_depend_on_the_split(void **state) {
    (void)state;
    for (int m = 0; m < 2; m++) {
        stint_session *s = open_session(models[m], 64, 0, 0, NULL);
        float *wanted = evaluate(s, false);
        stint_prefill_info info = {.size = sizeof info};
        assert_int_equal(stint_session_prefill(s, &info), STINT_OK);
        assert_null(info.order);
        assert_int_equal(info.chunks, 2);
        // Of the package also a shadow of qkv and o, and two of the feed-forward block. Nobody
        // reads the first chunk's hidden states: the last layer ends with its keys and values.
        uint32_t shadows = m == 1 ? 4 : 0, of_qkv = m == 1 ? 1 : 0;
        assert_int_equal(info.subgraphs,
                         3 * (ST_N_SUBGRAPHS + shadows) + ST_SUBGRAPH_ATTENTION + of_qkv);
        assert_true(info.npu_seconds > 0.0 && info.cpu_seconds > 0.0);
        stint_session_close(s);
        check_split(models[m], false, wanted, 3);
        free(wanted);
        s = open_session(models[m], 64, 0, 0, NULL);
        wanted = evaluate(s, true);
        stint_session_close(s);
        check_split(models[m], true, wanted, N_IDS);
        free(wanted);
    }
}

static void a_read_that_fails_leaves_the_session(void **state) {
    (void)state;
    stint_session *s = open_session(models[1], 16, 1, 1, "ooo");
    int file = models[1]->checkpoint.files->file, kept = dup(file);
    int empty = open(ts_write_text("empty", ""), O_RDONLY);
    assert_true(empty >= 0 && kept >= 0);
    float *wanted = evaluate(s, false), *logits = calloc(VOCAB, sizeof *logits);
    assert_int_equal(stint_session_truncate(s, 0, 0), STINT_OK);
    assert_int_equal(dup2(empty, file), file);
    assert_int_equal(stint_session_eval(s, 0, ids, N_IDS, false, logits), STINT_E_IO);
    assert_non_null(strstr(stint_error_text(), "ends at byte"));
    assert_int_equal(stint_session_length(s, 0), 0);
    assert_int_equal(dup2(kept, file), file);
    assert_int_equal(stint_session_eval(s, 0, ids, N_IDS, false, logits), STINT_OK);
    assert_memory_equal(logits, wanted, VOCAB * sizeof *logits);
    free(wanted);
    free(logits);
    close(empty);
    close(kept);
    stint_session_close(s);
}

// Measuring may settle on chunks that are shorter than those the session was sized for.
static void shorter_chunks_fit(void **state) {
    (void)state;
    for (int m = 0; m < 2; m++) {
        stint_session *s = open_session(models[m], 64, 0, 0, NULL);
        float *wanted = evaluate(s, false);
        stint_session_close(s);
        s = open_session(models[m], STINT_CHUNK_AUTO, 1, 1, "ooo");
        if (m == 1) s->chunk_len = ST_CHUNK_SHORTEST;
        float *got = evaluate(s, false);
        assert_memory_equal(got, wanted, 3 * VOCAB * sizeof *got);
        free(got);
        free(wanted);
        stint_session_close(s);
    }
}

static void *cancel_soon(void *session) {
    usleep(3000);
    stint_session_cancel(session);
    return NULL;
}

static void cancelling_drains(void **state) {
    (void)state;
    stint_session *s = open_session(models[0], 16, 1, 1, "ooo");
    float *wanted = evaluate(s, false), *logits = calloc(VOCAB, sizeof *logits);
    for (int i = 0; i < 5; i++) {
        pthread_t thread;
        assert_int_equal(stint_session_truncate(s, 0, 0), STINT_OK);
        assert_int_equal(pthread_create(&thread, NULL, cancel_soon, s), 0);
        stint_status status = stint_session_eval(s, 0, ids, N_IDS, false, NULL);
        pthread_join(thread, NULL);
        assert_true(status == STINT_E_CANCELED || status == STINT_OK);
        if (status == STINT_E_CANCELED) assert_int_equal(stint_session_length(s, 0), 0);
        // A late one meets this call.
        assert_int_equal(stint_session_truncate(s, 0, 0), STINT_OK);
        stint_session_eval(s, 0, ids, 1, false, NULL);
    }
    assert_int_equal(stint_session_truncate(s, 0, 0), STINT_OK);
    assert_int_equal(stint_session_eval(s, 0, ids, N_IDS, false, logits), STINT_OK);
    assert_memory_equal(logits, wanted, VOCAB * sizeof *logits);
    free(wanted);
    free(logits);
    stint_session_close(s);
}

static void options_are_checked(void **state) {
    (void)state;
    stint_session *s = NULL;
    stint_session_options options = {.size = sizeof options, .npu_threads = 1, .order = "random"};
    assert_int_equal(stint_session_open(models[0], &options, &s), STINT_E_ARG);
    assert_non_null(strstr(stint_error_text(), "known are: inorder, ooo, heft"));
    options = (stint_session_options){.size = sizeof options, .cpu_threads = 1025};
    assert_int_equal(stint_session_open(models[0], &options, &s), STINT_E_ARG);
    assert_null(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_do_not_depend_on_the_split),
        cmocka_unit_test(a_read_that_fails_leaves_the_session),
        cmocka_unit_test(shorter_chunks_fit),
        cmocka_unit_test(cancelling_drains),
        cmocka_unit_test(options_are_checked),
    };
    return cmocka_run_group_tests(tests, open_models, close_models);
}
