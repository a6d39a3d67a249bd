// SPDX-License-Identifier: Apache-2.0
#include "kernels/linear.h"

#include "base/cpu.h"
#include "base/size.h"
#include "kernels/linear_amx.h"
#include "kernels/linear_bf16_gemv.h"

#include <string.h>

// K_BLOCK x m floats of weights stay in the first-level cache, K_BLOCK x width of the input pass
// through it from the second; a multiple of every block_items.
enum { K_BLOCK = 512 };

size_t st_linear_scratch_floats(const struct st_tile *tile, size_t n_tokens) {
    size_t rows = st_round_up(ST_LINEAR_ROWS, st_max(tile->m, ST_AMX_ROWS)) + tile->m;
    size_t padded = st_round_up(n_tokens, st_max(ST_TILE_MAX_WIDTH, ST_AMX_TOKENS));
    return tile->m * K_BLOCK + rows * (padded + 16);
}

size_t st_linear_packed_floats(const struct st_tile *tile, size_t n_tokens, size_t k) {
    return st_max(st_tile_padded(tile, n_tokens), st_round_up(n_tokens, ST_AMX_TOKENS)) * k;
}

// out[m, K_BLOCK]: rows [row, row + m), elements [k0, k0 + n); rows past row1 are zeros.
static void dequantize_rows(const struct st_linear_kernels *kernels, const struct st_linear_args *a,
                            size_t row, size_t row1, size_t k0, size_t n, float *out) {
    for (size_t m = 0; m < kernels->tile->m; m++, out += K_BLOCK) {
        if (row + m < row1)
            kernels->dequantize->fn[a->dtype](
                (const unsigned char *)a->w + (row + m) * a->row_bytes, k0, n, out);
        else
            memset(out, 0, n * sizeof *out);
    }
}

// sums[rows, padded] += w[row0.., k0..k0 + n) * x
static void add_k_block(const struct st_linear_kernels *kernels, const struct st_linear_args *a,
                        size_t row0, size_t row1, size_t k0, size_t n, float *weights, float *sums,
                        size_t sum_row) {
    const struct st_tile *tile = kernels->tile;
    size_t padded = st_tile_padded(tile, a->n_tokens);
    for (size_t row = row0; row < row1; row += tile->m) {
        dequantize_rows(kernels, a, row, row1, k0, n, weights);
        for (size_t t = 0; t < padded;) {
            size_t width = st_tile_width(tile, a->n_tokens, t);
            tile->fn[width / tile->lanes - 1](n, weights, K_BLOCK, 1, a->x + t * a->k + k0 * width,
                                              sums + (row - row0) * sum_row + t, sum_row);
            t += width;
        }
    }
}

static void store(const struct st_linear_args *a, size_t row0, size_t row1, const float *sums,
                  size_t sum_row) {
    for (size_t t0 = 0; t0 < a->n_tokens; t0 += 16) { // a few cache lines of sums at a time
        size_t t1 = st_min(t0 + 16, a->n_tokens);
        for (size_t t = t0; t < t1; t++)
            for (size_t row = row0; row < row1; row++)
                a->y[t * a->y_row + row] =
                    sums[(row - row0) * sum_row + t] + (a->bias ? a->bias[row] : 0.0f);
    }
}

static void tile_block(const struct st_linear_kernels *kernels, const struct st_linear_args *a,
                       size_t row0, size_t row1, float *scratch) {
    const struct st_tile *tile = kernels->tile;
    // Rows a power of two apart would fall into the same cache sets.
    size_t sum_row = st_tile_padded(tile, a->n_tokens) + 16;
    float *sums = scratch + tile->m * K_BLOCK;
    memset(sums, 0, st_round_up(row1 - row0, tile->m) * sum_row * sizeof *sums);
    for (size_t k0 = 0; k0 < a->k; k0 += K_BLOCK)
        add_k_block(kernels, a, row0, row1, k0, st_min(K_BLOCK, a->k - k0), scratch, sums, sum_row);
    store(a, row0, row1, sums, sum_row);
}

static void gemv_rows(const struct st_linear_kernels *kernels, const struct st_linear_args *a,
                      size_t row0, size_t row1, float *scratch) {
    (void)scratch;
    kernels->gemv->fn[a->dtype]((const unsigned char *)a->w + row0 * a->row_bytes, a->row_bytes,
                                row1 - row0, a->k, a->x, a->n_tokens, a->y + row0, a->y_row);
    if (!a->bias) return;
    for (size_t t = 0; t < a->n_tokens; t++)
        for (size_t row = row0; row < row1; row++) a->y[t * a->y_row + row] += a->bias[row];
}

static void tile_rows(const struct st_linear_kernels *kernels, const struct st_linear_args *a,
                      size_t row0, size_t row1, float *scratch) {
    for (size_t row = row0; row < row1; row += ST_LINEAR_ROWS)
        tile_block(kernels, a, row, st_min(row + ST_LINEAR_ROWS, row1), scratch);
}

static size_t tile_block_tokens(const struct st_linear_kernels *kernels) {
    return kernels->tile->vectors * kernels->tile->lanes;
}

static void tile_pack(const struct st_linear_kernels *kernels, const float *x, size_t n_tokens,
                      size_t k, size_t block, float *out) {
    size_t width = tile_block_tokens(kernels), t = block * width;
    st_tile_pack(kernels->tile, x + t * k, k, st_min(width, n_tokens - t), k, out + t * k);
}

static bool few_tokens(enum st_dtype dtype, size_t k, size_t n_tokens) {
    (void)dtype, (void)k;
    return n_tokens <= ST_LINEAR_FEW_TOKENS;
}

static bool anything(enum st_dtype dtype, size_t k, size_t n_tokens) {
    (void)dtype, (void)k, (void)n_tokens;
    return true;
}

const struct st_linear_path st_linear_paths[] = {
#if defined(__x86_64__)
    {"bf16_gemv", ST_CPU_AVX512, st_linear_bf16_gemv_takes, st_linear_bf16_gemv_block_tokens,
     st_linear_bf16_gemv_pack, st_linear_bf16_gemv_rows},
#endif
    {"gemv", 0, few_tokens, NULL, NULL, gemv_rows},
#if defined(__x86_64__)
    {"bf16_amx", ST_CPU_AMX_BF16, st_linear_bf16_amx_takes, st_linear_bf16_amx_block_tokens,
     st_linear_bf16_amx_pack, st_linear_bf16_amx_rows},
#endif
    {"tile", 0, anything, tile_block_tokens, tile_pack, tile_rows},
    {0},
};

bool st_linear_path_fits(const struct st_linear_path *path, uint64_t cpu_flags, enum st_dtype dtype,
                         size_t k, size_t n_tokens) {
    return (path->isa & cpu_flags) == path->isa && path->takes(dtype, k, n_tokens);
}
