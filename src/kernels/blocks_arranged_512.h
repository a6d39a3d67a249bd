// SPDX-License-Identifier: Apache-2.0
// As blocks_arranged.h, for AVX-512: blocks of 32 elements with an even number of bytes. A chunk of
// them is read as three registers, out of which words are taken that belong together, wherever a
// block begins. Register i of four has, lane by lane of 4 codes, elements e of parts 0 to 7 and
// then elements e + 4 of them; e is 0, 16, 8 and 24. So all products of a part end in two lanes,
// and a chunk's sums cross lanes once.
//
// Fewer than 8 blocks are read with a mask: what is behind them has scale 0.

#define ARRANGED
#define ARRANGED_TAILS
enum { SPAN = 3 * 64 };
typedef struct {
    __m512i code[4];
} arranged;

// Read once: compilers like to read again where it is used, and that is what costs here.
INLINE __m512i in_register(__m512i v) {
    __asm__("" : "+v"(v));
    return v;
}

// Bytes of a chunk, up to SPAN, zeros behind them.
typedef struct {
    __m512i at[3];
} span;

INLINE span span_load(const unsigned char *b, size_t bytes) {
    span s;
    UNROLLED for (size_t i = 0; i < 3; i++) {
        size_t n = bytes - st_min(bytes, 64 * i);
        s.at[i] =
            in_register(n >= 64 ? _mm512_loadu_si512(b + 64 * i)
                                : _mm512_maskz_loadu_epi8(((uint64_t)1 << n) - 1, b + 64 * i));
    }
    return s;
}
// Its words with these numbers.
INLINE __m512i span_words(const span *s, __m512i number) {
    __mmask32 last = _mm512_cmpge_epu16_mask(number, _mm512_set1_epi16(64));
    __m512i v = _mm512_permutex2var_epi16(s->at[0], number, s->at[1]);
    return _mm512_mask_permutexvar_epi16(v, last, number, s->at[2]);
}

// The number of the word at byte `at` of block p.
#define WORD(p, at) (short)(((p)*stride + (at)) / 2)
#define LANE(p, at) WORD(p, (at) + 2), WORD(p, at)
#define EIGHT_LANES(at)                                                                            \
    LANE(7, at), LANE(6, at), LANE(5, at), LANE(4, at), LANE(3, at), LANE(2, at), LANE(1, at),     \
        LANE(0, at)
#define SIXTEEN_LANES(first, second) _mm512_set_epi16(EIGHT_LANES(second), EIGHT_LANES(first))
#define EIGHT_WORDS(at)                                                                            \
    WORD(7, at), WORD(6, at), WORD(5, at), WORD(4, at), WORD(3, at), WORD(2, at), WORD(1, at),     \
        WORD(0, at)

// ---- Codes

INLINE arranged nibbles_by_blocks(const unsigned char *b, size_t at, size_t stride, size_t n) {
    const __m512i nibble = _mm512_set1_epi8(15);
    span s = span_load(b, n * stride);
    arranged v;
    UNROLLED for (size_t i = 0; i < 2; i++) {
        const size_t from = at + 8 * i;
        __m512i both = span_words(&s, SIXTEEN_LANES(from, from + 4));
        v.code[2 * i] = _mm512_and_si512(both, nibble);
        v.code[2 * i + 1] = _mm512_and_si512(_mm512_srli_epi16(both, 4), nibble);
    }
    return v;
}
// 16 more in byte i where bit 4 group + i of the lane of `bits` is set; the lower and the upper
// eight lanes have a group each, both of one byte.
INLINE __m512i add_fifths(__m512i v, __m512i bits, size_t lower, size_t upper) {
#ifdef __AVX512VBMI__
    // From which bit of two lanes a byte comes, so that its own is the fifth; as one constant,
    // which compilers make of this and not of sums of vectors.
    const long long first = 0x1f1e1d1c3f3e3d3c, four = 0x0404040404040404;
    const long long a = first + four * (long long)lower, b = first + four * (long long)upper;
    __m512i shifted = _mm512_multishift_epi64_epi8(_mm512_set_epi64(b, b, b, b, a, a, a, a), bits);
    return _mm512_ternarylogic_epi64(v, shifted, _mm512_set1_epi8(16), 0xf8); // a | b & c
#else
    const __m512i lane = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);
    const int even = 0x08040201, odd = (int)0x80402010;
    const __m512i bit = _mm512_inserti64x4(_mm512_set1_epi32(lower % 2 ? odd : even),
                                           _mm256_set1_epi32(upper % 2 ? odd : even), 1);
    __m512i from = _mm512_or_si512(lane, _mm512_set1_epi8((char)(lower / 2)));
    __m512i eight = _mm512_shuffle_epi8(bits, from);
    return _mm512_mask_add_epi8(v, _mm512_test_epi8_mask(eight, bit), v, _mm512_set1_epi8(16));
#endif
}
// Each code gets its bit of the 32 at b + p * stride + at as its fifth.
INLINE arranged with_fifths(arranged v, const unsigned char *b, size_t at, size_t stride,
                            size_t n) {
    span s = span_load(b, n * stride);
    __m512i all = span_words(&s, SIXTEEN_LANES(at, at));
    UNROLLED for (size_t i = 0; i < 4; i++) {
        const size_t group = i % 2 * 4 + i / 2 * 2; // of elements 0, 16, 8 and 24
        v.code[i] = add_fifths(v.code[i], all, group, group + 1);
    }
    return v;
}

// ---- Scales: the halves that begin blocks p < n, zeros behind them

INLINE bool is_spanned(size_t stride) {
    return stride % 2 == 0 && ST_BLOCKS_PARTS * stride <= SPAN;
}
INLINE halves halves_at(const unsigned char *b, size_t stride, size_t n) {
    if (!is_spanned(stride)) return halves_one_by_one(b, stride, n);
    span s = span_load(b, n * stride);
    __m512i words = span_words(
        &s, _mm512_set_epi16(EIGHT_WORDS(0), EIGHT_WORDS(0), EIGHT_WORDS(0), EIGHT_WORDS(0)));
    return _mm256_cvtph_ps(_mm512_castsi512_si128(words));
}
// Of two at once.
INLINE void halves_pairs_at(const unsigned char *b, size_t stride, size_t n, halves *first,
                            halves *second) {
    span s = span_load(b, n * stride);
    __m512i words = span_words(
        &s, _mm512_set_epi16(EIGHT_WORDS(0), EIGHT_WORDS(0), EIGHT_WORDS(2), EIGHT_WORDS(0)));
    __m512 both = _mm512_cvtph_ps(_mm512_castsi512_si256(words));
    *first = _mm512_castps512_ps256(both);
    *second = _mm512_extractf32x8_ps(both, 1);
}

// ---- Blocks of several rows, for blocks_shared.h: n_parts of each, one row's behind another's

#define SHARED_TAILS
INLINE void gather_blocks(const unsigned char *const *row, size_t n_rows, size_t n_parts,
                          size_t block, unsigned char *to) {
    const size_t bytes = n_parts * block;
    UNROLLED for (size_t i = 0; i < 3; i++) {
        __m512i v = _mm512_setzero_si512();
        UNROLLED for (size_t r = 0; r < n_rows; r++) {
            size_t first = st_max(r * bytes, 64 * i), end = st_min((r + 1) * bytes, 64 * (i + 1));
            if (first >= end) continue;
            uint64_t mask = (UINT64_MAX >> (64 - (end - first))) << (first - 64 * i);
            v = _mm512_mask_loadu_epi8(v, mask, row[r] - r * bytes + 64 * i);
        }
        _mm512_store_si512(to + 64 * i, v);
    }
}

// ---- Products

typedef __m256i part_sums; // exact, of 8 parts
INLINE part_sums arranged_sums(const arranged *v, const struct st_blocks_chunk *x, int bits,
                               bool by_pairs) {
    __m512i high = _mm512_setzero_si512(), low = high;
    (void)bits;
    (void)by_pairs;
    UNROLLED for (size_t i = 0; i < 4; i++) {
        high = _mm512_dpbusd_epi32(high, v->code[i], _mm512_loadu_si512(x->by_blocks[0] + 64 * i));
        low = _mm512_dpbusd_epi32(low, v->code[i], _mm512_loadu_si512(x->by_blocks[1] + 64 * i));
    }
    __m512i exact = _mm512_add_epi32(_mm512_slli_epi32(high, 7), low);
    return _mm256_add_epi32(_mm512_castsi512_si256(exact), _mm512_extracti32x8_epi32(exact, 1));
}

// Of two rows, which take the input together.
INLINE void arranged_sums_of_rows(const arranged v[2], const struct st_blocks_chunk *x,
                                  part_sums parts[2]) {
    __m512i high[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    __m512i low[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    UNROLLED for (size_t i = 0; i < 4; i++) {
        __m512i of_high = in_register(_mm512_loadu_si512(x->by_blocks[0] + 64 * i));
        __m512i of_low = in_register(_mm512_loadu_si512(x->by_blocks[1] + 64 * i));
        UNROLLED for (size_t r = 0; r < 2; r++) {
            high[r] = _mm512_dpbusd_epi32(high[r], v[r].code[i], of_high);
            low[r] = _mm512_dpbusd_epi32(low[r], v[r].code[i], of_low);
        }
    }
    UNROLLED for (size_t r = 0; r < 2; r++) {
        __m512i exact = _mm512_add_epi32(_mm512_slli_epi32(high[r], 7), low[r]);
        parts[r] =
            _mm256_add_epi32(_mm512_castsi512_si256(exact), _mm512_extracti32x8_epi32(exact, 1));
    }
}

// ---- Inputs

INLINE void arrange_half(const int8_t x[ST_BLOCKS_CHUNK], int8_t *to) {
    const __m512i part = _mm512_setr_epi32(0, 8, 16, 24, 0, 0, 0, 0, 1, 9, 17, 25, 0, 0, 0, 0);
    __m512i v[4]; // two parts each
    UNROLLED for (int i = 0; i < 4; i++) v[i] = _mm512_loadu_si512(x + 64 * i);
    UNROLLED for (int i = 0; i < 4; i++) {
        const int four = i % 2 * 4 + i / 2 * 2; // of a part's eight times four elements
        __m512i at = _mm512_add_epi32(part, _mm512_set1_epi32(four));
        __m512i first = _mm512_permutex2var_epi32(v[0], at, v[1]);
        __m512i second = _mm512_permutex2var_epi32(v[2], at, v[3]);
        _mm512_storeu_si512(to + 64 * i,
                            _mm512_mask_shuffle_i32x4(first, 0xf0f0, second, second, 0x80));
    }
}
