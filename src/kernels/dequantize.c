// SPDX-License-Identifier: Apache-2.0
#include "kernels/dequantize.h"

#include "base/cpu.h"
#include "kernels/dequantize_rows.h"

#define ENTRY(id, type, isa) [ST_DTYPE_##id] = st_dequantize_##type##_##isa,

const struct st_dequantize st_dequantizers[] = {
#if defined(__x86_64__)
    {"dequantize_avx512", ST_CPU_AVX512, {ST_DEQUANTIZE_TYPES(ENTRY, avx512)}},
    {"dequantize_avx2", ST_CPU_AVX2, {ST_DEQUANTIZE_TYPES(ENTRY, avx2)}},
#elif defined(__aarch64__)
    {"dequantize_neon", ST_CPU_NEON, {ST_DEQUANTIZE_TYPES(ENTRY, neon)}},
#endif
    {"dequantize_scalar", 0, {ST_DEQUANTIZE_TYPES(ENTRY, scalar)}},
    {NULL, 0, {NULL}},
};

const struct st_dequantize *st_dequantize_select(uint64_t cpu_flags) {
    const struct st_dequantize *row = st_dequantizers;
    while ((row->isa & cpu_flags) != row->isa) row++;
    return row;
}

#define ENTRY_BF16(id, type, isa) [ST_DTYPE_##id] = st_dequantize_bf16_##type##_##isa,

const struct st_dequantize_bf16 st_dequantizers_bf16[] = {
#if defined(__x86_64__)
    {"dequantize_bf16_avx512bf16",
     ST_CPU_AVX512 | ST_CPU_AVX512BF16,
     {ST_BLOCK_TYPES(ENTRY_BF16, avx512bf16)}},
#endif
    {"dequantize_bf16_scalar", 0, {ST_BLOCK_TYPES(ENTRY_BF16, scalar)}},
    {NULL, 0, {NULL}},
};

const struct st_dequantize_bf16 *st_dequantize_bf16_select(uint64_t cpu_flags) {
    const struct st_dequantize_bf16 *row = st_dequantizers_bf16;
    while ((row->isa & cpu_flags) != row->isa) row++;
    return row;
}
