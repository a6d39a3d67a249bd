// SPDX-License-Identifier: Apache-2.0
#include "kernels/nested_values.h"

#include "base/cpu.h"
#include "kernels/nested_values_rows.h"

const struct st_nested_values st_nested_values[] = {
#if defined(__x86_64__)
    {"nested_values_avx512bf16", ST_CPU_AVX512 | ST_CPU_AVX512BF16, st_nested_floats_avx2,
     st_nested_bf16_avx512bf16},
    {"nested_values_avx2", ST_CPU_AVX2, st_nested_floats_avx2, NULL},
#endif
    {"nested_values_scalar", 0, st_nested_floats_scalar, st_nested_bf16_scalar},
    {0},
};

const struct st_nested_values *st_nested_values_select(uint64_t cpu_flags) {
    const struct st_nested_values *values = st_nested_values;
    while ((values->isa & cpu_flags) != values->isa) values++;
    return values;
}
