// SPDX-License-Identifier: Apache-2.0
// Panels to codes: what they stand for, and that second moments lower the error of the outputs.
#include "prepare/quantize.h"

#include "base/cpu.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MAX_K = 300, ROWS = ST_PANEL_ROWS, TOKENS = 400 };

struct quantized {
    float w[MAX_K * ROWS], importance[MAX_K], ones[MAX_K], *scratch;
    uint8_t code[MAX_K * ROWS], groups[ST_PANEL_PRECISIONS][2 * 8 * ST_NESTED_GROUP_BYTES];
    struct st_panel panel;
};

static void make(struct quantized *q, size_t k) {
    for (size_t i = 0; i < k; i++) q->importance[i] = ts_random_float(0.1f, 2.0f);
    for (size_t i = 0; i < k * ROWS; i++) q->w[i] = ts_random_float(-1.0f, 1.0f);
    q->panel = (struct st_panel){.k = k, .low = 2, .high = 4};
}

static void run_with(struct quantized *q, const float *moments, const struct st_tile *tile,
                     st_panel_quantize_fn *quantize) {
    struct st_panel *p = &q->panel;
    size_t scratch = st_panel_scratch(tile, p->k, p->low, p->high);
    memset(q->groups, 0, sizeof q->groups);
    p->w = q->w;
    p->importance = q->importance;
    const struct st_slopes slopes = {.k = p->k, .moments = moments, .tile = tile};
    p->slopes = moments ? &slopes : NULL;
    if (moments) st_moments_ones(moments, p->k, q->ones);
    p->ones = q->ones;
    p->code = q->code;
    for (unsigned b = p->low; b <= p->high; b++) p->groups[b] = q->groups[b - p->low];
    q->scratch = malloc(scratch * sizeof(float));
    quantize(p, q->scratch);
    free(q->scratch);
}

static void run(struct quantized *q, const float *moments) {
    run_with(q, moments, st_tile_select(st_cpu_flags()),
             st_panel_quantizer_select(st_cpu_flags())->quantize);
}

static float value(const struct quantized *q, unsigned bits, size_t i, size_t r) {
    struct st_nested_group group = st_nested_group(q->groups[bits - 2], q->panel.k, r, i);
    const struct st_nested_row *row = &q->panel.rows[bits - 2][r];
    return row->scale * (float)(group.scale * (q->code[i * ROWS + r] >> (4 - bits))) +
           row->minimum * (float)group.minimum;
}

static void codes_are_near_at_every_precision(void **state) {
    (void)state;
    const size_t widths[] = {1, 31, 32, 33, 128, 192, 300};
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
    // All but a few groups, whose 2 and 3 bits are nearer with another scale.
    size_t found = 0;
    for (size_t i = 0; i < 256; i++)
        for (size_t r = 0; r < ROWS; r++)
            found += fabsf(value(q, 4, i, r) - q->w[i * ROWS + r]) < 0.001f;
    assert_true(found >= 95 * 256 * ROWS / 100);
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

// Inputs that correlate, and their second moments.
static float *random_inputs(size_t k, float *h) {
    float *x = malloc(TOKENS * k * sizeof *x);
    for (size_t t = 0; t < TOKENS; t++) {
        float common = ts_random_float(-2.0f, 2.0f);
        for (size_t i = 0; i < k; i++) x[t * k + i] = common + ts_random_float(-1.0f, 1.0f);
        for (size_t i = 0; i < k; i++)
            for (size_t j = i; j < k; j++) h[i * k + j] += x[t * k + i] * x[t * k + j];
    }
    return x;
}

// Adds the errors of one random linear: rounded, and with second moments.
static void add_errors(size_t k, double rounded[3], double descended[3]) {
    struct quantized *q = malloc(sizeof *q);
    float *h = calloc(st_moments_floats(k), sizeof *h), *x = random_inputs(k, h);
    make(q, k);
    assert_true(st_moments_finish(h, k, 1000000, 0.01)); // correlations as they are
    for (size_t i = 0; i < k; i++) q->importance[i] = h[i * k + i];
    run(q, NULL);
    for (unsigned bits = 2; bits <= 4; bits++) rounded[bits - 2] += output_error(q, bits, x);
    run(q, h);
    for (unsigned bits = 2; bits <= 4; bits++) descended[bits - 2] += output_error(q, bits, x);
    free(h);
    free(x);
    free(q);
}

// One linear may be unlucky; many together are not. Widths with a last group that is not whole.
static void moments_lower_the_error_of_outputs(void **state) {
    (void)state;
    const double limits[3] = {1.0, 0.85, 0.85};
    double rounded[3] = {0}, descended[3] = {0};
    for (size_t i = 0; i < 64; i++) add_errors(90 + i % 16, rounded, descended);
    for (unsigned b = 0; b < 3; b++) {
        print_message("%u bits: %.2f of the error\n", b + 2, descended[b] / rounded[b]);
        assert_true(descended[b] < limits[b] * rounded[b]);
    }
}

static void check_same(const struct quantized *a, const struct quantized *b) {
    const struct st_panel *p = &a->panel;
    assert_memory_equal(a->code, b->code, p->k * ROWS);
    assert_memory_equal(a->groups, b->groups, sizeof a->groups);
    assert_memory_equal(p->rows, b->panel.rows, (p->high - p->low + 1) * sizeof p->rows[0]);
}

static void all_instruction_sets_make_the_same_panel(void **state) {
    (void)state;
    struct quantized *scalar = malloc(sizeof *scalar), *q = malloc(sizeof *q);
    const struct st_tile *tile = st_tile_select(0);
    for (size_t i = 0; i < 24; i++) {
        size_t k = i < 3 ? i + 31 : 1 + ts_random_below(110);
        float *h = calloc(st_moments_floats(k), sizeof *h), *x = random_inputs(k, h);
        make(scalar, k);
        scalar->panel.low = 2 + (unsigned)ts_random_below(6);
        scalar->panel.high = scalar->panel.low + (unsigned)ts_random_below(8 - scalar->panel.low);
        assert_true(st_moments_finish(h, k, TOKENS, 0.01));
        for (const struct st_panel_quantizer *row = st_panel_quantizers; row->name; row++) {
            if ((row->isa & st_cpu_flags()) != row->isa) continue;
            *q = *scalar;
            for (size_t moments = 0; moments < 2; moments++) {
                run_with(scalar, moments ? h : NULL, tile, st_panel_quantize_scalar);
                run_with(q, moments ? h : NULL, tile, row->quantize);
                check_same(scalar, q);
            }
        }
        free(h);
        free(x);
    }
    free(scalar);
    free(q);
}

// Sums are rounded elsewhere, so a few codes differ.
static void all_tiles_descend_alike(void **state) {
    (void)state;
    enum { K = 75 };
    struct quantized *q = malloc(sizeof *q);
    float *h = calloc(st_moments_floats(K), sizeof *h), *x = random_inputs(K, h);
    double first = 0.0;
    make(q, K);
    assert_true(st_moments_finish(h, K, TOKENS, 0.01));
    for (const struct st_tile *tile = st_tiles; tile->name; tile++) {
        if ((tile->isa & st_cpu_flags()) != tile->isa) continue;
        run_with(q, h, tile, st_panel_quantize_scalar);
        double error = output_error(q, 4, x);
        if (first > 0.0) assert_true(fabs(error - first) < 0.1 * first);
        first = error;
    }
    free(h);
    free(x);
    free(q);
}

static void moments_are_sums_of_products(void **state) {
    (void)state;
    enum { K = 77, N = 130 };
    struct st_pool *pool = NULL;
    float *h = malloc(st_moments_floats(K) * sizeof *h), *x = malloc(N * K * sizeof *x), shares[N];
    assert_int_equal(st_pool_open(2, &pool), 0);
    for (size_t i = 0; i < N * K; i++) x[i] = ts_random_float(-1.0f, 1.0f);
    for (size_t t = 0; t < N; t++) shares[t] = ts_random_float(0.1f, 1.0f);
    for (const struct st_tile *tile = st_tiles; tile->name; tile++) {
        if ((tile->isa & st_cpu_flags()) != tile->isa) continue;
        for (size_t i = 0; i < st_moments_floats(K); i++) h[i] = 1.0f;
        st_moments_add(h, K, x, shares, N, tile, pool);
        for (size_t i = 0; i < K; i++)
            for (size_t j = i; j < K; j++) {
                double sum = 1.0;
                for (size_t t = 0; t < N; t++)
                    sum += (double)shares[t] * (double)x[t * K + i] * (double)x[t * K + j];
                assert_true(fabs(sum - (double)h[i * K + j]) < 1e-4);
            }
    }
    st_pool_close(pool);
    free(h);
    free(x);
}

static void moments_are_symmetric_shrunk_and_damped(void **state) {
    (void)state;
    enum { K = 70, N = 7 * K };
    float *h = calloc(st_moments_floats(K), sizeof *h);
    for (size_t i = 0; i < K; i++)
        for (size_t j = i; j < K; j++) h[i * K + j] = i == j ? 2.0f : 0.25f * (float)(j - i);
    assert_true(st_moments_finish(h, K, N, 0.5));
    for (size_t i = 0; i < K; i++)
        for (size_t j = 0; j < K; j++) {
            double apart = fabs((double)i - (double)j), shrunk = apart * 0.25 * 7.0 / 11.0;
            assert_true(fabs((double)h[i * K + j] - (i == j ? 3.0 : shrunk)) < 1e-5);
        }
    memset(h, 0, K * K * sizeof *h); // inputs that are all zero
    assert_true(st_moments_finish(h, K, N, 0.5));
    assert_true(h[0] > 0.0f);
    h[2 * K + 2] = NAN;
    assert_false(st_moments_finish(h, K, N, 0.01));
    h[2 * K + 2] = INFINITY;
    assert_false(st_moments_finish(h, K, N, 0.01));
    free(h);
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
        cmocka_unit_test(moments_lower_the_error_of_outputs),
        cmocka_unit_test(all_instruction_sets_make_the_same_panel),
        cmocka_unit_test(all_tiles_descend_alike),
        cmocka_unit_test(moments_are_sums_of_products),
        cmocka_unit_test(moments_are_symmetric_shrunk_and_damped),
        cmocka_unit_test(quantizers_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
