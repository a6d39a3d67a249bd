// SPDX-License-Identifier: Apache-2.0
// Panels to codes: what they stand for, and that feedback lowers the error of the outputs.
#include "prepare/quantize.h"

#include "base/cpu.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MAX_K = 300, ROWS = ST_NESTED_PANEL, TOKENS = 400 };

struct quantized {
    float w[MAX_K * ROWS], importance[MAX_K], *scratch;
    uint8_t code[MAX_K * ROWS], groups[3][8 * ST_NESTED_GROUP_BYTES];
    struct st_panel panel;
};

static void make(struct quantized *q, size_t k) {
    for (size_t i = 0; i < k; i++) q->importance[i] = ts_random_float(0.1f, 2.0f);
    for (size_t i = 0; i < k * ROWS; i++) q->w[i] = ts_random_float(-1.0f, 1.0f);
    q->panel = (struct st_panel){.k = k, .low = 2, .high = 4};
}

static void run(struct quantized *q, const float *feedback) {
    struct st_panel *p = &q->panel;
    memset(q->groups, 0, sizeof q->groups);
    p->w = q->w;
    p->importance = q->importance;
    p->feedback = feedback;
    p->elementwise = st_elementwise_select(st_cpu_flags());
    p->code = q->code;
    for (unsigned b = 2; b <= 4; b++) p->groups[b] = q->groups[b - 2];
    q->scratch = malloc(st_panel_scratch(p->k, 2, 4) * sizeof(float));
    st_panel_quantize(p, q->scratch);
    free(q->scratch);
}

static float value(const struct quantized *q, unsigned bits, size_t i, size_t r) {
    const uint8_t *group = q->groups[bits - 2] + st_nested_group_at(q->panel.k, r, i);
    const struct st_nested_row *row = &q->panel.rows[bits - 2][r];
    return row->scale * (float)(*group * (q->code[i * ROWS + r] >> (4 - bits))) +
           row->minimum * (float)(int8_t)group[ST_NESTED_GROUP_BYTES / 2];
}

static void codes_are_near_at_every_precision(void **state) {
    (void)state;
    const size_t widths[] = {1, 31, 32, 33, 128, 300};
    struct quantized *q = malloc(sizeof *q);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        make(q, widths[i]);
        run(q, NULL);
        for (unsigned bits = 2; bits <= 4; bits++) {
            double step = 2.0 / ((1 << bits) - 1), sum = 0.0;
            for (size_t c = 0; c < widths[i]; c++)
                for (size_t r = 0; r < ROWS; r++) {
                    double miss = (double)(value(q, bits, c, r) - q->w[c * ROWS + r]);
                    assert_true(fabs(miss) < 2.5 * step); // of weights that count little
                    sum += miss * miss;
                }
            assert_true(sqrt(sum / (double)(widths[i] * ROWS)) < 0.4 * step);
        }
    }
    free(q);
}

// Blocks of 32 with a scale and a minimum of four bits, as Q4_1 has them.
static void a_grid_of_groups_is_found_again(void **state) {
    (void)state;
    struct quantized *q = malloc(sizeof *q);
    make(q, 256);
    for (size_t i = 0; i < 256 * ROWS; i++) q->w[i] = 0.01f * (float)(ts_random_below(16)) - 0.05f;
    for (size_t g = 0; g < 256; g += ST_NESTED_GROUP)
        for (size_t r = 0; r < ROWS; r++) {
            q->w[g * ROWS + r] = -0.05f;
            q->w[(g + 1) * ROWS + r] = 0.10f;
        }
    run(q, NULL);
    for (size_t i = 0; i < 256; i++)
        for (size_t r = 0; r < ROWS; r++)
            assert_true(fabsf(value(q, 4, i, r) - q->w[i * ROWS + r]) < 0.001f);
    free(q);
}

static void equal_weights_stay(void **state) {
    (void)state;
    struct quantized *q = malloc(sizeof *q);
    make(q, 70);
    for (size_t i = 0; i < 70 * ROWS; i++) q->w[i] = i % ROWS == 3 ? 0.0f : -0.25f;
    run(q, NULL);
    for (unsigned bits = 2; bits <= 4; bits++)
        for (size_t i = 0; i < 70 * ROWS; i++)
            assert_true(fabsf(value(q, bits, i / ROWS, i % ROWS) - q->w[i]) < 1e-6f);
    free(q);
}

// Of outputs of inputs that correlate.
static double output_error(const struct quantized *q, unsigned bits, const float *x) {
    double sum = 0.0;
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t r = 0; r < ROWS; r++) {
            double miss = 0.0;
            for (size_t i = 0; i < q->panel.k; i++)
                miss += (double)(value(q, bits, i, r) - q->w[i * ROWS + r]) *
                        (double)x[t * q->panel.k + i];
            sum += miss * miss;
        }
    return sum;
}

// Adds the errors of one random linear: rounded, and with feedback.
static void add_errors(struct st_pool *pool, double *rounded, double *fed_back) {
    enum { K = 96 };
    struct quantized *q = malloc(sizeof *q);
    float *x = malloc(TOKENS * K * sizeof *x), *h = calloc(K * K, sizeof *h);
    make(q, K);
    for (size_t t = 0; t < TOKENS; t++) {
        float common = ts_random_float(-2.0f, 2.0f);
        for (size_t i = 0; i < K; i++) x[t * K + i] = common + ts_random_float(-1.0f, 1.0f);
        for (size_t i = 0; i < K; i++)
            for (size_t j = i; j < K; j++) h[i * K + j] += x[t * K + i] * x[t * K + j];
    }
    assert_true(
        st_feedback_factor(h, K, TOKENS, 0.01, st_elementwise_select(st_cpu_flags()), pool));
    run(q, NULL);
    *rounded += output_error(q, 4, x);
    run(q, h);
    *fed_back += output_error(q, 4, x);
    free(h);
    free(x);
    free(q);
}

// One linear may be unlucky; many together are not.
static void feedback_lowers_the_error_of_outputs(void **state) {
    (void)state;
    struct st_pool *pool = NULL;
    double rounded = 0.0, fed_back = 0.0;
    assert_int_equal(st_pool_open(2, &pool), 0);
    for (int i = 0; i < 16; i++) add_errors(pool, &rounded, &fed_back);
    st_pool_close(pool);
    print_message("feedback leaves %.2f of the error\n", fed_back / rounded);
    assert_true(fed_back < 0.5 * rounded);
}

// M D M^T is the matrix that was given, but for what is added to its diagonal.
static void the_factor_is_unit_upper_triangular(void **state) {
    (void)state;
    enum { K = 70, N = 1000000000 };
    static float h[K * K], m[K * K], bad[K * K];
    struct st_pool *pool = NULL;
    assert_int_equal(st_pool_open(2, &pool), 0);
    for (size_t i = 0; i < K; i++)
        for (size_t j = 0; j < K; j++)
            h[i * K + j] =
                i == j ? 2.0f + (float)(i % 7) : 0.25f / (float)(1 + (i > j ? i - j : j - i));
    memcpy(m, h, sizeof m);
    const struct st_elementwise *e = st_elementwise_select(0);
    assert_true(st_feedback_factor(m, K, N, 0.0, e, pool));
    double d[K];
    for (size_t i = K; i-- > 0;) {
        assert_true(m[i * K + i] == 1.0f);
        for (size_t j = 0; j < i; j++) assert_true(m[i * K + j] == 0.0f);
        d[i] = (double)h[i * K + i];
        for (size_t p = i + 1; p < K; p++)
            d[i] -= d[p] * (double)m[i * K + p] * (double)m[i * K + p];
    }
    for (size_t i = 0; i < K; i++)
        for (size_t j = i + 1; j < K; j++) {
            double sum = 0.0;
            for (size_t p = j; p < K; p++)
                sum += (double)m[i * K + p] * d[p] * (double)m[j * K + p];
            assert_true(fabs(sum - (double)h[i * K + j]) < 1e-5);
        }
    memcpy(bad, h, sizeof bad);
    bad[2 * K + 2] = NAN;
    assert_false(st_feedback_factor(bad, K, N, 0.01, e, pool));
    st_pool_close(pool);
}

static void quantizers_are_found_by_name(void **state) {
    (void)state;
    assert_string_equal(st_quantizer_find(NULL)->name, st_quantizers[0].name);
    for (const struct st_quantizer *q = st_quantizers; q->name; q++)
        assert_ptr_equal(st_quantizer_find(q->name), q);
    assert_null(st_quantizer_find("kmeans"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_near_at_every_precision),
        cmocka_unit_test(a_grid_of_groups_is_found_again),
        cmocka_unit_test(equal_weights_stay),
        cmocka_unit_test(feedback_lowers_the_error_of_outputs),
        cmocka_unit_test(the_factor_is_unit_upper_triangular),
        cmocka_unit_test(quantizers_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
