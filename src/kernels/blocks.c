// SPDX-License-Identifier: Apache-2.0
#include "kernels/blocks.h"

#include "base/cpu.h"
#include "kernels/blocks_rows.h"

#include <string.h>

#define ENTRY(id, type, isa) [ST_DTYPE_##id] = st_blocks_##type##_##isa,

const struct st_blocks st_blocks_kernels[] = {
#if defined(__x86_64__)
    {"blocks_avx512vbmi",
     ST_CPU_AVX512 | ST_CPU_AVX512VNNI | ST_CPU_AVX512VBMI,
     st_blocks_quantize_avx2,
     st_blocks_arrange_avx512,
     {ST_BLOCK_TYPES(ENTRY, avx512vbmi)}},
    {"blocks_avx512vnni",
     ST_CPU_AVX512 | ST_CPU_AVX512VNNI,
     st_blocks_quantize_avx2,
     st_blocks_arrange_avx512,
     {ST_BLOCK_TYPES(ENTRY, avx512vnni)}},
    {"blocks_avxvnni",
     ST_CPU_AVX2 | ST_CPU_AVXVNNI,
     st_blocks_quantize_avx2,
     st_blocks_arrange_avx2,
     {ST_BLOCK_TYPES(ENTRY, avxvnni)}},
    {"blocks_avx2",
     ST_CPU_AVX2,
     st_blocks_quantize_avx2,
     st_blocks_arrange_avx2,
     {ST_BLOCK_TYPES(ENTRY, avx2)}},
#elif defined(__aarch64__)
    {"blocks_i8mm",
     ST_CPU_NEON | ST_CPU_DOTPROD | ST_CPU_I8MM,
     st_blocks_quantize_neon,
     NULL,
     {ST_BLOCK_TYPES(ENTRY, i8mm)}},
    {"blocks_dotprod",
     ST_CPU_NEON | ST_CPU_DOTPROD,
     st_blocks_quantize_neon,
     NULL,
     {ST_BLOCK_TYPES(ENTRY, dotprod)}},
    {"blocks_neon", ST_CPU_NEON, st_blocks_quantize_neon, NULL, {ST_BLOCK_TYPES(ENTRY, neon)}},
#endif
    {"blocks_scalar", 0, st_blocks_quantize_plain, NULL, {ST_BLOCK_TYPES(ENTRY, scalar)}},
    {0},
};

const struct st_blocks *st_blocks_select(uint64_t cpu_flags) {
    const struct st_blocks *row = st_blocks_kernels;
    while ((row->isa & cpu_flags) != row->isa) row++;
    return row;
}

bool st_blocks_has(enum st_dtype dtype) {
    return st_blocks_select(0)->fn[dtype] != NULL;
}

// Of a last chunk with its first n elements alone, two or four parts, which rows may share
// (blocks_shared.h).
static void arrange_repeated(const struct st_blocks *kernel, size_t n, struct st_blocks_chunk *x) {
    enum { TWO_PARTS = 2 * ST_BLOCKS_PART };
    for (size_t at = n; at < ST_BLOCKS_CHUNK; at += TWO_PARTS) {
        memcpy(x->high + at, x->high + at - n, TWO_PARTS);
        memcpy(x->low + at, x->low + at - n, TWO_PARTS);
    }
    kernel->arrange(x);
    for (size_t at = n; at < ST_BLOCKS_CHUNK; at += TWO_PARTS) {
        memset(x->high + at, 0, TWO_PARTS);
        memset(x->low + at, 0, TWO_PARTS);
    }
}

// What lies behind the first n elements.
static void clear_from(size_t n, struct st_blocks_chunk *x) {
    for (size_t part = n / ST_BLOCKS_PART; part < ST_BLOCKS_PARTS; part++) {
        memset(x->high + part * ST_BLOCKS_PART, 0, ST_BLOCKS_PART);
        memset(x->low + part * ST_BLOCKS_PART, 0, ST_BLOCKS_PART);
        memset(x->q + part * ST_BLOCKS_PART, 0, ST_BLOCKS_PART * sizeof *x->q);
        x->scale[part] = x->sum[part] = x->half_sum[2 * part] = x->half_sum[2 * part + 1] = 0.0f;
    }
}

void st_blocks_quantize(const struct st_blocks *kernel, const float *x, size_t k, size_t chunk,
                        struct st_blocks_chunk *to) {
    size_t first = chunk * ST_BLOCKS_CHUNK, n = st_min(ST_BLOCKS_CHUNK, k - first);
    clear_from(n, to);
    for (size_t part = 0; part < n / ST_BLOCKS_PART; part++)
        kernel->quantize(x + first + part * ST_BLOCKS_PART, to->high + part * ST_BLOCKS_PART,
                         to->low + part * ST_BLOCKS_PART, to->q + part * ST_BLOCKS_PART,
                         to->scale + part, to->sum + part, to->half_sum + 2 * part);
    if (kernel->arrange && (n == 2 * ST_BLOCKS_PART || n == 4 * ST_BLOCKS_PART))
        arrange_repeated(kernel, n, to);
    else if (kernel->arrange)
        kernel->arrange(to);
}
