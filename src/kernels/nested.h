// SPDX-License-Identifier: Apache-2.0
// Products with nested weights (Any-Precision LLM, Park et al. 2024, section 4; PMPD, section 4.1):
// every weight is a code of up to 7 bits, and the code of a lower precision is its top bits; only
// the bits that a precision needs are read. A group of 32 weights of a row has a scale and a
// minimum for each precision.
//
// Layout. A panel is 8 rows, a block 128 elements of k; rows are padded with zeros to whole panels,
// k to a multiple of 64: the last block may be half of one. A block of a panel is 8 vectors of 128
// bytes: byte 16 r + i of vector j stands for row r, element 16 j + i. The codes come as one region
// for the two top bits (256 bytes a block: the 128 bytes a hold vectors 4 a + f in bits 2 f and
// 2 f + 1) and one for each further bit (128 bytes a block: vector 4 a + f has bit 2 f + a). A
// region holds panel after panel, a panel block after block. So 16 bytes of any register belong to
// one row. The groups of a precision take 64 bytes a block: byte 4 r + g is the scale of group g of
// row r, byte 32 + 4 r + g its minimum.
// Half a block is 4 vectors and half as many bytes. Its two top bits are those 128 bytes with
// a = 0. In its other bytes rows r and r + 4, r < 4, share what is row r's in a block: vector f of
// row 4 a + r has bit 2 f + a of byte 16 r + i, and group g of it scale 4 r + 2 a + g and minimum
// 16 + 4 r + 2 a + g.
#ifndef ST_KERNELS_NESTED_H
#define ST_KERNELS_NESTED_H

#include "base/size.h"

#include <stddef.h>
#include <stdint.h>

enum {
    ST_NESTED_LOWEST = 2,  // bits
    ST_NESTED_HIGHEST = 7, // eight are INT8's
    ST_NESTED_STORED = 8,  // most bits of codes (kernels/nested_int8.h)
    ST_NESTED_PANEL = 8,   // rows
    ST_NESTED_BLOCK = 128, // elements of k
    ST_NESTED_HALF = 64,   // of half a block
    ST_NESTED_PAIRS = 256, // bytes of a block's two top bits
    ST_NESTED_PLANE = 128, // and of each further bit
    ST_NESTED_GROUP = 32,  // elements of k that share a scale and a minimum
    ST_NESTED_GROUPS = ST_NESTED_BLOCK / ST_NESTED_GROUP,
    ST_NESTED_GROUP_BYTES = 2 * ST_NESTED_PANEL * ST_NESTED_GROUPS, // of a block
    ST_NESTED_TOKENS = 4,                                           // tokens side by side
};

// The two floats of a row and precision that its groups are multiples of.
struct st_nested_row {
    float scale, minimum;
};

// W [n_out, n_in]: element (r, c) at precision b is
// row.scale * group scale * (code(r, c) >> (high - b)) + row.minimum * group minimum.
struct st_nested_weight {
    const uint8_t *codes;
    // Where the region of bit [b] lies if not at its place behind the first codes; [2]: of the two
    // top bits, [0], [1] unused; else NULL.
    const uint8_t *planes[ST_NESTED_STORED + 1];
    const int32_t *checks; // [regions of the codes, 2] hash of each, low half first; NULL: none
    const uint8_t *groups[ST_NESTED_HIGHEST + 1]; // of precision [b]; minima are int8_t
    const struct st_nested_row *rows;             // [high - low + 1, padded rows]
    uint32_t n_out, n_in;
    uint8_t low, high; // precisions it has
    uint8_t stored;    // bits of its codes where they are more than `high`; else 0
    uint8_t bits[ST_NESTED_HIGHEST + 1]; // the one that a run of precision [b] of its model reads
    uint32_t index;                      // among its model's
    // Dense and sparse (SqueezeLLM, Kim et al. 2024): what codes miss of a few weights of each row.
    const int32_t *outlier_rows;    // [n_out + 1] where a row's begin; NULL: there are none
    const int32_t *outlier_columns; // [n_outliers]
    const float *outliers;          // [high - low + 1, n_outliers]
    size_t n_outliers;
};

// The input of a linear, as the kernels take it. Where a block's largest magnitude is m, element i
// is scale * q with scale = m / 127 and q rounded half to even. Tokens come in groups of four (the
// last one may have fewer), group after group, in a group block after block, in a block token after
// token.
struct st_nested_input {
    int8_t *q;     // [n_tokens * blocks, 128], from -127 to 127
    float *scale;  // [n_tokens * blocks]
    int16_t *sums; // [n_tokens * blocks, ST_NESTED_GROUPS] of q
    size_t n_tokens;
    // 1, or 2: each two tokens are one input, what rounding leaves of the first being the second.
    size_t terms;
};

static inline size_t st_nested_padded_rows(size_t n_out) {
    return st_round_up(n_out, ST_NESTED_PANEL);
}
static inline size_t st_nested_blocks(size_t k) {
    return st_ceil_div(k, ST_NESTED_BLOCK);
}
// Blocks that are whole; if there is one more, it is half of one.
static inline size_t st_nested_whole_blocks(size_t k) {
    return st_ceil_div(k, ST_NESTED_HALF) / 2;
}
// Bytes of a panel where a block has `bytes`.
static inline size_t st_nested_panel_bytes(size_t k, size_t bytes) {
    return st_ceil_div(k, ST_NESTED_HALF) * (bytes / 2);
}
// Bytes of the codes of `bits` bits: the region of each further bit follows.
static inline size_t st_nested_code_bytes(size_t n_out, size_t k, unsigned bits) {
    return st_nested_padded_rows(n_out) / ST_NESTED_PANEL *
           st_nested_panel_bytes(k, (size_t)ST_NESTED_PLANE * bits);
}
// Bytes of the groups of a precision.
static inline size_t st_nested_group_bytes(size_t n_out, size_t k) {
    return st_nested_padded_rows(n_out) / ST_NESTED_PANEL *
           st_nested_panel_bytes(k, ST_NESTED_GROUP_BYTES);
}
// The region of bit `bit` of the codes, from 2 on, which stands for the two top bits.
static inline const uint8_t *st_nested_plane(const struct st_nested_weight *w, unsigned bit) {
    if (w->planes[bit]) return w->planes[bit];
    return w->codes + (bit == 2 ? 0 : st_nested_code_bytes(w->n_out, w->n_in, bit - 1));
}
// Bytes of a panel in that region, and in the groups of a precision.
static inline size_t st_nested_plane_panel_bytes(size_t k, unsigned bit) {
    return st_nested_panel_bytes(k, bit == 2 ? ST_NESTED_PAIRS : ST_NESTED_PLANE);
}
static inline size_t st_nested_group_panel_bytes(size_t k) {
    return st_nested_panel_bytes(k, ST_NESTED_GROUP_BYTES);
}
// Whole numbers that a row's floats are multiplied by.
struct st_nested_group {
    uint8_t scale;
    int8_t minimum;
};
// The group of an element.
struct st_nested_group st_nested_group(const uint8_t *groups, size_t k, size_t row, size_t column);
void st_nested_put_group(uint8_t *groups, size_t k, size_t row, size_t column,
                         struct st_nested_group group);
static inline const struct st_nested_row *st_nested_row(const struct st_nested_weight *w,
                                                        unsigned bits, size_t row) {
    return w->rows + (bits - w->low) * st_nested_padded_rows(w->n_out) + row;
}
// Panels [panel, panel + n_panels) at one precision, or w->stored, as a weight of their own.
struct st_nested_weight st_nested_panels(const struct st_nested_weight *w, unsigned bits,
                                         size_t panel, size_t n_panels);
// The code of an element at a precision.
unsigned st_nested_code(const struct st_nested_weight *w, size_t row, size_t column, unsigned bits);
// The element itself.
float st_nested_value(const struct st_nested_weight *w, size_t row, size_t column, unsigned bits);

// Writes row `row` of `codes` [n_out, k] with `high` bits each from code[0, k). The buffer must be
// zeroed before the first row.
void st_nested_put_row(const uint8_t *code, size_t n_out, size_t k, unsigned high, size_t row,
                       uint8_t *codes);

// The side-by-side tokens that begin with token t.
static inline struct st_nested_input st_nested_from(const struct st_nested_input *input, size_t k,
                                                    size_t t) {
    size_t first = t * st_nested_blocks(k);
    return (struct st_nested_input){.q = input->q + first * ST_NESTED_BLOCK,
                                    .scale = input->scale + first,
                                    .sums = input->sums + first * ST_NESTED_GROUPS,
                                    .n_tokens = st_min(ST_NESTED_TOKENS, input->n_tokens - t),
                                    .terms = input->terms};
}
// Where token t has its block b: a row of q, an entry of the others.
size_t st_nested_at(const struct st_nested_input *input, size_t k, size_t t, size_t b);

// y[t * y_row + n] += sum of the outliers of row n times x [n_tokens, n_in], for rows [row, row1).
void st_nested_add_outliers(const struct st_nested_weight *w, unsigned bits, const float *x,
                            size_t n_tokens, size_t row, size_t row1, float *y, size_t y_row);

// y[t * y_row + n] = row scale * sum over blocks of input scale * (exact integer sum of group scale
// * code * q) + row minimum * sum over blocks of input scale * (exact integer sum of group minimum
// * sum of q), for rows n of panels [panel0, panel1), bits in [low, high]; with two terms the sum
// of both, and t counts inputs. The order of additions of an output depends on k alone.
typedef void st_nested_fn(const struct st_nested_weight *w, unsigned bits,
                          const struct st_nested_input *x, size_t panel0, size_t panel1, float *y,
                          size_t y_row);

// One block x[128] of an input: the same bits from every kernel.
typedef void st_nested_quantize_fn(const float *restrict x, int8_t *restrict q,
                                   float *restrict scale, int16_t *restrict sums);
// rest[i] = x[i] - scale * q[i] of one block: the same bits from every kernel.
typedef void st_nested_rest_fn(const float *restrict x, const int8_t *restrict q, float scale,
                               float *restrict rest);

struct st_nested_kernel {
    const char *name;
    uint64_t isa;
    st_nested_fn *fn;
    st_nested_quantize_fn *quantize;
    st_nested_rest_fn *rest;
};

extern const struct st_nested_kernel st_nested_kernels[]; // best first; ends with a NULL name
const struct st_nested_kernel *st_nested_select(uint64_t cpu_flags);

// Quantizes one token x[0, k), which is finite, as token t of the input, whose n_tokens is set.
void st_nested_quantize(const struct st_nested_kernel *kernel, const float *x, size_t k, size_t t,
                        struct st_nested_input *input);
// The same of what token `of`, which x was quantized as, leaves of it.
void st_nested_quantize_rest(const struct st_nested_kernel *kernel, const float *x, size_t k,
                             size_t of, size_t t, struct st_nested_input *input);

#endif
