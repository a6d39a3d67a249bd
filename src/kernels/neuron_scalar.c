// SPDX-License-Identifier: Apache-2.0
// The definition.
#include "kernels/neuron_rows.h"

void st_neuron_dot_scalar(const int8_t *rows, size_t n_rows, size_t k, const uint8_t *x,
                          size_t x_row, size_t n_tokens, int32_t *sums) {
    for (size_t t = 0; t < n_tokens; t++)
        for (size_t r = 0; r < n_rows; r++) {
            int32_t sum = 0;
            for (size_t i = 0; i < k; i++) sum += (int8_t)x[t * x_row + i] * rows[r * k + i];
            sums[t * n_rows + r] = sum;
        }
}

void st_neuron_add_scalar(const uint8_t *const *columns, const int8_t *q, size_t n_tokens, size_t k,
                          int32_t *sums, size_t sum_row) {
    for (size_t t = 0; t < n_tokens; t++)
        for (size_t j = 0; j < ST_NEURON_GROUP; j++)
            for (size_t i = 0; i < k; i++)
                sums[t * sum_row + i] += q[t * ST_NEURON_GROUP + j] * columns[j][i];
}
