// SPDX-License-Identifier: Apache-2.0
#include "kernels/expand.h"

#include "base/cpu.h"
#include "kernels/expand_rows.h"

#define ENTRY(id, type, isa) [ST_DTYPE_##id] = st_expand_##type##_##isa,

const struct st_expand st_expands[] = {
#if defined(__x86_64__)
    {"expand_avx512", ST_CPU_AVX512, {ST_EXPAND_TYPES(ENTRY, avx512)}},
    {"expand_avx2", ST_CPU_AVX2, {ST_EXPAND_TYPES(ENTRY, avx2)}},
#elif defined(__aarch64__)
    {"expand_neon", ST_CPU_NEON, {ST_EXPAND_TYPES(ENTRY, neon)}},
#endif
    {"expand_scalar", 0, {ST_EXPAND_TYPES(ENTRY, scalar)}},
    {NULL, 0, {NULL}},
};

const struct st_expand *st_expand_choose(uint64_t cpu_flags) {
    const struct st_expand *row = st_expands;
    while ((row->isa & cpu_flags) != row->isa) row++;
    return row;
}
