// SPDX-License-Identifier: Apache-2.0
#include "kernels/int16.h"

#include "base/cpu.h"
#include "kernels/int16_rows.h"

#define ENTRY(id, type, isa) [ST_DTYPE_##id] = st_int16_##type##_##isa,

const struct st_int16 st_int16s[] = {
#if defined(__x86_64__)
    {"int16_avx512vnni",
     ST_CPU_AVX512 | ST_CPU_AVX512VNNI,
     8,
     16,
     3,
     {st_int16_tile_avx512vnni_1, st_int16_tile_avx512vnni_2, st_int16_tile_avx512vnni_3},
     st_int16_quantize_avx2,
     st_int16_pairs_avx2,
     {ST_BLOCK_TYPES(ENTRY, avx2)}},
    {"int16_avxvnni",
     ST_CPU_AVX2 | ST_CPU_AVXVNNI,
     6,
     8,
     2,
     {st_int16_tile_avxvnni_1, st_int16_tile_avxvnni_2},
     st_int16_quantize_avx2,
     st_int16_pairs_avx2,
     {ST_BLOCK_TYPES(ENTRY, avx2)}},
    {"int16_avx2",
     ST_CPU_AVX2,
     6,
     8,
     2,
     {st_int16_tile_avx2_1, st_int16_tile_avx2_2},
     st_int16_quantize_avx2,
     st_int16_pairs_avx2,
     {ST_BLOCK_TYPES(ENTRY, avx2)}},
#endif
    {"int16_scalar",
     0,
     4,
     4,
     1,
     {st_int16_tile_scalar},
     st_int16_quantize_scalar,
     st_int16_pairs_scalar,
     {ST_BLOCK_TYPES(ENTRY, scalar)}},
    {0},
};

// Floats of 512 bits are as fast as integers of 256.
const struct st_int16 *st_int16_select(uint64_t cpu_flags) {
    uint64_t wide = cpu_flags & ST_CPU_AVX512;
    for (const struct st_int16 *row = st_int16s; row->isa; row++)
        if ((row->isa & cpu_flags) == row->isa && (row->isa & wide) == wide) return row;
    return NULL;
}
