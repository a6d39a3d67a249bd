// SPDX-License-Identifier: Apache-2.0
// Thresholds, hot channels and ranking on inputs whose answers are known.
#include "prepare/outliers.h"
#include "prepare/plan.h"
#include "support/support.h"

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N = 1000, TOKENS = 200 };

struct input {
    float max[N], norms[N], x[TOKENS][N];
    uint32_t beyond[N * ST_CLIP_CANDIDATES];
    struct st_input_stats stats;
};

// Values up to 1; the first `n_outliers` channels up to `strength`, channel i in every i + 1st
// token.
static struct input *make(size_t n_outliers, float strength) {
    struct input *in = calloc(1, sizeof *in);
    assert_non_null(in);
    in->stats =
        (struct st_input_stats){.n = N, .max = in->max, .norms = in->norms, .beyond = in->beyond};
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t i = 0; i < N; i++) {
            in->x[t][i] = ts_random_float(-1.0f, 1.0f);
            if (i < n_outliers && t % (i + 1) == 0) in->x[t][i] = strength;
            in->max[i] = fmaxf(in->max[i], fabsf(in->x[t][i]));
        }
    for (size_t i = 0; i < N; i++) in->norms[i] = 1.0f;
    assert_int_equal(st_outlier_scales(&in->stats, "x"), STINT_OK);
    for (size_t t = 0; t < TOKENS; t++) st_outlier_count(&in->stats, in->x[t], true);
    st_outlier_select(&in->stats);
    return in;
}

static double beyond_per_token(const struct input *in, float threshold) {
    size_t n = 0;
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t i = 0; i < N; i++) n += fabsf(in->x[t][i]) > threshold;
    return (double)n / TOKENS;
}

static void thresholds_leave_few_elements_beyond(void **state) {
    (void)state;
    for (size_t n_outliers = 0; n_outliers < 12; n_outliers += 3) {
        struct input *in = make(n_outliers, 100.0f);
        const struct st_input_stats *s = &in->stats;
        assert_true(beyond_per_token(in, 127.0f * s->scales[s->shadow]) <= ST_OUTLIERS_FEW);
        if (s->shadow + 1 < ST_CLIP_CANDIDATES)
            assert_true(beyond_per_token(in, 127.0f * s->scales[s->shadow + 1]) > ST_OUTLIERS_FEW);
        assert_true(s->scales[s->shadow] * 127.0f <= 1.0f / 0.8f);
        uint64_t hits = 0;
        for (size_t c = 0; c < N; c++) hits += st_outlier_hits(s, c);
        assert_true((double)hits / TOKENS == beyond_per_token(in, 127.0f * s->scales[s->shadow]));
        free(in);
    }
}

static double clip_error(const struct input *in, float scale) {
    double error = 0;
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t i = 0; i < N; i++) {
            double q = fmin(127, fmax(-127, rint((double)in->x[t][i] / (double)scale)));
            error += pow((double)in->x[t][i] - q * (double)scale, 2);
        }
    return error;
}

static void clipping_alone_takes_the_least_error(void **state) {
    (void)state;
    struct input *in = make(3, 8.0f);
    float best = st_outlier_clip_scale(&in->stats);
    for (int i = 0; i < ST_CLIP_CANDIDATES; i++)
        assert_true(clip_error(in, best) <= clip_error(in, in->stats.scales[i]) * 1.0001);
    free(in);
}

static void hot_channels_cover_most_hits(void **state) {
    (void)state;
    struct input *in = make(10, 100.0f);
    uint32_t order[N];
    int32_t hot[N], next = 0;
    size_t n_hot = st_outlier_hot(&in->stats, order, hot);
    uint64_t all = 0, covered = 0, min = UINT64_MAX;
    for (size_t c = 0; c < N; c++) {
        uint64_t hits = st_outlier_hits(&in->stats, c);
        all += hits;
        if (hot[c] < 0) continue;
        assert_int_equal(hot[c], next++);
        covered += hits;
        min = hits < min ? hits : min;
    }
    assert_int_equal(next, n_hot);
    assert_true(hot[0] >= 0); // beyond in every token
    assert_true((double)covered >= ST_HOT_COVER * (double)all);
    assert_true((double)(covered - min) < ST_HOT_COVER * (double)all);
    double cover[ST_COVER_POINTS];
    st_outlier_cover(&in->stats, order, cover);
    for (size_t i = 1; i < ST_COVER_POINTS; i++) assert_true(cover[i] >= cover[i - 1]);
    assert_true(cover[0] > 0.0 && cover[ST_COVER_POINTS - 1] == 1.0);
    free(in);
}

static void few_channels_can_be_hot(void **state) {
    (void)state;
    struct input *in = make(0, 1.0f); // spread evenly
    uint32_t order[N];
    int32_t hot[N];
    in->stats.shadow = ST_CLIP_CANDIDATES - 1;
    assert_int_equal(st_outlier_hot(&in->stats, order, hot), (size_t)(ST_HOT_MAX * N));
    free(in);
}

static void odd_maxima(void **state) {
    (void)state;
    float max[3] = {0.0f, 0.0f, 0.0f};
    struct st_input_stats s = {.n = 3, .max = max};
    assert_int_equal(st_outlier_scales(&s, "x"), STINT_OK);
    assert_true(s.scales[0] == 1.0f);
    max[1] = 254.0f;
    assert_int_equal(st_outlier_scales(&s, "x"), STINT_OK);
    assert_true(s.scales[0] == 2.0f && s.scales[1] < 2.0f);
    max[1] = 1e-44f;
    assert_int_equal(st_outlier_scales(&s, "x"), STINT_OK);
    for (int i = 0; i < ST_CLIP_CANDIDATES; i++)
        assert_true(s.scales[i] > 0.0f && 1.0f / s.scales[i] < INFINITY);
    max[2] = NAN;
    assert_int_equal(st_outlier_scales(&s, "x"), STINT_E_FORMAT);
    assert_non_null(strstr(stint_error_text(), "'x', channel 2, is not finite"));
}

static void the_least_important_are_pruned_first(void **state) {
    (void)state;
    struct st_plan plan = {0};
    const float strengths[] = {50.0f, 4.0f, 200.0f, 10.0f};
    for (uint32_t i = 0; i < 4; i++) {
        char name[8];
        struct input *in = make(2, strengths[i]);
        snprintf(name, sizeof name, "l%u", i);
        assert_int_equal(st_plan_add(&plan, name, ST_INT8_O, i, 0, &in->stats), STINT_OK);
        free(in);
    }
    assert_int_equal(st_plan_rank(&plan), STINT_OK);
    const uint32_t wanted[] = {1, 3, 0, 2};
    assert_memory_equal(plan.by_importance, wanted, sizeof wanted);
    st_plan_prune(&plan, 0.5);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(plan.linears[i].shadowed, strengths[i] >= 50.0f);
    st_plan_prune(&plan, 1.0);
    assert_false(plan.linears[2].shadowed);
    st_plan_prune(&plan, 0.0);
    assert_true(plan.linears[1].shadowed);
    // What is normalised within a subgraph has scales of rows, whatever the others have.
    plan.linears[2].own_scales = true;
    st_plan_prune(&plan, 0.5);
    assert_false(plan.linears[2].shadowed);
    assert_true(plan.linears[2].input[0] == 2.0f && plan.linears[2].input[1] == 0.0f);
    assert_true(plan.linears[0].shadowed && plan.linears[0].input[1] > 0.0f);
    assert_ptr_equal(st_plan_find(&plan, "l2"), &plan.linears[2]);
    assert_null(st_plan_find(&plan, "l9"));
    assert_true(plan.linears[2].per_token > 1.0 && plan.linears[2].n_hot > 0);
    st_plan_close(&plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thresholds_leave_few_elements_beyond),
        cmocka_unit_test(clipping_alone_takes_the_least_error),
        cmocka_unit_test(hot_channels_cover_most_hits),
        cmocka_unit_test(few_channels_can_be_hot),
        cmocka_unit_test(odd_maxima),
        cmocka_unit_test(the_least_important_are_pruned_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
