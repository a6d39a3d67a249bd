// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention.h"

#include "kernels/elementwise_rows.h"

#include <math.h>

const struct st_attention *const st_attentions[] = {
#if defined(__x86_64__)
    &st_attention_avx512vnni,
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

void st_attended_begin(const float *sink, size_t head_dim, struct st_attended *all, float *out) {
    *all = (struct st_attended){sink ? *sink : -INFINITY, sink ? 1.0f : 0.0f};
    for (size_t d = 0; d < head_dim; d++) out[d] = 0.0f;
}

void st_attended_join(const struct st_attended *span, const float *span_out, size_t head_dim,
                      struct st_attended *all, float *out) {
    float maximum = fmaxf(all->maximum, span->maximum);
    float before = expf(all->maximum - maximum), now = expf(span->maximum - maximum);
    *all = (struct st_attended){maximum, all->sum * before + span->sum * now};
    for (size_t d = 0; d < head_dim; d++) out[d] = out[d] * before + span_out[d] * now;
}

void st_attended_end(const struct st_attended *all, size_t head_dim, float *out) {
    float factor = 1.0f / all->sum;
    for (size_t d = 0; d < head_dim; d++) out[d] *= factor;
}
