// SPDX-License-Identifier: Apache-2.0
// BF16 weights times a step's few tokens on the tile unit: three parts of five tokens are the
// columns of one tile, so that up to ten tokens go through each weight for the price of reading it.
#include "kernels/linear_amx.h"

#include "base/size.h"
#include "kernels/amx_tile.h"
#include "kernels/prefetch.h"

enum {
    TOKENS = 5,           // of a tile
    TILE_PAIRS = 16 * 16, // pairs of BF16 elements of one tile
    PASS_TILES = 2,       // of tokens that meet a row's weights together
};

bool st_linear_bf16_few_amx_takes(enum st_dtype dtype, size_t k, size_t n_tokens) {
    return dtype == ST_DTYPE_BF16 && k % ST_AMX_K == 0 && n_tokens <= ST_LINEAR_FEW_TOKENS;
}

size_t st_linear_bf16_few_amx_block_tokens(const struct st_linear_kernels *kernels) {
    (void)kernels;
    return TOKENS;
}

// [k / 32] tiles of 16 pairs of k by 16 columns by 2; column 3 t + term.
void st_linear_bf16_few_amx_pack(const struct st_linear_kernels *kernels, const float *x,
                                 size_t n_tokens, size_t k, size_t block, float *out) {
    (void)kernels;
    uint32_t *tile = (uint32_t *)(void *)out + block * TILE_PAIRS * (k / ST_AMX_K);
    size_t first = block * TOKENS, n = st_min(TOKENS, n_tokens - first);
    for (size_t i = 0; i < k; i += ST_AMX_K, tile += TILE_PAIRS) {
        memset(tile, 0, TILE_PAIRS * sizeof *tile);
        for (size_t t = 0; t < n; t++) {
            uint32_t parts[ST_AMX_TERMS][ST_AMX_K / 2], *column = tile + ST_AMX_TERMS * t;
            st_amx_split(x + (first + t) * k + i, parts);
            for (size_t pair = 0; pair < ST_AMX_K / 2; pair++)
                for (size_t term = 0; term < ST_AMX_TERMS; term++)
                    column[pair * 16 + term] = parts[term][pair];
        }
    }
}

// 32 rows, all of k, times one or two tiles of tokens.
struct few {
    const unsigned char *w;
    size_t row_bytes, n_rows, k;
    const uint32_t *x; // packed; the second tile x_tile on
    size_t x_tile;
    float *sums; // [32, 32]
    bool ahead;  // the next 32 rows are wanted next
};

// n_tiles is a constant where this is called.
static inline __attribute__((always_inline)) void add_few(const struct few *b, size_t n_tiles) {
    unsigned char copy[ST_AMX_ROWS * 64];
    const unsigned char *next = b->w + ST_AMX_ROWS * b->row_bytes;
    const size_t sum_bytes = PASS_TILES * 16 * sizeof(float);
    st_amx_zero(0);
    st_amx_zero(1);
    st_amx_zero(2);
    st_amx_zero(3);
    for (size_t k = 0; k < b->k; k += ST_AMX_K, next += ST_AMX_ROWS * 64) {
        bool whole = b->n_rows == ST_AMX_ROWS;
        const unsigned char *w =
            whole ? b->w + k * 2 : st_amx_copy_rows(b->w + k * 2, b->row_bytes, b->n_rows, copy);
        size_t row_bytes = whole ? b->row_bytes : 64;
        if (b->ahead) st_prefetch_soon(next, ST_AMX_ROWS * 64);
        st_amx_load(4, w, row_bytes);
        st_amx_load(5, w + 16 * row_bytes, row_bytes);
        st_amx_load(6, b->x + k * 8, 64);
        st_amx_bf16(0, 4, 6);
        st_amx_bf16(1, 5, 6);
        if (n_tiles == 1) continue;
        st_amx_load(7, b->x + b->x_tile + k * 8, 64);
        st_amx_bf16(2, 4, 7);
        st_amx_bf16(3, 5, 7);
    }
    st_amx_store(0, b->sums, sum_bytes);
    st_amx_store(1, b->sums + 16 * PASS_TILES * 16, sum_bytes);
    if (n_tiles == 1) return;
    st_amx_store(2, b->sums + 16, sum_bytes);
    st_amx_store(3, b->sums + 16 * PASS_TILES * 16 + 16, sum_bytes);
}

// Tokens from `token` on.
static void store_few(const struct st_linear_args *a, size_t row, size_t n_rows, size_t token,
                      const float *sums) {
    size_t n = st_min(PASS_TILES * TOKENS, a->n_tokens - token);
    for (size_t t = 0; t < n; t++) {
        const float *parts = sums + t / TOKENS * 16 + t % TOKENS * ST_AMX_TERMS;
        for (size_t r = 0; r < n_rows; r++, parts += PASS_TILES * 16)
            a->y[(token + t) * a->y_row + row + r] =
                parts[2] + parts[1] + parts[0] + (a->bias ? a->bias[row + r] : 0.0f);
    }
}

void st_linear_bf16_few_amx_rows(const struct st_linear_kernels *kernels,
                                 const struct st_linear_args *a, size_t row0, size_t row1,
                                 float *scratch) {
    (void)kernels;
    size_t n_tiles = st_ceil_div(a->n_tokens, TOKENS), tile = TILE_PAIRS * (a->k / ST_AMX_K);
    st_amx_configure();
    for (size_t row = row0; row < row1; row += ST_AMX_ROWS)
        for (size_t i = 0; i < n_tiles; i += PASS_TILES) {
            struct few b = {.w = (const unsigned char *)a->w + row * a->row_bytes,
                            .row_bytes = a->row_bytes,
                            .n_rows = st_min(ST_AMX_ROWS, row1 - row),
                            .k = a->k,
                            .x = (const uint32_t *)(const void *)a->x + i * tile,
                            .x_tile = tile,
                            .sums = scratch,
                            .ahead = i == 0 && row + ST_AMX_ROWS < row1};
            if (i + 1 < n_tiles)
                add_few(&b, PASS_TILES);
            else
                add_few(&b, 1);
            store_few(a, row, b.n_rows, i * TOKENS, scratch);
        }
    st_amx_release();
}
