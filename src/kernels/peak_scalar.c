// SPDX-License-Identifier: Apache-2.0
#include "kernels/peak_rows.h"

#include <string.h>

float st_peak_f32_scalar(const void *data, size_t rounds) {
    float sum[8], a, b;
    memcpy(sum, data, sizeof sum);
    memcpy(&a, data, sizeof a);
    memcpy(&b, data, sizeof b);
    for (size_t r = 0; r < rounds; r++)
        for (int i = 0; i < 8; i++) sum[i] += a * b;
    for (int i = 1; i < 8; i++) sum[0] += sum[i];
    return sum[0];
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
