// SPDX-License-Identifier: Apache-2.0
// Whether a bound has room for weights that only draft: it does where a token is then expected to
// cost less, and never where a step reads nothing.
#include "session/weights/bounded.h"
#include "support/kinds.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static stint_model *lazy;

static int open_model(void **state) {
    (void)state;
    stint_prepare_options o = {.size = sizeof o, .n_tokens = 200, .bits_low = 2, .bits_high = 4};
    stint_model_close(ts_package(ts_built("models/novels-2"), "cost", &o));
    lazy = ts_package_on_demand("cost");
    return 0;
}

static int close_model(void **state) {
    (void)state;
    stint_model_close(lazy);
    return 0;
}

static stint_session_options options(const char *schedule, uint32_t draft_bits, uint64_t memory) {
    return (stint_session_options){.size = sizeof(stint_session_options),
                                   .n_threads = 2,
                                   .n_context = 64,
                                   .chunk_len = 16,
                                   .schedule = schedule,
                                   .n_drafts = 7,
                                   .draft_bits = draft_bits,
                                   .memory = memory};
}

static stint_session *open_session(const char *schedule, uint32_t draft_bits, uint64_t memory) {
    stint_session *s = NULL;
    stint_session_options o = options(schedule, draft_bits, memory);
    return stint_session_open(lazy, &o, &s) == STINT_OK ? s : NULL;
}

// What a machine that reads `times` slower than it computes makes of a bound.
static stint_memory_plan plan_for(uint32_t draft_bits, uint64_t memory, double times) {
    const double computes = 1e10;
    stint_memory_plan plan = {.size = sizeof plan};
    stint_session_options o = options("uniform:4", draft_bits, memory);
    stint_storage s = {.size = sizeof s, .dense_bytes_per_second = computes};
    for (uint32_t i = 0; i < STINT_STORAGE_BLOCKS; i++) {
        s.sequential_block[i] = 4096u << i;
        s.sequential_per_second[i] = computes / times / s.sequential_block[i];
    }
    assert_int_equal(stint_session_plan(lazy, &o, &s, &plan, NULL), STINT_OK);
    return plan;
}

// A forecast counts drafts where the session has them, and more of them where reading is slow.
static void check_forecast(unsigned drafts, uint64_t memory) {
    stint_memory_plan plan = plan_for(2, memory, 10.0), slow = plan_for(2, memory, 100.0);
    assert_true(plan_for(0, memory, 10.0).drafted_per_second == 0.0);
    assert_int_equal(drafts != 0, plan.drafted_per_second > 0.0);
    if (!drafts) return;
    double gain = plan.drafted_per_second / plan.tokens_per_second;
    assert_true(gain > 1.0 && gain <= slow.drafted_per_second / slow.tokens_per_second);
    assert_true(gain < 5.0); // of drafts of which four in five are right
}

// What is read of all that passes of this precision take.
static double missing(const struct st_bounded *r, unsigned bits) {
    struct st_slices_used used =
        st_slices_of_pass(&r->source, &r->plan, ST_REGION_FIXED, st_pass_nested(bits), NULL);
    return used.slices - (double)r->plan.n_entries[ST_REGION_FIXED];
}

static void weights_draft_where_that_saves(void **state) {
    (void)state;
    const uint64_t step = 64 << 10;
    unsigned mib, n_with = 0, n_without = 0;
    assert_null(open_session("uniform:4", 2, 1));
    assert_int_equal(sscanf(stint_error_text(), "memory: at least %u MiB", &mib), 1);
    for (uint64_t bound = (uint64_t)(mib - 2) << 20;; bound += step) { // a little below works, too
        stint_session *plain = open_session("uniform:4", 0, bound);
        stint_session *s = open_session("uniform:4", 2, bound);
        if (!plain || !s) {
            stint_session_close(plain);
            stint_session_close(s);
            continue;
        }
        double cost = st_bounded_token_cost(lazy, plain->bounded);
        unsigned drafts = s->bounded->pins.drafts;
        assert_int_equal(drafts, s->drafting.partial);
        assert_int_equal(s->bounded->pins.precisions & drafts, drafts);
        if (drafts) assert_true(st_bounded_token_cost(lazy, s->bounded) < cost);
        bool reads = missing(plain->bounded, 4) > 0.0;
        assert_true(reads || !drafts);
        drafts ? n_with++ : n_without++;
        stint_session_close(plain);
        stint_session_close(s);
        check_forecast(drafts, bound);
        if (!reads) break;
    }
    assert_true(n_with > 0 && n_without > 0);
}

// What a schedule runs, too, is taken whole.
static void only_what_is_not_scheduled_is_taken_in_part(void **state) {
    (void)state;
    struct st_needs needs = {.precisions = 1 << 4 | 1 << 3};
    stint_precision falling = {
        .size = sizeof falling, .prefill = 4, .n_steps = 2, .steps = {{4, 0}, {3, 9}}};
    st_precision_needs_of_drafts(lazy, &falling, 3, &needs);
    assert_int_equal(needs.drafts, 1 << 2); // of 3 bits; 4 bits are drafted with 3
    assert_int_equal(needs.precisions, 1 << 4 | 1 << 3 | 1 << 2);
    assert_int_equal(st_needs_without_drafts(&needs).precisions, 1 << 4 | 1 << 3);
    size_t rows = st_draft_head_rows(&lazy->config), vocab = lazy->config.vocab;
    assert_in_range(rows, vocab / 2, vocab / 2 + ST_NESTED_PANEL); // a small one
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_draft_where_that_saves),
        cmocka_unit_test(only_what_is_not_scheduled_is_taken_in_part)};
    return cmocka_run_group_tests(tests, open_model, close_model);
}
