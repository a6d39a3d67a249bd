// SPDX-License-Identifier: Apache-2.0
// Schedules compared on the same prompts, through the public interface: what is run, in which
// order, with which bits and times.
#include "stint.h"

#include "support/kinds.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { MAX_POINTS = 32, N_ITEMS = 4, N_TOKENS = 10 };

static stint_model *model;
static const char *prompts;

static int open_model(void **state) {
    (void)state;
    stint_prepare_options o = {.size = sizeof o, .n_tokens = 200, .bits_low = 2, .bits_high = 4};
    model = ts_package(ts_built("models/novels-2"), "compared", &o);
    prompts = ts_write_text("prompts.jsonl",
                            "{\"prompt\":\"The old man\",\"reference\":\"sat down\"}\n"
                            "{\"prompt\":\"She said that\",\"reference\":\"it was late\"}\n"
                            "{\"prompt\":\"In the garden\",\"reference\":\"there were roses\"}\n"
                            "{\"prompt\":\"It was a cold\",\"reference\":\"evening\"}\n");
    return 0;
}

static int close_model(void **state) {
    (void)state;
    stint_model_close(model);
    return 0;
}

struct seen {
    size_t n;
    stint_schedule_point points[MAX_POINTS];
    double scores[MAX_POINTS][N_ITEMS], bits[MAX_POINTS][N_ITEMS];
    uint32_t steps[MAX_POINTS][N_ITEMS][9];
};

static void take_point(void *context, const stint_schedule_point *point) {
    struct seen *seen = context;
    assert_true(seen->n < MAX_POINTS);
    seen->points[seen->n] = *point;
    assert_non_null(point->scores);
    memcpy(seen->scores[seen->n], point->scores, sizeof seen->scores[0]);
    memcpy(seen->bits[seen->n], point->bits, sizeof seen->bits[0]);
    memcpy(seen->steps[seen->n], point->steps, sizeof seen->steps[0]);
    seen->n++;
}

static stint_schedule_options options_of(const char *metric, struct seen *seen) {
    static const char *const schedules[] = {"uniform:3"};
    return (stint_schedule_options){.size = sizeof(stint_schedule_options),
                                    .data = prompts,
                                    .metric = metric,
                                    .n_tokens = N_TOKENS,
                                    .high = 4,
                                    .low = 2,
                                    .schedules = schedules,
                                    .n_schedules = 1,
                                    .times = "8:1:8,4:1:4,3:1:3,2:1:2",
                                    .point = take_point,
                                    .context = seen};
}

static void compare(const char *metric, const stint_model *reference, struct seen *seen) {
    stint_schedule_options o = options_of(metric, seen);
    o.reference = reference;
    stint_schedule_result result = {.size = sizeof result};
    seen->n = 0;
    if (stint_schedule_compare(model, &o, &result) != STINT_OK) fail_msg("%s", stint_error_text());
    assert_int_equal(result.items, N_ITEMS);
}

static const stint_schedule_point *find(const struct seen *seen, const char *name, uint32_t bits) {
    for (size_t i = 0; i < seen->n; i++) {
        const stint_schedule_point *p = &seen->points[i];
        if (strcmp(p->name, name) == 0 && (!bits || p->precision.steps[0].bits == bits)) return p;
    }
    fail_msg("no point '%s'", name);
    return NULL;
}

static void divergence_rises_as_bits_fall(void **state) {
    (void)state;
    static struct seen seen;
    compare("kl", NULL, &seen);
    assert_float_equal(find(&seen, "int8", 0)->quality, 0.0, 0.0);
    double q4 = find(&seen, "uniform", 4)->quality, q2 = find(&seen, "uniform", 2)->quality;
    assert_true(q4 > 0.0 && q4 < q2);
    const stint_schedule_point *given = find(&seen, "uniform:3", 0);
    assert_int_equal(given->precision.prefill, 3); // of the others 8
    assert_true(given->quality > q4 && given->quality < q2);
    assert_float_equal(given->average_bits, 3.0, 0.0);
    static const char *const mixed[] = {"random",     "random steps",       "in turn",
                                        "high first", "high in the middle", "high last"};
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++) {
        const stint_schedule_point *p = find(&seen, mixed[i], 0);
        assert_int_equal(p->precision.n_steps, 0);
        assert_true(p->average_bits >= 2.0 && p->average_bits <= 4.0);
        assert_true(p->quality <= q2 * 1.5);
    }
}

static void steps_are_counted_by_precision(void **state) {
    (void)state;
    static struct seen seen;
    compare("kl", NULL, &seen);
    for (size_t i = 0; i < seen.n; i++)
        for (size_t k = 0; k < N_ITEMS; k++) {
            uint32_t n = 0, sum = 0;
            for (uint32_t b = 0; b < 9; b++) n += seen.steps[i][k][b];
            for (uint32_t b = 0; b < 9; b++) sum += b * seen.steps[i][k][b];
            assert_true(n > 0);
            assert_float_equal((double)sum / n, seen.bits[i][k], 1e-9);
        }
}

// All follow the same tokens, so times differ by those of the steps alone.
static void scores_bits_and_times_are_told_for_each_prompt(void **state) {
    (void)state;
    static struct seen seen;
    compare("kl", NULL, &seen);
    for (size_t i = 0; i < seen.n; i++) {
        double sum = 0.0;
        for (size_t k = 0; k < N_ITEMS; k++) sum += seen.scores[i][k] / N_ITEMS;
        assert_float_equal(sum, seen.points[i].quality, 1e-9);
        for (size_t k = 0; k < N_ITEMS; k++)
            assert_true(seen.bits[i][k] >= 2.0 && seen.bits[i][k] <= 8.0);
    }
    double s4 = find(&seen, "uniform", 4)->seconds, s3 = find(&seen, "uniform", 3)->seconds;
    double s2 = find(&seen, "uniform", 2)->seconds;
    assert_true(s2 > 0.0);
    assert_float_equal(s4 - s3, s3 - s2, 1e-9);
    assert_true(find(&seen, "uniform", 4)->error > 0.0);
}

static void given_schedules_are_compared_alone(void **state) {
    (void)state;
    static struct seen all, alone;
    stint_schedule_options o = options_of("kl", &alone);
    stint_schedule_result result = {.size = sizeof result};
    compare("kl", NULL, &all);
    o.only = true;
    assert_int_equal(stint_schedule_compare(model, &o, &result), STINT_OK);
    assert_int_equal(alone.n, 2);
    assert_string_equal(alone.points[0].name, "int8"); // the reference
    assert_string_equal(alone.points[1].name, "uniform:3");
    assert_float_equal(alone.points[1].quality, find(&all, "uniform:3", 0)->quality, 0.0);
    o.n_schedules = 0;
    assert_int_equal(stint_schedule_compare(model, &o, &result), STINT_E_ARG);
}

static void a_reference_is_another_model(void **state) {
    (void)state;
    static struct seen seen;
    stint_model *source = NULL, *other = NULL;
    assert_int_equal(stint_model_open(ts_built("models/novels-2"), NULL, &source), STINT_OK);
    compare("kl", source, &seen);
    assert_string_equal(seen.points[0].name, "reference");
    assert_float_equal(seen.points[0].quality, 0.0, 0.0);
    assert_true(find(&seen, "int8", 0)->quality > 0.0);
    assert_true(find(&seen, "int8", 0)->quality < find(&seen, "uniform", 2)->quality);
    compare("agreement", source, &seen);
    assert_float_equal(seen.points[0].quality, 1.0, 0.0);
    stint_model_close(source);
    assert_int_equal(stint_model_open(ts_source("tests/golden/models/qwen35"), NULL, &other),
                     STINT_OK);
    stint_schedule_options o = {.size = sizeof o, .data = prompts, .reference = other};
    stint_schedule_result result = {.size = sizeof result};
    assert_int_equal(stint_schedule_compare(model, &o, &result), STINT_E_ARG);
    assert_non_null(strstr(stint_error_text(), "vocabulary"));
    stint_model_close(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(divergence_rises_as_bits_fall),
        cmocka_unit_test(steps_are_counted_by_precision),
        cmocka_unit_test(scores_bits_and_times_are_told_for_each_prompt),
        cmocka_unit_test(given_schedules_are_compared_alone),
        cmocka_unit_test(a_reference_is_another_model),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
