// SPDX-License-Identifier: Apache-2.0
// The definition of every product with blocks: plain loops over one part of 32 elements.
#include "kernels/blocks_rows.h"

#include "kernels/block_parts.h"

#define QUANTIZE st_blocks_quantize_plain
#include "kernels/blocks_quantize.h"

// ---- Products

typedef void part_fn(const unsigned char *b, int part, struct st_block_part *p);

static float part_product(const struct st_block_part *p, const struct st_blocks_chunk *x,
                          size_t part) {
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
            struct st_block_part p;
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
        product(st_part_##type, ST_BLOCKS_CHUNK / ST_##id##_ITEMS * ST_##id##_BYTES, w, row_bytes, \
                n_rows, k, x, n_columns, y, y_col);                                                \
    }

ST_BLOCK_TYPES(PRODUCT, scalar)
