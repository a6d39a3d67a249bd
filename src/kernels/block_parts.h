// SPDX-License-Identifier: Apache-2.0
// One part of 32 elements of every block type as codes, scales and minima: the definition of the
// products with blocks, for the scalar kernels and for the program of the device `opencl`. Nothing
// here but C that OpenCL has. `part` is its number in the row's chunk of 256, `b` where that chunk
// begins. A part with one scale has it twice, for each half.
#ifndef ST_KERNELS_BLOCK_PARTS_H
#define ST_KERNELS_BLOCK_PARTS_H

#ifndef __OPENCL_VERSION__
#include "kernels/dequantize_layout.h"
#endif

struct st_block_part {
    int code[32];
    float scale[2], minimum[2]; // of elements 0 to 15 and 16 to 31
};

#define ST_PART(type)                                                                              \
    static inline void st_part_##type(ST_BYTES *b, int part, struct st_block_part *p)
#define ST_F16_AT(p) st_f32_from_f16(st_u16_at(p))

static inline void st_part_both(struct st_block_part *p, float scale, float minimum) {
    p->scale[0] = p->scale[1] = scale;
    p->minimum[0] = p->minimum[1] = minimum;
}

static inline void st_part_nibbles(ST_BYTES *from, int *code) {
    for (int i = 0; i < 16; i++) {
        code[i] = from[i] & 15;
        code[i + 16] = from[i] >> 4;
    }
}

static inline void st_part_fifth_bits(ST_BYTES *from, int *code) {
    for (int i = 0; i < 32; i++) code[i] |= (int)(st_u32_at(from) >> i & 1) << 4;
}

// ---- Blocks of 32

ST_PART(q4_0) {
    b += part * 18;
    st_part_nibbles(b + 2, p->code);
    st_part_both(p, ST_F16_AT(b), 8.0f * ST_F16_AT(b));
}

ST_PART(q4_1) {
    b += part * 20;
    st_part_nibbles(b + 4, p->code);
    st_part_both(p, ST_F16_AT(b), -ST_F16_AT(b + 2));
}

ST_PART(q5_0) {
    b += part * 22;
    st_part_nibbles(b + 6, p->code);
    st_part_fifth_bits(b + 2, p->code);
    st_part_both(p, ST_F16_AT(b), 16.0f * ST_F16_AT(b));
}

ST_PART(q5_1) {
    b += part * 24;
    st_part_nibbles(b + 8, p->code);
    st_part_fifth_bits(b + 4, p->code);
    st_part_both(p, ST_F16_AT(b), -ST_F16_AT(b + 2));
}

ST_PART(q8_0) {
    b += part * 34;
    for (int i = 0; i < 32; i++) p->code[i] = (int8_t)b[2 + i];
    st_part_both(p, ST_F16_AT(b), 0.0f);
}

ST_PART(iq4_nl) {
    b += part * 18;
    st_part_nibbles(b + 2, p->code);
    for (int i = 0; i < 32; i++) p->code[i] = st_iq4_values[p->code[i]];
    st_part_both(p, ST_F16_AT(b), 0.0f);
}

ST_PART(mxfp4) {
    b += part * 17;
    st_part_nibbles(b + 1, p->code);
    for (int i = 0; i < 32; i++) p->code[i] = st_mxfp4_values[p->code[i]];
    st_part_both(p, st_mxfp4_scale(b[0]), 0.0f);
}

// ---- Blocks of 256

// 32 of the two-bit codes at `from`: 32 bytes hold four parts.
static inline void st_part_pairs(ST_BYTES *from, int part, int *code) {
    for (int i = 0; i < 32; i++) code[i] = from[part / 4 * 32 + i] >> part % 4 * 2 & 3;
}

ST_PART(q2_k) {
    float d = ST_F16_AT(b + 80), dmin = ST_F16_AT(b + 82);
    st_part_pairs(b + 16, part, p->code);
    for (int h = 0; h < 2; h++) {
        p->scale[h] = d * (float)(b[2 * part + h] & 15);
        p->minimum[h] = dmin * (float)(b[2 * part + h] >> 4);
    }
}

ST_PART(q3_k) {
    st_part_pairs(b + 32, part, p->code);
    for (int i = 0; i < 32; i++) p->code[i] |= (b[i] >> part & 1) << 2;
    for (int h = 0; h < 2; h++) {
        p->scale[h] = ST_F16_AT(b + 108) * (float)st_q3_k_scale(b + 96, 2 * part + h);
        p->minimum[h] = 4.0f * p->scale[h];
    }
}

static inline void st_part_k_scales(ST_BYTES *b, int part, struct st_block_part *p) {
    st_part_both(p, ST_F16_AT(b) * (float)st_k_scale(b + 4, part),
                 ST_F16_AT(b + 2) * (float)st_k_minimum(b + 4, part));
}

ST_PART(q4_k) {
    for (int i = 0; i < 32; i++) p->code[i] = b[16 + part / 2 * 32 + i] >> part % 2 * 4 & 15;
    st_part_k_scales(b, part, p);
}

ST_PART(q5_k) {
    for (int i = 0; i < 32; i++)
        p->code[i] = (b[48 + part / 2 * 32 + i] >> part % 2 * 4 & 15) | (b[16 + i] >> part & 1)
                                                                            << 4;
    st_part_k_scales(b, part, p);
}

ST_PART(q6_k) {
    ST_BYTES *low = b + part / 4 * 64 + part % 2 * 32, *high = b + 128 + part / 4 * 32;
    for (int i = 0; i < 32; i++)
        p->code[i] = (low[i] >> part % 4 / 2 * 4 & 15) | (high[i] >> part % 4 * 2 & 3) << 4;
    for (int h = 0; h < 2; h++) {
        p->scale[h] = ST_F16_AT(b + 208) * (float)(int8_t)b[192 + 2 * part + h];
        p->minimum[h] = 32.0f * p->scale[h];
    }
}

ST_PART(iq4_xs) {
    st_part_nibbles(b + 8 + part * 16, p->code);
    for (int i = 0; i < 32; i++) p->code[i] = st_iq4_values[p->code[i]];
    st_part_both(p, ST_F16_AT(b) * (float)st_iq4_xs_scale(b, part), 0.0f);
}

ST_TABLE uint8_t st_tq1_0_powers[5] = {1, 3, 9, 27, 81};

ST_PART(tq1_0) {
    for (int i = 0; i < 32; i++) {
        int e = part * 32 + i;
        p->code[i] =
            st_tq1_0_digit((uint8_t)(b[st_tq1_0_byte(e)] * st_tq1_0_powers[st_tq1_0_power(e)]));
    }
    st_part_both(p, ST_F16_AT(b + 52), ST_F16_AT(b + 52));
}

ST_PART(tq2_0) {
    st_part_pairs(b, part, p->code);
    st_part_both(p, ST_F16_AT(b + 64), ST_F16_AT(b + 64));
}

#endif
