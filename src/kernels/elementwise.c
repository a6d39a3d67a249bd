// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise.h"

#include "kernels/elementwise_rows.h"

const struct st_elementwise *const st_elementwises[] = {
#if defined(__x86_64__)
    &st_elementwise_avx512,
    &st_elementwise_avx2,
#elif defined(__aarch64__)
    &st_elementwise_neon,
#endif
    &st_elementwise_scalar,
    NULL,
};

const struct st_elementwise *st_elementwise_select(uint64_t cpu_flags) {
    const struct st_elementwise *const *row = st_elementwises;
    while (((*row)->isa & cpu_flags) != (*row)->isa) row++;
    return *row;
}
