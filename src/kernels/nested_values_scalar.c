// SPDX-License-Identifier: Apache-2.0
// The definition: one weight after the other.
#include "base/half.h"
#include "kernels/nested_values_rows.h"

#include <math.h>

static float value(const struct st_nested_weight *w, unsigned bits, size_t row, size_t column) {
    struct st_nested_group group = st_nested_group(w->groups[bits], w->n_in, row, column);
    const struct st_nested_row *r = st_nested_row(w, bits, row);
    float step = r->scale * (float)group.scale, least = r->minimum * (float)group.minimum;
    return fmaf((float)st_nested_code(w, row, column, bits), step, least);
}

void st_nested_floats_scalar(const struct st_nested_weight *w, unsigned bits, size_t row,
                             size_t first, size_t n, float *dst) {
    for (size_t i = 0; i < n; i++) dst[i] = value(w, bits, row, first + i);
}

void st_nested_bf16_scalar(const struct st_nested_weight *w, unsigned bits, size_t row,
                           size_t first, size_t n, uint16_t *dst) {
    for (size_t i = 0; i < n; i++) dst[i] = st_bf16_from_f32(value(w, bits, row, first + i));
}
