// SPDX-License-Identifier: Apache-2.0
// F32 multiply-adds from register to register. Sums and both operands must fit the registers of
// the instruction set: a sum that goes through memory halves the peak. The sums must also cover
// the latency of a multiply-add, so a set may have two variants.
#include "kernels/prefetch.h"
#include "kernels/peak_rows.h"
#include "kernels/vec.h"

enum { PEAK_MAX_SUMS = 24 };

// n_sums is a constant where this is called.
static inline __attribute__((always_inline)) float multiply_add(const void *data, size_t rounds,
                                                                int n_sums) {
    const float *x = data;
    vf sum[PEAK_MAX_SUMS], a = vf_load(x), b = vf_load(x + VF_LANES);
    _Pragma("GCC unroll 24") for (int i = 0; i < n_sums; i++) sum[i] = vf_load(x + i);
    for (size_t r = 0; r < rounds; r++)
        _Pragma("GCC unroll 24") for (int i = 0; i < n_sums; i++) sum[i] = vf_fma(a, b, sum[i]);
    _Pragma("GCC unroll 24") for (int i = 1; i < n_sums; i++) sum[0] = vf_add(sum[0], sum[i]);
    return vf_sum(sum[0]);
}

float PEAK_F32_FEW(const void *data, size_t rounds) {
    return multiply_add(data, rounds, PEAK_FEW_SUMS);
}

float PEAK_F32_MANY(const void *data, size_t rounds) {
    return multiply_add(data, rounds, PEAK_MANY_SUMS);
}

// Two streams, as products read weights: that and asking ahead are faster than one stream that the
// hardware foresees. Four sums of whole vectors.
uint64_t PEAK_READ(const void *data, size_t n_bytes) {
    const float *x = data;
    size_t step = 4 * VF_LANES, half = n_bytes / sizeof(float) / 2 / step * step;
    vf sum[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    for (size_t i = 0; i < 2 * half; i += step) {
        const float *at = x + i / 2 / step * step + (i / step % 2 ? half : 0);
        st_prefetch(at, step * sizeof *x);
        for (size_t j = 0; j < 4; j++) sum[j] = vf_max(sum[j], vf_load(at + j * VF_LANES));
    }
    float total = vf_sum(vf_add(vf_add(sum[0], sum[1]), vf_add(sum[2], sum[3])));
    return total > 0.0f;
}
