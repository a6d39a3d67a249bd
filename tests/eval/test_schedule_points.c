// SPDX-License-Identifier: Apache-2.0
// Points that are tried together: what is good, what is dropped early, what has no room.
#include "eval/schedule_points.h"

#include "support/kinds.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static stint_model *model;
static const char *prompts;

static int open_model(void **state) {
    (void)state;
    stint_prepare_options o = {.size = sizeof o, .n_tokens = 200, .bits_low = 2, .bits_high = 4};
    model = ts_package(ts_built("models/novels-2"), "points", &o);
    prompts = ts_write_text("prompts.jsonl",
                            "{\"prompt\":\"The old man\",\"reference\":\"sat down\"}\n"
                            "{\"prompt\":\"She said that\",\"reference\":\"it was late\"}\n");
    return 0;
}

static int close_model(void **state) {
    (void)state;
    stint_model_close(model);
    return 0;
}

static stint_status try_pairs(struct st_points *s, stint_schedule_result *out) {
    for (unsigned bits = 4; bits >= 2; bits--) {
        stint_precision p = st_precision_uniform(8, bits);
        st_points_add(s, "steps", ST_BY_PRECISION, &p);
    }
    ST_TRY(st_points_try(s, false));
    out->quality = s->points[1].out.quality;
    for (size_t i = 0; i < s->n; i++) {
        const stint_schedule_point *tried = &s->points[i].out;
        double certain = 6.3138; // standard errors, as there are two prompts
        assert_int_equal(st_point_is_good(s, &s->points[i]),
                         tried->quality + certain * tried->error <= s->run.epsilon);
    }
    // Its mean alone would be within epsilon.
    double epsilon = s->run.epsilon;
    assert_true(s->points[3].out.error > 0.0);
    s->run.epsilon = s->points[3].out.quality;
    assert_false(st_point_is_good(s, &s->points[3]));
    s->run.epsilon = epsilon;
    s->points[1].dropped = true;
    assert_false(st_point_is_good(s, &s->points[1]));
    // Tried later, it finds the same reference.
    stint_precision p = st_precision_uniform(8, 4);
    st_points_add(s, "again", ST_BY_PRECISION, &p);
    ST_TRY(st_points_try(s, false));
    assert_float_equal(s->points[4].out.quality, out->quality, 0.0);
    while (st_points_add(s, "more", ST_BY_PRECISION, &p)) continue;
    assert_int_equal(s->n, ST_POINTS);
    assert_true(s->too_many);
    return STINT_OK;
}

static stint_status run(const char *metric, double epsilon, st_points_fn *fn) {
    stint_schedule_options o = {.size = sizeof o,
                                .data = prompts,
                                .metric = metric,
                                .n_tokens = 8,
                                .epsilon = epsilon,
                                .times = "8:1:8,4:1:4,3:1:3,2:1:2"};
    stint_schedule_result result = {.size = sizeof result};
    return st_points_run(model, &o, &result, fn);
}

static void good_is_what_stays_within_epsilon(void **state) {
    (void)state;
    const double epsilons[] = {1e-6, 0.02, 0.5};
    for (size_t i = 0; i < 3; i++) {
        if (run("kl", epsilons[i], try_pairs) != STINT_OK) fail_msg("%s", stint_error_text());
    }
}

static void failures_come_through(void **state) {
    (void)state;
    assert_int_equal(run("charm", 0.1, try_pairs), STINT_E_ARG);
    assert_non_null(strstr(stint_error_text(), "kl"));
    stint_schedule_options o = {.size = sizeof o, .data = prompts, .signal = 7};
    stint_schedule_result result = {.size = sizeof result};
    assert_int_equal(st_points_run(model, &o, &result, try_pairs), STINT_E_ARG);
    o.signal = STINT_SIGNAL_NONE;
    o.minimize = "pain";
    assert_int_equal(st_points_run(model, &o, &result, try_pairs), STINT_E_ARG);
    o.minimize = NULL;
    o.times = "8:1:1";
    assert_int_equal(st_points_run(model, &o, &result, try_pairs), STINT_E_ARG);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_is_what_stays_within_epsilon),
        cmocka_unit_test(failures_come_through),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
