// SPDX-License-Identifier: Apache-2.0
// Blocks as integers of 16 bits (int16_codes.h), for blocks_avx2.c, which has their codes and
// scales. vpmulhrsw multiplies a code, rounds and shifts.

// Of the parts of 32, or of 16 each.
struct lines {
    _Alignas(32) int16_t step[16], from[16];
};

INLINE __m256i words_of(const __m256 *v, float by) {
    const __m256 factor = _mm256_set1_ps(by);
    return narrow_32(rounded(_mm256_mul_ps(v[0], factor)), rounded(_mm256_mul_ps(v[1], factor)));
}

// Of parts of 32 scale and minimum are twice the same. False where all is 0.
INLINE bool find_lines(wide scale, wide minimum, int least, int span, struct lines *to,
                       float *unit) {
    const __m256 half = _mm256_set1_ps((float)span / 2.0f);
    const __m256 centre = _mm256_set1_ps((float)least + (float)span / 2.0f);
    __m256 middle[2];
    __m256i ends[2];
    UNROLLED for (int i = 0; i < 2; i++) {
        middle[i] = _mm256_sub_ps(_mm256_mul_ps(centre, scale.of[i]), minimum.of[i]);
        __m256 reach = _mm256_mul_ps(half, _mm256_castsi256_ps(vi_magnitude_bits(scale.of[i])));
        __m256 distance = _mm256_castsi256_ps(vi_magnitude_bits(middle[i]));
        ends[i] = vi_magnitude_bits(_mm256_add_ps(distance, reach));
    }
    float limit = largest(_mm256_max_epi32(ends[0], ends[1]));
    float by = st_quantize_factor(limit, 8 * ST_INT16_MAX_WEIGHT);
    *unit = limit / ST_INT16_MAX_WEIGHT;
    if (!(by > 0.0f)) return false;
    store_256(to->step, words_of(scale.of, by / 2.0f * (float)(1 << (15 - st_int16_shift(span)))));
    store_256(to->from, _mm256_add_epi16(words_of(middle, by), _mm256_set1_epi16(4)));
    return true;
}

// Sixteen codes.
INLINE void put_16(__m128i code, int least, int span, const struct lines *lines, size_t line,
                   int16_t *out) {
    const int shift = st_int16_shift(span);
    const __m256i start = _mm256_set1_epi16((short)((2 * least + span) * (1 << shift)));
    __m256i v = least ? _mm256_cvtepi8_epi16(code) : _mm256_cvtepu8_epi16(code);
    v = _mm256_sub_epi16(_mm256_slli_epi16(v, shift + 1), start);
    v = _mm256_mulhrs_epi16(v, _mm256_set1_epi16(lines->step[line]));
    v = _mm256_add_epi16(v, _mm256_set1_epi16(lines->from[line]));
    store_256(out, _mm256_srai_epi16(v, 3));
}

// What codes become is found for all rows before the first code is put, as each row waits long for
// it. A compiler leaves out the codes of the first loop and the scales of the second.
INLINE void convert(unpack_fn *unpack, bool by_16, int least, int span, const unsigned char *b,
                    size_t row_bytes, size_t n_rows, size_t n_parts, int16_t *out, size_t out_row,
                    float *scales) {
    struct lines lines[ST_TILE_MAX_M];
    bool found[ST_TILE_MAX_M];
    for (size_t r = 0; r < n_rows; r++) {
        struct unpacked u;
        unpack(b + r * row_bytes, ST_BLOCKS_PARTS, PAIRS, &u);
        wide scale = by_16 ? u.scales : (wide){{u.scale, u.scale}};
        wide minimum = by_16 ? u.minima : (wide){{u.minimum, u.minimum}};
        found[r] = find_lines(scale, minimum, least, span, &lines[r], &scales[r]);
    }
    for (size_t r = 0; r < n_rows; r++, out += out_row) {
        struct unpacked u;
        if (!found[r]) {
            memset(out, 0, n_parts * ST_BLOCKS_PART * sizeof *out);
            continue;
        }
        unpack(b + r * row_bytes, ST_BLOCKS_PARTS, PAIRS, &u);
        UNROLLED for (size_t part = 0; part < ST_BLOCKS_PARTS && part < n_parts; part++) {
            __m256i code = u.code[part / 2].of[part % 2];
            size_t first = by_16 ? 2 * part : part, second = by_16 ? first + 1 : part;
            put_16(_mm256_castsi256_si128(code), least, span, &lines[r], first, out + 32 * part);
            put_16(_mm256_extracti128_si256(code, 1), least, span, &lines[r], second,
                   out + 32 * part + 16);
        }
    }
}

// Codes of at most 6 bits have no sign here. A row's end gets blocks of zeros behind it.
#define CONVERT(id, type, by_16, least, span)                                                      \
    void st_int16_##type##_avx2(const void *src, size_t row_bytes, size_t n_rows, size_t first,    \
                                size_t n, int16_t *out, size_t out_row, float *scales) {           \
        const size_t items = ST_##id##_ITEMS, bytes = ST_##id##_BYTES;                             \
        const int from = (span) < 64 ? 0 : (least);                                                \
        const unsigned char *b = (const unsigned char *)src + first / items * bytes;               \
        if (n == ST_INT16_BLOCK || items == ST_INT16_BLOCK) {                                      \
            convert(unpack_##type, by_16, from, span, b, row_bytes, n_rows, ST_BLOCKS_PARTS, out,  \
                    out_row, scales);                                                              \
            return;                                                                                \
        }                                                                                          \
        unsigned char ends[ST_TILE_MAX_M][ST_INT16_BLOCK / ST_##id##_ITEMS * ST_##id##_BYTES];     \
        memset(ends, 0, sizeof ends);                                                              \
        for (size_t r = 0; r < n_rows; r++) memcpy(ends[r], b + r * row_bytes, n / items * bytes); \
        convert(unpack_##type, by_16, from, span, ends[0], sizeof ends[0], n_rows,                 \
                n / ST_BLOCKS_PART, out, out_row, scales);                                         \
    }
ST_INT16_CODES(CONVERT)
