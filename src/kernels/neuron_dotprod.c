// SPDX-License-Identifier: Apache-2.0
#include "kernels/neuron_rows.h"

#include <arm_neon.h>
#include <string.h>

void st_neuron_dot_dotprod(const int8_t *rows, size_t n_rows, size_t k, const uint8_t *x,
                           size_t x_row, size_t n_tokens, int32_t *sums) {
    for (size_t t = 0; t < n_tokens; t++)
        for (size_t r = 0; r < n_rows; r++) {
            const int8_t *row = rows + r * k, *token = (const int8_t *)x + t * x_row;
            int32x4_t sum[4] = {vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)};
            for (size_t i = 0; i < k; i += 64)
                for (size_t j = 0; j < 4; j++)
                    sum[j] =
                        vdotq_s32(sum[j], vld1q_s8(row + i + 16 * j), vld1q_s8(token + i + 16 * j));
            sums[t * n_rows + r] =
                vaddvq_s32(vaddq_s32(vaddq_s32(sum[0], sum[1]), vaddq_s32(sum[2], sum[3])));
        }
}

// Columns hold what is 128 too much: without it they are signed, which the caller is told by adding
// it again in whole.
void st_neuron_add_dotprod(const uint8_t *const *columns, const int8_t *q, size_t n_tokens,
                           size_t k, int32_t *sums, size_t sum_row) {
    const uint8x16_t sign = vdupq_n_u8(128);
    for (size_t i = 0; i < k; i += 16) {
        uint8x16_t a = veorq_u8(vld1q_u8(columns[0] + i), sign);
        uint8x16_t b = veorq_u8(vld1q_u8(columns[1] + i), sign);
        uint8x16_t c = veorq_u8(vld1q_u8(columns[2] + i), sign);
        uint8x16_t d = veorq_u8(vld1q_u8(columns[3] + i), sign);
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
