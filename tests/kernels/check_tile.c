// SPDX-License-Identifier: Apache-2.0
// Every tile of every row that this CPU has against a plain triple loop in double precision.
#include "kernels/tile.h"

#include "base/cpu.h"
#include "kernel_check.h"

static void check_product(const struct st_tile *tile, size_t vectors, size_t k, bool by_column) {
    size_t m = tile->m, width = vectors * tile->lanes, c_row = width + ts_random_below(20);
    size_t a_row = by_column ? 1 : k + ts_random_below(3), a_col = by_column ? m : 1;
    struct kc_array a = kc_floats((m - 1) * a_row + (k ? (k - 1) * a_col : 0) + 1, 2.0f);
    struct kc_array b = kc_floats(k * width, 2.0f), c = kc_floats((m - 1) * c_row + width, 1.0f);
    float *wanted = malloc(c.bytes);
    memcpy(wanted, c.data, c.bytes);
    const float *x = a.data, *y = b.data;
    for (size_t r = 0; r < m; r++)
        for (size_t l = 0; l < width; l++) {
            double sum = (double)wanted[r * c_row + l];
            for (size_t i = 0; i < k; i++)
                sum += (double)x[r * a_row + i * a_col] * (double)y[i * width + l];
            wanted[r * c_row + l] = (float)sum;
        }
    tile->fn[vectors - 1](k, x, a_row, a_col, y, c.data, c_row);
    kc_near(c.data, wanted, c.bytes / sizeof(float), 1e-6f * (float)(k + 4) * 4.0f, tile->name);
    free(wanted);
    kc_free(&a, tile->name);
    kc_free(&b, tile->name);
    kc_free(&c, tile->name);
}

static bool has(const struct st_tile *tile) {
    return (tile->isa & st_cpu_flags()) == tile->isa;
}

static void tiles_equal_the_definition(void **state) {
    (void)state;
    const size_t lengths[] = {0, 1, 2, 3, 7, 16, 31, 64, 129, 512};
    for (const struct st_tile *tile = st_tiles; tile->name; tile++) {
        if (!has(tile)) continue;
        for (size_t v = 1; v <= tile->vectors; v++)
            for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
                for (int by_column = 0; by_column < 2; by_column++)
                    check_product(tile, v, lengths[i], by_column);
    }
}

// What a lane computes does not depend on the width of the tile that it lies in.
static void width_does_not_change_a_bit(void **state) {
    (void)state;
    enum { K = 133 };
    for (const struct st_tile *tile = st_tiles; tile->name; tile++) {
        if (!has(tile)) continue;
        size_t lanes = tile->lanes, wide = tile->vectors * lanes;
        struct kc_array a = kc_floats(tile->m * K, 1.0f), b = kc_floats(K * wide, 1.0f);
        struct kc_array narrow = kc_floats(K * lanes, 0.0f);
        for (size_t i = 0; i < K; i++)
            memcpy((float *)narrow.data + i * lanes, (float *)b.data + i * wide,
                   lanes * sizeof(float));
        struct kc_array c = kc_floats(tile->m * wide, 0.0f), d = kc_floats(tile->m * lanes, 0.0f);
        memset(c.data, 0, c.bytes);
        memset(d.data, 0, d.bytes);
        tile->fn[tile->vectors - 1](K, a.data, K, 1, b.data, c.data, wide);
        tile->fn[0](K, a.data, K, 1, narrow.data, d.data, lanes);
        for (size_t m = 0; m < tile->m; m++)
            assert_memory_equal((float *)c.data + m * wide, (float *)d.data + m * lanes,
                                lanes * sizeof(float));
        kc_free(&a, tile->name);
        kc_free(&b, tile->name);
        kc_free(&narrow, tile->name);
        kc_free(&c, tile->name);
        kc_free(&d, tile->name);
    }
}

static void packing_transposes_and_pads_with_zeros(void **state) {
    (void)state;
    for (const struct st_tile *tile = st_tiles; tile->name; tile++)
        for (size_t n = 1; has(tile) && n < 140; n += 1 + ts_random_below(9)) {
            size_t k = 1 + ts_random_below(40), padded = st_tile_padded(tile, n);
            struct kc_array x = kc_floats(n * k, 1.0f), out = kc_floats(padded * k, 1.0f);
            assert_int_equal(st_tile_pack(tile, x.data, k, n, k, out.data), padded);
            for (size_t t = 0, block = 0; t < padded; block++) {
                size_t width = st_tile_width(tile, n, t);
                assert_int_equal(st_tile_block_start(tile, n, block), t);
                assert_true(width <= tile->vectors * tile->lanes && width % tile->lanes == 0);
                for (size_t l = 0; l < width; l++)
                    for (size_t i = 0; i < k; i++) {
                        float wanted = t + l < n ? ((float *)x.data)[(t + l) * k + i] : 0.0f;
                        assert_true(((float *)out.data)[t * k + i * width + l] == wanted);
                    }
                t += width;
            }
            kc_free(&x, tile->name);
            kc_free(&out, tile->name);
        }
}

static void transposing_exchanges_rows_and_columns(void **state) {
    (void)state;
    const size_t sizes[] = {1, 3, 4, 5, 8, 15, 16, 17, 33, 50};
    for (const struct st_tile *tile = st_tiles; tile->name; tile++) {
        if (!has(tile)) continue;
        for (size_t s = 0; s < 10 * 10; s++) {
            size_t n_rows = sizes[s % 10], n_columns = sizes[s / 10];
            size_t a_row = n_columns + ts_random_below(3), b_row = n_rows + ts_random_below(3);
            struct kc_array a = kc_floats((n_rows - 1) * a_row + n_columns, 1.0f);
            struct kc_array b = kc_floats((n_columns - 1) * b_row + n_rows, 1.0f);
            float *x = a.data, *y = b.data, first_gap = b_row > n_rows ? y[n_rows] : 0.0f;
            st_tile_transpose(tile, x, a_row, n_rows, n_columns, y, b_row);
            for (size_t i = 0; i < n_rows; i++)
                for (size_t j = 0; j < n_columns; j++)
                    assert_true(y[j * b_row + i] == x[i * a_row + j]);
            if (b_row > n_rows && n_columns > 1) assert_true(y[n_rows] == first_gap);
            kc_free(&a, tile->name);
            kc_free(&b, tile->name);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_equal_the_definition),
        cmocka_unit_test(width_does_not_change_a_bit),
        cmocka_unit_test(packing_transposes_and_pads_with_zeros),
        cmocka_unit_test(transposing_exchanges_rows_and_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
