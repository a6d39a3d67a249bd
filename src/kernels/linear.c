// SPDX-License-Identifier: Apache-2.0
#include "kernels/linear.h"

#include "base/cpu.h"
#include "base/size.h"
#include "kernels/linear_amx.h"
#include "kernels/linear_bf16_gemv.h"
#include "kernels/prefetch.h"

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

// What dequantize_rows reads next comes from memory while tokens meet what it wrote: rows lie too
// far apart for the processor's own prefetchers. Past row1 nothing is prefetched.
static void prefetch_rows(const struct st_linear_kernels *kernels, const struct st_linear_args *a,
                          size_t row, size_t row1, size_t k0, size_t n) {
    const struct st_dtype_traits *type = st_dtype_traits(a->dtype);
    size_t first = k0 / type->block_items * type->block_bytes;
    size_t bytes = st_ceil_div(n, type->block_items) * type->block_bytes;
    for (size_t end = st_min(row + kernels->tile->m, row1); row < end; row++)
        st_prefetch_soon((const char *)a->w + row * a->row_bytes + first, bytes);
}

// The same in BF16, in place: pairs take half the room.
static void round_rows(const struct st_linear_kernels *kernels, size_t n, float *rows) {
    for (size_t m = 0; m < kernels->tile->m; m++, rows += K_BLOCK)
        kernels->pairs->join(rows, n / 2, (uint32_t *)(void *)rows);
}

// What meets the rows of one linear: the packed input, in floats or in pairs.
struct columns {
    const struct st_linear_kernels *kernels;
    const struct st_linear_args *args;
    bool pairs;
};

// sums[m, width] += weights[m, n] * x[k0.., t..]
static void add_tile(const struct columns *c, const float *weights, size_t k0, size_t n, size_t t,
                     size_t width, float *sums, size_t sum_row) {
    const struct st_tile *tile = c->kernels->tile;
    const float *x = c->args->x + t * c->args->k;
    size_t v = width / tile->lanes - 1;
    if (c->pairs)
        c->kernels->pairs->fn[v](n / 2, (const uint32_t *)(const void *)weights, K_BLOCK, 1,
                                 (const uint32_t *)(const void *)x + k0 / 2 * width, sums, sum_row);
    else
        tile->fn[v](n, weights, K_BLOCK, 1, x + k0 * width, sums, sum_row);
}

// sums[rows, padded] += w[row0.., k0..k0 + n) * x
static void add_k_block(const struct columns *c, size_t row0, size_t row1, size_t k0, size_t n,
                        float *weights, float *sums, size_t sum_row) {
    const struct st_tile *tile = c->kernels->tile;
    size_t padded = st_tile_padded(tile, c->args->n_tokens);
    for (size_t row = row0; row < row1; row += tile->m) {
        dequantize_rows(c->kernels, c->args, row, row1, k0, n, weights);
        size_t next_row = row + tile->m < row1 ? row + tile->m : row0;
        size_t next_k0 = next_row == row0 ? k0 + n : k0;
        prefetch_rows(c->kernels, c->args, next_row, row1, next_k0,
                      st_min(K_BLOCK, c->args->k - next_k0));
        if (c->pairs) round_rows(c->kernels, n, weights);
        for (size_t t = 0; t < padded;) {
            size_t width = st_tile_width(tile, c->args->n_tokens, t);
            add_tile(c, weights, k0, n, t, width, sums + (row - row0) * sum_row + t, sum_row);
            t += width;
        }
    }
}

static void store(const struct columns *c, size_t row0, size_t row1, const float *sums,
                  size_t sum_row) {
    const struct st_linear_args *a = c->args;
    st_tile_transpose(c->kernels->tile, sums, sum_row, row1 - row0, a->n_tokens, a->y + row0,
                      a->y_row);
    for (size_t t = 0; t < a->n_tokens && a->bias; t++)
        for (size_t row = row0; row < row1; row++) a->y[t * a->y_row + row] += a->bias[row];
}

static void tile_block(const struct columns *c, size_t row0, size_t row1, float *scratch) {
    const struct st_tile *tile = c->kernels->tile;
    const struct st_linear_args *a = c->args;
    // Rows a power of two apart would fall into the same cache sets.
    size_t sum_row = st_tile_padded(tile, a->n_tokens) + 16;
    float *sums = scratch + tile->m * K_BLOCK;
    memset(sums, 0, st_round_up(row1 - row0, tile->m) * sum_row * sizeof *sums);
    for (size_t k0 = 0; k0 < a->k; k0 += K_BLOCK)
        add_k_block(c, row0, row1, k0, st_min(K_BLOCK, a->k - k0), scratch, sums, sum_row);
    store(c, row0, row1, sums, sum_row);
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

static void tile_blocks(const struct columns *c, size_t row0, size_t row1, float *scratch) {
    for (size_t row = row0; row < row1; row += ST_LINEAR_ROWS)
        tile_block(c, row, st_min(row + ST_LINEAR_ROWS, row1), scratch);
}

static void tile_rows(const struct st_linear_kernels *kernels, const struct st_linear_args *a,
                      size_t row0, size_t row1, float *scratch) {
    struct columns c = {kernels, a, false};
    tile_blocks(&c, row0, row1, scratch);
}

static size_t tile_block_tokens(const struct st_linear_kernels *kernels) {
    return kernels->tile->vectors * kernels->tile->lanes;
}

static void tile_pack(const struct st_linear_kernels *kernels, const float *x, size_t n_tokens,
                      size_t k, size_t block, float *out) {
    size_t t = st_tile_block_start(kernels->tile, n_tokens, block),
           width = st_tile_width(kernels->tile, n_tokens, t);
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

#if defined(__x86_64__)
static void bf16_tile_rows(const struct st_linear_kernels *kernels, const struct st_linear_args *a,
                           size_t row0, size_t row1, float *scratch) {
    struct columns c = {kernels, a, true};
    tile_blocks(&c, row0, row1, scratch);
}

// Pairs first: half as much is left to transpose. They take the first half of the block's room, and
// until then lie as rows in the second.
static void bf16_tile_pack(const struct st_linear_kernels *kernels, const float *x, size_t n_tokens,
                           size_t k, size_t block, float *out) {
    size_t t = st_tile_block_start(kernels->tile, n_tokens, block),
           width = st_tile_width(kernels->tile, n_tokens, t), n = st_min(width, n_tokens - t);
    float *packed = out + t * k, *rows = packed + width * (k / 2);
    for (size_t i = 0; i < n; i++)
        kernels->pairs->join(x + (t + i) * k, k / 2, (uint32_t *)(void *)(rows + i * (k / 2)));
    st_tile_pack(kernels->tile, rows, k / 2, n, k / 2, packed);
}

static bool quantized(enum st_dtype dtype, size_t k, size_t n_tokens) {
    (void)n_tokens;
    return k % 2 == 0 && st_dtype_traits(dtype)->block_items > 1;
}
#endif

const struct st_linear_path st_linear_paths[] = {
#if defined(__x86_64__)
    {"tile_bf16", ST_CPU_AVX512 | ST_CPU_AVX512BF16, true, quantized, tile_block_tokens,
     bf16_tile_pack, bf16_tile_rows},
    {"bf16_gemv", ST_CPU_AVX512, false, st_linear_bf16_gemv_takes, st_linear_bf16_gemv_block_tokens,
     st_linear_bf16_gemv_pack, st_linear_bf16_gemv_rows},
#endif
    {"gemv", 0, false, few_tokens, NULL, NULL, gemv_rows},
#if defined(__x86_64__)
    {"bf16_amx", ST_CPU_AMX_BF16, false, st_linear_bf16_amx_takes, st_linear_bf16_amx_block_tokens,
     st_linear_bf16_amx_pack, st_linear_bf16_amx_rows},
#endif
    {"tile", 0, false, anything, tile_block_tokens, tile_pack, tile_rows},
    {0},
};

bool st_linear_path_fits(const struct st_linear_path *path, uint64_t cpu_flags, bool fast,
                         enum st_dtype dtype, size_t k, size_t n_tokens) {
    return (path->isa & cpu_flags) == path->isa && (fast || !path->rounds) &&
           path->takes(dtype, k, n_tokens);
}
