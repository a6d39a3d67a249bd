// SPDX-License-Identifier: Apache-2.0
// Sessions with every type of KV cache that the library names, float and INT8: sizes, how near
// their results are to those of an f32 cache, that they do not depend on threads and chunks, and
// that a saved sequence goes on as if it had never left.
#include "stint.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_IDS = 90, CONTEXT = 128, MAX_TYPES = 16 };

static stint_model *models[2]; // float, INT8
static const char *types[MAX_TYPES];
static size_t n_types, vocab;
static int32_t ids[N_IDS];

static void read_types(void) {
    const char *name;
    while (n_types < MAX_TYPES && (name = stint_kv_name(n_types))) types[n_types++] = name;
}

static int open_models(void **state) {
    (void)state;
    const char *source = STINT_SOURCE_DIR "/tests/golden/models/qwen3-window";
    char package[600];
    stint_model_info info = {.size = sizeof info};
    if (stint_model_open(source, NULL, &models[0]) != STINT_OK ||
        stint_model_describe(models[0], &info) != STINT_OK)
        fail_msg("%s", stint_error_text());
    vocab = info.vocab;
    for (size_t i = 0; i < N_IDS; i++) ids[i] = (int32_t)ts_random_below(vocab);
    stint_prepare_options o = {.size = sizeof o, .ids = ids, .n_ids = N_IDS};
    snprintf(package, sizeof package, "%s/m.stint", ts_temp_folder());
    if (stint_prepare(source, package, &o, NULL) != STINT_OK ||
        stint_model_open(package, NULL, &models[1]) != STINT_OK)
        fail_msg("%s", stint_error_text());
    read_types();
    return 0;
}

static int close_models(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) stint_model_close(models[i]);
    return 0;
}

static stint_session_options options_of(const char *type) {
    return (stint_session_options){
        .size = sizeof(stint_session_options), .n_threads = 1, .n_context = CONTEXT, .kv = type};
}

static stint_session *open_session(const stint_model *model, const stint_session_options *options) {
    stint_session *s = NULL;
    if (stint_session_open(model, options, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

// Logits of every position: [N_IDS, vocab].
static float *evaluate(const stint_model *model, const stint_session_options *options) {
    stint_session *s = open_session(model, options);
    float *logits = malloc(N_IDS * vocab * sizeof *logits);
    assert_non_null(logits);
    if (stint_session_eval(s, 0, ids, N_IDS, true, logits) != STINT_OK)
        fail_msg("%s", stint_error_text());
    stint_session_close(s);
    return logits;
}

static void smaller_types_take_less(void **state) {
    (void)state;
    uint64_t bytes[MAX_TYPES], scratch;
    assert_true(n_types >= 2);
    for (size_t i = 0; i < n_types; i++) {
        stint_session_options o = options_of(types[i]);
        assert_int_equal(stint_session_measure(models[0], &o, &bytes[i], &scratch), STINT_OK);
        if (i > 0) assert_true(bytes[i] * 10 <= bytes[i - 1] * 7);
    }
}

static void other_names_are_refused(void **state) {
    (void)state;
    stint_session *s = NULL;
    for (int i = 0; i < 3; i++) {
        stint_session_options o = options_of((const char *[]){"f8", "", "f32|f16"}[i]);
        assert_int_equal(stint_session_open(models[0], &o, &s), STINT_E_ARG);
        assert_null(s);
        for (size_t t = 0; t < n_types; t++) assert_non_null(strstr(stint_error_text(), types[t]));
    }
}

static void results_are_near_those_of_floats(void **state) {
    (void)state;
    for (int m = 0; m < 2; m++) {
        stint_session_options o = options_of("f32");
        float *exact = evaluate(models[m], &o);
        for (size_t i = 1; i < n_types; i++) {
            double error = 0, power = 0;
            o = options_of(types[i]);
            float *got = evaluate(models[m], &o);
            for (size_t j = 0; j < N_IDS * vocab; j++) {
                error += pow((double)got[j] - (double)exact[j], 2);
                power += pow((double)exact[j], 2);
            }
            print_message("%s, model %d: %.2g of f32's\n", types[i], m, sqrt(error / power));
            assert_true(error > 0 && sqrt(error / power) < (m == 0 ? 0.06 : 0.15));
            free(got);
        }
        free(exact);
    }
}

static void threads_and_chunks_do_not_matter(void **state) {
    (void)state;
    for (int m = 0; m < 2; m++)
        for (size_t i = 0; i < n_types; i++) {
            stint_session_options o = options_of(types[i]);
            float *whole = evaluate(models[m], &o);
            o.n_threads = 3;
            o.chunk_len = 23;
            float *parts = evaluate(models[m], &o);
            assert_memory_equal(whole, parts, N_IDS * vocab * sizeof *whole);
            free(whole);
            free(parts);
        }
}

static void check_restored(const stint_model *model, const char *type, const char *other) {
    char path[600];
    float *wanted = malloc(vocab * sizeof *wanted), *got = malloc(vocab * sizeof *got);
    stint_session_options o = options_of(type), p = options_of(other);
    stint_session *a = open_session(model, &o), *b = open_session(model, &o);
    stint_session *c = open_session(model, &p);
    snprintf(path, sizeof path, "%s/%s.session", ts_temp_folder(), type);
    assert_int_equal(stint_session_eval(a, 0, ids, N_IDS - 1, false, NULL), STINT_OK);
    assert_int_equal(stint_session_save(a, 0, path), STINT_OK);
    assert_int_equal(stint_session_load(b, 0, path), STINT_OK);
    assert_int_equal(stint_session_eval(a, 0, ids + N_IDS - 1, 1, false, wanted), STINT_OK);
    assert_int_equal(stint_session_eval(b, 0, ids + N_IDS - 1, 1, false, got), STINT_OK);
    assert_memory_equal(got, wanted, vocab * sizeof *got);
    assert_int_equal(stint_session_load(c, 0, path), STINT_E_ARG);
    assert_non_null(strstr(stint_error_text(), "--kv"));
    stint_session_close(a);
    stint_session_close(b);
    stint_session_close(c);
    free(wanted);
    free(got);
}

static void saved_sequences_go_on_and_know_their_type(void **state) {
    (void)state;
    for (int m = 0; m < 2; m++)
        for (size_t i = 0; i < n_types; i++)
            check_restored(models[m], types[i], types[(i + 1) % n_types]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smaller_types_take_less),
        cmocka_unit_test(other_names_are_refused),
        cmocka_unit_test(results_are_near_those_of_floats),
        cmocka_unit_test(threads_and_chunks_do_not_matter),
        cmocka_unit_test(saved_sequences_go_on_and_know_their_type),
    };
    return cmocka_run_group_tests(tests, open_models, close_models);
}
