// SPDX-License-Identifier: Apache-2.0
// Tests that run on the DSP itself. A check takes a kernel and says whether it holds; the kernels
// must pass, and kernels that are wrong on purpose must not.
#ifndef DSP_CHECK_H
#define DSP_CHECK_H

#include "hmx.h"
#include "kernels.h"
#include "runtime.h"

#include <stdbool.h>

// From STINT_SEED, else from the clock; printed.
void check_seed(char **environment);
uint32_t check_random(void);
uint32_t check_below(uint32_t n); // pre: n > 0

// Prints the name, and counts a failure where `holds` is not what is wanted.
void check_that(const char *name, bool holds, bool wanted);
int check_failures(void);

typedef float check_divide_fn(float a, float b);
typedef size_t check_quantize_fn(const float *x, size_t n, float step, uint8_t zero, uint8_t *q);
typedef void check_pack_fn(const int8_t *x, uint32_t x_row, uint32_t n_rows, uint32_t n,
                           int8_t *packed, int32_t *start);

typedef void check_hmx_fn(struct hmx *hmx, const uint8_t *w, const int8_t *x, uint32_t k,
                          uint32_t n_rows, const int32_t *start, int32_t *sums);

bool check_product(dsp_product_fn *product);                   // against the scalar one
bool check_rows(check_pack_fn *pack, dsp_product_fn *product); // against plain dot products
bool check_hmx(check_hmx_fn *product);                         // against the scalar one
bool check_divide(check_divide_fn *divide);                    // against division by digits
bool check_digits(check_divide_fn *divide);                    // against products and known bits
bool check_root(float (*root)(float x));                       // against squares
bool check_norm(dsp_rmsnorm_fn *norm);                         // against the definition
bool check_quantize(check_quantize_fn *quantize);              // against the definition

#endif
