// SPDX-License-Identifier: Apache-2.0
// Neurons on Arm, for an instruction set that defines before it includes this
//   NEURON(name)          its name of the function
//   add_64(sum, w, x)     products of 64 weights and what they meet, to four registers of sums
//   columns_of(a, b, c, d)   a struct columns of 16 weights of each
//   add_columns(sum, columns, q)   their products with four numbers, to sums of 16 outputs in order
#include <arm_neon.h>

// 16 weights from i on, as INT8.
INLINE int8x16_t weights(const uint8_t *row, enum st_neuron_code code, size_t k, size_t i) {
    if (code == ST_NEURON_INT8) return vld1q_s8((const int8_t *)row + i);
    size_t group = i / ST_NEURON_K, at = i % ST_NEURON_K;
    const int8_t *levels = st_neuron_levels[row[k / 2 + group] & (ST_NEURON_SCALES - 1)];
    uint8x16_t codes = vld1q_u8(row + group * ST_NEURON_K / 2 + at % (ST_NEURON_K / 2));
    codes = at < ST_NEURON_K / 2 ? vandq_u8(codes, vdupq_n_u8(15)) : vshrq_n_u8(codes, 4);
    return vqtbl1q_s8(vld1q_s8(levels), codes);
}

INLINE void dot(const uint8_t *rows, enum st_neuron_code code, size_t n_rows, size_t k,
                const uint8_t *x, size_t x_row, size_t n_tokens, int32_t *sums) {
    for (size_t t = 0; t < n_tokens; t++)
        for (size_t r = 0; r < n_rows; r++) {
            const uint8_t *row = rows + r * st_neuron_row_bytes(k, code);
            const int8_t *token = (const int8_t *)x + t * x_row;
            int32x4_t sum[4] = {vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)};
            for (size_t i = 0; i < k; i += 64) {
                int8x16_t w[4], v[4];
                UNROLL for (size_t j = 0; j < 4; j++) w[j] = weights(row, code, k, i + 16 * j);
                UNROLL for (size_t j = 0; j < 4; j++) v[j] = vld1q_s8(token + i + 16 * j);
                add_64(sum, w, v);
            }
            sums[t * n_rows + r] =
                vaddvq_s32(vaddq_s32(vaddq_s32(sum[0], sum[1]), vaddq_s32(sum[2], sum[3])));
        }
}

void NEURON(dot)(const uint8_t *rows, size_t n_rows, size_t k, const uint8_t *x, size_t x_row,
                 size_t n_tokens, int32_t *sums) {
    dot(rows, ST_NEURON_INT8, n_rows, k, x, x_row, n_tokens, sums);
}

void NEURON(dot_levels)(const uint8_t *rows, size_t n_rows, size_t k, const uint8_t *x,
                        size_t x_row, size_t n_tokens, int32_t *sums) {
    dot(rows, ST_NEURON_LEVELS, n_rows, k, x, x_row, n_tokens, sums);
}

// As INT8 a column holds 128 more, which the sign bit takes off.
INLINE int8x16_t column(const uint8_t *column, enum st_neuron_code code, size_t k, size_t i) {
    int8x16_t w = weights(column, code, k, i);
    return code == ST_NEURON_INT8 ? veorq_s8(w, vdupq_n_s8(INT8_MIN)) : w;
}

// Columns here are signed, which the caller is told by adding the 128 again in whole.
INLINE void add(const uint8_t *const *columns, enum st_neuron_code code, const int8_t *q,
                size_t n_tokens, size_t k, int32_t *sums, size_t sum_row) {
    for (size_t i = 0; i < k; i += 16) {
        struct columns c =
            columns_of(column(columns[0], code, k, i), column(columns[1], code, k, i),
                       column(columns[2], code, k, i), column(columns[3], code, k, i));
        for (size_t t = 0; t < n_tokens; t++) {
            const int8_t *four = q + t * ST_NEURON_GROUP;
            int32x4_t extra = vdupq_n_s32(128 * (four[0] + four[1] + four[2] + four[3])), sum[4];
            int32_t *to = sums + t * sum_row + i;
            UNROLL for (size_t z = 0; z < 4; z++) sum[z] = vaddq_s32(vld1q_s32(to + 4 * z), extra);
            add_columns(sum, &c, four);
            UNROLL for (size_t z = 0; z < 4; z++) vst1q_s32(to + 4 * z, sum[z]);
        }
    }
}

void NEURON(add)(const uint8_t *const *columns, const int8_t *q, size_t n_tokens, size_t k,
                 int32_t *sums, size_t sum_row) {
    add(columns, ST_NEURON_INT8, q, n_tokens, k, sums, sum_row);
}

void NEURON(add_levels)(const uint8_t *const *columns, const int8_t *q, size_t n_tokens, size_t k,
                        int32_t *sums, size_t sum_row) {
    add(columns, ST_NEURON_LEVELS, q, n_tokens, k, sums, sum_row);
}
