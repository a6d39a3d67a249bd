// SPDX-License-Identifier: Apache-2.0
// Every row of gemv and of dequantize that this CPU has, for every type, against the scalar one.
#include "kernels/gemv.h"

#include "base/cpu.h"
#include "base/half.h"
#include "block_weights.h"
#include "kernel_check.h"
#include "kernels/dequantize.h"

static const struct st_dequantize *scalar_dequantize(void) {
    return st_dequantize_select(0);
}

static void check_dequantize(const struct st_dequantize *row, enum st_dtype dtype, size_t n) {
    size_t items = st_dtype_traits(dtype)->block_items;
    n = (n + items - 1) / items * items;
    struct kc_array w = kc_make(st_dtype_row_bytes(dtype, n), ts_random_below(4));
    struct kc_array got = kc_floats(n, 1.0f), wanted = kc_floats(n, 1.0f);
    bw_fill(dtype, w.data, w.bytes);
    size_t first = n ? ts_random_below(n / items) * items : 0;
    row->fn[dtype](w.data, first, n - first, got.data);
    scalar_dequantize()->fn[dtype](w.data, first, n - first, wanted.data);
    kc_near(got.data, wanted.data, n - first, 0.0f, st_dtype_traits(dtype)->name);
    kc_free(&w, row->name);
    kc_free(&got, row->name);
    kc_free(&wanted, row->name);
}

static void dequantizing_gives_the_same_floats_everywhere(void **state) {
    (void)state;
    const size_t lengths[] = {0, 1, 7, 8, 15, 16, 17, 31, 33, 256, 257, 1000};
    for (const struct st_dequantize *row = st_dequantizers; row->name; row++)
        for (int dtype = 0; dtype < ST_N_DTYPES; dtype++)
            for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
                if ((row->isa & st_cpu_flags()) == row->isa)
                    check_dequantize(row, (enum st_dtype)dtype, lengths[i]);
}

// 16-bit types have few enough values to try them all.
static void every_half_dequantizes_exactly(void **state) {
    (void)state;
    uint16_t halves[4096];
    float floats[4096];
    for (const struct st_dequantize *row = st_dequantizers; row->name; row++) {
        if ((row->isa & st_cpu_flags()) != row->isa) continue;
        for (size_t base = 0; base < 65536; base += 4096) {
            for (size_t i = 0; i < 4096; i++) halves[i] = (uint16_t)(base + i);
            row->fn[ST_DTYPE_F16](halves, 0, 4096, floats);
            for (size_t i = 0; i < 4096; i++) {
                float wanted = st_f32_from_f16(halves[i]);
                assert_true(floats[i] == wanted || (isnan(floats[i]) && isnan(wanted)));
                // And back: what was a half stays that half.
                if (!isnan(wanted)) assert_int_equal(st_f16_from_f32(wanted), halves[i]);
            }
            row->fn[ST_DTYPE_BF16](halves, 0, 4096, floats);
            for (size_t i = 0; i < 4096; i++)
                assert_int_equal(st_float_bits(floats[i]), (uint32_t)halves[i] << 16);
        }
    }
}

static void check_gemv(const struct st_gemv *row, enum st_dtype dtype, size_t n_rows, size_t k,
                       size_t n_columns) {
    size_t items = st_dtype_traits(dtype)->block_items, y_col = n_rows + ts_random_below(3);
    k = (k + items - 1) / items * items;
    size_t row_bytes = st_dtype_row_bytes(dtype, k);
    struct kc_array w = kc_make(row_bytes * n_rows, ts_random_below(4));
    struct kc_array x = kc_floats(n_columns * k, 1.0f);
    struct kc_array got = kc_floats(n_columns * y_col, 0.0f),
                    wanted = kc_floats(n_columns * y_col, 0.0f);
    memset(got.data, 0, got.bytes);
    memset(wanted.data, 0, wanted.bytes);
    bw_fill(dtype, w.data, w.bytes);
    row->fn[dtype](w.data, row_bytes, n_rows, k, x.data, n_columns, got.data, y_col);
    st_gemv_select(0)->fn[dtype](w.data, row_bytes, n_rows, k, x.data, n_columns, wanted.data,
                                 y_col);
    // Weights reach about 20 in size, sums of k of them with signs.
    kc_near(got.data, wanted.data, n_columns * y_col, 2e-5f * (float)(k + 1), row->name);
    // A column's result does not depend on how many there are.
    struct kc_array alone = kc_floats(n_rows, 0.0f);
    for (size_t c = 0; c < n_columns; c++) {
        row->fn[dtype](w.data, row_bytes, n_rows, k, (float *)x.data + c * k, 1, alone.data,
                       n_rows);
        assert_memory_equal(alone.data, (float *)got.data + c * y_col, n_rows * sizeof(float));
    }
    kc_free(&w, row->name);
    kc_free(&x, row->name);
    kc_free(&got, row->name);
    kc_free(&wanted, row->name);
    kc_free(&alone, row->name);
}

static void gemv_equals_the_scalar_one(void **state) {
    (void)state;
    const size_t rows[] = {0, 1, 2, 3, 4, 5, 8, 9, 13, 17},
                 lengths[] = {1, 7, 16, 17, 33, 300, 512};
    for (const struct st_gemv *row = st_gemvs; row->name; row++) {
        if ((row->isa & st_cpu_flags()) != row->isa) continue;
        for (int dtype = 0; dtype < ST_N_DTYPES; dtype++)
            for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
                for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
                    check_gemv(row, (enum st_dtype)dtype, rows[r], lengths[i],
                               1 + ts_random_below(ST_GEMV_MAX_COLUMNS));
    }
}

// As many as are computed in one pass, more of them, and what is left over of each kind.
static void gemv_takes_any_number_of_columns(void **state) {
    (void)state;
    for (const struct st_gemv *row = st_gemvs; row->name; row++) {
        if ((row->isa & st_cpu_flags()) != row->isa) continue;
        for (int dtype = 0; dtype < ST_N_DTYPES; dtype++)
            for (size_t n = 1; n <= ST_GEMV_MAX_COLUMNS; n++)
                check_gemv(row, (enum st_dtype)dtype, 13, n % 4 ? 300 : 1100, n);
    }
}

// A row's result is its own: not a bit depends on which rows are computed in the same call.
static void rows_do_not_depend_on_their_neighbours(void **state) {
    (void)state;
    enum { ROWS = 21, K = 512 };
    for (const struct st_gemv *row = st_gemvs; row->name; row++)
        for (int dtype = 0; dtype < ST_N_DTYPES; dtype++) {
            if ((row->isa & st_cpu_flags()) != row->isa) continue;
            size_t n = 1 + ts_random_below(ST_GEMV_MAX_COLUMNS);
            size_t row_bytes = st_dtype_row_bytes((enum st_dtype)dtype, K);
            struct kc_array w = kc_make(row_bytes * ROWS, ts_random_below(4));
            struct kc_array x = kc_floats(n * K, 1.0f), all = kc_floats(n * ROWS, 0.0f);
            struct kc_array cut = kc_floats(n * ROWS, 0.0f);
            bw_fill((enum st_dtype)dtype, w.data, w.bytes);
            row->fn[dtype](w.data, row_bytes, ROWS, K, x.data, n, all.data, ROWS);
            for (size_t r = 0, count; r < ROWS; r += count) {
                count = 1 + ts_random_below(ROWS - r);
                row->fn[dtype]((unsigned char *)w.data + r * row_bytes, row_bytes, count, K, x.data,
                               n, (float *)cut.data + r, ROWS);
            }
            assert_memory_equal(cut.data, all.data, all.bytes);
            kc_free(&w, row->name);
            kc_free(&x, row->name);
            kc_free(&all, row->name);
            kc_free(&cut, row->name);
        }
}

// A weight or an input that is not finite reaches its own row or column, and no other.
static void not_finite_stays_where_it_belongs(void **state) {
    (void)state;
    enum { ROWS = 11, K = 77, COLUMNS = 3 };
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (const struct st_gemv *row = st_gemvs; row->name; row++)
        for (size_t i = 0; i < 30; i++) {
            if ((row->isa & st_cpu_flags()) != row->isa) continue;
            size_t r = ts_random_below(ROWS), c = ts_random_below(COLUMNS);
            struct kc_array w = kc_floats(ROWS * K, 1.0f), x = kc_floats(COLUMNS * K, 1.0f);
            struct kc_array y = kc_floats(COLUMNS * ROWS, 0.0f);
            ((float *)w.data)[r * K + ts_random_below(K)] = bad[i % 3];
            ((float *)x.data)[c * K + ts_random_below(K)] = bad[(i + 1) % 3];
            row->fn[ST_DTYPE_F32](w.data, K * sizeof(float), ROWS, K, x.data, COLUMNS, y.data,
                                  ROWS);
            for (size_t j = 0; j < COLUMNS * ROWS; j++)
                assert_int_equal(isfinite(((float *)y.data)[j]), j % ROWS != r && j / ROWS != c);
            kc_free(&w, row->name);
            kc_free(&x, row->name);
            kc_free(&y, row->name);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dequantizing_gives_the_same_floats_everywhere),
        cmocka_unit_test(every_half_dequantizes_exactly),
        cmocka_unit_test(gemv_equals_the_scalar_one),
        cmocka_unit_test(gemv_takes_any_number_of_columns),
        cmocka_unit_test(rows_do_not_depend_on_their_neighbours),
        cmocka_unit_test(not_finite_stays_where_it_belongs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
