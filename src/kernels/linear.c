// SPDX-License-Identifier: Apache-2.0
#include "kernels/linear.h"

#include "base/cpu.h"
#include "base/size.h"
#include "kernels/linear_amx.h"
#include "kernels/linear_bf16_gemv.h"
#include "kernels/linear_tile.h"

static size_t amx_padded(size_t n_tokens) {
    return st_round_up(n_tokens, ST_AMX_TOKENS);
}

size_t st_linear_scratch_floats(const struct st_tile *tile, size_t n_tokens) {
    size_t amx = st_round_up(ST_LINEAR_ROWS, ST_AMX_ROWS) * (amx_padded(n_tokens) + 16);
    return st_max(st_linear_tile_scratch_floats(tile, n_tokens), amx);
}

size_t st_linear_packed_floats(const struct st_tile *tile, size_t n_tokens, size_t k) {
    size_t amx = amx_padded(n_tokens) * k / 2 * ST_AMX_TERMS; // of pairs: k is even
    return st_max(st_linear_tile_packed_floats(tile, n_tokens, k), amx);
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

static bool few_tokens(enum st_dtype dtype, size_t k, size_t n_tokens) {
    (void)dtype, (void)k;
    return n_tokens <= ST_LINEAR_FEW_TOKENS;
}

static bool anything(enum st_dtype dtype, size_t k, size_t n_tokens) {
    (void)dtype, (void)k, (void)n_tokens;
    return true;
}

#if defined(__x86_64__)
static bool quantized(enum st_dtype dtype, size_t k, size_t n_tokens) {
    (void)n_tokens;
    return k % 2 == 0 && st_dtype_traits(dtype)->block_items > 1;
}
#endif

const struct st_linear_path st_linear_paths[] = {
#if defined(__x86_64__)
    {"tile_bf16", ST_CPU_AVX512 | ST_CPU_AVX512BF16, 0, ST_LINEAR_BF16, quantized,
     st_linear_tile_block_tokens, st_linear_tile_bf16_pack, st_linear_tile_bf16_rows,
     st_linear_tile_bf16_gated},
    {"tile_int16", ST_CPU_AVX512 | ST_CPU_AVX512VNNI, 0, ST_LINEAR_INT16, quantized,
     st_linear_tile_block_tokens, st_linear_tile_int16_pack, st_linear_tile_int16_rows, NULL},
    {"tile_int16", ST_CPU_AVX2, ST_CPU_AVX512, ST_LINEAR_INT16, quantized,
     st_linear_tile_block_tokens, st_linear_tile_int16_pack, st_linear_tile_int16_rows, NULL},
    {"bf16_few_amx", ST_CPU_AMX_BF16, 0, ST_LINEAR_EXACT, st_linear_bf16_few_amx_takes,
     st_linear_bf16_few_amx_block_tokens, st_linear_bf16_few_amx_pack, st_linear_bf16_few_amx_rows,
     NULL},
    {"bf16_gemv", ST_CPU_AVX512, 0, ST_LINEAR_EXACT, st_linear_bf16_gemv_takes,
     st_linear_bf16_gemv_block_tokens, st_linear_bf16_gemv_pack, st_linear_bf16_gemv_rows, NULL},
#endif
    {"gemv", 0, 0, ST_LINEAR_EXACT, few_tokens, NULL, NULL, gemv_rows, NULL},
#if defined(__x86_64__)
    {"bf16_amx", ST_CPU_AMX_BF16, 0, ST_LINEAR_EXACT, st_linear_bf16_amx_takes,
     st_linear_bf16_amx_block_tokens, st_linear_bf16_amx_pack, st_linear_bf16_amx_rows, NULL},
#endif
    {"tile", 0, 0, ST_LINEAR_EXACT, anything, st_linear_tile_block_tokens, st_linear_tile_pack,
     st_linear_tile_rows, st_linear_tile_gated},
    {0},
};

static bool runs_on(const struct st_linear_path *path, uint64_t cpu_flags) {
    return (path->isa & cpu_flags) == path->isa && !(path->without & cpu_flags);
}

bool st_linear_path_fits(const struct st_linear_path *path, uint64_t cpu_flags, bool fast,
                         enum st_dtype dtype, size_t k, size_t n_tokens) {
    return runs_on(path, cpu_flags) && (fast || path->rounding == ST_LINEAR_EXACT) &&
           path->takes(dtype, k, n_tokens);
}

const struct st_linear_path *st_linear_int16_path(uint64_t cpu_flags, size_t k) {
    const struct st_linear_path *path = st_linear_paths;
    while (path->name && !(path->rounding == ST_LINEAR_INT16 && runs_on(path, cpu_flags))) path++;
    return path->name && k % 2 == 0 ? path : NULL;
}

const struct st_linear_path *st_linear_nested_path(uint64_t cpu_flags) {
    for (const struct st_linear_path *path = st_linear_paths; path->name; path++)
        if (path->rounding != ST_LINEAR_EXACT && runs_on(path, cpu_flags)) return path;
    return NULL;
}
