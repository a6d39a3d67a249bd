// SPDX-License-Identifier: Apache-2.0
#include "kernels/vnni_256.h"

enum { SUMS = 12 };

typedef __m256i vi;

#define vi_load   _mm256_loadu_si256
#define vi_add    _mm256_add_epi32
#define vi_sum(v) _mm256_extract_epi32(v, 0)

#include "kernels/peak_vnni.h"

float st_peak_int8_avxvnni(const void *data, size_t rounds) {
    return add_up(data, rounds, st_add_bytes);
}

float st_peak_int16_avxvnni(const void *data, size_t rounds) {
    return add_up(data, rounds, st_add_words);
}
