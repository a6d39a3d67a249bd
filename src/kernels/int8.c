// SPDX-License-Identifier: Apache-2.0
#include "kernels/int8.h"

#include "base/cpu.h"
#include "kernels/int8_tiles.h"

#include <string.h>

const struct st_int8_kernel st_int8_kernels[] = {
#if defined(__x86_64__)
    {"int8_amx", ST_CPU_AMX_INT8, 0, 4, 64, 64, st_int8_tile_amx, NULL, 0, 0, 0},
    {"int8_avx512vnni", ST_CPU_AVX512 | ST_CPU_AVX512VNNI, 128, 4, 6, 6, st_int8_tile_avx512vnni,
     st_int8_two_avx512vnni, 3, 3, 2},
    {"int8_avxvnni", ST_CPU_AVX2 | ST_CPU_AVXVNNI, 128, 4, 6, 5, st_int8_tile_avxvnni, NULL, 0, 0,
     0},
    {"int8_avx2", ST_CPU_AVX2, 0, 4, 5, 4, st_int8_tile_avx2, st_int8_two_avx2, 6, 5, 1},
#elif defined(__aarch64__)
    {"int8_i8mm", ST_CPU_I8MM, 0, 1, 8, 8, st_int8_tile_i8mm, NULL, 0, 0, 0},
    {"int8_dotprod", ST_CPU_DOTPROD, 0, 1, 4, 4, st_int8_tile_dotprod, NULL, 0, 0, 0},
    {"int8_neon", ST_CPU_NEON, 0, 1, 2, 2, st_int8_tile_neon, NULL, 0, 0, 0},
#endif
    {"int8_scalar", 0, 0, 1, 4, 4, st_int8_tile_scalar, NULL, 0, 0, 0},
    {0},
};

const struct st_int8_kernel *st_int8_select(uint64_t cpu_flags) {
    const struct st_int8_kernel *kernel = st_int8_kernels;
    while ((kernel->isa & cpu_flags) != kernel->isa) kernel++;
    return kernel;
}

void st_int8_pack_panel(const int8_t *w, size_t n_rows, size_t k, int8_t *panel,
                        int32_t *row_sums) {
    memset(panel, 0, st_int8_panel_bytes(k));
    memset(row_sums, 0, ST_INT8_PANEL * sizeof *row_sums);
    for (size_t r = 0; r < n_rows; r++)
        for (size_t i = 0; i < k; i++) {
            panel[i / 4 * 4 * ST_INT8_PANEL + 4 * r + i % 4] = w[r * k + i];
            row_sums[r] += w[r * k + i];
        }
}
