// SPDX-License-Identifier: Apache-2.0
// The definition.
#include "kernels/neuron_rows.h"

#include <string.h>

static void rows_of(const uint8_t *row, size_t of, size_t k, enum st_neuron_code code, int8_t *w) {
    if (code == ST_NEURON_LEVELS)
        st_neuron_dequantize(row, of, k, w);
    else
        memcpy(w, row + k, ST_NEURON_K);
}

static void dot(const uint8_t *rows, enum st_neuron_code code, size_t n_rows, size_t k,
                const uint8_t *x, size_t x_row, size_t n_tokens, int32_t *sums) {
    int8_t w[ST_NEURON_K];
    memset(sums, 0, n_tokens * n_rows * sizeof *sums);
    for (size_t r = 0; r < n_rows; r++)
        for (size_t i = 0; i < k; i += ST_NEURON_K) {
            rows_of(rows + r * st_neuron_row_bytes(k, code), k, i, code, w);
            for (size_t t = 0; t < n_tokens; t++)
                for (size_t j = 0; j < ST_NEURON_K; j++)
                    sums[t * n_rows + r] += (int8_t)x[t * x_row + i + j] * w[j];
        }
}

void st_neuron_dot_scalar(const uint8_t *rows, size_t n_rows, size_t k, const uint8_t *x,
                          size_t x_row, size_t n_tokens, int32_t *sums) {
    dot(rows, ST_NEURON_INT8, n_rows, k, x, x_row, n_tokens, sums);
}

void st_neuron_dot_levels_scalar(const uint8_t *rows, size_t n_rows, size_t k, const uint8_t *x,
                                 size_t x_row, size_t n_tokens, int32_t *sums) {
    dot(rows, ST_NEURON_LEVELS, n_rows, k, x, x_row, n_tokens, sums);
}

void st_neuron_add_scalar(const uint8_t *const *columns, const int8_t *q, size_t n_tokens, size_t k,
                          int32_t *sums, size_t sum_row) {
    for (size_t t = 0; t < n_tokens; t++)
        for (size_t j = 0; j < ST_NEURON_GROUP; j++)
            for (size_t i = 0; i < k; i++)
                sums[t * sum_row + i] += q[t * ST_NEURON_GROUP + j] * columns[j][i];
}

void st_neuron_add_levels_scalar(const uint8_t *const *columns, const int8_t *q, size_t n_tokens,
                                 size_t k, int32_t *sums, size_t sum_row) {
    int8_t w[ST_NEURON_K];
    for (size_t j = 0; j < ST_NEURON_GROUP; j++)
        for (size_t i = 0; i < k; i += ST_NEURON_K) {
            st_neuron_dequantize(columns[j], k, i, w);
            for (size_t t = 0; t < n_tokens; t++)
                for (size_t m = 0; m < ST_NEURON_K; m++)
                    sums[t * sum_row + i + m] += q[t * ST_NEURON_GROUP + j] * (w[m] + 128);
        }
}
