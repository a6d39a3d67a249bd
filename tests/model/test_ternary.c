// SPDX-License-Identifier: Apache-2.0
// Linears of BitNet against what they stand for, and what does not fit.
#include "model/ternary.h"

#include "base/half.h"
#include "kernels/dequantize.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ROWS = 8, PACKED = ROWS / 4 };

static int code_of(size_t row, size_t k) {
    return (int)((row * 7 + k * k) % 3) - 1;
}

// Packed codes [PACKED, n] named "x.weight", with a scale beside them unless it is 0.
static struct st_tensors *packed(size_t n, float scale) {
    struct st_tensors *tensors = NULL;
    unsigned char *codes = calloc(PACKED, n);
    uint16_t half = st_bf16_from_f32(scale);
    assert_non_null(codes);
    for (size_t r = 0; r < ROWS; r++)
        for (size_t k = 0; k < n; k++)
            codes[r % PACKED * n + k] |= (unsigned char)((code_of(r, k) + 1) << r / PACKED * 2);
    struct st_tensor weight = {.name = "x.weight",
                               .data = codes,
                               .bytes = PACKED * n,
                               .dims = {PACKED, n, 1, 1},
                               .n_dims = 2};
    struct st_tensor beside = {.name = "x.weight_scale",
                               .data = &half,
                               .bytes = sizeof half,
                               .dims = {1, 1, 1, 1},
                               .n_dims = 1,
                               .dtype = ST_DTYPE_BF16};
    static uint16_t kept; // tensors are views
    kept = half;
    beside.data = &kept;
    assert_int_equal(st_tensors_open(4, &tensors), STINT_OK);
    assert_int_equal(st_tensors_set_bytes_aside(tensors, &weight, "bytes"), STINT_OK);
    if (scale > 0.0f) assert_int_equal(st_tensors_add(tensors, &beside), STINT_OK);
    return tensors;
}

static void drop(struct st_tensors *tensors) {
    const struct st_tensor *t = st_tensors_find_bytes(tensors, "x.weight");
    free((void *)(uintptr_t)t->data);
    st_tensors_close(tensors);
}

// Rewrites into an arena that the caller closes.
static stint_status rewrite(const struct st_tensors *tensors, enum st_ternary form, uint32_t rows,
                            uint32_t n, struct st_arena *arena, struct st_tensor *t, bool *found) {
    *arena = st_arena_measure();
    stint_status status = st_ternary_rewrite(tensors, form, "x.weight", rows, n, arena, t, found);
    if (status != STINT_OK || !*found) return status;
    assert_null(t->data);
    assert_int_equal(st_arena_open(arena, arena->used), STINT_OK);
    return st_ternary_rewrite(tensors, form, "x.weight", rows, n, arena, t, found);
}

static void check_codes(const struct st_tensor *t, size_t n, float scale) {
    float *row = calloc(n, sizeof *row);
    assert_non_null(row);
    for (size_t r = 0; r < ROWS; r++) {
        const char *from = (const char *)t->data + r * st_dtype_row_bytes(t->dtype, n);
        st_dequantize_select(0)->fn[t->dtype](from, 0, n, row);
        for (size_t k = 0; k < n; k++) assert_true(row[k] == scale * (float)code_of(r, k));
    }
    free(row);
}

static void packed_rows_become_blocks_or_floats(void **state) {
    (void)state;
    static const struct {
        uint32_t n;
        enum st_ternary form;
        float scale, wanted;
        enum st_dtype dtype;
    } cases[] = {
        {512, ST_TERNARY_SCALED, 1.25f, 1.25f, ST_DTYPE_TQ2_0},
        {512, ST_TERNARY_DIVIDED, 4.0f, 0.25f, ST_DTYPE_TQ2_0},
        {300, ST_TERNARY_SCALED, 1.25f, 1.25f, ST_DTYPE_F32},
        {256, ST_TERNARY_SCALED, 0x1p-20f, 0x1p-20f, ST_DTYPE_F32}, // no F16
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct st_tensors *tensors = packed(cases[i].n, cases[i].scale);
        struct st_arena arena;
        struct st_tensor t;
        bool found;
        assert_int_equal(rewrite(tensors, cases[i].form, ROWS, cases[i].n, &arena, &t, &found),
                         STINT_OK);
        assert_true(found && t.dtype == cases[i].dtype && t.dims[0] == ROWS);
        check_codes(&t, cases[i].n, cases[i].wanted);
        st_arena_close(&arena);
        drop(tensors);
    }
}

static void floats_are_rounded(void **state) {
    (void)state;
    static const float stored[2][3] = {{0.9f, -0.2f, 0.1f}, {-4.0f, 0.3f, 0.5f}}; // mean 1
    struct st_tensor t = {.name = "x.weight",
                          .data = stored,
                          .bytes = sizeof stored,
                          .dims = {2, 3, 1, 1},
                          .n_dims = 2,
                          .dtype = ST_DTYPE_F32};
    static const float wanted[] = {1.0f, 0.0f, 0.0f, -1.0f, 0.0f, 0.0f}; // halves go to even
    struct st_tensors *tensors = NULL;
    struct st_arena arena;
    bool found;
    assert_int_equal(st_tensors_open(1, &tensors), STINT_OK);
    assert_int_equal(st_tensors_add(tensors, &t), STINT_OK);
    assert_int_equal(rewrite(tensors, ST_TERNARY_ROUNDED, 2, 3, &arena, &t, &found), STINT_OK);
    assert_true(found);
    assert_memory_equal(t.data, wanted, sizeof wanted);
    st_arena_close(&arena);
    assert_int_equal(rewrite(tensors, ST_TERNARY_ROUNDED, 3, 2, &arena, &t, &found),
                     STINT_E_FORMAT);
    assert_int_equal(rewrite(tensors, ST_TERNARY_SCALED, 2, 3, &arena, &t, &found), STINT_OK);
    assert_false(found); // it has no codes
    st_tensors_close(tensors);
}

static void blocks_of_i2_s_are_read(void **state) {
    (void)state;
    enum { N = 160, BYTES = ROWS * N / 4 };
    static unsigned char stored[BYTES + ST_I2_S_TAIL];
    static const float scale = 0.75f;
    struct st_tensor t = {.name = "x.weight",
                          .data = stored,
                          .bytes = sizeof stored,
                          .dims = {sizeof stored, 1, 1, 1},
                          .n_dims = 1};
    struct st_tensors *tensors = NULL;
    struct st_arena arena;
    bool found;
    memset(stored, 0, sizeof stored);
    for (size_t e = 0; e < ROWS * N; e++)
        stored[e / 128 * 32 + e % 32] |=
            (unsigned char)((code_of(e / N, e % N) + 1) << (6 - e % 128 / 32 * 2));
    memcpy(stored + BYTES, &scale, sizeof scale);
    assert_int_equal(st_tensors_open(1, &tensors), STINT_OK);
    assert_int_equal(st_tensors_set_bytes_aside(tensors, &t, "bytes"), STINT_OK);
    assert_int_equal(rewrite(tensors, ST_TERNARY_I2_S, ROWS, N, &arena, &t, &found), STINT_OK);
    assert_true(found && t.dtype == ST_DTYPE_F32);
    check_codes(&t, N, scale);
    st_arena_close(&arena);
    assert_int_equal(rewrite(tensors, ST_TERNARY_I2_S, ROWS, N / 2, &arena, &t, &found),
                     STINT_E_FORMAT);
    memset(stored + BYTES, 0, sizeof scale);
    assert_int_equal(rewrite(tensors, ST_TERNARY_I2_S, ROWS, N, &arena, &t, &found),
                     STINT_E_FORMAT);
    st_tensors_close(tensors);
}

static void wrong_shapes_and_scales_are_refused(void **state) {
    (void)state;
    struct st_tensors *tensors = packed(256, 0.0f), *negative = packed(256, 1.0f);
    struct st_arena arena;
    struct st_tensor t;
    bool found;
    assert_int_equal(rewrite(tensors, ST_TERNARY_SCALED, ROWS, 256, &arena, &t, &found),
                     STINT_E_FORMAT);
    assert_non_null(strstr(stint_error_text(), "x.weight_scale"));
    assert_int_equal(rewrite(negative, ST_TERNARY_SCALED, ROWS - 1, 256, &arena, &t, &found),
                     STINT_E_UNSUPPORTED);
    assert_int_equal(rewrite(negative, ST_TERNARY_SCALED, 2 * ROWS, 256, &arena, &t, &found),
                     STINT_E_FORMAT);
    *(uint16_t *)(uintptr_t)st_tensors_find(negative, "x.weight_scale")->data =
        st_bf16_from_f32(-1.0f);
    assert_int_equal(rewrite(negative, ST_TERNARY_SCALED, ROWS, 256, &arena, &t, &found),
                     STINT_E_FORMAT);
    drop(tensors);
    drop(negative);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_rows_become_blocks_or_floats),
        cmocka_unit_test(floats_are_rounded),
        cmocka_unit_test(blocks_of_i2_s_are_read),
        cmocka_unit_test(wrong_shapes_and_scales_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
