// SPDX-License-Identifier: Apache-2.0
// Weights that are read when they are needed: the laws of a bound, of a package without nested
// weights and without neurons, and of a checkpoint as it lies (tests/model/test_file_pieces.c has
// its damages).
#include "support/bounded.h"

#include "session/weights/bounded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

static size_t long_context(void) {
    return ts_how_many(768, 2048, 2048);
}

// Under the least bound, for two sequences of a long context.
static stint_session *open_long(void) {
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 2,
                               .n_context = (uint32_t)long_context(),
                               .n_sequences = 2,
                               .memory = 1};
    stint_session *s = NULL;
    unsigned long long mib = 0;
    assert_int_equal(stint_session_open(ts_bounded.lazy, &o, &s), STINT_E_LIMIT);
    assert_int_equal(sscanf(stint_error_text(), "memory: at least %llu MiB", &mib), 1);
    o.memory = mib << 20;
    assert_int_equal(stint_session_open(ts_bounded.lazy, &o, &s), STINT_OK);
    return s;
}

static uint64_t read_by_a_step(stint_session *s, uint32_t sequence) {
    uint64_t bytes = ts_bounded_step_bytes(s, s->precision.prefill, sequence);
// Sanitizers and emulators take memory of the process, too.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(STINT_EMULATED)
    stint_memory_info info = {.size = sizeof info};
    assert_int_equal(stint_session_memory(s, &info), STINT_OK);
    assert_true(info.peak_bytes <= info.budget_bytes);
#endif
    return bytes;
}

static void fill(stint_session *s, uint32_t sequence) {
    size_t n = long_context() - TS_BOUNDED_STEPS;
    int32_t *ids = malloc(n * sizeof *ids);
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)ts_random_below(ts_bounded_vocab());
    assert_int_equal(stint_session_truncate(s, sequence, 0), STINT_OK);
    assert_int_equal(stint_session_eval(s, sequence, ids, n, false, NULL), STINT_OK);
    free(ids);
}

// The cache's memory is the slices' until texts take it; then it is not given back.
static void short_texts_have_more_slices(void **state) {
    (void)state;
    stint_session *s = open_long();
    const struct st_cache *fixed = &s->bounded->slices.regions[ST_REGION_FIXED];
    uint32_t least = s->bounded->plan.n_entries[ST_REGION_FIXED], begun = fixed->n_entries;
    assert_true(begun > least);
    uint64_t of_none = read_by_a_step(s, 0);
    fill(s, 0);
    uint64_t of_one = read_by_a_step(s, 0);
    uint32_t half = fixed->n_entries;
    assert_true(half < begun && half > least && of_one > of_none);
    assert_int_equal(stint_session_truncate(s, 0, 0), STINT_OK);
    assert_true(read_by_a_step(s, 0) > of_none);
    assert_int_equal(fixed->n_entries, half);
    fill(s, 1);
    assert_int_equal(fixed->n_entries, least);
    assert_true(read_by_a_step(s, 1) > of_one);
    stint_session_close(s);
}

static void eval(stint_session *s, size_t n) {
    int32_t ids[STINT_MAX_STEP_ROWS + 1];
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)ts_random_below(ts_bounded_vocab());
    assert_int_equal(stint_session_eval(s, 0, ids, n, false, NULL), STINT_OK);
}

// What only prompts need is the slices' before, between and after them.
static void steps_have_the_buffers_of_prompts(void **state) {
    (void)state;
    stint_session *s = open_long();
    const struct st_cache *fixed = &s->bounded->slices.regions[ST_REGION_FIXED];
    eval(s, STINT_MAX_STEP_ROWS + 1); // takes what texts take below
    for (int i = 0; i < 3; i++) {
        uint32_t fewer = fixed->n_entries;
        assert_int_equal(stint_session_truncate(s, 0, 0), STINT_OK);
        eval(s, STINT_MAX_STEP_ROWS);
        assert_true(fixed->n_entries > fewer);
        assert_int_equal(stint_session_truncate(s, 0, 0), STINT_OK);
        eval(s, STINT_MAX_STEP_ROWS + 1);
        assert_int_equal(fixed->n_entries, fewer);
    }
    (void)read_by_a_step(s, 0);
    stint_session_close(s);
}

static size_t resident_bytes(const unsigned char *memory, size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), skip = (uintptr_t)memory % page;
    size_t n = (skip + bytes + page - 1) / page, found = 0;
    unsigned char *pages = malloc(n);
    assert_int_equal(mincore((void *)(uintptr_t)(memory - skip), n * page, pages), 0);
    for (size_t i = 0; i < n; i++) found += pages[i] & 1;
    free(pages);
    return found * page;
}

// Of the buffers, steps of the most rows touch what is not lent.
static void what_is_lent_is_not_used(void **state) {
    (void)state;
    stint_session *s = open_long();
    size_t own = s->chunk_bytes - s->bounded->budget.prompt;
    assert_true(s->bounded->budget.prompt > 0);
    fill(s, 0);
    size_t of_prompts = resident_bytes(s->chunk_memory, s->chunk_bytes);
    assert_int_equal(stint_session_truncate(s, 0, 0), STINT_OK);
    eval(s, STINT_MAX_STEP_ROWS);
    size_t of_steps = resident_bytes(s->chunk_memory, s->chunk_bytes);
    assert_true(of_prompts > own || ts_is_emulated()); // where they touch less than that
    assert_true(of_steps <= own && of_steps < of_prompts);
    stint_session_close(s);
}

// As which the Python package ends a cancellation.
static void no_tokens_are_no_step(void **state) {
    (void)state;
    stint_session *s = open_long();
    stint_memory_info one = {.size = sizeof one}, still = one;
    assert_int_equal(stint_session_eval(s, 0, &(int32_t){5}, 1, false, NULL), STINT_OK);
    assert_int_equal(stint_session_memory(s, &one), STINT_OK);
    assert_int_equal(stint_session_eval(s, 0, NULL, 0, false, NULL), STINT_OK);
    assert_int_equal(stint_session_memory(s, &still), STINT_OK);
    assert_true(one.bytes_per_step > 0.0 && still.bytes_per_step == one.bytes_per_step);
    stint_session_close(s);
}

int main(void) {
    static const struct ts_bounded_variant dense = {"dense", "models/novels-10m", 0, 512, 0, 0};
    static const struct ts_bounded_variant folder = {"folder", "models/novels-10m", 0, 0, 0, 0};
    const struct CMUnitTest laws[] = {
        cmocka_unit_test(ts_bounded_any_bound_gives_the_same),
        cmocka_unit_test(ts_bounded_a_bound_must_be_given),
        cmocka_unit_test(ts_bounded_each_sequence_gets_what_it_gets_alone),
        cmocka_unit_test(short_texts_have_more_slices),
        cmocka_unit_test(steps_have_the_buffers_of_prompts),
        cmocka_unit_test(what_is_lent_is_not_used),
        cmocka_unit_test(no_tokens_are_no_step),
    };
    const struct CMUnitTest of_packages[] = {cmocka_unit_test(what_is_lent_is_not_used)};
    int failed = ts_bounded_run(&dense, true, of_packages, 1);
    return failed + ts_bounded_run(&folder, false, laws, sizeof laws / sizeof *laws);
}
