// SPDX-License-Identifier: Apache-2.0
// F32 multiply-adds from register to register: 16 independent sums cover the latency of any core.
#include "kernels/ahead.h"
#include "kernels/peak_rows.h"
#include "kernels/vec.h"

float PEAK_F32(const void *data, size_t rounds) {
    enum { SUMS = 16 };
    const float *x = data;
    vf sum[SUMS], a = vf_load(x), b = vf_load(x + VF_LANES);
    for (int i = 0; i < SUMS; i++) sum[i] = vf_load(x + i);
    for (size_t r = 0; r < rounds; r++)
        _Pragma("GCC unroll 16") for (int i = 0; i < SUMS; i++) sum[i] = vf_fma(a, b, sum[i]);
    for (int i = 1; i < SUMS; i++) sum[0] = vf_add(sum[0], sum[i]);
    return vf_sum(sum[0]);
}

// Four sums of whole vectors; asking ahead is 5 to 16 % faster than what the hardware foresees.
uint64_t PEAK_READ(const void *data, size_t n_bytes) {
    const float *x = data;
    size_t n = n_bytes / sizeof(float), step = 4 * VF_LANES;
    vf sum[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    for (size_t i = 0; i + step <= n; i += step) {
        st_ask_ahead(x + i, step * sizeof *x);
        for (size_t j = 0; j < 4; j++) sum[j] = vf_max(sum[j], vf_load(x + i + j * VF_LANES));
    }
    float total = vf_sum(vf_add(vf_add(sum[0], sum[1]), vf_add(sum[2], sum[3])));
    return total > 0.0f;
}
