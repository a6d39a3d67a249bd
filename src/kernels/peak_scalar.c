// SPDX-License-Identifier: Apache-2.0
#include "kernels/peak_rows.h"

#include <string.h>

// Four floats in the compiler's own vectors: SSE2 on every x86-64, NEON on every 64-bit Arm.
typedef float four __attribute__((vector_size(16)));

// The baseline has no fused multiply-add: a product and a sum. 12 sums and two operands fit the 16
// registers of SSE2.
float st_peak_f32_scalar(const void *data, size_t rounds) {
    enum { SUMS = 12 };
    four sum[SUMS], a, b;
    memcpy(&a, data, sizeof a);
    memcpy(&b, (const char *)data + sizeof a, sizeof b);
    _Pragma("GCC unroll 12") for (int i = 0; i < SUMS; i++)
        memcpy(&sum[i], (const float *)data + i, sizeof *sum);
    for (size_t r = 0; r < rounds; r++)
        _Pragma("GCC unroll 12") for (int i = 0; i < SUMS; i++) sum[i] = sum[i] * a + b;
    _Pragma("GCC unroll 12") for (int i = 1; i < SUMS; i++) sum[0] += sum[i];
    return sum[0][0] + sum[0][1] + sum[0][2] + sum[0][3];
}

uint64_t st_peak_read_scalar(const void *data, size_t n_bytes) {
    const unsigned char *p = data;
    uint64_t sum = 0, word;
    for (size_t i = 0; i + sizeof word <= n_bytes; i += sizeof word) {
        memcpy(&word, p + i, sizeof word);
        sum += word;
    }
    return sum;
}
