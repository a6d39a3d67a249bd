// SPDX-License-Identifier: Apache-2.0
#include "kernels/linear_amx.h"

#include "base/size.h"
#include "kernels/amx_tile.h"

enum {
    TILE_ITEMS = 16 * 32,                       // BF16 elements of one tile
    STEP_ITEMS = 2 * ST_AMX_TERMS * TILE_ITEMS, // of one step of k in the packed input
    K_BLOCK = 256,
};

bool st_linear_bf16_amx_takes(enum st_dtype dtype, size_t k, size_t n_tokens) {
    return dtype == ST_DTYPE_BF16 && k % ST_AMX_K == 0 && n_tokens > ST_LINEAR_FEW_TOKENS;
}

size_t st_linear_bf16_amx_block_tokens(const struct st_linear_kernels *kernels) {
    (void)kernels;
    return ST_AMX_TOKENS;
}

void st_linear_bf16_amx_pack(const struct st_linear_kernels *kernels, const float *x,
                             size_t n_tokens, size_t k, size_t block, float *out) {
    (void)kernels;
    uint32_t *pairs = (uint32_t *)(void *)out + block * ST_AMX_TOKENS * k / 2 * ST_AMX_TERMS;
    for (size_t i = 0; i < k; i += ST_AMX_K, pairs += STEP_ITEMS / 2)
        for (size_t t = 0; t < ST_AMX_TOKENS; t++) {
            size_t token = block * ST_AMX_TOKENS + t;
            uint32_t parts[ST_AMX_TERMS][ST_AMX_K / 2] = {{0}};
            if (token < n_tokens) st_amx_split(x + token * k + i, parts);
            for (size_t term = 0; term < ST_AMX_TERMS; term++)
                for (size_t pair = 0; pair < ST_AMX_K / 2; pair++)
                    pairs[(2 * term + t / 16) * TILE_ITEMS / 2 + pair * 16 + t % 16] =
                        parts[term][pair];
        }
}

// What one pass works on: 32 rows and 32 tokens over one block of k.
struct block {
    const unsigned char *w; // row 0 of the block, element k0
    size_t row_bytes, n_rows, n_k;
    const uint16_t *x; // packed
    float *sums;       // [32, 32], rows sum_row apart
    size_t sum_row;
};

static void add_block(const struct block *b) {
    unsigned char copy[ST_AMX_ROWS * 64];
    const uint16_t *x = b->x;
    size_t sum_bytes = b->sum_row * sizeof(float);
    st_amx_load(0, b->sums, sum_bytes);
    st_amx_load(1, b->sums + 16, sum_bytes);
    st_amx_load(2, b->sums + 16 * b->sum_row, sum_bytes);
    st_amx_load(3, b->sums + 16 * b->sum_row + 16, sum_bytes);
    for (size_t k = 0; k < b->n_k; k += ST_AMX_K, x += STEP_ITEMS) {
        bool whole = b->n_rows == ST_AMX_ROWS;
        size_t row_bytes = whole ? b->row_bytes : 64;
        const unsigned char *w =
            whole ? b->w + k * 2 : st_amx_copy_rows(b->w + k * 2, b->row_bytes, b->n_rows, copy);
        st_amx_load(4, w, row_bytes);
        st_amx_load(5, w + 16 * row_bytes, row_bytes);
        for (size_t term = 0; term < ST_AMX_TERMS; term++) {
            st_amx_load(6, x + term * 2 * TILE_ITEMS, 64);
            st_amx_load(7, x + term * 2 * TILE_ITEMS + TILE_ITEMS, 64);
            st_amx_bf16(0, 4, 6);
            st_amx_bf16(1, 4, 7);
            st_amx_bf16(2, 5, 6);
            st_amx_bf16(3, 5, 7);
        }
    }
    st_amx_store(0, b->sums, sum_bytes);
    st_amx_store(1, b->sums + 16, sum_bytes);
    st_amx_store(2, b->sums + 16 * b->sum_row, sum_bytes);
    st_amx_store(3, b->sums + 16 * b->sum_row + 16, sum_bytes);
}

static void store(const struct st_linear_args *a, size_t row0, size_t row1, const float *sums,
                  size_t sum_row) {
    for (size_t t = 0; t < a->n_tokens; t++)
        for (size_t row = row0; row < row1; row++)
            a->y[t * a->y_row + row] =
                sums[(row - row0) * sum_row + t] + (a->bias ? a->bias[row] : 0.0f);
}

// The input of 32 tokens over K_BLOCK stays in the first-level cache while all rows go past it.
static void run_rows(const struct st_linear_args *a, size_t row0, size_t row1, float *sums) {
    size_t padded = st_round_up(a->n_tokens, ST_AMX_TOKENS), sum_row = padded + 16;
    memset(sums, 0, st_round_up(row1 - row0, ST_AMX_ROWS) * sum_row * sizeof *sums);
    for (size_t k0 = 0; k0 < a->k; k0 += K_BLOCK)
        for (size_t t = 0; t < padded; t += ST_AMX_TOKENS)
            for (size_t row = row0; row < row1; row += ST_AMX_ROWS)
                add_block(&(struct block){
                    .w = (const unsigned char *)a->w + row * a->row_bytes + k0 * 2,
                    .row_bytes = a->row_bytes,
                    .n_rows = st_min(ST_AMX_ROWS, row1 - row),
                    .n_k = st_min(K_BLOCK, a->k - k0),
                    .x = (const uint16_t *)(const void *)a->x +
                         ST_AMX_TERMS * (t * a->k + k0 * ST_AMX_TOKENS),
                    .sums = sums + (row - row0) * sum_row + t,
                    .sum_row = sum_row,
                });
    store(a, row0, row1, sums, sum_row);
}

void st_linear_bf16_amx_rows(const struct st_linear_kernels *kernels,
                             const struct st_linear_args *args, size_t row0, size_t row1,
                             float *scratch) {
    (void)kernels;
    st_amx_configure();
    for (size_t row = row0; row < row1; row += ST_LINEAR_ROWS)
        run_rows(args, row, st_min(row + ST_LINEAR_ROWS, row1), scratch);
    st_amx_release();
}
