// SPDX-License-Identifier: Apache-2.0
// Former names of two-term INT8 (device/two_term.h).
#ifndef ST_DEVICE_FINE_H
#define ST_DEVICE_FINE_H

#include "device/two_term.h"

enum { ST_FINE_PARTS = ST_TWO_TERMS };

static inline size_t st_fine_quantize(const struct st_elementwise *elementwise, const float *x,
                                      size_t n, float scale, uint8_t zero, uint8_t *q,
                                      uint8_t *rest) {
    return st_two_term_quantize(elementwise, x, n, scale, zero, q, rest);
}

static inline void st_fine_join(const float *product, const float *rest, const float *bias,
                                size_t n, float *y) {
    st_two_term_join(product, rest, bias, n, y);
}

#endif
