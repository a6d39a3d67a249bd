// SPDX-License-Identifier: Apache-2.0
// Two-term INT8: inputs of INT8 linears as two numbers instead of one, for steps whose result must
// not depend on how single numbers were rounded (docs/NUMERICS.md). x is scale * (q + rest / 254),
// both from -127 to 127. Each term is a row of its own to the kernels: two products with the same
// weights.
#ifndef ST_DEVICE_TWO_TERM_H
#define ST_DEVICE_TWO_TERM_H

#include "kernels/elementwise.h"

#include <stddef.h>
#include <stdint.h>

enum { ST_TWO_TERMS = 2 }; // rows of the kernels' input that one row takes: q, then the rest

// Writes q as st_elementwise.quantize does, and the rest; what was clipped has none. Returns how
// many were.
size_t st_two_term_quantize(const struct st_elementwise *elementwise, const float *x, size_t n,
                            float scale, uint8_t zero, uint8_t *q, uint8_t *rest);

// y[i] = product[i] + rest[i] / 254 + bias[i], where `rest` is the product of the rest with the
// same factor; bias may be NULL. y may be product.
void st_two_term_join(const float *product, const float *rest, const float *bias, size_t n,
                      float *y);

#endif
