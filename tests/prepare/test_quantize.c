// SPDX-License-Identifier: Apache-2.0
// Rows to codes: against every possible clustering of short rows, and what each quantizer promises.
#include "prepare/quantize.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MAX_K = 512 };

struct row {
    float w[MAX_K], kept[MAX_K], importance[MAX_K], centroids[512];
    uint8_t code[MAX_K];
    struct st_row row;
};

static void make(struct row *r, size_t k, unsigned low, unsigned high) {
    for (size_t i = 0; i < k; i++) {
        r->w[i] = r->kept[i] = ts_random_float(-1.0f, 1.0f) * ts_random_float(0.0f, 2.0f);
        r->importance[i] = ts_random_float(0.01f, 3.0f);
    }
    r->row = (struct st_row){
        .w = r->w, .k = k, .importance = r->importance, .low = low, .high = high, .code = r->code};
}

static void run(struct row *r, const char *quantizer) {
    struct st_row_scratch scratch = {0};
    struct st_arena arena, measure = st_arena_measure();
    st_row_scratch_take(&scratch, r->row.k, &measure);
    assert_int_equal(st_arena_open(&arena, measure.used), 0);
    st_row_scratch_take(&scratch, r->row.k, &arena);
    st_quantizer_find(quantizer)->row(&r->row, &scratch);
    st_row_centroids(&r->row, r->centroids);
    st_arena_close(&arena);
}

// Weighted squared error of a precision's centroids.
static double error_of(const struct row *r, unsigned bits) {
    const float *c = r->centroids + ((size_t)1 << bits) - ((size_t)1 << r->row.low);
    double sum = 0.0;
    for (size_t i = 0; i < r->row.k; i++) {
        double off = (double)r->kept[i] - (double)c[r->code[i] >> (r->row.high - bits)];
        sum += (double)r->importance[i] * off * off;
    }
    return sum;
}

static int by_value(const void *a, const void *b) {
    float x = ((const float *)a)[0], y = ((const float *)b)[0];
    return (x > y) - (x < y);
}

// The least error of n clusters of sorted pairs [from, k), by trying everything.
static double best_error(const float (*pairs)[2], size_t from, size_t k, size_t n) {
    double best = INFINITY, w = 0.0, x = 0.0, xx = 0.0;
    if (from == k) return 0.0;
    for (size_t end = from + 1; end <= k; end++) {
        double weight = (double)pairs[end - 1][1], value = (double)pairs[end - 1][0];
        w += weight;
        x += weight * value;
        xx += weight * value * value;
        if (n == 1 && end < k) continue;
        double rest = end == k ? 0.0 : best_error(pairs, end, k, n - 1);
        best = fmin(best, xx - x * x / w + rest);
    }
    return best;
}

static void no_clustering_is_better(void **state) {
    (void)state;
    for (int i = 0; i < 60; i++) {
        struct row r;
        float pairs[12][2];
        size_t k = 1 + ts_random_below(12);
        make(&r, k, 2, 2);
        for (size_t j = 0; j < k; j++) {
            pairs[j][0] = r.w[j];
            pairs[j][1] = r.importance[j];
        }
        qsort(pairs, k, sizeof *pairs, by_value);
        run(&r, "kmeans");
        double best = best_error((const float(*)[2])pairs, 0, k, 4);
        assert_true(error_of(&r, 2) <= best + 1e-6);
    }
}

// More bits are nearer, codes rise with the weights, and splitting costs little beside clusters
// made for a precision alone.
static void nested_codes_are_good_at_every_precision(void **state) {
    double nested = 0.0, best = 0.0;
    (void)state;
    for (int i = 0; i < 10; i++) {
        struct row r, alone;
        make(&r, 256, 2, 6);
        run(&r, "kmeans");
        for (unsigned bits = 3; bits <= 6; bits++)
            assert_true(error_of(&r, bits) < error_of(&r, bits - 1));
        for (size_t a = 0; a < 256; a++)
            for (size_t b = 0; b < 256; b++)
                if (r.w[a] < r.w[b]) assert_true(r.code[a] <= r.code[b]);
        for (unsigned bits = 3; bits <= 4; bits++) {
            alone = r;
            memcpy(alone.w, r.kept, sizeof alone.w);
            alone.row = (struct st_row){.w = alone.w,
                                        .k = 256,
                                        .importance = alone.importance,
                                        .low = bits,
                                        .high = bits,
                                        .code = alone.code};
            run(&alone, "kmeans");
            nested += error_of(&r, bits);
            best += error_of(&alone, bits);
            assert_true(error_of(&alone, bits) <= error_of(&r, bits) * (1.0 + 1e-6));
        }
    }
    assert_true(nested < 1.35 * best);
}

static void even_steps_are_half_a_step_off_at_most(void **state) {
    (void)state;
    struct row r;
    make(&r, 300, 4, 4);
    struct st_steps s = st_row_steps(&r.row);
    run(&r, "uniform");
    for (size_t i = 0; i < 300; i++) {
        float value = s.min + (float)r.code[i] * s.size;
        assert_true(fabsf(value - r.kept[i]) <= s.size * 0.5001f);
    }
}

static void rows_without_spread_are_exact(void **state) {
    (void)state;
    const char *const names[] = {"kmeans", "uniform"};
    for (size_t n = 0; n < 2; n++)
        for (int values = 1; values <= 3; values++) {
            struct row r;
            make(&r, 40, 2, 4);
            for (size_t i = 0; i < 40; i++)
                r.w[i] = r.kept[i] = 0.25f * (float)(i % (size_t)values);
            run(&r, names[n]);
            assert_true(error_of(&r, 4) < 1e-9);
            if (n == 0) assert_true(error_of(&r, 2) < 1e-9);
        }
}

// A weight that is kept beside the codes does not move them.
static void what_does_not_count_is_left_out(void **state) {
    (void)state;
    struct row r;
    make(&r, 100, 3, 3);
    r.w[7] = r.kept[7] = 1000.0f;
    r.importance[7] = 0.0f;
    run(&r, "kmeans");
    for (size_t i = 0; i < 8; i++) assert_true(fabsf(r.centroids[i]) < 3.0f);
    assert_true(st_row_steps(&r.row).top * st_row_steps(&r.row).size < 5.0f);
}

// ---- GPTQ

enum { K = 24, N = 400 };

static double output_error(const float *w, const float *got, const float *x) {
    double sum = 0.0;
    for (size_t t = 0; t < N; t++) {
        double off = 0.0;
        for (size_t i = 0; i < K; i++)
            off += ((double)w[i] - (double)got[i]) * (double)x[t * K + i];
        sum += off * off;
    }
    return sum;
}

static void gptq_makes_errors_good(void **state) {
    (void)state;
    float *x = malloc(N * K * sizeof *x), h[K * K] = {0}, inverse[K * K];
    double plain = 0.0, mended = 0.0;
    for (size_t t = 0; t < N; t++) { // channels that move together
        float shared = ts_random_float(-1.0f, 1.0f);
        for (size_t i = 0; i < K; i++) x[t * K + i] = shared + 0.3f * ts_random_float(-1.0f, 1.0f);
        for (size_t i = 0; i < K; i++)
            for (size_t j = i; j < K; j++) h[i * K + j] += x[t * K + i] * x[t * K + j];
    }
    assert_true(st_gptq_factor(h, K, 0.001, inverse));
    for (int i = 0; i < 30; i++) {
        struct row r, g;
        float even[K], good[K];
        make(&r, K, 3, 3);
        g = r;
        g.row.w = g.w;
        g.row.importance = g.importance;
        g.row.code = g.code;
        g.row.factor = h;
        struct st_steps s = st_row_steps(&r.row);
        run(&r, "uniform");
        run(&g, "gptq");
        for (size_t c = 0; c < K; c++) {
            even[c] = s.min + (float)r.code[c] * s.size;
            good[c] = s.min + (float)g.code[c] * s.size;
            assert_true(fabsf(good[c] - g.w[c]) < 1e-5f);
        }
        plain += output_error(r.kept, even, x);
        mended += output_error(r.kept, good, x);
    }
    assert_true(mended < 0.5 * plain);
    free(x);
}

// factor^T factor is the inverse of h.
static void the_factor_is_that_of_the_inverse(void **state) {
    (void)state;
    float h[K * K] = {0}, kept[K * K], inverse[K * K];
    for (size_t t = 0; t < 4 * K; t++) {
        float v[K];
        for (size_t i = 0; i < K; i++) v[i] = ts_random_float(-1.0f, 1.0f);
        for (size_t i = 0; i < K; i++)
            for (size_t j = 0; j < K; j++) h[i * K + j] += v[i] * v[j];
    }
    memcpy(kept, h, sizeof kept);
    assert_true(st_gptq_factor(h, K, 0.0, inverse));
    for (size_t i = 0; i < K; i++)
        for (size_t j = 0; j < K; j++) {
            double sum = 0.0;
            for (size_t a = 0; a < K; a++)
                for (size_t c = 0; c < K; c++)
                    sum += (double)h[c * K + i] * (double)h[c * K + a] * (double)kept[a * K + j];
            assert_true(fabs(sum - (i == j ? 1.0 : 0.0)) < 1e-2);
        }
    float nothing[K * K] = {0};
    assert_true(st_gptq_factor(nothing, K, 0.01, inverse)); // inputs that were all zero
    nothing[0] = NAN;
    assert_false(st_gptq_factor(nothing, K, 0.01, inverse));
}

static void quantizers_are_found_by_name(void **state) {
    (void)state;
    assert_string_equal(st_quantizer_find(NULL)->name, "kmeans");
    assert_true(st_quantizer_find("gptq")->factor);
    assert_null(st_quantizer_find("none"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_clustering_is_better),
        cmocka_unit_test(nested_codes_are_good_at_every_precision),
        cmocka_unit_test(even_steps_are_half_a_step_off_at_most),
        cmocka_unit_test(rows_without_spread_are_exact),
        cmocka_unit_test(what_does_not_count_is_left_out),
        cmocka_unit_test(gptq_makes_errors_good),
        cmocka_unit_test(the_factor_is_that_of_the_inverse),
        cmocka_unit_test(quantizers_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
