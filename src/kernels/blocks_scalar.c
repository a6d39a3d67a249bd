// SPDX-License-Identifier: Apache-2.0
// The definition of every product with blocks: plain loops over one part of 32 elements. `part` is
// its number in the row's chunk of 256, `b` where that chunk begins. A part with one scale has it
// twice, for each half.
#include "kernels/blocks_rows.h"

#include "base/half.h"
#include "kernels/dequantize_layout.h"

#define QUANTIZE st_blocks_quantize_plain
#include "kernels/blocks_quantize.h"

struct part {
    int code[32];
    float scale[2], minimum[2]; // of elements 0 to 15 and 16 to 31
};

#define PART(type) static void type(const unsigned char *b, int part, struct part *p)
#define F16_AT(p)  st_f32_from_f16(st_u16_at(p))

static void both(struct part *p, float scale, float minimum) {
    p->scale[0] = p->scale[1] = scale;
    p->minimum[0] = p->minimum[1] = minimum;
}

static void nibbles(const unsigned char *from, int *code) {
    for (int i = 0; i < 16; i++) {
        code[i] = from[i] & 15;
        code[i + 16] = from[i] >> 4;
    }
}

static void fifth_bits(const unsigned char *from, int *code) {
    for (int i = 0; i < 32; i++) code[i] |= (int)(st_u32_at(from) >> i & 1) << 4;
}

// ---- Blocks of 32

PART(q4_0) {
    b += part * 18;
    nibbles(b + 2, p->code);
    both(p, F16_AT(b), 8.0f * F16_AT(b));
}

PART(q4_1) {
    b += part * 20;
    nibbles(b + 4, p->code);
    both(p, F16_AT(b), -F16_AT(b + 2));
}

PART(q5_0) {
    b += part * 22;
    nibbles(b + 6, p->code);
    fifth_bits(b + 2, p->code);
    both(p, F16_AT(b), 16.0f * F16_AT(b));
}

PART(q5_1) {
    b += part * 24;
    nibbles(b + 8, p->code);
    fifth_bits(b + 4, p->code);
    both(p, F16_AT(b), -F16_AT(b + 2));
}

PART(q8_0) {
    b += part * 34;
    for (int i = 0; i < 32; i++) p->code[i] = (int8_t)b[2 + i];
    both(p, F16_AT(b), 0.0f);
}

PART(iq4_nl) {
    b += part * 18;
    nibbles(b + 2, p->code);
    for (int i = 0; i < 32; i++) p->code[i] = st_iq4_values[p->code[i]];
    both(p, F16_AT(b), 0.0f);
}

PART(mxfp4) {
    b += part * 17;
    nibbles(b + 1, p->code);
    for (int i = 0; i < 32; i++) p->code[i] = st_mxfp4_values[p->code[i]];
    both(p, st_mxfp4_scale(b[0]), 0.0f);
}

// ---- Blocks of 256

// 32 of the two-bit codes at `from`: 32 bytes hold four parts.
static void pairs(const unsigned char *from, int part, int *code) {
    for (int i = 0; i < 32; i++) code[i] = from[part / 4 * 32 + i] >> part % 4 * 2 & 3;
}

PART(q2_k) {
    float d = F16_AT(b + 80), dmin = F16_AT(b + 82);
    pairs(b + 16, part, p->code);
    for (int half = 0; half < 2; half++) {
        p->scale[half] = d * (float)(b[2 * part + half] & 15);
        p->minimum[half] = dmin * (float)(b[2 * part + half] >> 4);
    }
}

PART(q3_k) {
    pairs(b + 32, part, p->code);
    for (int i = 0; i < 32; i++) p->code[i] |= (b[i] >> part & 1) << 2;
    for (int half = 0; half < 2; half++) {
        p->scale[half] = F16_AT(b + 108) * (float)st_q3_k_scale(b + 96, 2 * part + half);
        p->minimum[half] = 4.0f * p->scale[half];
    }
}

static void k_scales(const unsigned char *b, int part, struct part *p) {
    both(p, F16_AT(b) * (float)st_k_scale(b + 4, part),
         F16_AT(b + 2) * (float)st_k_minimum(b + 4, part));
}

PART(q4_k) {
    for (int i = 0; i < 32; i++) p->code[i] = b[16 + part / 2 * 32 + i] >> part % 2 * 4 & 15;
    k_scales(b, part, p);
}

PART(q5_k) {
    for (int i = 0; i < 32; i++)
        p->code[i] = (b[48 + part / 2 * 32 + i] >> part % 2 * 4 & 15) | (b[16 + i] >> part & 1)
                                                                            << 4;
    k_scales(b, part, p);
}

PART(q6_k) {
    const unsigned char *low = b + part / 4 * 64 + part % 2 * 32, *high = b + 128 + part / 4 * 32;
    for (int i = 0; i < 32; i++)
        p->code[i] = (low[i] >> part % 4 / 2 * 4 & 15) | (high[i] >> part % 4 * 2 & 3) << 4;
    for (int half = 0; half < 2; half++) {
        p->scale[half] = F16_AT(b + 208) * (float)(int8_t)b[192 + 2 * part + half];
        p->minimum[half] = 32.0f * p->scale[half];
    }
}

PART(iq4_xs) {
    nibbles(b + 8 + part * 16, p->code);
    for (int i = 0; i < 32; i++) p->code[i] = st_iq4_values[p->code[i]];
    both(p, F16_AT(b) * (float)st_iq4_xs_scale(b, part), 0.0f);
}

PART(tq1_0) {
    static const uint8_t powers[5] = {1, 3, 9, 27, 81};
    for (int i = 0; i < 32; i++) {
        int e = part * 32 + i;
        p->code[i] = st_tq1_0_digit((uint8_t)(b[st_tq1_0_byte(e)] * powers[st_tq1_0_power(e)]));
    }
    both(p, F16_AT(b + 52), F16_AT(b + 52));
}

PART(tq2_0) {
    pairs(b, part, p->code);
    both(p, F16_AT(b + 64), F16_AT(b + 64));
}

// ---- Products

typedef void part_fn(const unsigned char *b, int part, struct part *p);

static float part_product(const struct part *p, const struct st_blocks_chunk *x, size_t part) {
    float sum = 0.0f;
    for (size_t half = 0; half < 2; half++) {
        int32_t product = 0;
        for (size_t i = half * 16; i < half * 16 + 16; i++)
            product += p->code[i] * (128 * x->high[part * 32 + i] + x->low[part * 32 + i]);
        sum += p->scale[half] * x->scale[part] * (float)product;
        sum -= p->minimum[half] * x->half_sum[2 * part + half];
    }
    return sum;
}

static void product(part_fn *unpack, size_t chunk_bytes, const unsigned char *w, size_t row_bytes,
                    size_t n_rows, size_t k, const struct st_blocks_chunk *x, size_t n_columns,
                    float *y, size_t y_col) {
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t c = 0; c < n_columns; c++) y[c * y_col + r] = 0.0f;
        for (size_t n = 0; n < k / 32; n++) {
            struct part p;
            unpack(w + r * row_bytes + n / 8 * chunk_bytes, (int)(n % 8), &p);
            for (size_t c = 0; c < n_columns; c++)
                y[c * y_col + r] += part_product(&p, x + c * st_blocks_chunks(k) + n / 8, n % 8);
        }
    }
}

#define PRODUCT(id, type, isa)                                                                     \
    void st_blocks_##type##_##isa(const void *w, size_t row_bytes, size_t n_rows, size_t k,        \
                                  const struct st_blocks_chunk *x, size_t n_columns, float *y,     \
                                  size_t y_col) {                                                  \
        product(type, ST_BLOCKS_CHUNK / ST_##id##_ITEMS * ST_##id##_BYTES, w, row_bytes, n_rows,   \
                k, x, n_columns, y, y_col);                                                        \
    }

ST_BLOCK_TYPES(PRODUCT, scalar)
