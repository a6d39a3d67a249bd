// SPDX-License-Identifier: Apache-2.0
// A packaged model in sessions of every kind: the same bits however the prompt is cut and whoever
// computes it; nothing clipped in silence.
#include "stint.h"
#include "support/kinds.h"
#include "support/support.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_IDS = 330, N_LAYERS = 2 };

static char folder[512], package[600];
static stint_model *model;
static int32_t ids[N_IDS];
static uint32_t vocab;
static float *whole; // [N_IDS, vocab] with the whole prompt as one chunk

static int32_t random_id(void) {
    return (int32_t)ts_random_below(4000);
}

static stint_session *open_session(uint32_t chunk_len, uint32_t n_threads, const char *device) {
    stint_session *s = NULL;
    stint_session_options options = {.size = sizeof options,
                                     .n_context = 1024,
                                     .n_threads = n_threads,
                                     .chunk_len = chunk_len,
                                     .device = device};
    if (stint_session_open(model, &options, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

static float *evaluate(stint_session *s, size_t n) {
    float *logits = malloc(n * vocab * sizeof *logits);
    assert_non_null(logits);
    if (stint_session_eval(s, 0, ids, n, true, logits) != STINT_OK)
        fail_msg("%s", stint_error_text());
    return logits;
}

static int open_package(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "%s", ts_temp_folder());
    snprintf(package, sizeof package, "%s/novels.stint", folder);
    ts_prepare(STINT_TESTS_DIR "/models/novels-2", package, NULL);
    if (stint_model_open(package, NULL, &model) != STINT_OK) fail_msg("%s", stint_error_text());
    stint_model_info info = {.size = sizeof info};
    assert_int_equal(stint_model_describe(model, &info), STINT_OK);
    assert_int_equal(info.exec, STINT_EXEC_NPU);
    vocab = info.vocab;
    for (size_t i = 0; i < N_IDS; i++) ids[i] = random_id();
    stint_session *s = open_session(512, 2, NULL);
    whole = evaluate(s, N_IDS);
    stint_session_close(s);
    return 0;
}

static int close_package(void **state) {
    (void)state;
    free(whole);
    stint_model_close(model);
    return 0;
}

static void check_same(stint_session *s, size_t n, const char *what, size_t value) {
    float *logits = evaluate(s, n);
    if (memcmp(logits, whole, n * vocab * sizeof *logits) != 0)
        fail_msg("%s %zu, %zu tokens: other bits than in one chunk", what, value, n);
    free(logits);
    stint_session_close(s);
}

// Chunks of 32 to 512: prompts of exactly k chunks, of an odd number, of no whole number of them.
static void chunks_do_not_change_a_bit(void **state) {
    (void)state;
    const uint32_t lengths[] = {7, 32, 33, 64, 96, 100, 128, 256, 329, 330, 512};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t n = lengths[i], three = n * 3 <= N_IDS ? n * 3 : N_IDS;
        check_same(open_session(lengths[i], 2, NULL), N_IDS, "chunk", n);
        check_same(open_session(lengths[i], 1, NULL), three, "chunk", n);
        check_same(open_session(lengths[i], 3, "cpu"), 1, "chunk", n);
    }
}

static void threads_do_not_change_a_bit(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= 4; n++) check_same(open_session(64, n, NULL), N_IDS, "threads", n);
}

// Decoding sums attention in another order than a prompt does, all else is the same.
static void token_by_token_is_nearly_the_same(void **state) {
    (void)state;
    stint_session *s = open_session(0, 2, NULL), *again = open_session(1, 1, NULL);
    float *logits = malloc(vocab * sizeof *logits), *all = evaluate(again, 40);
    double error = 0, power = 0;
    for (size_t i = 0; i < 40; i++) {
        assert_int_equal(stint_session_eval(s, 0, ids + i, 1, false, logits), STINT_OK);
        assert_memory_equal(logits, all + i * vocab, vocab * sizeof *logits);
        for (size_t v = 0; v < vocab; v++) {
            double difference = (double)logits[v] - (double)whole[i * vocab + v];
            error += difference * difference;
            power += (double)logits[v] * (double)logits[v];
        }
    }
    assert_true(error < 1e-3 * power);
    free(logits);
    free(all);
    stint_session_close(s);
    stint_session_close(again);
}

static void a_chunk_can_be_measured(void **state) {
    (void)state;
    stint_session *s = open_session(STINT_CHUNK_AUTO, 2, NULL);
    size_t n = stint_session_chunk(s);
    assert_true(n == 64 || n == 128 || n == 256 || n == 512);
    assert_int_equal(stint_session_clipped(s), 0);
    check_same(s, N_IDS, "measured chunk", n);
}

static void graphs_are_compiled_once(void **state) {
    (void)state;
    stint_session *s = open_session(64, 2, NULL);
    stint_graph_info before = {.size = sizeof before}, after = before;
    assert_int_equal(stint_session_graphs(s, &before), STINT_OK);
    assert_int_equal(before.n_graphs, N_LAYERS * 3 + 1);
    assert_true(before.bytes > 0 && before.compile_seconds >= 0);
    free(evaluate(s, N_IDS));
    assert_int_equal(stint_session_graphs(s, &after), STINT_OK);
    assert_int_equal(after.n_graphs, before.n_graphs);
    assert_int_equal(after.bytes, before.bytes);
    assert_true(after.compile_seconds == before.compile_seconds);
    after.size = 0;
    assert_int_equal(stint_session_graphs(s, &after), STINT_E_ARG);
    stint_session_close(s);
}

// Calibrated on one short line, the scales are too small for other texts: that must show.
static void what_does_not_fit_is_counted(void **state) {
    (void)state;
    char narrow[600];
    stint_model *full = model;
    stint_prepare_options options = {
        .size = sizeof options, .text = "a", .text_bytes = 1, .target = "sim"};
    stint_prepare_summary summary = {.size = sizeof summary};
    snprintf(narrow, sizeof narrow, "%s/narrow.stint", folder);
    assert_int_equal(
        stint_prepare(STINT_TESTS_DIR "/models/novels-2", narrow, &options, &summary), STINT_OK);
    assert_int_equal(summary.n_linears, N_LAYERS * 4 + 1);
    assert_in_range(summary.n_tokens, 1, 3);
    assert_int_equal(stint_model_open(narrow, NULL, &model), STINT_OK);
    stint_session *s = open_session(0, 2, NULL);
    float *logits = evaluate(s, 100);
    for (size_t i = 0; i < 100 * vocab; i++) assert_true(isfinite(logits[i]));
    assert_true(stint_session_clipped(s) > 100);
    free(logits);
    stint_session_close(s);
    stint_model_close(model);
    model = full;
}

static void an_unknown_device_is_named(void **state) {
    (void)state;
    stint_session *s = NULL;
    stint_session_options options = {.size = sizeof options, .device = "abacus"};
    assert_int_equal(stint_session_open(model, &options, &s), STINT_E_ARG);
    assert_non_null(strstr(stint_error_text(), "abacus"));
    s = open_session(0, 1, "cpu");
    assert_string_equal(stint_session_device(s), "cpu");
    stint_session_close(s);
}

static void a_package_computes_in_integers_only(void **state) {
    (void)state;
    stint_model *other = NULL;
    stint_model_options options = {.size = sizeof options, .exec = STINT_EXEC_FLOAT};
    assert_int_equal(stint_model_open(package, &options, &other), STINT_E_UNSUPPORTED);
    assert_non_null(strstr(stint_error_text(), "INT8"));
    options.exec = STINT_EXEC_NPU;
    assert_int_equal(stint_model_open(STINT_TESTS_DIR "/models/novels-2", &options, &other),
                     STINT_E_UNSUPPORTED);
    assert_non_null(strstr(stint_error_text(), "stint prepare"));
    assert_int_equal(stint_model_open(package, &options, &other), STINT_OK);
    stint_model_close(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_do_not_change_a_bit),
        cmocka_unit_test(threads_do_not_change_a_bit),
        cmocka_unit_test(token_by_token_is_nearly_the_same),
        cmocka_unit_test(a_chunk_can_be_measured),
        cmocka_unit_test(graphs_are_compiled_once),
        cmocka_unit_test(what_does_not_fit_is_counted),
        cmocka_unit_test(an_unknown_device_is_named),
        cmocka_unit_test(a_package_computes_in_integers_only),
    };
    return cmocka_run_group_tests(tests, open_package, close_package);
}
