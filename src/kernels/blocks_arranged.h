// SPDX-License-Identifier: Apache-2.0
// Codes in an order in which a lane of 4 belongs to one part, and a register has lanes of all
// eight: products are summed lane by lane, and only a chunk's sums cross lanes. That pays for codes
// of 4 bits as the file has them, two in a byte: as bytes are put into that order before they are
// split, each moves two codes. Inputs are put into it once for all rows.
//
// Blocks of 32 elements have elements e and 16 + e of one part in a byte, those of 256 have
// element e of two parts. So there are two orders. Register 2 j + n has
//   by blocks:  lanes of parts 0, 2, 4, 6 | 1, 3, 5, 7 with the elements from 16 n + 4 j on
//   by pairs:   lanes of parts n, 2 + n, 4 + n, 6 + n with those from 4 j, and again from 16 + 4 j
//
// The including file has dots_add_bytes(), which adds the products of 32 codes with as many halves
// of an input to dots, and dots_exact(), their sums.

#define ARRANGED
#define ARRANGED_ODD
typedef struct {
    __m256i bytes[4]; // j: the codes of registers 2 j and 2 j + 1
    bool has_fifths;
    __m256i fifths;       // by blocks: a part's 32 fifth bits in its lane
    const uint8_t *table; // if not NULL: of 16 codes
} arranged;

// ---- Codes

// By blocks: part p has its 16 bytes at b + p * stride + at.
INLINE arranged nibbles_by_blocks(const unsigned char *b, size_t at, size_t stride, size_t n) {
    arranged v = {.table = NULL};
    (void)n; // all
    b += at;
    UNROLLED for (size_t i = 0; i < 4; i++) {
        __m128i even = _mm_loadu_si128((const void *)(b + 2 * i * stride));
        __m128i odd = _mm_loadu_si128((const void *)(b + (2 * i + 1) * stride));
        v.bytes[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(even), odd, 1);
    }
    vi_transpose(v.bytes);
    return v;
}
// By pairs: parts 2 i and 2 i + 1 have 32 bytes at b + 32 * i.
INLINE arranged nibbles_by_pairs(const unsigned char *b) {
    arranged v = {.table = NULL};
    UNROLLED for (size_t i = 0; i < 4; i++) v.bytes[i] = load(b + 32 * i);
    vi_transpose(v.bytes);
    return v;
}
// By blocks: each code gets its bit of the 32 at b + p * stride + at as its fifth.
INLINE arranged with_fifths(arranged v, const unsigned char *b, size_t at, size_t stride,
                            size_t n) {
    int p[ST_BLOCKS_PARTS];
    (void)n; // all
    UNROLLED for (size_t i = 0; i < ST_BLOCKS_PARTS; i++) p[i] = (int)u32_at(b + i * stride + at);
    v.has_fifths = true;
    v.fifths = _mm256_setr_epi32(p[0], p[2], p[4], p[6], p[1], p[3], p[5], p[7]);
    return v;
}
INLINE arranged with_table(arranged v, const uint8_t table[16]) {
    v.table = table;
    return v;
}
// 16 in byte i where bit 4 group + i of the lane of `bits` is set.
INLINE __m256i fifths_of(__m256i bits, size_t group) {
    const __m256i lane = _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c, 0, 0x04040404,
                                           0x08080808, 0x0c0c0c0c);
    const __m256i bit = _mm256_set1_epi32((int)0x80402010);
    const __m256i byte = _mm256_set1_epi8((char)(group / 2));
    __m256i eight = _mm256_shuffle_epi8(bits, _mm256_or_si256(lane, byte));
    if (group % 2 == 0) eight = _mm256_slli_epi16(eight, 4);
    return _mm256_min_epu8(_mm256_and_si256(eight, bit), _mm256_set1_epi8(16));
}
// Register i.
INLINE __m256i arranged_code(const arranged *v, size_t i) {
    __m256i code = keep(shift(v->bytes[i / 2], i % 2 ? 4 : 0), 15);
    if (v->has_fifths) code = _mm256_or_si256(code, fifths_of(v->fifths, i % 2 * 4 + i / 2));
    return v->table ? looked_up(v->table, code) : code;
}

// ---- Blocks of several rows, for blocks_shared.h: n_parts of each, one row's behind another's

#define SHARED_TAILS
// In pieces that are loaded as they were stored: codes are the last 16 bytes of a block.
INLINE void gather_blocks(const unsigned char *const *row, size_t n_rows, size_t n_parts,
                          size_t block, unsigned char *to) {
    UNROLLED for (size_t r = 0; r < n_rows; r++) UNROLLED for (size_t p = 0; p < n_parts; p++) {
        const unsigned char *from = row[r] + p * block;
        __m128i code = _mm_loadu_si128((const void *)(from + block - 16));
        _mm_storel_epi64((void *)to, _mm_loadl_epi64((const void *)from));
        _mm_storeu_si128((void *)(to + block - 16), code);
        to += block;
    }
}

// ---- Products

INLINE void dots_add_code(dots *d, const arranged *v, const int8_t x[2][ST_BLOCKS_CHUNK],
                          size_t i) {
    dots_add_bytes(d, arranged_code(v, i), load_256(x[0] + 32 * i), load_256(x[1] + 32 * i));
}
// Sums of each part. Of codes with 4 bits eight products fit into dots, of 5 bits four.
INLINE __m256i arranged_by_blocks(const arranged *v, const struct st_blocks_chunk *x, int bits) {
    const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    dots first = dots_zero(), second = dots_zero();
    UNROLLED for (size_t i = 0; i < 4; i++) dots_add_code(&first, v, x->by_blocks, i);
    UNROLLED for (size_t i = 4; i < 8; i++)
        dots_add_code(bits <= 4 ? &first : &second, v, x->by_blocks, i);
    __m256i exact = dots_exact(&first);
    if (bits > 4) exact = _mm256_add_epi32(exact, dots_exact(&second));
    return _mm256_permutevar8x32_epi32(exact, in_order);
}
INLINE __m256i arranged_by_pairs(const arranged *v, const struct st_blocks_chunk *x) {
    dots of[2] = {dots_zero(), dots_zero()}; // of even and of odd parts
    UNROLLED for (size_t i = 0; i < 8; i++) dots_add_code(&of[i % 2], v, x->by_pairs, i);
    __m256i even = dots_exact(&of[0]), odd = dots_exact(&of[1]);
    __m256i a = _mm256_unpacklo_epi32(even, odd), b = _mm256_unpackhi_epi32(even, odd);
    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20),
                            _mm256_permute2x128_si256(a, b, 0x31));
}

// ---- Inputs

INLINE void arrange_halves(const int8_t x[ST_BLOCKS_CHUNK], int8_t *by_blocks, int8_t *by_pairs) {
    __m256i v[2][4]; // of even parts, of odd parts
    UNROLLED for (size_t n = 0; n < 2; n++) {
        UNROLLED for (size_t i = 0; i < 4; i++) v[n][i] = load_256(x + 32 * (2 * i + n));
        vi_transpose(v[n]);
    }
    UNROLLED for (size_t j = 0; j < 4; j++) {
        __m256i a = _mm256_permute2x128_si256(v[0][j], v[1][j], 0x20);
        __m256i b = _mm256_permute2x128_si256(v[0][j], v[1][j], 0x31);
        _mm256_storeu_si256((void *)(by_blocks + 64 * j), a);
        _mm256_storeu_si256((void *)(by_blocks + 64 * j + 32), b);
        _mm256_storeu_si256((void *)(by_pairs + 64 * j), v[0][j]);
        _mm256_storeu_si256((void *)(by_pairs + 64 * j + 32), v[1][j]);
    }
}
