// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention.h"

#include "kernels/elementwise_rows.h"

const struct st_attention *const st_attentions[] = {
#if defined(__x86_64__)
    &st_attention_avx512,
    &st_attention_avx2,
#elif defined(__aarch64__)
    &st_attention_neon,
#endif
    &st_attention_scalar,
    NULL,
};

const struct st_attention *st_attention_select(uint64_t cpu_flags) {
    const struct st_attention *const *row = st_attentions;
    while (((*row)->isa & cpu_flags) != (*row)->isa) row++;
    return *row;
}
