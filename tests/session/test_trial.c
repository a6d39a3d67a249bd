// SPDX-License-Identifier: Apache-2.0
#include "session/weights/trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

// n steps, of which those with it take `with` seconds, others `without`; each `slow`-th takes ten
// times as long, and each is faster than the one before by `trend` seconds.
struct course {
    double with, without, trend;
    size_t slow; // 0: none
};

static void run(struct st_trial *t, size_t n, const struct course *c) {
    for (size_t i = 0; i < n; i++) {
        double seconds = st_trial_next(t) ? c->with : c->without;
        seconds += c->trend * (double)(n - i);
        st_trial_note(t, c->slow && i % c->slow == 0 ? 10.0 * seconds : seconds);
    }
}

static bool pays(struct course c) {
    struct st_trial t = {0};
    run(&t, ST_TRIAL_STEPS, &c);
    return st_trial_next(&t);
}

static void both_are_tried(void **state) {
    struct st_trial t = {0};
    size_t with = 0;
    (void)state;
    for (size_t i = 0; i < ST_TRIAL_STEPS; i++) {
        with += st_trial_next(&t);
        assert_int_equal(st_trial_next(&t), i % 4 == 0 || i % 4 == 3); // asking changes nothing
        st_trial_note(&t, 1.0);
    }
    assert_int_equal(with, ST_TRIAL_STEPS / 2);
    assert_false(st_trial_next(&t)); // what costs as much as it saves is left out
}

static void the_faster_one_stays(void **state) {
    (void)state;
    for (int better = 0; better < 2; better++) {
        struct st_trial t = {0};
        run(&t, ST_TRIAL_STEPS, &(struct course){better ? 1.0 : 1.1, better ? 1.1 : 1.0, 0.0, 0});
        for (size_t i = ST_TRIAL_STEPS; i < ST_TRIAL_PERIOD; i++) {
            assert_int_equal(st_trial_next(&t), better);
            st_trial_note(&t, better ? 100.0 : 0.0); // no longer compared
        }
        assert_true(st_trial_next(&t)); // and it is tried again
    }
}

static void a_change_is_found_out(void **state) {
    struct st_trial t = {0};
    (void)state;
    run(&t, ST_TRIAL_PERIOD, &(struct course){1.0, 2.0, 0.0, 0});
    run(&t, ST_TRIAL_STEPS, &(struct course){2.0, 1.0, 0.0, 0});
    assert_false(st_trial_next(&t));
}

static void few_slow_steps_do_not_count(void **state) {
    (void)state;
    for (size_t slow = ST_TRIAL_STEPS / 2; slow <= ST_TRIAL_STEPS; slow++) {
        assert_true(pays((struct course){1.0, 1.1, 0.0, slow}));
        assert_false(pays((struct course){1.1, 1.0, 0.0, slow}));
    }
}

// Of a cache that fills each step is faster than the one before.
static void a_trend_does_not_count(void **state) {
    (void)state;
    for (int i = -1; i <= 1; i++) {
        assert_true(pays((struct course){20.0, 20.1, 0.5 * i, 0}));
        assert_false(pays((struct course){20.1, 20.0, 0.5 * i, 0}));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_are_tried),         cmocka_unit_test(the_faster_one_stays),
        cmocka_unit_test(a_change_is_found_out),  cmocka_unit_test(few_slow_steps_do_not_count),
        cmocka_unit_test(a_trend_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
