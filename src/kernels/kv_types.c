// SPDX-License-Identifier: Apache-2.0
#include "kernels/kv_types.h"

#define ROW(id, name, bits, scale, mixed)  {#name, bits, scale, mixed},
#define NAME(id, name, bits, scale, mixed) "|" #name

const struct st_kv_traits st_kv_traits[ST_N_KV_TYPES] = {ST_KV_TYPES(ROW)};

static void butterfly(float *x, size_t half) {
    for (size_t i = 0; i < half; i++) {
        float a = x[i], b = x[half + i];
        x[i] = a + b;
        x[half + i] = a - b;
    }
}

// The same for half a multiple of 4, which compilers turn into vectors.
static void butterfly_of_fours(float *x, size_t half) {
    for (size_t i = 0; i < half; i += 4) {
        float *low = x + i, *high = x + half + i, a[4], b[4];
        for (int l = 0; l < 4; l++) a[l] = low[l], b[l] = high[l];
        for (int l = 0; l < 4; l++) low[l] = a[l] + b[l], high[l] = a[l] - b[l];
    }
}

void st_kv_mix(float *x, size_t n) {
    size_t length = st_kv_mix_length(n);
    for (size_t half = 1; half < length; half *= 2)
        for (size_t i = 0; i < n; i += 2 * half)
            (half < 4 ? butterfly : butterfly_of_fours)(x + i, half);
}

const char *st_kv_names(void) {
    static const char names[] = ST_KV_TYPES(NAME);
    return names + 1;
}
