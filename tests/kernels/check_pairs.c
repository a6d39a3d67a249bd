// SPDX-License-Identifier: Apache-2.0
// Every row of BF16 pairs that this CPU has: what is packed against the scalar row, bit for bit,
// and tiles against a loop in double precision over the same rounded elements; the tile unit's also
// in emulation, so that it is tested on CPUs that have none.
#define ST_AMX_EMULATED
#define st_pair_tile_amx_1 emulated_tile_1
#define st_pair_tile_amx_2 emulated_tile_2
#define st_pair_tile_amx_3 emulated_tile_3
#define st_pair_begin_amx  emulated_begin
#define st_pair_end_amx    emulated_end
#include "../../src/kernels/pairs_amx.c"
#undef st_pair_tile_amx_1
#undef st_pair_tile_amx_2
#undef st_pair_tile_amx_3
#undef st_pair_begin_amx
#undef st_pair_end_amx

#include "base/cpu.h"
#include "base/half.h"
#include "kernel_check.h"

static const struct st_pairs emulated = {"pairs_amx emulated",
                                         0,
                                         M,
                                         TILE,
                                         3,
                                         {emulated_tile_1, emulated_tile_2, emulated_tile_3},
                                         st_pair_join_scalar,
                                         st_pair_zip_scalar,
                                         emulated_begin,
                                         emulated_end};

static bool has(const struct st_pairs *row) {
    return (row->isa & st_cpu_flags()) == row->isa;
}

static const struct st_pairs *scalar_row(void) {
    const struct st_pairs *row = st_pairs;
    while (row->isa) row++;
    return row;
}

// n pairs of random BF16 elements.
static struct kc_array random_pairs(size_t n, float range) {
    struct kc_array a = kc_floats(n, range);
    for (size_t i = 0; i < n; i++) {
        uint32_t even = st_bf16_from_f32(ts_random_float(-range, range));
        ((uint32_t *)a.data)[i] = even | (uint32_t)st_bf16_from_f32(ts_random_float(-range, range))
                                             << 16;
    }
    return a;
}

static double product(uint32_t a, uint32_t b) {
    return (double)st_f32_from_bf16((uint16_t)a) * (double)st_f32_from_bf16((uint16_t)b) +
           (double)st_f32_from_bf16((uint16_t)(a >> 16)) *
               (double)st_f32_from_bf16((uint16_t)(b >> 16));
}

static void check_product(const struct st_pairs *row, size_t vectors, size_t k, bool by_column) {
    size_t m = row->m, width = vectors * row->lanes, c_row = width + ts_random_below(20);
    size_t a_row = by_column ? 1 : k + ts_random_below(3), a_col = by_column ? m : 1;
    struct kc_array a = random_pairs((m - 1) * a_row + (k ? (k - 1) * a_col : 0) + 1, 2.0f);
    struct kc_array b = random_pairs(k * width, 2.0f), c = kc_floats((m - 1) * c_row + width, 1.0f);
    float *wanted = malloc(c.bytes);
    memcpy(wanted, c.data, c.bytes);
    const uint32_t *x = a.data, *y = b.data;
    for (size_t r = 0; r < m; r++)
        for (size_t l = 0; l < width; l++) {
            double sum = (double)wanted[r * c_row + l];
            for (size_t i = 0; i < k; i++)
                sum += product(x[r * a_row + i * a_col], y[i * width + l]);
            wanted[r * c_row + l] = (float)sum;
        }
    row->begin();
    row->fn[vectors - 1](k, x, a_row, a_col, y, c.data, c_row);
    row->end();
    kc_near(c.data, wanted, c.bytes / sizeof(float), 1e-6f * (float)(2 * k + 4) * 4.0f, row->name);
    free(wanted);
    kc_free(&a, row->name);
    kc_free(&b, row->name);
    kc_free(&c, row->name);
}

static void check_products(const struct st_pairs *row) {
    const size_t lengths[] = {0, 1, 2, 3, 7, 16, 31, 32, 64, 129};
    for (size_t v = 1; v <= row->vectors; v++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (int by_column = 0; by_column < 2; by_column++)
                check_product(row, v, lengths[i], by_column);
}

static void tiles_equal_the_definition(void **state) {
    (void)state;
    for (const struct st_pairs *row = st_pairs; row->name; row++)
        if (has(row)) check_products(row);
    check_products(&emulated);
}

// What a lane computes does not depend on the width of the tile that it lies in, nor on pairs of
// zeros behind its own: a tile of keys may end with masked ones.
static void check_width_and_zeros(const struct st_pairs *row) {
    enum { K = 67, ZEROS = 5 };
    size_t lanes = row->lanes, wide = row->vectors * lanes;
    struct kc_array a = random_pairs(row->m * K, 1.0f), b = random_pairs(K * wide, 1.0f);
    struct kc_array narrow = random_pairs(K * lanes, 1.0f);
    memset((uint32_t *)b.data + (K - ZEROS) * wide, 0, ZEROS * wide * sizeof(uint32_t));
    for (size_t i = 0; i < K; i++)
        memcpy((uint32_t *)narrow.data + i * lanes, (uint32_t *)b.data + i * wide,
               lanes * sizeof(uint32_t));
    struct kc_array c = kc_floats(row->m * wide, 0.0f), d = kc_floats(row->m * lanes, 0.0f);
    memset(c.data, 0, c.bytes);
    memset(d.data, 0, d.bytes);
    row->begin();
    row->fn[row->vectors - 1](K, a.data, K, 1, b.data, c.data, wide);
    row->fn[0](K - ZEROS, a.data, K, 1, narrow.data, d.data, lanes);
    row->end();
    for (size_t m = 0; m < row->m; m++)
        assert_memory_equal((float *)c.data + m * wide, (float *)d.data + m * lanes,
                            lanes * sizeof(float));
    struct kc_array *all[] = {&a, &b, &narrow, &c, &d};
    for (size_t i = 0; i < 5; i++) kc_free(all[i], row->name);
}

static void width_and_zeros_do_not_change_a_bit(void **state) {
    (void)state;
    for (const struct st_pairs *row = st_pairs; row->name; row++)
        if (has(row)) check_width_and_zeros(row);
    check_width_and_zeros(&emulated);
}

static void check_packing(const struct st_pairs *row, size_t n_rows, size_t n) {
    struct kc_array x = kc_floats(n_rows * n, 3.0f), even = kc_floats(2 * n, 3.0f);
    size_t bytes = (n_rows + 1) / 2 * n * sizeof(uint32_t);
    uint32_t *wanted = calloc(bytes + n * sizeof *wanted + 1, 1);
    struct kc_array got = kc_make(bytes, 4), joined = kc_make(n * sizeof *wanted, 8);
    // Half way between two BF16: to the even one.
    if (n_rows * n > 1) ((float *)x.data)[1] = 0x1.01p0f, ((float *)x.data)[0] = 0x1.03p0f;
    ((float *)even.data)[1] = INFINITY;
    row->zip(x.data, n_rows, n, got.data);
    scalar_row()->zip(x.data, n_rows, n, wanted);
    assert_memory_equal(got.data, wanted, bytes);
    row->join(even.data, n, joined.data);
    scalar_row()->join(even.data, n, wanted);
    assert_memory_equal(joined.data, wanted, joined.bytes);
    free(wanted);
    struct kc_array *all[] = {&x, &even, &got, &joined};
    for (size_t i = 0; i < 4; i++) kc_free(all[i], row->name);
}

static void packing_equals_the_scalar_one(void **state) {
    (void)state;
    const size_t rows[] = {1, 2, 3, 8, 63, 64}, widths[] = {1, 7, 15, 16, 17, 24, 32, 33, 80, 128};
    for (const struct st_pairs *row = st_pairs; row->name; row++)
        for (size_t i = 0; has(row) && i < 6 * 10; i++)
            check_packing(row, rows[i % 6], widths[i / 6]);
}

// The definition by hand: order within a pair, rounding, and the zeros behind an odd row.
static void pairs_are_what_the_header_says(void **state) {
    (void)state;
    const float x[] = {1.0f, 2.0f, 3.0f, 4.0f, 0x1.01p0f, 0x1.03p0f};
    uint32_t out[4];
    for (const struct st_pairs *row = st_pairs; row->name; row++) {
        if (!has(row)) continue;
        row->zip(x, 3, 2, out);
        const uint32_t zipped[] = {0x40403f80, 0x40804000, 0x3f80, 0x3f82};
        assert_memory_equal(out, zipped, sizeof zipped);
        row->join(x, 2, out);
        assert_true(out[0] == 0x40003f80 && out[1] == 0x40804040);
    }
}

// A session packs its queries for the float tile and lets the pairs' one multiply them.
static void the_selected_row_fits_the_float_tile(void **state) {
    (void)state;
    const struct st_tile *tile = st_tile_select(st_cpu_flags());
    const struct st_pairs *pairs = st_pairs_select(st_cpu_flags());
    assert_null(st_pairs_select(0));
    if (!pairs) skip();
    assert_int_equal(pairs->lanes, tile->lanes);
    assert_int_equal(pairs->vectors, tile->vectors);
    assert_true(pairs->m <= ST_PAIRS_MAX_M);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_equal_the_definition),
        cmocka_unit_test(width_and_zeros_do_not_change_a_bit),
        cmocka_unit_test(packing_equals_the_scalar_one),
        cmocka_unit_test(pairs_are_what_the_header_says),
        cmocka_unit_test(the_selected_row_fits_the_float_tile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
