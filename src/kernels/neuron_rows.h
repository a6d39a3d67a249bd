// SPDX-License-Identifier: Apache-2.0
#ifndef ST_KERNELS_NEURON_ROWS_H
#define ST_KERNELS_NEURON_ROWS_H

#include "kernels/neuron.h"

#define ST_NEURON_ROW(isa)                                                                         \
    void st_neuron_dot_##isa(const int8_t *rows, size_t n_rows, size_t k, const uint8_t *x,        \
                             size_t x_row, size_t n_tokens, int32_t *sums);                        \
    void st_neuron_add_##isa(const uint8_t *const *columns, const int8_t *q, size_t n_tokens,      \
                             size_t k, int32_t *sums, size_t sum_row);

ST_NEURON_ROW(avx512vnni)
ST_NEURON_ROW(avx2)
ST_NEURON_ROW(dotprod)
ST_NEURON_ROW(scalar)

#endif
