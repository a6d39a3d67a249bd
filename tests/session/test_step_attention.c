// SPDX-License-Identifier: Apache-2.0
// Steps behind more keys than a span has: what a token gets depends neither on the threads, which
// share spans, nor on the tokens that are computed with it, nor on where rows lie, and is near what
// a prompt gets.
#include "session/kv/copy.h"
#include "session/precision/learned.h"
#include "session/session.h"
#include "support/support.h"

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_STEPS = 12, MOST_IDS = 1400 };

static stint_model *model;
static int32_t ids[MOST_IDS];
static uint32_t vocab;

static int open_model(void **state) {
    (void)state;
    if (stint_model_open(STINT_TESTS_DIR "/models/novels-2", NULL, &model) != STINT_OK)
        fail_msg("%s", stint_error_text());
    stint_model_info info = {.size = sizeof info};
    assert_int_equal(stint_model_describe(model, &info), STINT_OK);
    vocab = info.vocab;
    for (size_t i = 0; i < MOST_IDS; i++) ids[i] = (int32_t)ts_random_below(4000);
    return 0;
}

static int close_model(void **state) {
    (void)state;
    stint_model_close(model);
    return 0;
}

static stint_session *open_with(const stint_session_options *options) {
    stint_session *s = NULL;
    if (stint_session_open(model, options, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

static stint_session *open_session(uint32_t n_threads) {
    stint_session_options options = {
        .size = sizeof options, .n_context = 2048, .n_threads = n_threads};
    return open_with(&options);
}

// Logits [N_STEPS, vocab] of the tokens behind n_before others, in steps of so many.
static float *step(stint_session *s, size_t n_before, size_t at_once) {
    const uint32_t sequences[N_STEPS] = {0};
    float *logits = malloc((size_t)N_STEPS * vocab * sizeof *logits);
    assert_non_null(logits);
    size_t n = stint_session_length(s, 0);
    stint_status status = n > n_before ? stint_session_truncate(s, 0, n_before) : STINT_OK;
    if (n < n_before && status == STINT_OK)
        status = stint_session_eval(s, 0, ids + n, n_before - n, false, logits);
    for (size_t i = 0; i < N_STEPS && status == STINT_OK; i += at_once)
        status = st_session_step(s, 0, sequences, ids + n_before + i, at_once, logits + i * vocab);
    if (status != STINT_OK) fail_msg("%s", stint_error_text());
    return logits;
}

static void threads_and_rows_change_nothing(void **state) {
    (void)state;
    const size_t before[] = {2, ST_KV_SPAN - 5, 2 * ST_KV_SPAN + 300};
    for (size_t i = 0; i < ts_how_many(2, 3, 3); i++) {
        stint_session *s = open_session(1);
        float *wanted = step(s, before[i], 1);
        stint_session_close(s);
        for (uint32_t threads = 1; threads <= 3; threads++) {
            s = open_session(threads);
            for (size_t at_once = 1; at_once <= N_STEPS; at_once += 11) {
                float *got = step(s, before[i], at_once);
                assert_memory_equal(got, wanted, (size_t)N_STEPS * vocab * sizeof *got);
                free(got);
            }
            stint_session_close(s);
        }
        free(wanted);
    }
}

static void steps_are_near_a_prompt(void **state) {
    (void)state;
    size_t before = ts_is_emulated() ? ST_KV_SPAN - 5 : 2 * ST_KV_SPAN + 100, n = before + N_STEPS;
    stint_session *s = open_session(2);
    float *all = malloc(n * vocab * sizeof *all), *got = step(s, before, 1);
    assert_non_null(all);
    if (stint_session_truncate(s, 0, 0) != STINT_OK) fail_msg("%s", stint_error_text());
    if (stint_session_eval(s, 0, ids, n, true, all) != STINT_OK) fail_msg("%s", stint_error_text());
    for (size_t i = 0; i < (size_t)N_STEPS * vocab; i++)
        assert_true(fabsf(got[i] - all[before * vocab + i]) < 1e-3f);
    stint_session_close(s);
    free(all);
    free(got);
}

// What schedulers see of the last of n tokens.
static void same_newest_rows(stint_session *s, stint_session *other, size_t n) {
    assert_int_equal(stint_session_truncate(s, 0, n), STINT_OK);
    assert_int_equal(stint_session_truncate(other, 0, n), STINT_OK);
    size_t floats = st_learned_cache_floats(s, 0), bytes = floats * sizeof(float);
    float *got = malloc(2 * bytes), *wanted = malloc(2 * bytes);
    assert_true(got && wanted);
    st_learned_read_cache(s, 0, got, got + floats);
    st_learned_read_cache(other, 0, wanted, wanted + floats);
    assert_memory_equal(got, wanted, 2 * bytes);
    free(got);
    free(wanted);
}

// A sequence in stretches, and whole, as a memory bound has it, loaded from what the first saved.
static void rows_may_lie_anywhere(void **state) {
    (void)state;
    enum { BEFORE = 2 * ST_KV_SPAN + 300 };
    char path[256];
    snprintf(path, sizeof path, "%s/stretches.stint", ts_temp_folder());
    for (int type = ts_is_emulated() ? ST_KV_Q8 : 0; type < ST_N_KV_TYPES; type++) {
        stint_session_options options = {.size = sizeof options,
                                         .n_context = 2048,
                                         .n_sequences = 2,
                                         .kv = st_kv_traits[type].name,
                                         .n_threads = 2};
        stint_session *s = open_with(&options);
        options.memory = 1ull << 40;
        stint_session *whole = open_with(&options);
        assert_true(s->kv.stretch < BEFORE && whole->kv.stretch > BEFORE + N_STEPS);
        float *wanted = step(s, BEFORE, 1), *got = step(whole, BEFORE, 1);
        assert_memory_equal(got, wanted, (size_t)N_STEPS * vocab * sizeof *got);
        free(got);
        assert_int_equal(stint_session_save(s, 0, path), STINT_OK);
        assert_int_equal(stint_session_truncate(whole, 0, 0), STINT_OK);
        assert_int_equal(stint_session_load(whole, 0, path), STINT_OK);
        got = step(whole, BEFORE, 1);
        assert_memory_equal(got, wanted, (size_t)N_STEPS * vocab * sizeof *got);
        free(got);
        same_newest_rows(s, whole, 2 * s->kv.stretch + 3);
        assert_int_equal(stint_session_save(whole, 0, path), STINT_OK);
        stint_session_close(s);
        options.memory = 0;
        s = open_with(&options);
        assert_int_equal(stint_session_load(s, 1, path), STINT_OK);
        st_session_copy(s, 1, 0, stint_session_length(s, 1));
        got = step(s, BEFORE, 1);
        assert_memory_equal(got, wanted, (size_t)N_STEPS * vocab * sizeof *got);
        free(got);
        free(wanted);
        stint_session_close(whole);
        stint_session_close(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_and_rows_change_nothing),
        cmocka_unit_test(steps_are_near_a_prompt),
        cmocka_unit_test(rows_may_lie_anywhere),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
