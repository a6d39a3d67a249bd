// SPDX-License-Identifier: Apache-2.0
// All kernels of the DSP program, and that their checks can fail.
#include "check.h"
#include "wrong.h"

static void check_right_ones(void) {
    check_that("product", check_product(dsp_product_hvx), true);
    check_that("packed rows", check_rows(dsp_pack_rows, dsp_product_hvx), true);
    check_that("packed rows, scalar", check_rows(dsp_pack_rows, dsp_product_scalar), true);
    check_that("product in tiles of HMX, mocked", check_hmx(dsp_product_hmx), true);
    check_that("division by digits", check_digits(dsp_divide_slowly), true);
    check_that("division", check_digits(__hexagon_divsf3), true);
    check_that("division, any floats", check_divide(__hexagon_divsf3), true);
    check_that("quantization", check_quantize(dsp_elementwise.quantize), true);
    check_that("square root", check_root(dsp_root), true);
    check_that("norm", check_norm(dsp_rmsnorm), true);
}

static void check_wrong_ones(void) {
    check_that("found: one row off", check_product(wrong_row), false);
    check_that("found: the last elements missed", check_product(wrong_last_k), false);
    check_that("found: sums of 16 bits", check_product(wrong_narrow_sums), false);
    check_that("found: start of sums missed", check_rows(dsp_pack_rows, wrong_start), false);
    check_that("found: padding not zero", check_rows(wrong_padding, dsp_product_hvx), false);
    check_that("found: sums of rows", check_rows(wrong_row_sums, dsp_product_hvx), false);
    check_that("found: one row of tiles off", check_hmx(wrong_tile_row), false);
    check_that("found: the last tile missed", check_hmx(wrong_last_tile), false);
    check_that("found: the other column of tiles", check_hmx(wrong_tile_column), false);
    check_that("found: quotient truncated", check_digits(wrong_truncated), false);
    check_that("found: product with the reciprocal", check_divide(wrong_unrefined), false);
    check_that("found: saturation missed", check_quantize(wrong_not_clamped), false);
    check_that("found: halves away from zero", check_quantize(wrong_half_away), false);
    check_that("found: rounding of a quotient", check_quantize(wrong_by_quotient), false);
    check_that("found: clipped elements miscounted", check_quantize(wrong_count), false);
    check_that("found: root truncated", check_root(wrong_root), false);
    check_that("found: norm summed in another order", check_norm(wrong_order), false);
    check_that("found: epsilon outside the root", check_norm(wrong_epsilon), false);
    check_that("found: norm of the last element missed", check_norm(wrong_last_element), false);
}

int dsp_main(int n_arguments, char **arguments, char **environment) {
    (void)n_arguments, (void)arguments;
    check_seed(environment);
    check_right_ones();
    check_wrong_ones();
    return check_failures() != 0;
}
