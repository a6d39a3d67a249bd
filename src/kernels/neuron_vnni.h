// SPDX-License-Identifier: Apache-2.0
// Neurons with instructions that multiply four bytes and add them. Rows pass by at memory speed; of
// columns, four at a time are interleaved byte by byte, so that one instruction multiplies and adds
// all four. The instruction set that includes this defines
//   NEURON(name): its name of the function
//   vb, load, store, vb_zero, vb_set1 (of 32 bits), vb_sum (of 32 bits)
//   vb_lo_8, vb_hi_8, vb_lo_16, vb_hi_16: interleaved within lanes
//   vb_flip: the highest bit of each byte turned
//   vb_add_products(sum, u, s): bytes of u, without sign, times those of s
//   weights: sizeof(vb) weights from i on, as INT8
#include <string.h>

// code, n_rows and n_tokens are constants where this is called.
INLINE void dot(const uint8_t *rows, enum st_neuron_code code, size_t n_rows, size_t k,
                const uint8_t *x, size_t x_row, size_t n_tokens, int32_t *sums) {
    vb sum[ST_NEURON_TOKENS][2];
    UNROLL for (size_t t = 0; t < n_tokens; t++) UNROLL for (size_t r = 0; r < n_rows; r++)
        sum[t][r] = vb_zero();
    for (size_t i = 0; i < k; i += sizeof(vb)) {
        vb w[2];
        UNROLL for (size_t r = 0; r < n_rows; r++) w[r] =
            weights(rows + r * st_neuron_row_bytes(k, code), code, k, i);
        UNROLL for (size_t t = 0; t < n_tokens; t++) {
            vb token = load(x + t * x_row + i);
            UNROLL for (size_t r = 0; r < n_rows; r++) vb_add_products(&sum[t][r], token, w[r]);
        }
    }
    UNROLL for (size_t t = 0; t < n_tokens; t++) UNROLL for (size_t r = 0; r < n_rows; r++)
        sums[t * n_rows + r] = vb_sum(sum[t][r]);
}

#define TOKENS(call, ...)                                                                          \
    if (n_tokens == 1)                                                                             \
        call(__VA_ARGS__, 1);                                                                      \
    else if (n_tokens == 2)                                                                        \
        call(__VA_ARGS__, 2);                                                                      \
    else if (n_tokens == 3)                                                                        \
        call(__VA_ARGS__, 3);                                                                      \
    else                                                                                           \
        call(__VA_ARGS__, 4);

#define DOT(code, n_rows, n) dot(rows, code, n_rows, k, x, x_row, n, sums)
#define ADD(code, n)         add(columns, code, q, n, k, sums, sum_row)

void NEURON(dot)(const uint8_t *rows, size_t n_rows, size_t k, const uint8_t *x, size_t x_row,
                 size_t n_tokens, int32_t *sums) {
    if (n_rows == 1) {
        TOKENS(DOT, ST_NEURON_INT8, 1)
    } else {
        TOKENS(DOT, ST_NEURON_INT8, 2)
    }
}

void NEURON(dot_levels)(const uint8_t *rows, size_t n_rows, size_t k, const uint8_t *x,
                        size_t x_row, size_t n_tokens, int32_t *sums) {
    if (n_rows == 1) {
        TOKENS(DOT, ST_NEURON_LEVELS, 1)
    } else {
        TOKENS(DOT, ST_NEURON_LEVELS, 2)
    }
}

// Columns hold 128 more.
INLINE vb column(const uint8_t *column, enum st_neuron_code code, size_t k, size_t i) {
    vb w = weights(column, code, k, i);
    return code == ST_NEURON_INT8 ? w : vb_flip(w);
}

INLINE void add(const uint8_t *const *columns, enum st_neuron_code code, const int8_t *q,
                size_t n_tokens, size_t k, int32_t *sums, size_t sum_row) {
    vb four[ST_NEURON_TOKENS];
    UNROLL for (size_t t = 0; t < n_tokens; t++) {
        int32_t v;
        memcpy(&v, q + t * ST_NEURON_GROUP, sizeof v);
        four[t] = vb_set1(v);
    }
    for (size_t i = 0; i < k; i += sizeof(vb)) {
        vb a = column(columns[0], code, k, i), b = column(columns[1], code, k, i);
        vb c = column(columns[2], code, k, i), d = column(columns[3], code, k, i);
        vb ab0 = vb_lo_8(a, b), ab1 = vb_hi_8(a, b);
        vb cd0 = vb_lo_8(c, d), cd1 = vb_hi_8(c, d);
        vb w[4] = {vb_lo_16(ab0, cd0), vb_hi_16(ab0, cd0), vb_lo_16(ab1, cd1), vb_hi_16(ab1, cd1)};
        UNROLL for (size_t t = 0; t < n_tokens; t++) UNROLL for (size_t z = 0; z < 4; z++) {
            int32_t *to = sums + t * sum_row + i + z * sizeof(vb) / sizeof(int32_t);
            vb sum = load(to);
            vb_add_products(&sum, w[z], four[t]);
            store(to, sum);
        }
    }
}

void NEURON(add)(const uint8_t *const *columns, const int8_t *q, size_t n_tokens, size_t k,
                 int32_t *sums, size_t sum_row) {
    TOKENS(ADD, ST_NEURON_INT8)
}

void NEURON(add_levels)(const uint8_t *const *columns, const int8_t *q, size_t n_tokens, size_t k,
                        int32_t *sums, size_t sum_row) {
    TOKENS(ADD, ST_NEURON_LEVELS)
}
