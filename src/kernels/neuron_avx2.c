// SPDX-License-Identifier: Apache-2.0
// Products of 16-bit numbers, two at a time: 8-bit ones would saturate without VNNI.
#include "kernels/neuron_rows.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

INLINE __m256i load(const void *p) {
    return _mm256_loadu_si256(p);
}

INLINE __m256i widen(const void *p) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(p));
}

// 32 weights from i on, as INT8; `room` may hold them.
INLINE const uint8_t *weights(const uint8_t *row, enum st_neuron_code code, size_t k, size_t i,
                              uint8_t *room) {
    if (code == ST_NEURON_INT8) return row + i;
    size_t group = i / ST_NEURON_K;
    const int8_t *levels = st_neuron_levels[row[k / 2 + group] & (ST_NEURON_SCALES - 1)];
    __m256i codes = load(row + group * ST_NEURON_K / 2);
    if (i % ST_NEURON_K) codes = _mm256_srli_epi16(codes, 4);
    __m256i table = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)levels));
    codes = _mm256_and_si256(codes, _mm256_set1_epi8(15));
    _mm256_storeu_si256((void *)room, _mm256_shuffle_epi8(table, codes));
    return room;
}

static int32_t reduce(__m256i v) {
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
    return _mm_cvtsi128_si32(s);
}

INLINE void dot(const uint8_t *rows, enum st_neuron_code code, size_t n_rows, size_t k,
                const uint8_t *x, size_t x_row, size_t n_tokens, int32_t *sums) {
    uint8_t room[32];
    for (size_t t = 0; t < n_tokens; t++)
        for (size_t r = 0; r < n_rows; r++) {
            const uint8_t *row = rows + r * st_neuron_row_bytes(k, code), *token = x + t * x_row;
            __m256i sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
            for (size_t i = 0; i < k; i += 32) {
                const uint8_t *w = weights(row, code, k, i, room);
                for (size_t j = 0; j < 2; j++)
                    sum[j] = _mm256_add_epi32(
                        sum[j], _mm256_madd_epi16(widen(w + 16 * j), widen(token + i + 16 * j)));
            }
            sums[t * n_rows + r] = reduce(_mm256_add_epi32(sum[0], sum[1]));
        }
}

void st_neuron_dot_avx2(const uint8_t *rows, size_t n_rows, size_t k, const uint8_t *x,
                        size_t x_row, size_t n_tokens, int32_t *sums) {
    dot(rows, ST_NEURON_INT8, n_rows, k, x, x_row, n_tokens, sums);
}

void st_neuron_dot_levels_avx2(const uint8_t *rows, size_t n_rows, size_t k, const uint8_t *x,
                               size_t x_row, size_t n_tokens, int32_t *sums) {
    dot(rows, ST_NEURON_LEVELS, n_rows, k, x, x_row, n_tokens, sums);
}

// 32 weights of a column, 128 more each.
INLINE __m256i column(const uint8_t *column, enum st_neuron_code code, size_t k, size_t i) {
    uint8_t room[32];
    __m256i w = load(weights(column, code, k, i, room));
    return code == ST_NEURON_INT8 ? w : _mm256_xor_si256(w, _mm256_set1_epi8(-128));
}

// The numbers of a pair of neurons, for each 16 bits of an interleaved column.
static __m256i pair(const int8_t *q) {
    return _mm256_set1_epi32((int32_t)((uint32_t)(uint16_t)q[0] | (uint32_t)(uint16_t)q[1] << 16));
}

INLINE void add(const uint8_t *const *columns, enum st_neuron_code code, const int8_t *q,
                size_t n_tokens, size_t k, int32_t *sums, size_t sum_row) {
    const __m256i zero = _mm256_setzero_si256();
    for (size_t i = 0; i < k; i += 32)
        for (size_t j = 0; j < ST_NEURON_GROUP; j += 2) {
            __m256i a = column(columns[j], code, k, i), b = column(columns[j + 1], code, k, i);
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

void st_neuron_add_avx2(const uint8_t *const *columns, const int8_t *q, size_t n_tokens, size_t k,
                        int32_t *sums, size_t sum_row) {
    add(columns, ST_NEURON_INT8, q, n_tokens, k, sums, sum_row);
}

void st_neuron_add_levels_avx2(const uint8_t *const *columns, const int8_t *q, size_t n_tokens,
                               size_t k, int32_t *sums, size_t sum_row) {
    add(columns, ST_NEURON_LEVELS, q, n_tokens, k, sums, sum_row);
}
