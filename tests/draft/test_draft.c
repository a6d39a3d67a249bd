// SPDX-License-Identifier: Apache-2.0
// Proposals, what is learned about them, and whether they pay: steps of invented cost.
#include "draft/draft.h"

#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { CONTEXT = 512 };

static struct st_draft draft;
static struct st_arena arena;

static int open_draft(void **state) {
    (void)state;
    struct st_arena measure = st_arena_measure();
    draft = (struct st_draft){0};
    st_draft_lay_out(&draft, CONTEXT, &measure);
    if (st_arena_open(&arena, measure.used) != STINT_OK) return -1;
    st_draft_lay_out(&draft, CONTEXT, &arena);
    return 0;
}

static int close_draft(void **state) {
    (void)state;
    st_arena_close(&arena);
    return 0;
}

static void what_followed_is_proposed(void **state) {
    (void)state;
    static const int32_t text[] = {5, 6, 7, 8, 9, 1, 2, 5, 6, 7},
                         wanted[] = {8, 9, 1, 2, 5, 6, 7, 8, 9, 1, 2};
    int32_t ids[11];
    double chances[11];
    st_draft_follow(&draft, text, 7, 0);
    assert_int_equal(st_draft_propose(&draft, 11, ids, chances), 0);
    st_draft_follow(&draft, text, 10, 0);
    assert_int_equal(st_draft_propose(&draft, 11, ids, chances), 11);
    assert_memory_equal(ids, wanted, sizeof wanted); // beyond the text it repeats
    for (int i = 1; i < 11; i++) assert_true(chances[i] > 0.0 && chances[i] < chances[i - 1]);
    assert_int_equal(st_draft_propose(&draft, 0, ids, chances), 0);
}

// As if it had been another's from the beginning.
static void another_text_is_taken_up(void **state) {
    (void)state;
    int32_t text[CONTEXT], ids[8];
    double chances[8];
    for (int i = 0; i < CONTEXT; i++) text[i] = i % 100;
    for (int round = 0; round < 20; round++) {
        size_t n = 102 + ts_random_below(CONTEXT - 102);
        text[ts_random_below(100)]++; // somewhere before
        st_draft_follow(&draft, text, n, 0);
        assert_int_equal(draft.suffix.n, n);
        assert_memory_equal(draft.suffix.text, text, n * sizeof *text);
        st_draft_follow(&draft, text, n - ts_random_below(50), 0);
    }
    st_draft_follow(&draft, text, CONTEXT, 0);
    assert_int_equal(st_draft_propose(&draft, 8, ids, chances), 8);
}

static void right_proposals_are_counted(void **state) {
    (void)state;
    int32_t text[CONTEXT], ids[1];
    double before, chance;
    for (int i = 0; i < CONTEXT; i++) text[i] = i % 10;
    st_draft_follow(&draft, text, 200, 0); // a prompt says nothing
    assert_int_equal(st_draft_propose(&draft, 1, ids, &before), 1);
    st_draft_follow(&draft, text, 260, 60);
    st_draft_propose(&draft, 1, ids, &chance);
    assert_true(chance > before && chance > 0.95);
    for (int i = 260; i < CONTEXT; i++) text[i] = (int32_t)ts_random_below(2) + 100 * (i % 2);
    st_draft_follow(&draft, text, CONTEXT, CONTEXT - 260);
    assert_true(draft.right[2] + draft.right[1] <= draft.tried[2] + draft.tried[1]);
}

// Seconds of a step of n rows.
typedef double cost_fn(size_t n);
static double cheap(size_t n) {
    return 1.0 + 0.05 * (double)n;
}
static double steep(size_t n) {
    return (double)n;
}
static double stepped(size_t n) {
    return (double)((n + 3) / 4) * 0.7;
}

static void measure(struct st_draft_costs *costs, unsigned bits, size_t n_texts, size_t n_rows,
                    size_t n_tokens, double seconds) {
    const struct st_draft_step step = {bits, n_texts, n_rows, n_tokens, seconds, 0.0};
    st_draft_measure(costs, &step);
}

// Plays n steps whose drafts are right with probability `right` but are thought to be right with
// `thought`. Returns the seconds of one token at a time over those that it took.
static double play(cost_fn *cost, double right, double thought, int n, size_t n_texts) {
    struct st_draft_costs costs = {0};
    double chances[STINT_MAX_STEP_ROWS], seconds = 0.0, plain = 0.0, p = 1.0;
    for (int i = 0; i < STINT_MAX_STEP_ROWS; i++) chances[i] = p *= thought;
    for (int step = 0; step < n; step++) {
        size_t n_drafts =
            st_draft_select(&costs, 8, n_texts, chances, STINT_MAX_STEP_ROWS - n_texts);
        size_t n_right = 0;
        while (n_right < n_drafts && (double)ts_random_float(0.0f, 1.0f) < right) n_right++;
        double noise = 1.0 + (double)ts_random_float(0.0f, 0.02f);
        double took = cost(n_texts + n_drafts) * noise;
        measure(&costs, 8, n_texts, n_texts + n_drafts, n_texts + n_right, took);
        seconds += took;
        plain += cost(n_texts) * noise * (double)(n_texts + n_right) / (double)n_texts;
    }
    return plain / seconds;
}

static void what_pays_is_done(void **state) {
    (void)state;
    assert_true(play(cheap, 0.9, 0.9, 400, 1) > 3.0);
    assert_true(play(stepped, 0.9, 0.9, 400, 1) > 1.5);
    assert_true(play(cheap, 0.9, 0.9, 400, 4) > 1.3);
}

static void what_loses_is_not(void **state) {
    (void)state;
    cost_fn *costs[] = {cheap, steep, stepped};
    for (int i = 0; i < 3; i++) {
        for (size_t n = 1; n <= 3; n += 2) {
            double gain = play(costs[i], 0.0, 0.9, 400, n); // it looks good
            if (gain < 0.99) fail_msg("cost %d, %zu texts: %g", i, n, gain);
        }
        double gain = play(costs[i], 0.1, 0.2, 400, 1);
        if (gain < 0.99) fail_msg("cost %d: %g", i, gain);
    }
    assert_true(play(steep, 0.9, 0.9, 400, 1) > 0.99);
}

static void nothing_is_drafted_before_a_step_is_measured(void **state) {
    (void)state;
    struct st_draft_costs costs = {0};
    const double chances[] = {0.99, 0.98, 0.97};
    assert_true(st_draft_cost(&costs, 1) == 0.0);
    assert_int_equal(st_draft_select(&costs, 8, 1, chances, 3), 0);
    measure(&costs, 8, 1, 1, 1, 0.01);
    assert_true(st_draft_select(&costs, 8, 1, chances, 3) > 0);
    assert_int_equal(st_draft_select(&costs, 4, 1, chances, 3), 0); // at another precision
    assert_int_equal(st_draft_select(&costs, 8, 2, chances, 3), 0); // of more texts
}

// The first step may have waited for a file: drafts that only look as if they gained by that end.
static void what_a_plain_step_costs_is_measured_again(void **state) {
    (void)state;
    struct st_draft_costs costs = {0};
    const double chances[] = {0.9};
    size_t n_drafted = 0, n_plain = 0;
    measure(&costs, 8, 1, 1, 1, 10.0);
    for (int i = 0; i < 400; i++) {
        size_t n = st_draft_select(&costs, 8, 1, chances, 1);
        measure(&costs, 8, 1, 1 + n, 1, n ? 2.0 : 1.0);
        n_drafted += n;
        n_plain += n == 0;
        if (n) assert_false(costs.plain[1] == 1.0);
    }
    assert_true(n_drafted > 0 && n_plain > 300);
    costs.always = true;
    assert_int_equal(st_draft_select(&costs, 8, 1, chances, 1), 1);
}

static void costs_between_are_estimated(void **state) {
    (void)state;
    struct st_draft_costs costs = {0};
    measure(&costs, 8, 1, 1, 1, 1.0);
    measure(&costs, 8, 1, 3, 1, 2.0);
    assert_true(st_draft_cost(&costs, 2) < 2.0 && st_draft_cost(&costs, 5) > 2.0);
    for (int i = 0; i < 300; i++) {
        size_t n = 2 + ts_random_below(15);
        measure(&costs, 8, 1, n, 1, 1.5 + 0.25 * (double)n);
    }
    for (size_t n = 2; n <= STINT_MAX_STEP_ROWS; n++)
        assert_true(fabs(st_draft_cost(&costs, n) - 1.5 - 0.25 * (double)n) < 0.01);
    assert_true(st_draft_cost(&costs, 1) == 1.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_followed_is_proposed, open_draft, close_draft),
        cmocka_unit_test_setup_teardown(another_text_is_taken_up, open_draft, close_draft),
        cmocka_unit_test_setup_teardown(right_proposals_are_counted, open_draft, close_draft),
        cmocka_unit_test(what_pays_is_done),
        cmocka_unit_test(what_loses_is_not),
        cmocka_unit_test(nothing_is_drafted_before_a_step_is_measured),
        cmocka_unit_test(what_a_plain_step_costs_is_measured_again),
        cmocka_unit_test(costs_between_are_estimated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
