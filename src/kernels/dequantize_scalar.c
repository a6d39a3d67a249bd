// SPDX-License-Identifier: Apache-2.0
// The definition of every stored type: plain loops over one block; the layouts are in
// docs/FORMAT.md.
#include "base/half.h"
#include "kernels/dequantize_layout.h"
#include "kernels/dequantize_rows.h"

#include <string.h>

#define BLOCK(type)                                                                                \
    static inline __attribute__((always_inline)) void type(const unsigned char *b, float *y)
#define F16_AT(p) st_f32_from_f16(st_u16_at(p))

// ---- 32 elements: [scale f16] [minimum f16] [fifth bits u32] [16 bytes of low and high nibbles]

BLOCK(q4_0) {
    float d = F16_AT(b);
    for (int i = 0; i < 16; i++) {
        y[i] = (float)((b[2 + i] & 15) - 8) * d;
        y[i + 16] = (float)((b[2 + i] >> 4) - 8) * d;
    }
}

BLOCK(q4_1) {
    float d = F16_AT(b), m = F16_AT(b + 2);
    for (int i = 0; i < 16; i++) {
        y[i] = (float)(b[4 + i] & 15) * d + m;
        y[i + 16] = (float)(b[4 + i] >> 4) * d + m;
    }
}

static void five_bits(const unsigned char *fifth, const unsigned char *nibbles, int *q) {
    uint32_t bits = st_u32_at(fifth);
    for (int i = 0; i < 16; i++) {
        q[i] = (nibbles[i] & 15) | (int)(bits >> i & 1) << 4;
        q[i + 16] = nibbles[i] >> 4 | (int)(bits >> (i + 16) & 1) << 4;
    }
}

BLOCK(q5_0) {
    float d = F16_AT(b);
    int q[32];
    five_bits(b + 2, b + 6, q);
    for (int i = 0; i < 32; i++) y[i] = (float)(q[i] - 16) * d;
}

BLOCK(q5_1) {
    float d = F16_AT(b), m = F16_AT(b + 2);
    int q[32];
    five_bits(b + 4, b + 8, q);
    for (int i = 0; i < 32; i++) y[i] = (float)q[i] * d + m;
}

BLOCK(q8_0) {
    float d = F16_AT(b);
    for (int i = 0; i < 32; i++) y[i] = (float)(int8_t)b[2 + i] * d;
}

BLOCK(iq4_nl) {
    float d = F16_AT(b);
    for (int i = 0; i < 16; i++) {
        y[i] = (float)st_iq4_values[b[2 + i] & 15] * d;
        y[i + 16] = (float)st_iq4_values[b[2 + i] >> 4] * d;
    }
}

// [exponent u8] [16 bytes of low and high nibbles]
BLOCK(mxfp4) {
    float d = st_mxfp4_scale(b[0]);
    for (int i = 0; i < 16; i++) {
        y[i] = (float)st_mxfp4_values[b[1 + i] & 15] * d;
        y[i + 16] = (float)st_mxfp4_values[b[1 + i] >> 4] * d;
    }
}

// ---- 256 elements

// [16 scales: low nibble scale, high nibble minimum] [64 bytes: 2-bit codes] [d f16] [dmin f16]
BLOCK(q2_k) {
    const unsigned char *scales = b, *codes = b + 16;
    float d = F16_AT(b + 80), dmin = F16_AT(b + 82);
    for (int part = 0; part < 16; part++) { // 16 elements with one scale
        int shift = part / 2 % 4 * 2;
        const unsigned char *q = codes + part / 8 * 32 + part % 2 * 16;
        float scale = d * (float)(scales[part] & 15), minimum = dmin * (float)(scales[part] >> 4);
        for (int i = 0; i < 16; i++)
            y[part * 16 + i] = scale * (float)(q[i] >> shift & 3) - minimum;
    }
}

// [32 bytes: third bits, inverted] [64 bytes: low two bits] [12 bytes: 16 scales of 6 bits] [d f16]
BLOCK(q3_k) {
    const unsigned char *high = b, *codes = b + 32, *scales = b + 96;
    float d = F16_AT(b + 108);
    for (int part = 0; part < 16; part++) {
        int shift = part / 2 % 4 * 2, bit = part / 2;
        const unsigned char *q = codes + part / 8 * 32 + part % 2 * 16, *h = high + part % 2 * 16;
        float step = d * (float)st_q3_k_scale(scales, part);
        for (int i = 0; i < 16; i++)
            y[part * 16 + i] = step * (float)((q[i] >> shift & 3) - ((h[i] >> bit & 1) ^ 1) * 4);
    }
}

// [d f16] [dmin f16] [12 bytes: scales] [128 bytes: nibbles, 32 low ones then 32 high ones]
BLOCK(q4_k) {
    float d = F16_AT(b), dmin = F16_AT(b + 2);
    for (int part = 0; part < 8; part++) {
        const unsigned char *q = b + 16 + part / 2 * 32;
        int shift = part % 2 * 4;
        float scale = d * (float)st_k_scale(b + 4, part);
        float minimum = dmin * (float)st_k_minimum(b + 4, part);
        for (int i = 0; i < 32; i++)
            y[part * 32 + i] = scale * (float)(q[i] >> shift & 15) - minimum;
    }
}

// As q4_k with 32 bytes of fifth bits before the nibbles.
BLOCK(q5_k) {
    float d = F16_AT(b), dmin = F16_AT(b + 2);
    const unsigned char *high = b + 16;
    for (int part = 0; part < 8; part++) {
        const unsigned char *q = b + 48 + part / 2 * 32;
        int shift = part % 2 * 4;
        float scale = d * (float)st_k_scale(b + 4, part);
        float minimum = dmin * (float)st_k_minimum(b + 4, part);
        for (int i = 0; i < 32; i++)
            y[part * 32 + i] =
                scale * (float)((q[i] >> shift & 15) | (high[i] >> part & 1) << 4) - minimum;
    }
}

// [128 bytes: low nibbles] [64 bytes: high two bits] [16 scales i8] [d f16]
BLOCK(q6_k) {
    float d = F16_AT(b + 208);
    for (int part = 0; part < 8; part++) { // 32 elements, two scales
        int quarter = part % 4, half = part / 4;
        const unsigned char *low = b + half * 64 + quarter % 2 * 32, *high = b + 128 + half * 32;
        const unsigned char *scales = b + 192 + part * 2;
        for (int i = 0; i < 32; i++) {
            int q = (low[i] >> quarter / 2 * 4 & 15) | (high[i] >> quarter * 2 & 3) << 4;
            y[part * 32 + i] = d * (float)(int8_t)scales[i / 16] * (float)(q - 32);
        }
    }
}

// [d f16] [high scale bits u16] [4 bytes: low scale nibbles] [128 bytes: codes]
BLOCK(iq4_xs) {
    float d = F16_AT(b);
    for (int part = 0; part < 8; part++) {
        const unsigned char *q = b + 8 + part * 16;
        float step = d * (float)st_iq4_xs_scale(b, part);
        for (int i = 0; i < 16; i++) {
            y[part * 32 + i] = step * (float)st_iq4_values[q[i] & 15];
            y[part * 32 + i + 16] = step * (float)st_iq4_values[q[i] >> 4];
        }
    }
}

// [48 bytes of five digits] [4 bytes of four digits] [d f16]
BLOCK(tq1_0) {
    static const uint8_t powers[5] = {1, 3, 9, 27, 81};
    float d = F16_AT(b + 52);
    for (int i = 0; i < 256; i++) {
        uint8_t q = (uint8_t)(b[st_tq1_0_byte(i)] * powers[st_tq1_0_power(i)]);
        y[i] = d * (float)(st_tq1_0_digit(q) - 1);
    }
}

// [64 bytes: 2-bit codes] [d f16]
BLOCK(tq2_0) {
    float d = F16_AT(b + 64);
    for (int i = 0; i < 256; i++)
        y[i] = d * (float)((b[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3) - 1);
}

#define DEQUANTIZE_BLOCKS(id, type, isa)                                                           \
    void st_dequantize_##type##_scalar(const void *src, size_t first, size_t n, float *dst) {      \
        const unsigned char *b =                                                                   \
            (const unsigned char *)src + first / ST_##id##_ITEMS * ST_##id##_BYTES;                \
        for (size_t i = 0; i < n; i += ST_##id##_ITEMS, b += ST_##id##_BYTES) type(b, dst + i);    \
    }

ST_BLOCK_TYPES(DEQUANTIZE_BLOCKS, )

void st_dequantize_f32_scalar(const void *src, size_t first, size_t n, float *dst) {
    if (n) memcpy(dst, (const unsigned char *)src + first * sizeof(float), n * sizeof(float));
}

void st_dequantize_f16_scalar(const void *src, size_t first, size_t n, float *dst) {
    const unsigned char *from = (const unsigned char *)src + 2 * first;
    for (size_t i = 0; i < n; i++) dst[i] = F16_AT(from + 2 * i);
}

void st_dequantize_bf16_scalar(const void *src, size_t first, size_t n, float *dst) {
    const unsigned char *from = (const unsigned char *)src + 2 * first;
    for (size_t i = 0; i < n; i++) dst[i] = st_f32_from_bf16(st_u16_at(from + 2 * i));
}
