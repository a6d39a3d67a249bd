// SPDX-License-Identifier: Apache-2.0
// Whether and how long fewer bits draft: on made-up times and rates of success.
#include "draft/self.h"

#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

// A machine on which a step takes 1, and a text.
struct world {
    double row;   // seconds of a further row
    double draft; // of a step that drafts
    double right; // how often its tokens are
};

struct played {
    double gain; // seconds of one token at a time over those that it took
    size_t n_drafted;
};

static double disturbed(double seconds) {
    return seconds * (1.0 + (double)ts_random_float(0.0f, 0.02f));
}

// Drafts as src/generate does: returns how many tokens, in *seconds what that took.
static size_t draft(struct st_self_draft *d, const struct st_draft_costs *costs,
                    const struct world *w, double *seconds) {
    const struct st_self_case about = {1, 1, 1, 1.0, STINT_MAX_STEP_ROWS - 1};
    struct st_self_plan plan = st_self_draft_plan(d, costs, &about);
    double chance = 1.0;
    size_t n = 0;
    if (plan.rate <= 0.0) {
        st_self_draft_idle(d);
        return 0;
    }
    do {
        double took = disturbed(w->draft);
        *seconds += st_self_draft_measure(d, costs, 1, took);
        chance *= st_self_draft_chance(d, 1.5f);
    } while (++n < plan.max && st_self_draft_goes_on(d, costs, plan.rate, chance, 1));
    return n;
}

static struct played play(const struct world *w, int n_steps) {
    struct st_draft_costs costs = {0};
    struct st_self_draft d = {0};
    struct played p = {0};
    double seconds = 0.0, plain = 0.0;
    for (int i = 0; i < n_steps; i++) {
        struct st_draft_step step = {.bits = 8, .n_texts = 1};
        st_self_draft_at(&d, 4, 8);
        size_t n = draft(&d, &costs, w, &step.drafting), n_right = 0;
        while (n_right < n && (double)ts_random_float(0.0f, 1.0f) < w->right) n_right++;
        for (size_t k = 0; k < n && k <= n_right; k++) st_self_draft_observe(&d, 1.5f, k < n_right);
        step.n_rows = 1 + n;
        step.n_tokens = 1 + n_right;
        step.seconds = disturbed(1.0 + w->row * (double)n);
        st_draft_measure(&costs, &step);
        seconds += step.seconds + step.drafting;
        plain += disturbed(1.0) * (double)step.n_tokens;
        p.n_drafted += n;
    }
    p.gain = plain / seconds;
    return p;
}

static void what_pays_is_done(void **state) {
    (void)state;
    const struct {
        struct world world;
        double gain;
    } cases[] = {{{0.02, 0.3, 0.9}, 1.5}, {{0.05, 0.6, 0.95}, 1.15}, {{0.02, 0.1, 0.6}, 1.4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double gain = play(&cases[i].world, 600).gain;
        if (gain < cases[i].gain) fail_msg("case %zu: %g times as fast", i, gain);
    }
}

static void what_loses_is_not(void **state) {
    (void)state;
    const struct world cases[] = {
        {0.02, 1.0, 0.95}, {0.02, 1.3, 1.0}, {0.02, 0.3, 0.0}, {0.5, 0.6, 0.7}, {1.0, 0.5, 0.95}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct played p = play(&cases[i], 600);
        if (p.gain < 0.99) fail_msg("case %zu: %g times as fast", i, p.gain);
        assert_true(p.n_drafted < 60);
    }
}

// What lost is tried again after a while, for it may pay by then.
static void it_is_tried_again(void **state) {
    (void)state;
    const struct world loses = {0.02, 1.3, 0.9};
    assert_true(play(&loses, 20000).n_drafted > play(&loses, 1000).n_drafted);
}

static void margins_are_learned_apart(void **state) {
    (void)state;
    struct st_self_draft d = {0};
    assert_true(st_self_draft_chance(&d, 8.0f) > st_self_draft_chance(&d, 0.1f));
    for (int i = 0; i < 600; i++) {
        st_self_draft_observe(&d, 8.0f, false);
        st_self_draft_observe(&d, 0.1f, true);
    }
    assert_true(st_self_draft_chance(&d, 8.0f) < 0.1 && st_self_draft_chance(&d, 0.1f) > 0.9);
    st_self_draft_at(&d, 3, 8); // of other bits nothing is known
    assert_true(st_self_draft_chance(&d, 8.0f) > 0.9);
}

static void another_target_is_not_drafted_for(void **state) {
    (void)state;
    const struct st_self_case about = {1, 1, 1, 1.0, 4};
    struct st_self_draft d = {.bits = 2, .target = 4};
    struct st_draft_costs costs = {0};
    assert_true(st_self_draft_plan(&d, &costs, &about).rate == 0.0); // nothing was measured
    for (int i = 0; i < 100; i++)
        st_draft_measure(&costs, &(struct st_draft_step){8, 1, 1, 1, 1.0, 0.0});
    assert_true(st_self_draft_plan(&d, &costs, &about).rate == 0.0);
    d.target = 8;
    assert_true(st_self_draft_plan(&d, &costs, &about).rate > 0.0);
}

static void what_else_is_expected_is_said(void **state) {
    (void)state;
    const struct st_self_case about = {1, 1, 3, 1.5, 4}; // two rows were drafted otherwise
    struct st_self_draft d = {.bits = 2, .target = 8};
    struct st_draft_costs costs = {0};
    assert_true(st_self_draft_plan(&d, &costs, &about).without == 0.0);
    assert_true(st_self_draft_hope(&d) == 0.0);
    st_draft_measure(&costs, &(struct st_draft_step){8, 1, 1, 1, 2.0, 0.0});
    for (int i = 0; i < 200; i++) // steps of any number of rows cost the same
        st_draft_measure(&costs, &(struct st_draft_step){8, 1, 2 + i % 3, 1, 2.0, 0.0});
    for (int i = 0; i < 3; i++) st_self_draft_measure(&d, &costs, 1, 0.25);
    for (int i = 0; i < 200; i++) st_self_draft_observe(&d, 1.5f, i % 4 > 0);
    st_draft_measure(&costs, &(struct st_draft_step){8, 1, 1, 1, 2.0, 0.0}); // as was due
    assert_true(fabs(st_self_draft_plan(&d, &costs, &about).without - 0.75) < 0.02);
    assert_true(fabs(st_self_draft_hope(&d) - 0.75) < 0.02);
}

// Another draft is right no more often than those that were seen: that is a factor of its gain.
static void it_goes_on_while_the_next_draft_pays(void **state) {
    (void)state;
    const double seconds = 0.25, chance = 0.8;
    struct st_self_draft d = {.bits = 4, .target = 8};
    struct st_draft_costs costs = {0}; // so further rows cost nothing
    for (int i = 0; i < 3; i++) st_self_draft_measure(&d, &costs, 1, seconds);
    for (int i = 0; i < 200; i++) st_self_draft_observe(&d, 1.5f, i % 2 == 0);
    double most = chance * 0.5 / seconds; // half of the drafts were right
    assert_true(st_self_draft_goes_on(&d, &costs, 0.9 * most, chance, 1));
    assert_false(st_self_draft_goes_on(&d, &costs, 1.1 * most, chance, 1));
    assert_false(st_self_draft_goes_on(&d, &costs, 0.9 * most, 0.8 * chance, 1));
}

// Of two precisions the faster one drafts, and the other one now and then.
static void the_faster_way_drafts(void **state) {
    (void)state;
    struct st_self_draft drafts[ST_SELF_WAYS] = {{.bits = 4}, {.bits = 0}};
    struct st_self_plan plans[ST_SELF_WAYS] = {{.rate = 2.0}, {.rate = 3.0}};
    size_t n[ST_SELF_WAYS] = {0};
    for (uint32_t turn = 0; turn < 256; turn++)
        assert_int_equal(st_self_draft_select(drafts, plans, turn), 0); // there is no other one
    drafts[1].bits = 3;
    for (uint32_t turn = 0; turn < 256; turn++) n[st_self_draft_select(drafts, plans, turn)]++;
    assert_int_equal(n[1], 16); // not known yet: trials alone
    for (int i = 0; i < 60; i++) st_self_draft_observe(&drafts[1], 3.0f, true);
    n[0] = n[1] = 0;
    for (uint32_t turn = 0; turn < 256; turn++) n[st_self_draft_select(drafts, plans, turn)]++;
    assert_int_equal(n[1], 254);
    plans[1].rate = 1.0;
    n[0] = n[1] = 0;
    for (uint32_t turn = 0; turn < 256; turn++) n[st_self_draft_select(drafts, plans, turn)]++;
    assert_int_equal(n[0], 254);
    plans[1].rate = 0.0; // would not pay: not even tried
    for (uint32_t turn = 0; turn < 256; turn++)
        assert_int_equal(st_self_draft_select(drafts, plans, turn), 0);
}

// A part of the head drafts where it saves more than the tokens that it lacks cost.
static void a_part_of_the_head_is_for_texts_that_it_has(void **state) {
    (void)state;
    struct st_draft_head head = {0};
    assert_true(st_draft_head_is_enough(&head, 0.16)); // texts are believed to have few others
    assert_false(st_draft_head_is_enough(&head, 0.08));
    for (int i = 0; i < 400; i++) st_draft_head_observe(&head, i % 100 < 3);
    assert_true(st_draft_head_is_enough(&head, 0.08));
    assert_false(st_draft_head_is_enough(&head, 0.0));
    for (int i = 0; i < 40; i++) st_draft_head_observe(&head, i % 10 < 6); // another script
    assert_false(st_draft_head_is_enough(&head, 0.16));
    for (int i = 0; i < 2000; i++) st_draft_head_observe(&head, false);
    assert_true(st_draft_head_is_enough(&head, 0.02)); // what was is forgotten
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_pays_is_done),
        cmocka_unit_test(what_loses_is_not),
        cmocka_unit_test(it_is_tried_again),
        cmocka_unit_test(margins_are_learned_apart),
        cmocka_unit_test(what_else_is_expected_is_said),
        cmocka_unit_test(it_goes_on_while_the_next_draft_pays),
        cmocka_unit_test(another_target_is_not_drafted_for),
        cmocka_unit_test(the_faster_way_drafts),
        cmocka_unit_test(a_part_of_the_head_is_for_texts_that_it_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
