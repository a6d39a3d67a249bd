// SPDX-License-Identifier: Apache-2.0
// Sessions of the bundled model: limits, truncation, cancelling, repeatability, and no allocation
// on the way.
#include "stint.h"
#include "support/support.h"

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_COUNT 0
static unsigned long n_allocations;
#else
#define CAN_COUNT 1
// Every allocation of the process passes here.
static unsigned long n_allocations;
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t n);
void *malloc(size_t n) {
    __atomic_fetch_add(&n_allocations, 1, __ATOMIC_RELAXED);
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t bytes) {
    __atomic_fetch_add(&n_allocations, 1, __ATOMIC_RELAXED);
    return __libc_calloc(n, bytes);
}
void *realloc(void *old, size_t n) {
    __atomic_fetch_add(&n_allocations, 1, __ATOMIC_RELAXED);
    return __libc_realloc(old, n);
}
#endif

static stint_model *model;
static float *logits;
static uint32_t vocab;

static int open_model(void **state) {
    (void)state;
    if (stint_model_open(ts_trained(), NULL, &model) != STINT_OK)
        fail_msg("%s", stint_error_text());
    stint_model_info info = {.size = sizeof info};
    assert_int_equal(stint_model_describe(model, &info), STINT_OK);
    vocab = info.vocab;
    logits = malloc(64 * vocab * sizeof *logits);
    return logits ? 0 : -1;
}

static int close_model(void **state) {
    (void)state;
    free(logits);
    stint_model_close(model);
    return 0;
}

static stint_session *open_session(uint32_t n_context, uint32_t n_threads) {
    stint_session *s = NULL;
    stint_session_options options = {
        .size = sizeof options, .n_context = n_context, .n_threads = n_threads};
    if (stint_session_open(model, &options, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

static void fill_ids(int32_t *ids, int n) {
    for (int i = 0; i < n; i++) ids[i] = (i * 37 + 11) % 4000;
}

static void full_context_is_refused_and_changes_nothing(void **state) {
    (void)state;
    stint_session *s = open_session(16, 1);
    int32_t ids[20];
    fill_ids(ids, 20);
    assert_int_equal(stint_session_eval(s, 0, ids, 10, false, NULL), STINT_OK);
    assert_int_equal(stint_session_eval(s, 0, ids, 7, false, NULL), STINT_E_LIMIT);
    assert_non_null(strstr(stint_error_text(), "context"));
    assert_int_equal(stint_session_length(s, 0), 10);
    assert_int_equal(stint_session_eval(s, 0, ids, 6, false, NULL), STINT_OK);
    stint_session_close(s);
}

static void ids_outside_the_vocabulary_are_refused(void **state) {
    (void)state;
    stint_session *s = open_session(16, 1);
    const int32_t bad[] = {-1, (int32_t)vocab, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 4; i++)
        assert_int_equal(stint_session_eval(s, 0, &bad[i], 1, false, NULL), STINT_E_ARG);
    assert_int_equal(stint_session_length(s, 0), 0);
    stint_session_close(s);
}

static void truncating_and_repeating_gives_the_same_logits(void **state) {
    (void)state;
    stint_session *s = open_session(64, 2);
    int32_t ids[32];
    fill_ids(ids, 32);
    float *again = logits + vocab;
    assert_int_equal(stint_session_eval(s, 0, ids, 32, false, logits), STINT_OK);
    assert_int_equal(stint_session_truncate(s, 0, 33), STINT_E_ARG);
    assert_int_equal(stint_session_truncate(s, 0, 8), STINT_OK);
    assert_int_equal(stint_session_eval(s, 0, ids + 8, 24, false, again), STINT_OK);
    assert_memory_equal(logits, again, vocab * sizeof *logits);
    stint_session_close(s);
}

struct stopper {
    stint_session *s;
    int after;
};

static bool cancel_after(void *context, const stint_piece *piece) {
    struct stopper *stop = context;
    (void)piece;
    if (--stop->after == 0) stint_session_cancel(stop->s);
    return true;
}

static void cancelling_leaves_a_usable_session(void **state) {
    (void)state;
    stint_session *s = open_session(256, 2);
    int32_t ids[8];
    fill_ids(ids, 8);
    struct stopper stop = {s, 3};
    stint_generation generation = {.size = sizeof generation,
                                   .n_tokens = 100,
                                   .ignore_eos = true,
                                   .text = cancel_after,
                                   .context = &stop};
    stint_generation_result result = {.size = sizeof result};
    assert_int_equal(stint_generate(s, ids, 8, &generation, NULL, 0, &result), STINT_OK);
    assert_int_equal(result.stop_reason, STINT_STOP_CANCELED);
    assert_int_equal(result.generated_tokens, 3);
    stop.after = 1000;
    assert_int_equal(stint_generate(s, NULL, 0, &generation, NULL, 0, &result), STINT_OK);
    assert_int_equal(result.stop_reason, STINT_STOP_LENGTH);
    assert_int_equal(result.generated_tokens, 100);
    stint_session_close(s);
}

static void same_seed_gives_the_same_tokens_for_any_thread_count(void **state) {
    (void)state;
    int32_t prompt[8], first[40], other[40];
    fill_ids(prompt, 8);
    stint_sampling sampling = {
        .size = sizeof sampling, .temperature = 1.0f, .top_p = 0.95f, .seed = 5};
    stint_generation generation = {
        .size = sizeof generation, .n_tokens = 40, .ignore_eos = true, .sampling = &sampling};
    for (uint32_t threads = 1; threads <= 4; threads++) {
        stint_session *s = open_session(64, threads);
        assert_int_equal(
            stint_generate(s, prompt, 8, &generation, threads == 1 ? first : other, 40, NULL),
            STINT_OK);
        if (threads > 1) assert_memory_equal(first, other, sizeof first);
        stint_session_close(s);
    }
    sampling.seed = 6;
    stint_session *s = open_session(64, 1);
    assert_int_equal(stint_generate(s, prompt, 8, &generation, other, 40, NULL), STINT_OK);
    assert_memory_not_equal(first, other, sizeof first);
    stint_session_close(s);
}

static void generation_ends_at_the_context(void **state) {
    (void)state;
    stint_session *s = open_session(16, 1);
    int32_t ids[10];
    fill_ids(ids, 10);
    stint_generation generation = {.size = sizeof generation, .ignore_eos = true};
    stint_generation_result result = {.size = sizeof result};
    assert_int_equal(stint_generate(s, ids, 10, &generation, NULL, 0, &result), STINT_OK);
    assert_int_equal(result.stop_reason, STINT_STOP_CONTEXT);
    assert_int_equal(result.generated_tokens, 7); // the last one needs no place in the cache
    stint_session_close(s);
}

static void memory_bound_is_checked_when_the_session_opens(void **state) {
    (void)state;
    stint_session *s = NULL;
    stint_session_options options = {.size = sizeof options, .memory = 1 << 20};
    assert_int_equal(stint_session_open(model, &options, &s), STINT_E_LIMIT);
    assert_null(s);
}

static void evaluating_allocates_nothing(void **state) {
    (void)state;
    if (!CAN_COUNT) skip();
    stint_session *s = open_session(256, 2);
    int32_t ids[100], out[50];
    fill_ids(ids, 100);
    stint_sampling sampling = {
        .size = sizeof sampling, .temperature = 1.0f, .top_k = 50, .top_p = 0.9f};
    stint_generation generation = {
        .size = sizeof generation, .n_tokens = 50, .ignore_eos = true, .sampling = &sampling};
    unsigned long before = n_allocations;
    assert_int_equal(stint_session_eval(s, 0, ids, 100, true, NULL), STINT_OK);
    assert_int_equal(stint_generate(s, ids, 100, &generation, out, 50, NULL), STINT_OK);
    assert_int_equal(n_allocations - before, 0);
    stint_session_close(s);
}

static void *one_session(void *argument) {
    stint_session *s = NULL;
    int32_t ids[8];
    fill_ids(ids, 8);
    stint_session_options options = {.size = sizeof options, .n_threads = 1, .n_context = 32};
    stint_generation generation = {.size = sizeof generation, .n_tokens = 12, .ignore_eos = true};
    if (stint_session_open(model, &options, &s) == STINT_OK)
        stint_generate(s, ids, 8, &generation, argument, 12, NULL);
    stint_session_close(s);
    return NULL;
}

static void a_model_is_shared_by_sessions_on_several_threads(void **state) {
    (void)state;
    pthread_t threads[4];
    int32_t out[4][12];
    memset(out, 0, sizeof out);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, one_session, out[i]);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    assert_int_not_equal(out[0][0], 0);
    for (int i = 1; i < 4; i++) assert_memory_equal(out[0], out[i], sizeof out[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_context_is_refused_and_changes_nothing),
        cmocka_unit_test(ids_outside_the_vocabulary_are_refused),
        cmocka_unit_test(truncating_and_repeating_gives_the_same_logits),
        cmocka_unit_test(cancelling_leaves_a_usable_session),
        cmocka_unit_test(same_seed_gives_the_same_tokens_for_any_thread_count),
        cmocka_unit_test(generation_ends_at_the_context),
        cmocka_unit_test(memory_bound_is_checked_when_the_session_opens),
        cmocka_unit_test(evaluating_allocates_nothing),
        cmocka_unit_test(a_model_is_shared_by_sessions_on_several_threads),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
