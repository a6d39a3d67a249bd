// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrence.h"

#include "kernels/recurrence_rows.h"

const struct st_recurrence *const st_recurrences[] = {
#if defined(__x86_64__)
    &st_recurrence_avx512,
    &st_recurrence_avx2,
#elif defined(__aarch64__)
    &st_recurrence_neon,
#endif
    &st_recurrence_scalar,
    NULL,
};

const struct st_recurrence *st_recurrence_select(uint64_t cpu_flags) {
    const struct st_recurrence *const *row = st_recurrences;
    while (((*row)->isa & cpu_flags) != (*row)->isa) row++;
    return *row;
}
