// SPDX-License-Identifier: Apache-2.0
#include "kernels/neuron_rows.h"

#include <arm_neon.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

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
            for (size_t i = 0; i < k; i += 64)
                for (size_t j = 0; j < 4; j++)
                    sum[j] = vdotq_s32(sum[j], weights(row, code, k, i + 16 * j),
                                       vld1q_s8(token + i + 16 * j));
            sums[t * n_rows + r] =
                vaddvq_s32(vaddq_s32(vaddq_s32(sum[0], sum[1]), vaddq_s32(sum[2], sum[3])));
        }
}

void st_neuron_dot_dotprod(const uint8_t *rows, size_t n_rows, size_t k, const uint8_t *x,
                           size_t x_row, size_t n_tokens, int32_t *sums) {
    dot(rows, ST_NEURON_INT8, n_rows, k, x, x_row, n_tokens, sums);
}

void st_neuron_dot_levels_dotprod(const uint8_t *rows, size_t n_rows, size_t k, const uint8_t *x,
                                  size_t x_row, size_t n_tokens, int32_t *sums) {
    dot(rows, ST_NEURON_LEVELS, n_rows, k, x, x_row, n_tokens, sums);
}

// As INT8 a column holds 128 more, which the sign bit takes off.
INLINE uint8x16_t column(const uint8_t *column, enum st_neuron_code code, size_t k, size_t i) {
    uint8x16_t w = vreinterpretq_u8_s8(weights(column, code, k, i));
    return code == ST_NEURON_INT8 ? veorq_u8(w, vdupq_n_u8(128)) : w;
}

// Columns here are signed, which the caller is told by adding the 128 again in whole.
INLINE void add(const uint8_t *const *columns, enum st_neuron_code code, const int8_t *q,
                size_t n_tokens, size_t k, int32_t *sums, size_t sum_row) {
    for (size_t i = 0; i < k; i += 16) {
        uint8x16_t a = column(columns[0], code, k, i);
        uint8x16_t b = column(columns[1], code, k, i);
        uint8x16_t c = column(columns[2], code, k, i);
        uint8x16_t d = column(columns[3], code, k, i);
        uint16x8_t ab0 = vreinterpretq_u16_u8(vzip1q_u8(a, b));
        uint16x8_t ab1 = vreinterpretq_u16_u8(vzip2q_u8(a, b));
        uint16x8_t cd0 = vreinterpretq_u16_u8(vzip1q_u8(c, d));
        uint16x8_t cd1 = vreinterpretq_u16_u8(vzip2q_u8(c, d));
        int8x16_t w[4] = {
            vreinterpretq_s8_u16(vzip1q_u16(ab0, cd0)), vreinterpretq_s8_u16(vzip2q_u16(ab0, cd0)),
            vreinterpretq_s8_u16(vzip1q_u16(ab1, cd1)), vreinterpretq_s8_u16(vzip2q_u16(ab1, cd1))};
        for (size_t t = 0; t < n_tokens; t++) {
            const int8_t *four = q + t * ST_NEURON_GROUP;
            int32_t packed, extra = 128 * (four[0] + four[1] + four[2] + four[3]);
            memcpy(&packed, four, sizeof packed);
            int8x16_t numbers = vreinterpretq_s8_s32(vdupq_n_s32(packed));
            for (size_t z = 0; z < 4; z++) {
                int32_t *to = sums + t * sum_row + i + 4 * z;
                int32x4_t sum = vaddq_s32(vld1q_s32(to), vdupq_n_s32(extra));
                vst1q_s32(to, vdotq_s32(sum, w[z], numbers));
            }
        }
    }
}

void st_neuron_add_dotprod(const uint8_t *const *columns, const int8_t *q, size_t n_tokens,
                           size_t k, int32_t *sums, size_t sum_row) {
    add(columns, ST_NEURON_INT8, q, n_tokens, k, sums, sum_row);
}

void st_neuron_add_levels_dotprod(const uint8_t *const *columns, const int8_t *q, size_t n_tokens,
                                  size_t k, int32_t *sums, size_t sum_row) {
    add(columns, ST_NEURON_LEVELS, q, n_tokens, k, sums, sum_row);
}
