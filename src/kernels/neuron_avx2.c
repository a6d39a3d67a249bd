// SPDX-License-Identifier: Apache-2.0
// Products of 16-bit numbers, two at a time: 8-bit ones would saturate without VNNI.
#include "kernels/neuron_rows.h"

#include <immintrin.h>

static __m256i load(const void *p) {
    return _mm256_loadu_si256(p);
}

static __m256i widen(const void *p) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(p));
}

static int32_t reduce(__m256i v) {
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
    return _mm_cvtsi128_si32(s);
}

void st_neuron_dot_avx2(const int8_t *rows, size_t n_rows, size_t k, const uint8_t *x, size_t x_row,
                        size_t n_tokens, int32_t *sums) {
    for (size_t t = 0; t < n_tokens; t++)
        for (size_t r = 0; r < n_rows; r++) {
            const int8_t *row = rows + r * k;
            const uint8_t *token = x + t * x_row;
            __m256i sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
            for (size_t i = 0; i < k; i += 32)
                for (size_t j = 0; j < 2; j++)
                    sum[j] = _mm256_add_epi32(sum[j], _mm256_madd_epi16(widen(row + i + 16 * j),
                                                                        widen(token + i + 16 * j)));
            sums[t * n_rows + r] = reduce(_mm256_add_epi32(sum[0], sum[1]));
        }
}

// The numbers of a pair of neurons, for each 16 bits of an interleaved column.
static __m256i pair(const int8_t *q) {
    return _mm256_set1_epi32((int32_t)((uint32_t)(uint16_t)q[0] | (uint32_t)(uint16_t)q[1] << 16));
}

void st_neuron_add_avx2(const uint8_t *const *columns, const int8_t *q, size_t n_tokens, size_t k,
                        int32_t *sums, size_t sum_row) {
    const __m256i zero = _mm256_setzero_si256();
    for (size_t i = 0; i < k; i += 32)
        for (size_t j = 0; j < ST_NEURON_GROUP; j += 2) {
            __m256i a = load(columns[j] + i), b = load(columns[j + 1] + i);
            __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
            __m256i w[4] = {_mm256_unpacklo_epi8(low, zero), _mm256_unpackhi_epi8(low, zero),
                            _mm256_unpacklo_epi8(high, zero), _mm256_unpackhi_epi8(high, zero)};
            for (size_t t = 0; t < n_tokens; t++) {
                __m256i two = pair(q + t * ST_NEURON_GROUP + j);
                int32_t *to = sums + t * sum_row + i;
                for (size_t z = 0; z < 4; z++)
                    _mm256_storeu_si256(
                        (__m256i *)(void *)(to + 8 * z),
                        _mm256_add_epi32(load(to + 8 * z), _mm256_madd_epi16(w[z], two)));
            }
        }
}
