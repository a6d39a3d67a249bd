// SPDX-License-Identifier: Apache-2.0
// Every row of dequantize that this CPU has: stored blocks whose floats another implementation
// gave, and random blocks against the scalar row, to the bit.
#include "kernels/dequantize.h"

#include "base/cpu.h"
#include "base/half.h"
#include "block_weights.h"
#include "dequantize_vectors.h"
#include "kernel_check.h"
#include "kernels/blocks.h"

#include <float.h>

static bool has(const struct st_dequantize *row) {
    return (row->isa & st_cpu_flags()) == row->isa;
}

// Equal bits, or both NaN: which NaN an instruction makes is its own affair.
static void same_bits(const float *got, const float *wanted, size_t n, const char *who,
                      enum st_dtype dtype) {
    for (size_t i = 0; i < n; i++) {
        if (st_float_bits(got[i]) == st_float_bits(wanted[i])) continue;
        if (isnan(got[i]) && isnan(wanted[i])) continue;
        fail_msg("%s, %s: element %zu of %zu is %a, expected %a", who, st_dtype_traits(dtype)->name,
                 i, n, (double)got[i], (double)wanted[i]);
    }
}

static void stored_blocks_give_the_stored_floats(void **state) {
    (void)state;
    enum { N = sizeof dequantize_vectors / sizeof *dequantize_vectors };
    for (const struct st_dequantize *row = st_dequantizers; row->name; row++)
        for (size_t v = 0; has(row) && v < N; v++) {
            enum st_dtype dtype = dequantize_vectors[v].dtype;
            float got[256], wanted[256];
            size_t n = st_dtype_traits(dtype)->block_items;
            memcpy(wanted, dequantize_vectors[v].bits, n * sizeof *wanted);
            row->fn[dtype](dequantize_vectors[v].block, 0, n, got);
            same_bits(got, wanted, n, row->name, dtype);
        }
}

// n elements from `first` on, in a row that ends with them: the source is exactly as long as it
// must be (the address sanitizer sees a byte more) and off by `offset` bytes.
static void check_random(const struct st_dequantize *row, enum st_dtype dtype, size_t first,
                         size_t n, size_t offset) {
    size_t bytes = st_dtype_row_bytes(dtype, first + n);
    unsigned char *src = malloc(offset + bytes + (offset + bytes == 0));
    assert_non_null(src);
    ts_random_bytes(src + offset, bytes);
    struct kc_array got = kc_floats(n, 1.0f), wanted = kc_floats(n, 1.0f);
    row->fn[dtype](src + offset, first, n, got.data);
    st_dequantize_select(0)->fn[dtype](src + offset, first, n, wanted.data);
    same_bits(got.data, wanted.data, n, row->name, dtype);
    kc_free(&got, row->name);
    kc_free(&wanted, row->name);
    free(src);
}

static void random_blocks_equal_the_scalar_row(void **state) {
    (void)state;
    const size_t counts[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 61, 127};
    for (const struct st_dequantize *row = st_dequantizers; row->name; row++)
        for (int dtype = 0; has(row) && dtype < ST_N_DTYPES; dtype++) {
            size_t items = st_dtype_traits((enum st_dtype)dtype)->block_items;
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
                check_random(row, (enum st_dtype)dtype, ts_random_below(4) * items,
                             counts[i] * items, i % 4);
        }
}

// Zero, the smallest subnormal, the largest, infinity and NaN as scale and as minimum.
static void extreme_scales_equal_the_scalar_row(void **state) {
    (void)state;
    const uint16_t scales[] = {0,      0x8000, 1,      0x8001, 0x03ff,
                               0x0400, 0x7bff, 0xfbff, 0x7c00, 0x7e00};
    const unsigned char codes[] = {0x00, 0xff, 0x80, 0x7f, 0x0f, 0xf0};
    for (const struct st_dequantize *row = st_dequantizers; row->name; row++)
        for (int dtype = ST_DTYPE_Q4_0; has(row) && dtype < ST_N_DTYPES; dtype++)
            for (size_t i = 0; i < 10 * 6; i++) {
                const struct st_dtype_traits *traits = st_dtype_traits((enum st_dtype)dtype);
                unsigned char block[256];
                float got[256], wanted[256];
                // Both ends hold the halves of one type or another.
                memset(block, codes[i % 6], sizeof block);
                for (size_t at = 0; at < 4; at += 2) {
                    memcpy(block + at, &scales[(i / 6 + at) % 10], 2);
                    memcpy(block + traits->block_bytes - 4 + at, &scales[(i / 6 + at) % 10], 2);
                }
                row->fn[dtype](block, 0, traits->block_items, got);
                st_dequantize_select(0)->fn[dtype](block, 0, traits->block_items, wanted);
                same_bits(got, wanted, traits->block_items, row->name, (enum st_dtype)dtype);
            }
}

static void check_bf16(const struct st_dequantize_bf16 *row, enum st_dtype dtype, size_t first,
                       size_t n, size_t offset) {
    size_t bytes = st_dtype_row_bytes(dtype, first + n);
    unsigned char *src = malloc(offset + bytes + (offset + bytes == 0));
    float *exact = malloc((n + 1) * sizeof *exact);
    struct kc_array got = kc_make(n * sizeof(uint16_t), 2 * ts_random_below(4));
    assert_true(src && exact);
    bw_fill(dtype, src + offset, bytes);
    st_dequantize_select(0)->fn[dtype](src + offset, first, n, exact);
    row->fn[dtype](src + offset, first, n, got.data);
    for (size_t i = 0; i < n; i++) {
        uint16_t is;
        memcpy(&is, (char *)got.data + i * sizeof is, sizeof is);
        if (is != st_bf16_from_f32(exact[i]) && fabsf(exact[i]) >= FLT_MIN)
            fail_msg("%s, %s: element %zu of %zu is %x, from %a", row->name,
                     st_dtype_traits(dtype)->name, i, n, is, (double)exact[i]);
    }
    kc_free(&got, row->name);
    free(src);
    free(exact);
}

static void bf16_is_the_rounded_float(void **state) {
    (void)state;
    const size_t counts[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17};
    for (const struct st_dequantize_bf16 *row = st_dequantizers_bf16; row->name; row++)
        for (int dtype = 0; dtype < ST_N_DTYPES; dtype++) {
            size_t items = st_dtype_traits((enum st_dtype)dtype)->block_items;
            assert_int_equal(row->fn[dtype] != NULL, st_blocks_has((enum st_dtype)dtype));
            if (!row->fn[dtype] || (row->isa & st_cpu_flags()) != row->isa) continue;
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
                check_bf16(row, (enum st_dtype)dtype, ts_random_below(4) * items, counts[i] * items,
                           i % 4);
        }
}

static void every_half_and_bfloat_is_exact(void **state) {
    (void)state;
    enum { N = 65536 };
    uint16_t *all = malloc(N * sizeof *all);
    float *got = malloc(N * sizeof *got), *wanted = malloc(N * sizeof *wanted);
    assert_true(all && got && wanted);
    for (int i = 0; i < N; i++) all[i] = (uint16_t)i;
    for (const struct st_dequantize *row = st_dequantizers; row->name; row++) {
        if (!has(row)) continue;
        for (int i = 0; i < N; i++) {
            int exponent = i >> 10 & 31, mantissa = i & 1023;
            float size = exponent == 31 ? (mantissa ? NAN : INFINITY)
                         : exponent     ? ldexpf((float)(1024 + mantissa), exponent - 25)
                                        : ldexpf((float)mantissa, -24);
            wanted[i] = i & 0x8000 ? -size : size;
        }
        row->fn[ST_DTYPE_F16](all, 0, N, got);
        same_bits(got, wanted, N, row->name, ST_DTYPE_F16);
        for (int i = 0; i < N; i++) wanted[i] = st_float_from_bits((uint32_t)i << 16);
        row->fn[ST_DTYPE_BF16](all, 0, N, got);
        same_bits(got, wanted, N, row->name, ST_DTYPE_BF16);
    }
    free(all);
    free(got);
    free(wanted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_blocks_give_the_stored_floats),
        cmocka_unit_test(random_blocks_equal_the_scalar_row),
        cmocka_unit_test(extreme_scales_equal_the_scalar_row),
        cmocka_unit_test(bf16_is_the_rounded_float),
        cmocka_unit_test(every_half_and_bfloat_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
