// SPDX-License-Identifier: Apache-2.0
// Every row of products in 16-bit integers that this CPU has: bit for bit what the scalar row
// gives, and the scalar row against its definition.
#include "kernels/int16.h"

#include "base/cpu.h"
#include "block_weights.h"
#include "kernel_check.h"
#include "kernels/blocks.h"
#include "kernels/dequantize.h"

static bool has(const struct st_int16 *row) {
    return (row->isa & st_cpu_flags()) == row->isa;
}

static const struct st_int16 *scalar_row(void) {
    const struct st_int16 *row = st_int16s;
    while (row->isa) row++;
    return row;
}

// n pairs of elements of at most max_q, many of them as large as can be.
static struct kc_array random_pairs(size_t n, int max_q) {
    struct kc_array a = kc_make(n * sizeof(uint32_t), 4 * ts_random_below(4));
    int16_t *q = a.data;
    for (size_t i = 0; i < 2 * n; i++) {
        int largest = ts_random_below(2) ? max_q : -max_q;
        q[i] = (int16_t)(ts_random_below(4)
                             ? largest
                             : (int)ts_random_below((size_t)max_q + 1) * largest / max_q);
    }
    return a;
}

// The scalar row computes one row and lane at a time, as a tile of its own size.
static void define(size_t k, const uint32_t *a, const float *a_scale, const uint32_t *b,
                   const float *b_scale, size_t lanes, float *c) {
    const struct st_int16 *scalar = scalar_row();
    uint32_t rows[4 * ST_INT16_BLOCK / 2] = {0}, columns[4 * ST_INT16_BLOCK / 2];
    assert_true(scalar->m == 4 && scalar->lanes == 4);
    memcpy(rows, a, k * sizeof *rows);
    const float row_scales[4] = {a_scale[0]};
    for (size_t lane = 0; lane < lanes; lane++) {
        float out[16] = {c[lane]}, scales[4] = {b_scale[lane]};
        memset(columns, 0, sizeof columns);
        for (size_t i = 0; i < k; i++) columns[i * 4] = b[i * lanes + lane];
        scalar->fn[0](k, rows, k, row_scales, columns, scales, out, 4);
        c[lane] = out[0];
    }
}

static void check_product(const struct st_int16 *row, size_t vectors, size_t k) {
    size_t width = vectors * row->lanes, c_row = width + ts_random_below(20),
           a_row = k + ts_random_below(3);
    struct kc_array a = random_pairs((row->m - 1) * a_row + k, ST_INT16_MAX_WEIGHT);
    struct kc_array b = random_pairs(k * width, ST_INT16_MAX_INPUT);
    struct kc_array a_scale = kc_floats(row->m, 2.0f), b_scale = kc_floats(width, 2.0f);
    struct kc_array c = kc_floats((row->m - 1) * c_row + width, 1.0f);
    float *wanted = malloc(c.bytes);
    memcpy(wanted, c.data, c.bytes);
    for (size_t m = 0; m < row->m; m++)
        define(k, (uint32_t *)a.data + m * a_row, (float *)a_scale.data + m, b.data, b_scale.data,
               width, wanted + m * c_row);
    row->fn[vectors - 1](k, a.data, a_row, a_scale.data, b.data, b_scale.data, c.data, c_row);
    assert_memory_equal(c.data, wanted, c.bytes);
    free(wanted);
    struct kc_array *all[] = {&a, &b, &a_scale, &b_scale, &c};
    for (size_t i = 0; i < 5; i++) kc_free(all[i], row->name);
}

static void tiles_equal_the_scalar_row(void **state) {
    (void)state;
    const size_t lengths[] = {0, 1, 2, 3, 7, 16, 31, 32, 64, 127, ST_INT16_BLOCK / 2};
    for (const struct st_int16 *row = st_int16s; row->name; row++)
        for (size_t v = 1; has(row) && v <= row->vectors; v++)
            for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
                check_product(row, v, lengths[i]);
}

// The largest sum there is, and the smallest: a block of nothing but largest magnitudes.
static void whole_blocks_of_the_largest_fit(void **state) {
    (void)state;
    enum { PAIRS = ST_INT16_BLOCK / 2 };
    const int sign[] = {1, -1};
    for (const struct st_int16 *row = st_int16s; row->name; row++)
        for (size_t s = 0; has(row) && s < 2; s++) {
            int16_t a[ST_TILE_MAX_M * ST_INT16_BLOCK], b[ST_TILE_MAX_WIDTH * ST_INT16_BLOCK];
            float ones[ST_TILE_MAX_WIDTH], c[ST_TILE_MAX_M * ST_TILE_MAX_WIDTH] = {0};
            for (size_t i = 0; i < sizeof a / sizeof *a; i++) a[i] = ST_INT16_MAX_WEIGHT;
            for (size_t i = 0; i < sizeof b / sizeof *b; i++)
                b[i] = (int16_t)(sign[s] * ST_INT16_MAX_INPUT);
            for (size_t i = 0; i < ST_TILE_MAX_WIDTH; i++) ones[i] = 1.0f;
            row->fn[0](PAIRS, (const uint32_t *)(const void *)a, PAIRS, ones,
                       (const uint32_t *)(const void *)b, ones, c, row->lanes);
            double wanted =
                (double)sign[s] * ST_INT16_BLOCK * ST_INT16_MAX_WEIGHT * (double)ST_INT16_MAX_INPUT;
            for (size_t i = 0; i < row->m * row->lanes; i++) assert_true(c[i] == (float)wanted);
        }
}

// Each is off by at most `most` steps, or 0 where the scale is not finite.
static void check_numbers(const int16_t *q, int max_q, const float *exact, size_t n, float scale,
                          float most) {
    for (size_t i = 0; i < n; i++) {
        assert_in_range(q[i] + max_q, 0, 2 * max_q);
        if (isfinite(scale))
            assert_true(fabsf(exact[i] - scale * q[i]) <= most * scale + 1e-30f);
        else
            assert_int_equal(q[i], 0);
    }
}

static void check_quantize(const struct st_int16 *row, float *x, size_t n, int max_q) {
    int16_t got[ST_INT16_BLOCK], wanted[ST_INT16_BLOCK];
    float scale = row->quantize(x, n, max_q, got);
    float wanted_scale = scalar_row()->quantize(x, n, max_q, wanted);
    assert_memory_equal(&scale, &wanted_scale, sizeof scale);
    assert_memory_equal(got, wanted, n * sizeof *got);
    check_numbers(got, max_q, x, n, scale, 0.502f);
}

static void quantizing_equals_the_scalar_one(void **state) {
    (void)state;
    const size_t lengths[] = {1, 2, 8, 30, 32, 33, 64, 255, ST_INT16_BLOCK};
    const float odd[] = {0.0f, -0.0f, 1e-35f, 3e38f, INFINITY, -INFINITY, NAN};
    for (const struct st_int16 *row = st_int16s; row->name; row++)
        for (size_t i = 0; has(row) && i < 9 * 8; i++) {
            struct kc_array x = kc_floats(lengths[i % 9], 3.0f);
            if (i / 9 == 7)
                memset(x.data, 0, x.bytes);
            else
                ((float *)x.data)[ts_random_below(lengths[i % 9])] = odd[i / 9];
            check_quantize(row, x.data, lengths[i % 9], ST_INT16_MAX_WEIGHT);
            check_quantize(row, x.data, lengths[i % 9], ST_INT16_MAX_INPUT);
            kc_free(&x, row->name);
        }
}

// Against the scalar row, to the bit, and against the exact values.
static void check_rows(const struct st_int16 *row, enum st_dtype dtype, const unsigned char *src,
                       size_t row_bytes, size_t n_rows, size_t first, size_t n) {
    size_t out_row = n + ts_random_below(20);
    struct kc_array got = kc_make(n_rows * out_row * sizeof(int16_t), 2 * ts_random_below(4));
    float scales[ST_TILE_MAX_M], exact[ST_INT16_BLOCK], scale;
    row->blocks[dtype](src, row_bytes, n_rows, first, n, got.data, out_row, scales);
    for (size_t r = 0; r < n_rows; r++, src += row_bytes) {
        const int16_t *q = (int16_t *)got.data + r * out_row;
        int16_t wanted[ST_INT16_BLOCK];
        scalar_row()->blocks[dtype](src, row_bytes, 1, first, n, wanted, n, &scale);
        st_dequantize_select(0)->fn[dtype](src, first, n, exact);
        assert_int_equal(isfinite(scale), isfinite(scales[r]));
        if (isfinite(scale)) assert_memory_equal(&scale, &scales[r], sizeof scale);
        assert_memory_equal(q, wanted, n * sizeof *wanted);
        check_numbers(q, ST_INT16_MAX_WEIGHT, exact, n, scale, 0.7f);
    }
    kc_free(&got, row->name);
}

// Rows end where the memory does.
static void check_blocks(const struct st_int16 *row, enum st_dtype dtype, bool all_finite) {
    size_t items = st_dtype_traits(dtype)->block_items, first = ts_random_below(4) * items;
    size_t n = (1 + ts_random_below(ST_INT16_BLOCK / items)) * items;
    size_t n_rows = 1 + ts_random_below(ST_TILE_MAX_M), offset = ts_random_below(4);
    size_t row_bytes = st_dtype_row_bytes(dtype, first + n);
    unsigned char *src = malloc(offset + n_rows * row_bytes);
    assert_non_null(src);
    if (all_finite)
        bw_fill(dtype, src + offset, n_rows * row_bytes);
    else
        ts_random_bytes(src + offset, n_rows * row_bytes);
    check_rows(row, dtype, src + offset, row_bytes, n_rows, first, n);
    free(src);
}

static void blocks_are_the_nearest_whole_numbers(void **state) {
    (void)state;
    for (const struct st_int16 *row = st_int16s; row->name; row++)
        for (enum st_dtype dtype = 0; dtype < ST_N_DTYPES; dtype++) {
            assert_int_equal(row->blocks[dtype] != NULL, st_blocks_has(dtype));
            for (size_t i = 0; i < 50 && has(row) && row->blocks[dtype]; i++)
                check_blocks(row, dtype, i % 8 != 0);
        }
}

static void check_pairs(const struct st_int16 *row, size_t n, size_t width, float odd) {
    struct kc_array x = kc_floats(n * width, 4000.0f), factor = kc_floats(n, 1.0f);
    struct kc_array inverse = kc_floats(width, 1.0f);
    struct kc_array got = kc_make(n / 2 * width * sizeof(uint32_t), 0);
    uint32_t *wanted = malloc(got.bytes);
    ((float *)x.data)[ts_random_below(n * width)] = odd;
    ((float *)x.data)[ts_random_below(n * width)] = 10.0f; // 2.5 in even lanes: a half
    for (size_t i = 0; i < n; i++) ((float *)factor.data)[i] = 0.5f;
    for (size_t i = 0; i < width; i += 2) ((float *)inverse.data)[i] = 0.5f;
    float most = row->pairs(x.data, factor.data, inverse.data, n, width, got.data);
    float wanted_most = scalar_row()->pairs(x.data, factor.data, inverse.data, n, width, wanted);
    assert_memory_equal(&most, &wanted_most, sizeof most);
    if (most <= ST_INT16_MAX_INPUT) assert_memory_equal(got.data, wanted, got.bytes);
    free(wanted);
    struct kc_array *all[] = {&x, &factor, &inverse, &got};
    for (size_t i = 0; i < 4; i++) kc_free(all[i], row->name);
}

static void pairs_equal_the_scalar_ones(void **state) {
    (void)state;
    const size_t lengths[] = {2, 30, 32, ST_INT16_BLOCK};
    const float odd[] = {0.0f, -0.0f, 1e-35f, 3e38f, INFINITY, -INFINITY, NAN};
    for (const struct st_int16 *row = st_int16s; row->name; row++)
        for (size_t i = 0; has(row) && i < 4 * 7; i++)
            for (size_t v = 1; v <= row->vectors; v++)
                check_pairs(row, lengths[i % 4], v * row->lanes, odd[i / 4]);
}

// What the definition gives: halves to even, the even element in the lower half.
static void pairs_are_the_nearest_whole_numbers(void **state) {
    (void)state;
    const float x[8] = {2.5f, -3.5f, 0.4f, -0.6f, 7.0f, -1.0f, 4095.0f, 8.0f};
    const float factor[2] = {1.0f, 0.5f}, inverse[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    const int16_t wanted[8] = {2, 4, -4, 0, 0, 2048, -1, 4}; // of a lane: even, odd
    uint32_t got[4];
    assert_true(scalar_row()->pairs(x, factor, inverse, 2, 4, got) == 2047.5f);
    assert_memory_equal(got, wanted, sizeof got);
}

// A linear packs its input for the float tile.
static void the_selected_row_fits_the_float_tile(void **state) {
    (void)state;
    const uint64_t sets[] = {0, ST_CPU_AVX2, UINT64_MAX};
    for (size_t s = 0; s < 3; s++) {
        const struct st_tile *tile = st_tile_select(st_cpu_flags() & sets[s]);
        const struct st_int16 *row = st_int16_select(st_cpu_flags() & sets[s]);
        if (!row) continue;
        assert_true(row->m == tile->m && row->lanes == tile->lanes);
        assert_int_equal(row->vectors, tile->vectors);
    }
    assert_null(st_int16_select(0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_equal_the_scalar_row),
        cmocka_unit_test(whole_blocks_of_the_largest_fit),
        cmocka_unit_test(quantizing_equals_the_scalar_one),
        cmocka_unit_test(blocks_are_the_nearest_whole_numbers),
        cmocka_unit_test(pairs_equal_the_scalar_ones),
        cmocka_unit_test(pairs_are_the_nearest_whole_numbers),
        cmocka_unit_test(the_selected_row_fits_the_float_tile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
