// SPDX-License-Identifier: Apache-2.0
#include "kernels/peak.h"

#include "base/cpu.h"
#include "kernels/peak_rows.h"

const struct st_peak st_peaks[] = {
#if defined(__x86_64__)
    {"peak_f32_avx512_24", ST_CPU_AVX512, ST_PEAK_F32, 2 * 24 * 16, st_peak_f32_avx512_24},
    {"peak_f32_avx512_16", ST_CPU_AVX512, ST_PEAK_F32, 2 * 16 * 16, st_peak_f32_avx512_16},
    {"peak_f32_avx2_12", ST_CPU_AVX2, ST_PEAK_F32, 2 * 12 * 8, st_peak_f32_avx2_12},
    {"peak_f32_avx2_10", ST_CPU_AVX2, ST_PEAK_F32, 2 * 10 * 8, st_peak_f32_avx2_10},
    {"peak_bf16_amx", ST_CPU_AMX_BF16, ST_PEAK_BF16, 2 * 4 * 16 * 16 * 32, st_peak_bf16_amx},
    {"peak_bf16_avx512", ST_CPU_AVX512BF16, ST_PEAK_BF16, 2 * 16 * 32, st_peak_bf16_avx512bf16},
    {"peak_int8_amx", ST_CPU_AMX_INT8, ST_PEAK_INT8, 2 * 4 * 16 * 16 * 64, st_peak_int8_amx},
    {"peak_int8_avx512vnni", ST_CPU_AVX512VNNI, ST_PEAK_INT8, 2 * 16 * 64, st_peak_int8_avx512vnni},
    {"peak_int8_avxvnni", ST_CPU_AVXVNNI, ST_PEAK_INT8, 2 * 12 * 32, st_peak_int8_avxvnni},
    {"peak_int8_avx2", ST_CPU_AVX2, ST_PEAK_INT8, 2 * 10 * 32, st_peak_int8_avx2},
    {"peak_int16_avx512vnni", ST_CPU_AVX512VNNI, ST_PEAK_INT16, 2 * 16 * 32,
     st_peak_int16_avx512vnni},
    {"peak_int16_avxvnni", ST_CPU_AVXVNNI, ST_PEAK_INT16, 2 * 12 * 16, st_peak_int16_avxvnni},
    {"peak_int16_avx2", ST_CPU_AVX2, ST_PEAK_INT16, 2 * 10 * 16, st_peak_int16_avx2},
    {"peak_int4_avx2", ST_CPU_AVX2, ST_PEAK_INT4, 2 * 2 * 8 * 32, st_peak_int4_avx2},
#elif defined(__aarch64__)
    {"peak_f32_neon_24", ST_CPU_NEON, ST_PEAK_F32, 2 * 24 * 4, st_peak_f32_neon_24},
    {"peak_f32_neon_16", ST_CPU_NEON, ST_PEAK_F32, 2 * 16 * 4, st_peak_f32_neon_16},
    {"peak_int8_i8mm", ST_CPU_I8MM, ST_PEAK_INT8, 2 * 24 * 32, st_peak_int8_i8mm},
    {"peak_int8_dotprod", ST_CPU_DOTPROD, ST_PEAK_INT8, 2 * 24 * 16, st_peak_int8_dotprod},
    {"peak_int8_neon", ST_CPU_NEON, ST_PEAK_INT8, 2 * 16 * 16, st_peak_int8_neon},
#endif
    {"peak_f32_scalar", 0, ST_PEAK_F32, 2 * 12 * 4, st_peak_f32_scalar},
    {0},
};

const struct st_peak *st_peak_next(const struct st_peak *row, uint64_t cpu_flags,
                                   enum st_peak_kind kind) {
    for (row = row ? row + 1 : st_peaks; row->name; row++)
        if (row->kind == kind && (row->isa & cpu_flags) == row->isa) return row;
    return NULL;
}

st_peak_read_fn *st_peak_read_select(uint64_t cpu_flags) {
    (void)cpu_flags;
#if defined(__x86_64__)
    if (cpu_flags & ST_CPU_AVX512) return st_peak_read_avx512;
    if (cpu_flags & ST_CPU_AVX2) return st_peak_read_avx2;
#elif defined(__aarch64__)
    if (cpu_flags & ST_CPU_NEON) return st_peak_read_neon;
#endif
    return st_peak_read_scalar;
}
