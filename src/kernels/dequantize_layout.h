// SPDX-License-Identifier: Apache-2.0
// The small pieces of the block types that every reader of them needs: little-endian numbers at any
// address and the packed scales. The layouts themselves are in docs/FORMAT.md.
//
// d and m are halves; a value is d * scale * code, plus or minus a minimum. Every product fits a
// float's 24 bits, so each value is rounded at most once, at that last addition, and all kernels
// agree to the bit, with fused multiply-add or without.
#ifndef ST_KERNELS_DEQUANTIZE_LAYOUT_H
#define ST_KERNELS_DEQUANTIZE_LAYOUT_H

#ifdef __OPENCL_VERSION__ // the program of the device `opencl` is made of this too
#define ST_BYTES global const uchar
#define ST_TABLE constant
#else
#include "base/half.h"

#include <stdint.h>
#define ST_BYTES const unsigned char
#define ST_TABLE static const
#endif

static inline uint16_t st_u16_at(ST_BYTES *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t st_u32_at(ST_BYTES *p) {
    return st_u16_at(p) | (uint32_t)st_u16_at(p + 2) << 16;
}

// Sixteen values at uneven distances, shared by IQ4_NL and IQ4_XS.
ST_TABLE int8_t st_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};

// Scale and minimum `part` of 8 in Q4_K and Q5_K, packed in 12 bytes with 6 bits each.
static inline int st_k_scale(ST_BYTES *p, int part) {
    return part < 4 ? p[part] & 63 : (p[part + 4] & 15) | p[part - 4] >> 6 << 4;
}
static inline int st_k_minimum(ST_BYTES *p, int part) {
    return part < 4 ? p[part + 4] & 63 : p[part + 4] >> 4 | p[part] >> 6 << 4;
}

// Scale `part` of 16 in Q3_K, [-32, 31], packed in 12 bytes with 6 bits each.
static inline int st_q3_k_scale(ST_BYTES *p, int part) {
    int low = part < 8 ? p[part] & 15 : p[part - 8] >> 4;
    return (low | (p[8 + part % 4] >> part / 4 * 2 & 3) << 4) - 32;
}

// Scale `part` of 8 in IQ4_XS, [-32, 31]; b is the block.
static inline int st_iq4_xs_scale(ST_BYTES *b, int part) {
    int low = b[4 + part / 2] >> part % 2 * 4 & 15, high = st_u16_at(b + 2) >> part * 2 & 3;
    return (low | high << 4) - 32;
}

// Twice the values of MXFP4's codes, so that they are whole.
ST_TABLE int8_t st_mxfp4_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Half of 2^(e - 127), the scale of a block of MXFP4. The two smallest are subnormal.
static inline float st_mxfp4_scale(unsigned char e) {
    return st_float_from_bits(e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23);
}

// TQ1_0 has up to five digits of base 3 in a byte. Multiplied by a power of 3, modulo 256, a byte
// begins with one of them, which st_tq1_0_digit() then takes. The power is 3 to this number.
static inline int st_tq1_0_power(int element) {
    return element < 160   ? element / 32
           : element < 240 ? (element - 160) / 16
                           : (element - 240) / 4;
}
// Where in the block the byte is.
static inline int st_tq1_0_byte(int element) {
    return element < 160 ? element % 32 : element < 240 ? 32 + element % 16 : 48 + element % 4;
}
static inline int st_tq1_0_digit(uint8_t multiplied) {
    return multiplied * 3 >> 8;
}

#endif
