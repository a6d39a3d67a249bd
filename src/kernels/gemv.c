// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemv.h"

#include "base/cpu.h"
#include "kernels/gemv_rows.h"

#define ENTRY(id, type, isa) [ST_DTYPE_##id] = st_gemv_##type##_##isa,

const struct st_gemv st_gemvs[] = {
#if defined(__x86_64__)
    {"gemv_avx512", ST_CPU_AVX512, {ST_DEQUANTIZE_TYPES(ENTRY, avx512)}},
    {"gemv_avx2", ST_CPU_AVX2, {ST_DEQUANTIZE_TYPES(ENTRY, avx2)}},
#elif defined(__aarch64__)
    {"gemv_neon", ST_CPU_NEON, {ST_DEQUANTIZE_TYPES(ENTRY, neon)}},
#endif
    {"gemv_scalar", 0, {ST_DEQUANTIZE_TYPES(ENTRY, scalar)}},
    {NULL, 0, {NULL}},
};

const struct st_gemv *st_gemv_select(uint64_t cpu_flags) {
    const struct st_gemv *row = st_gemvs;
    while ((row->isa & cpu_flags) != row->isa) row++;
    return row;
}
