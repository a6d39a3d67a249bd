// SPDX-License-Identifier: Apache-2.0
// The lower bits of codes are the best there are, and packed rows get their scales and sums.
#include "prepare/refine.h"

#include "prepare/quantize.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { K = 150, ROWS = ST_PANEL_ROWS };

// One row, of which element i is at i * ROWS.
static int32_t refine_row(const struct st_nested_weight *w, const float x[K], uint8_t code[K],
                          const float *moments) {
    const float scale = 1.0f;
    float all[K * ROWS] = {0}, scratch[64 * K], max[K] = {0};
    uint8_t codes[K * ROWS] = {0};
    int32_t sum = 0;
    const struct st_slopes slopes = {.k = K, .moments = moments, .tile = st_tile_select(0)};
    struct st_refined panel = {.weight = w,
                               .n_rows = 1,
                               .scales = &scale,
                               .slopes = moments ? &slopes : NULL,
                               .max = max,
                               .w = all,
                               .code = codes,
                               .sums = &sum};
    assert_true(st_refine_scratch(slopes.tile, K) <= sizeof scratch / sizeof *scratch);
    for (size_t i = 0; i < K; i++) {
        all[i * ROWS] = x[i];
        codes[i * ROWS] = code[i];
    }
    st_refine_panel(&panel, scratch);
    for (size_t i = 0; i < K; i++) code[i] = codes[i * ROWS];
    return sum;
}

static float miss_of(const struct st_nested_weight *w, size_t i, unsigned code, float wanted) {
    const struct st_nested_int8_row row = st_nested_int8_row_of(w->rows, w->high, 1.0f);
    struct st_nested_group group = st_nested_group(w->groups[w->high], K, 0, i);
    unsigned spare = ST_NESTED_STORED - w->stored;
    return fabsf((float)st_nested_int8_of_code(w, group, &row, code << spare) - wanted);
}

static void lower_bits_are_the_best(void **state) {
    (void)state;
    for (int i = 0; i < 40; i++) {
        uint8_t groups[2 * ST_NESTED_GROUP_BYTES], code[K], before[K];
        unsigned high = 2 + (unsigned)ts_random_below(6), stored = 7 + (unsigned)ts_random_below(2);
        float x[K], span = ts_random_float(20.0f, 254.0f);
        struct st_nested_row rows[ST_NESTED_PANEL] = {
            {span / 255.0f / (float)((1 << high) - 1), span / 254.0f}};
        struct st_nested_weight w = {.rows = rows,
                                     .n_out = 1,
                                     .n_in = K,
                                     .low = (uint8_t)high,
                                     .high = (uint8_t)high,
                                     .stored = (uint8_t)stored};
        w.groups[high] = groups;
        for (size_t g = 0; g < sizeof groups; g++) groups[g] = (uint8_t)(129 + ts_random_below(99));
        for (size_t k = 0; k < K; k++) {
            before[k] = code[k] = (uint8_t)ts_random_below(1u << high);
            x[k] = ts_random_float(-127.0f, 127.0f);
        }
        int32_t sum = refine_row(&w, x, code, NULL), expected = 0;
        for (size_t k = 0; k < K; k++) {
            unsigned lower = stored - high;
            assert_int_equal(code[k] >> lower, before[k]);
            float got = miss_of(&w, k, code[k], x[k]);
            for (unsigned c = 0; c < 1u << lower; c++)
                assert_true(miss_of(&w, k, (unsigned)before[k] << lower | c, x[k]) >= got);
            struct st_nested_int8_row row = st_nested_int8_row_of(rows, high, 1.0f);
            expected += st_nested_int8_of_code(&w, st_nested_group(groups, K, 0, k), &row,
                                               (unsigned)code[k] << (ST_NESTED_STORED - stored));
        }
        assert_int_equal(sum, expected);
    }
}

// Half way between two numbers the lower one is taken, so that files are the same everywhere.
static void the_lower_of_two_is_taken(void **state) {
    (void)state;
    enum { HIGH = 4, LOWER = ST_NESTED_STORED - HIGH };
    uint8_t groups[2 * ST_NESTED_GROUP_BYTES], code[K];
    int lower[K];
    float x[K];
    struct st_nested_row rows[ST_NESTED_PANEL] = {{240.0f / 255.0f / 15.0f, 240.0f / 254.0f}};
    struct st_nested_weight w = {
        .rows = rows, .n_out = 1, .n_in = K, .low = HIGH, .high = HIGH, .stored = ST_NESTED_STORED};
    struct st_nested_int8_row row = st_nested_int8_row_of(rows, HIGH, 1.0f);
    w.groups[HIGH] = groups;
    for (size_t g = 0; g < sizeof groups; g++) groups[g] = (uint8_t)(129 + ts_random_below(99));
    size_t n_between = 0;
    for (size_t k = 0; k < K; k++) {
        struct st_nested_group group = st_nested_group(groups, K, 0, k);
        code[k] = (uint8_t)ts_random_below(1 << HIGH);
        unsigned c = (unsigned)code[k] << LOWER | (unsigned)ts_random_below((1 << LOWER) - 1);
        lower[k] = st_nested_int8_of_code(&w, group, &row, c);
        int upper = st_nested_int8_of_code(&w, group, &row, c + 1);
        x[k] = (float)(lower[k] + upper) / 2.0f;
        n_between += lower[k] < upper;
    }
    refine_row(&w, x, code, NULL);
    assert_true(n_between > 0);
    for (size_t k = 0; k < K; k++)
        assert_int_equal(
            st_nested_int8_of_code(&w, st_nested_group(groups, K, 0, k), &row, code[k]), lower[k]);
}

// The INT8 weights' sum times what all inputs are.
static float miss_of_sum(const struct st_nested_weight *w, const float x[K],
                         const uint8_t code[K]) {
    struct st_nested_int8_row row = st_nested_int8_row_of(w->rows, w->high, 1.0f);
    float sum = 0.0f;
    for (size_t i = 0; i < K; i++) {
        struct st_nested_group group = st_nested_group(w->groups[w->high], K, 0, i);
        sum += (float)st_nested_int8_of_code(w, group, &row, code[i]) - x[i];
    }
    return fabsf(sum);
}

// With inputs that are all alike, codes make up for each other, and keep their upper bits.
static void lower_bits_make_up_for_each_other(void **state) {
    (void)state;
    enum { HIGH = 4, LOWER = ST_NESTED_STORED - HIGH };
    uint8_t groups[2 * ST_NESTED_GROUP_BYTES], nearest[K], best[K], upper[K];
    float x[K], *h = malloc(st_moments_floats(K) * sizeof *h), sums[2] = {0};
    struct st_nested_row rows[ST_NESTED_PANEL] = {{240.0f / 255.0f / 15.0f, 240.0f / 254.0f}};
    struct st_nested_weight w = {
        .rows = rows, .n_out = 1, .n_in = K, .low = HIGH, .high = HIGH, .stored = ST_NESTED_STORED};
    w.groups[HIGH] = groups;
    for (size_t g = 0; g < sizeof groups; g++) groups[g] = (uint8_t)(129 + ts_random_below(99));
    for (size_t i = 0; i < K; i++)
        for (size_t j = 0; j < K; j++) h[i * K + j] = i == j ? 1.05f : 1.0f;
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < K; i++) {
            x[i] = ts_random_float(-127.0f, 127.0f);
            nearest[i] = best[i] = upper[i] = (uint8_t)ts_random_below(1 << HIGH);
        }
        refine_row(&w, x, nearest, NULL);
        refine_row(&w, x, best, h);
        sums[0] += miss_of_sum(&w, x, nearest);
        sums[1] += miss_of_sum(&w, x, best);
        for (size_t i = 0; i < K; i++) assert_int_equal(best[i] >> LOWER, upper[i]);
    }
    assert_true(sums[1] < sums[0]);
    free(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lower_bits_are_the_best),
                                       cmocka_unit_test(the_lower_of_two_is_taken),
                                       cmocka_unit_test(lower_bits_make_up_for_each_other)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
