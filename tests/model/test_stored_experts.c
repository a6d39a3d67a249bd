// SPDX-License-Identifier: Apache-2.0
// Experts in gpt-oss's layouts against what they stand for, and shapes that do not fit.
#include "model/stored_experts.h"

#include "kernels/dequantize.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { EXPERTS = 2, ROWS = 3, N = 64, STEP = 2 };

static const struct st_stored_experts odd = {
    .name = "x", .n_experts = EXPERTS, .n_out = ROWS, .n_in = N, .first = 1, .step = STEP};

// Rewrites into an arena that the caller closes.
static stint_status rewrite(const struct st_tensors *tensors, const struct st_stored_experts *x,
                            struct st_arena *arena, struct st_tensor *t, bool *found) {
    *arena = st_arena_measure();
    stint_status status = st_stored_experts_rewrite(tensors, x, arena, t, found);
    if (status != STINT_OK || !*found) return status;
    assert_null(t->data);
    assert_int_equal(st_arena_open(arena, arena->used), STINT_OK);
    return st_stored_experts_rewrite(tensors, x, arena, t, found);
}

static void matrices_by_input_are_turned(void **state) {
    (void)state;
    static uint16_t stored[EXPERTS * N * STEP * ROWS];
    for (size_t i = 0; i < sizeof stored / sizeof *stored; i++) stored[i] = (uint16_t)i;
    struct st_tensors *tensors = NULL;
    struct st_tensor t = {.name = "x",
                          .data = stored,
                          .bytes = sizeof stored,
                          .dims = {EXPERTS, N, STEP * ROWS, 1},
                          .n_dims = 3,
                          .dtype = ST_DTYPE_BF16};
    struct st_arena arena;
    bool found;
    assert_int_equal(st_tensors_open(4, &tensors), STINT_OK);
    assert_int_equal(st_tensors_add(tensors, &t), STINT_OK);
    assert_int_equal(rewrite(tensors, &odd, &arena, &t, &found), STINT_OK);
    assert_true(found && t.dtype == ST_DTYPE_BF16 && t.bytes == sizeof stored / STEP);
    const uint16_t *got = t.data;
    for (size_t e = 0; e < EXPERTS; e++)
        for (size_t r = 0; r < ROWS; r++)
            for (size_t k = 0; k < N; k++)
                assert_int_equal(got[(e * ROWS + r) * N + k],
                                 stored[(e * N + k) * STEP * ROWS + 1 + STEP * r]);
    st_arena_close(&arena);
    struct st_stored_experts wrong = odd;
    wrong.n_in = N / 2;
    assert_int_equal(rewrite(tensors, &wrong, &arena, &t, &found), STINT_E_FORMAT);
    st_tensors_close(tensors);
}

// Element k of a stored row: neighbours share a byte, the first in its low half.
static float element(const unsigned char *codes, const unsigned char *scales, size_t row,
                     size_t k) {
    static const float values[] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    unsigned code = codes[row * N / 2 + k / 2] >> k % 2 * 4 & 15;
    return (code & 8 ? -1.0f : 1.0f) * values[code & 7] *
           exp2f((float)scales[row * N / 32 + k / 32] - 127.0f);
}

static void codes_and_scales_become_blocks(void **state) {
    (void)state;
    static unsigned char codes[EXPERTS * STEP * ROWS * N / 2],
        scales[EXPERTS * STEP * ROWS * N / 32];
    for (size_t i = 0; i < sizeof codes; i++) codes[i] = (unsigned char)ts_random_below(256);
    for (size_t i = 0; i < sizeof scales; i++)
        scales[i] = (unsigned char)(120 + ts_random_below(12));
    struct st_tensors *tensors = NULL;
    struct st_tensor blocks = {.name = "x_blocks",
                               .data = codes,
                               .bytes = sizeof codes,
                               .dims = {EXPERTS, STEP * ROWS, N / 32, 16},
                               .n_dims = 4};
    struct st_tensor of = {.name = "x_scales",
                           .data = scales,
                           .bytes = sizeof scales,
                           .dims = {EXPERTS, STEP * ROWS, N / 32, 1},
                           .n_dims = 3};
    struct st_tensor t;
    struct st_arena arena;
    bool found;
    float row[N];
    assert_int_equal(st_tensors_open(4, &tensors), STINT_OK);
    assert_int_equal(rewrite(tensors, &odd, &arena, &t, &found), STINT_OK);
    assert_false(found);
    assert_int_equal(st_tensors_set_bytes_aside(tensors, &blocks, "bytes"), STINT_OK);
    assert_int_equal(rewrite(tensors, &odd, &arena, &t, &found), STINT_E_FORMAT); // no scales
    assert_int_equal(st_tensors_set_bytes_aside(tensors, &of, "bytes"), STINT_OK);
    assert_int_equal(rewrite(tensors, &odd, &arena, &t, &found), STINT_OK);
    assert_true(found && t.dtype == ST_DTYPE_MXFP4);
    for (size_t r = 0; r < EXPERTS * ROWS; r++) {
        st_dequantize_select(0)->fn[ST_DTYPE_MXFP4](
            (const unsigned char *)t.data + r * st_dtype_row_bytes(ST_DTYPE_MXFP4, N), 0, N, row);
        size_t stored = r / ROWS * STEP * ROWS + 1 + STEP * (r % ROWS);
        for (size_t k = 0; k < N; k++) assert_true(row[k] == element(codes, scales, stored, k));
    }
    st_arena_close(&arena);
    struct st_stored_experts wrong = odd;
    wrong.n_in = N - 1;
    assert_int_equal(rewrite(tensors, &wrong, &arena, &t, &found), STINT_E_FORMAT);
    wrong = odd;
    wrong.n_experts++;
    assert_int_equal(rewrite(tensors, &wrong, &arena, &t, &found), STINT_E_FORMAT);
    st_tensors_close(tensors);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(matrices_by_input_are_turned),
                                       cmocka_unit_test(codes_and_scales_become_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
