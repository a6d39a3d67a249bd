// SPDX-License-Identifier: Apache-2.0
// Four accumulator tiles of 16 x 16, two tiles for each operand: 16 rows of 64 bytes.
#include "kernels/amx_tile.h"
#include "kernels/peak_rows.h"

static void start(const void *data) {
    st_amx_configure();
    st_amx_zero(0);
    st_amx_zero(1);
    st_amx_zero(2);
    st_amx_zero(3);
    st_amx_load(4, data, 64);
    st_amx_load(5, data, 64);
    st_amx_load(6, data, 64);
    st_amx_load(7, data, 64);
}

static float finish(void) {
    float out[256];
    st_amx_store(0, out, 64);
    st_amx_release();
    return out[0];
}

float st_peak_bf16_amx(const void *data, size_t rounds) {
    start(data);
    for (size_t r = 0; r < rounds; r++) {
        st_amx_bf16(0, 4, 6);
        st_amx_bf16(1, 4, 7);
        st_amx_bf16(2, 5, 6);
        st_amx_bf16(3, 5, 7);
    }
    return finish();
}

float st_peak_int8_amx(const void *data, size_t rounds) {
    start(data);
    for (size_t r = 0; r < rounds; r++) {
        st_amx_int8(0, 4, 6);
        st_amx_int8(1, 4, 7);
        st_amx_int8(2, 5, 6);
        st_amx_int8(3, 5, 7);
    }
    return finish();
}
