// SPDX-License-Identifier: Apache-2.0
#include "kernels/pairs.h"

#include "base/cpu.h"
#include "kernels/pairs_rows.h"

static void nothing(void) {}

const struct st_pairs st_pairs[] = {
#if defined(__x86_64__)
    {"pairs_amx",
     ST_CPU_AVX512 | ST_CPU_AVX512BF16 | ST_CPU_AMX_BF16,
     32,
     16,
     3,
     {st_pair_tile_amx_1, st_pair_tile_amx_2, st_pair_tile_amx_3},
     st_pair_join_avx512bf16,
     st_pair_zip_avx512bf16,
     st_pair_begin_amx,
     st_pair_end_amx},
    {"pairs_avx512bf16",
     ST_CPU_AVX512 | ST_CPU_AVX512BF16,
     8,
     16,
     3,
     {st_pair_tile_avx512bf16_1, st_pair_tile_avx512bf16_2, st_pair_tile_avx512bf16_3},
     st_pair_join_avx512bf16,
     st_pair_zip_avx512bf16,
     nothing,
     nothing},
#endif
    {"pairs_scalar",
     0,
     4,
     4,
     1,
     {st_pair_tile_scalar},
     st_pair_join_scalar,
     st_pair_zip_scalar,
     nothing,
     nothing},
    {0},
};

const struct st_pairs *st_pairs_select(uint64_t cpu_flags) {
    for (const struct st_pairs *row = st_pairs; row->isa; row++)
        if ((row->isa & cpu_flags) == row->isa) return row;
    return NULL;
}
