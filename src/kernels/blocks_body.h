// SPDX-License-Identifier: Apache-2.0
// Products with every block type for one instruction set: NAME(type) gives the functions their
// names. The including file has the vectors:
//
//   codes       64 codes, two parts, as the dot products take them
//   halves      8 floats, one for each part; wide: 16 floats, one for each half of a part
//   sums        what a row and a column have so far
//
// A type says where its codes and its scales are; what follows is the same for all. A few columns
// meet row after row, whose codes are unpacked once for all of them (blocks_few.h); more columns
// take panels of LANES rows (blocks_panels.h). An output has a sum for each part of a chunk, so
// that its bits do not depend on which way was taken. blocks_scalar.c is the definition and
// docs/FORMAT.md describes the layouts.
#include "base/half.h"
#include "kernels/blocks_rows.h"
#include "kernels/dequantize_layout.h"
#include "kernels/prefetch.h"

#include <string.h>

// Codes of types with 8 bits and a sign are as they are, or 128 more.
enum { EIGHT_BITS_ZERO = SIGNED_CODES ? 0 : 128, PAIRS = ST_BLOCKS_PARTS / 2 };

struct unpacked {
    codes code[PAIRS];
    halves scale, minimum; // of types with parts of 32
    wide scales, minima;   // of types with parts of 16
};

// One chunk at b with n parts, from 1 to 8; those behind get scale and minimum 0. n_pairs is half
// of them, rounded up, and a constant where this is called.
typedef void unpack_fn(const unsigned char *b, size_t n, size_t n_pairs, struct unpacked *u);

// The codes of n parts of a chunk at b in the order of blocks_arranged.h or blocks_arranged_512.h;
// of fewer than 8 where there is ARRANGED_TAILS. Other instruction sets have none.
#ifdef ARRANGED
typedef arranged arrange_fn(const unsigned char *b, size_t n);
#define ARRANGE(type) arrange_##type
#else
typedef void arrange_fn(void);
#define ARRANGE(type) NULL
#endif
#ifdef ARRANGED_ODD // blocks of an odd number of bytes, and of 256 elements, too
#define ARRANGE_ODD(type) arrange_##type
#else
#define ARRANGE_ODD(type) NULL
#endif

// How a panel is made of packed codes (blocks_packed.h), where there is PACKED.
#ifdef PACKED
#define PACKED_AS(type) pack_##type
#else
#define PACKED_AS(type) NULL
#endif
#ifdef PACKED_BYTES // of 8 bits too
#define BYTES_AS(type) pack_##type
#else
#define BYTES_AS(type) NULL
#endif

// The codes of n parts of a chunk at b, of LANES rows. True: the scales too.
struct panel;
typedef bool pack_fn(const unsigned char *b, size_t row_bytes, size_t n, struct panel *to);

struct type {
    unpack_fn *unpack;
    arrange_fn *arrange;       // NULL: codes are multiplied part by part
    pack_fn *pack;             // NULL: a panel's codes are unpacked row by row
    size_t items, chunk_bytes; // of a block, of a chunk
    bool by_16;                // parts of 16
    int bits;                  // of a code: at most 4, 5, 6 or 8
    bool minima;
};

// ---- Blocks of 32: a chunk is up to 8 of them. A pair past the last one has it twice.

// As unpack_fn.
#define UNPACK(type)                                                                               \
    INLINE void unpack_##type(const unsigned char *b, size_t n, size_t n_pairs, struct unpacked *u)

#define EACH_PAIR UNROLLED for (size_t i = 0; i < n_pairs; i++)

// Blocks 2 i and 2 i + 1.
INLINE const unsigned char *first_of(const unsigned char *b, size_t i, size_t bytes) {
    return b + 2 * i * bytes;
}
INLINE const unsigned char *second_of(const unsigned char *b, size_t i, size_t n, size_t bytes) {
    return b + st_min(2 * i + 1, n - 1) * bytes;
}

UNPACK(q4_0) {
    EACH_PAIR
    u->code[i] = codes_nibbles(first_of(b, i, 18) + 2, second_of(b, i, n, 18) + 2);
    u->scale = halves_at(b, 18, n);
    u->minimum = halves_times(u->scale, 8.0f);
}

UNPACK(q4_1) {
    EACH_PAIR
    u->code[i] = codes_nibbles(first_of(b, i, 20) + 4, second_of(b, i, n, 20) + 4);
    halves_pairs_at(b, 20, n, &u->scale, &u->minimum);
    u->minimum = halves_times(u->minimum, -1.0f);
}

UNPACK(q5_0) {
    EACH_PAIR {
        const unsigned char *first = first_of(b, i, 22), *second = second_of(b, i, n, 22);
        u->code[i] = codes_add_16(codes_nibbles(first + 6, second + 6), first + 2, second + 2);
    }
    u->scale = halves_at(b, 22, n);
    u->minimum = halves_times(u->scale, 16.0f);
}

UNPACK(q5_1) {
    EACH_PAIR {
        const unsigned char *first = first_of(b, i, 24), *second = second_of(b, i, n, 24);
        u->code[i] = codes_add_16(codes_nibbles(first + 8, second + 8), first + 4, second + 4);
    }
    halves_pairs_at(b, 24, n, &u->scale, &u->minimum);
    u->minimum = halves_times(u->minimum, -1.0f);
}

UNPACK(q8_0) {
    EACH_PAIR
    u->code[i] = codes_of_signed(codes_load(first_of(b, i, 34) + 2, second_of(b, i, n, 34) + 2));
    u->scale = halves_at(b, 34, n);
    u->minimum = halves_times(u->scale, EIGHT_BITS_ZERO);
}

// Those of IQ4_NL and IQ4_XS.
static const uint8_t iq4_codes[16] = {
    (uint8_t)(EIGHT_BITS_ZERO - 127), (uint8_t)(EIGHT_BITS_ZERO - 104),
    (uint8_t)(EIGHT_BITS_ZERO - 83),  (uint8_t)(EIGHT_BITS_ZERO - 65),
    (uint8_t)(EIGHT_BITS_ZERO - 49),  (uint8_t)(EIGHT_BITS_ZERO - 35),
    (uint8_t)(EIGHT_BITS_ZERO - 22),  (uint8_t)(EIGHT_BITS_ZERO - 10),
    (uint8_t)(EIGHT_BITS_ZERO + 1),   (uint8_t)(EIGHT_BITS_ZERO + 13),
    (uint8_t)(EIGHT_BITS_ZERO + 25),  (uint8_t)(EIGHT_BITS_ZERO + 38),
    (uint8_t)(EIGHT_BITS_ZERO + 53),  (uint8_t)(EIGHT_BITS_ZERO + 69),
    (uint8_t)(EIGHT_BITS_ZERO + 89),  (uint8_t)(EIGHT_BITS_ZERO + 113)};

UNPACK(iq4_nl) {
    EACH_PAIR
    u->code[i] =
        codes_lookup(iq4_codes, codes_nibbles(first_of(b, i, 18) + 2, second_of(b, i, n, 18) + 2));
    u->scale = halves_at(b, 18, n);
    u->minimum = halves_times(u->scale, EIGHT_BITS_ZERO);
}

// 12 more than twice the values, so that they have no sign.
static const uint8_t mxfp4_codes[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

UNPACK(mxfp4) {
    EACH_PAIR
    u->code[i] = codes_lookup(mxfp4_codes,
                              codes_nibbles(first_of(b, i, 17) + 1, second_of(b, i, n, 17) + 1));
    u->scale = halves_of_exponents(b, 17, n);
    u->minimum = halves_times(u->scale, 12.0f);
}

// ---- Blocks of 256, which are always whole

#define BYTES(x) ((x)*0x01010101u) // the same in each byte

// Bits of four bytes: those of `mask` in each, after a shift.
INLINE uint32_t bytes_of(uint32_t v, unsigned shift, uint32_t mask) {
    return v >> shift & BYTES(mask);
}

UNPACK(q2_k) {
    (void)n, (void)n_pairs;
    float d = half_at(b + 80), dmin = half_at(b + 82);
    uint32_t s[4];
    memcpy(s, b, sizeof s);
    UNROLLED for (int i = 0; i < PAIRS; i++) u->code[i] =
        codes_two_bits(b + 16 + i / 2 * 32, i % 2);
    u->scales = wide_times(wide_of_bytes(bytes_of(s[0], 0, 15), bytes_of(s[1], 0, 15),
                                         bytes_of(s[2], 0, 15), bytes_of(s[3], 0, 15)),
                           d, d);
    u->minima = wide_times(wide_of_bytes(bytes_of(s[0], 4, 15), bytes_of(s[1], 4, 15),
                                         bytes_of(s[2], 4, 15), bytes_of(s[3], 4, 15)),
                           dmin, dmin);
}

UNPACK(q3_k) {
    (void)n, (void)n_pairs;
    float d = half_at(b + 108);
    uint32_t s[3];
    memcpy(s, b + 96, sizeof s);
    UNROLLED for (int i = 0; i < PAIRS; i++) u->code[i] =
        codes_or_bits(codes_two_bits(b + 32 + i / 2 * 32, i % 2), b, 2 * i, 4);
    wide six = wide_of_bytes(bytes_of(s[0], 0, 15) | bytes_of(s[2], 0, 3) << 4,
                             bytes_of(s[1], 0, 15) | bytes_of(s[2], 2, 3) << 4,
                             bytes_of(s[0], 4, 15) | bytes_of(s[2], 4, 3) << 4,
                             bytes_of(s[1], 4, 15) | bytes_of(s[2], 6, 3) << 4);
    u->scales = wide_times(wide_less(six, 32.0f), d, d);
    u->minima = wide_times(u->scales, 4.0f, 4.0f);
}

#ifndef WIDE_OF_K // an instruction set may have a shorter way
// Eight scales of 6 bits and eight minima in 12 bytes at b + 4, times the halves before them.
INLINE wide wide_of_k(const unsigned char *b) {
    uint32_t s[3];
    memcpy(s, b + 4, sizeof s);
    wide six =
        wide_of_bytes(bytes_of(s[0], 0, 63), bytes_of(s[2], 0, 15) | bytes_of(s[0], 6, 3) << 4,
                      bytes_of(s[1], 0, 63), bytes_of(s[2], 4, 15) | bytes_of(s[1], 6, 3) << 4);
    return wide_times(six, half_at(b), half_at(b + 2));
}
#endif

INLINE void k_scales(const unsigned char *b, struct unpacked *u) {
    wide_split(wide_of_k(b), &u->scale, &u->minimum);
}

UNPACK(q4_k) {
    (void)n, (void)n_pairs;
    UNROLLED for (int i = 0; i < PAIRS; i++) u->code[i] = codes_low_high(b + 16 + i * 32);
    k_scales(b, u);
}

UNPACK(q5_k) {
    (void)n, (void)n_pairs;
    UNROLLED for (int i = 0; i < PAIRS; i++) u->code[i] =
        codes_or_bits(codes_low_high(b + 48 + i * 32), b + 16, 2 * i, 16);
    k_scales(b, u);
}

UNPACK(q6_k) {
    (void)n, (void)n_pairs;
    float d = half_at(b + 208);
    UNROLLED for (int i = 0; i < PAIRS; i++) u->code[i] =
        codes_six_bits(b + i / 2 * 64, b + 128 + i / 2 * 32, i % 2);
    u->scales = wide_times(wide_of_signed(b + 192), d, d);
    u->minima = wide_times(u->scales, 32.0f, 32.0f);
}

// Eight nibbles, or eight fields of two bits, to a byte each.
INLINE uint64_t spread_nibbles(uint64_t v) {
    v = (v | v << 16) & 0x0000ffff0000ffffu;
    v = (v | v << 8) & 0x00ff00ff00ff00ffu;
    return (v | v << 4) & 0x0f0f0f0f0f0f0f0fu;
}
INLINE uint64_t spread_two_bits(uint64_t v) {
    v = (v | v << 24) & 0x000000ff000000ffu;
    v = (v | v << 12) & 0x000f000f000f000fu;
    return (v | v << 6) & 0x0303030303030303u;
}

UNPACK(iq4_xs) {
    (void)n, (void)n_pairs;
    float d = half_at(b);
    uint64_t s = spread_nibbles(st_u32_at(b + 4)) | spread_two_bits(st_u16_at(b + 2)) << 4;
    UNROLLED for (int i = 0; i < PAIRS; i++) u->code[i] =
        codes_lookup(iq4_codes, codes_nibbles(b + 8 + i * 32, b + 8 + i * 32 + 16));
    wide six = wide_of_bytes((uint32_t)s, (uint32_t)(s >> 32), 0, 0);
    wide_split(wide_times(wide_less(six, 32.0f), d, d), &u->scale, &u->minimum);
    u->minimum = halves_times(u->scale, EIGHT_BITS_ZERO);
}

// Powers of 3 that bring an element's digit to the front of its byte (dequantize_layout.h).
#define TIMES_4(x)  (x), (x), (x), (x)
#define TIMES_16(x) TIMES_4(x), TIMES_4(x), TIMES_4(x), TIMES_4(x)
#define TIMES_32(x) TIMES_16(x), TIMES_16(x)
static const uint8_t tq1_0_powers[ST_BLOCKS_CHUNK] = {
    TIMES_32(1), TIMES_32(3),  TIMES_32(9),  TIMES_32(27), TIMES_32(81), TIMES_16(1), TIMES_16(3),
    TIMES_16(9), TIMES_16(27), TIMES_16(81), TIMES_4(1),   TIMES_4(3),   TIMES_4(9),  TIMES_4(27)};

UNPACK(tq1_0) {
    (void)n, (void)n_pairs;
    unsigned char tail[64]; // the bytes of elements 192 to 255; those of 160 to 191 are alike
    UNROLLED for (int i = 0; i < 3; i++) memcpy(tail + 16 * i, b + 32, 16);
    UNROLLED for (int i = 0; i < 4; i++) memcpy(tail + 48 + 4 * i, b + 48, 4);
    codes first = codes_load(b, b);
    u->code[0] = codes_digits(first, tq1_0_powers);
    u->code[1] = codes_digits(first, tq1_0_powers + 64);
    u->code[2] = codes_digits(codes_load(b, tail), tq1_0_powers + 128);
    u->code[3] = codes_digits(codes_load(tail, tail + 32), tq1_0_powers + 192);
    u->scale = u->minimum = halves_set1(half_at(b + 52));
}

UNPACK(tq2_0) {
    (void)n, (void)n_pairs;
    UNROLLED for (int i = 0; i < PAIRS; i++) u->code[i] = codes_two_bits(b + i / 2 * 32, i % 2);
    u->scale = u->minimum = halves_set1(half_at(b + 64));
}

#ifdef ARRANGED
#include "kernels/blocks_arrange.h"
#endif

#include "kernels/blocks_few.h"
#include "kernels/blocks_panels.h"
#ifdef PACKED
#include "kernels/blocks_packed.h"
#endif

// What the rest is built for: its type, and a few columns or many.
#define PRODUCT(id, type_name, by_16, bits, minima, kind, arrange, packed)                         \
    void NAME(type_name)(const void *w, size_t row_bytes, size_t n_rows, size_t k,                 \
                         const struct st_blocks_chunk *x, size_t n_columns, float *y,              \
                         size_t y_col) {                                                           \
        const struct type type = {unpack_##type_name,                                              \
                                  arrange,                                                         \
                                  packed,                                                          \
                                  ST_##id##_ITEMS,                                                 \
                                  ST_BLOCKS_CHUNK / ST_##id##_ITEMS * ST_##id##_BYTES,             \
                                  by_16,                                                           \
                                  bits,                                                            \
                                  minima};                                                         \
        const unsigned char *row = w;                                                              \
        size_t r = 0;                                                                              \
        if (n_columns >= PANEL_COLUMNS) {                                                          \
            st_prefetch_soon(row, st_min(LANES, n_rows) * row_bytes);                              \
            for (; r + LANES <= n_rows; r += LANES)                                                \
                panel_rows(&type, add_##kind, row + r * row_bytes, row_bytes, k, x, n_columns,     \
                           y + r, y_col);                                                          \
        }                                                                                          \
        for (size_t c = 0; c < n_columns && r < n_rows; c += FEW)                                  \
            few_columns(&type, row + r * row_bytes, row_bytes, n_rows - r, k,                      \
                        x + c * st_blocks_chunks(k), st_min(n_columns - c, FEW),                   \
                        y + c * y_col + r, y_col);                                                 \
    }

PRODUCT(Q4_0, q4_0, false, 4, true, parts_of_4_bits, ARRANGE(q4_0), PACKED_AS(q4_0))
PRODUCT(Q4_1, q4_1, false, 4, true, parts_of_4_bits, ARRANGE(q4_1), PACKED_AS(q4_1))
PRODUCT(Q5_0, q5_0, false, 5, true, parts_of_5_bits, ARRANGE(q5_0), PACKED_AS(q5_0))
PRODUCT(Q5_1, q5_1, false, 5, true, parts_of_5_bits, ARRANGE(q5_1), PACKED_AS(q5_1))
PRODUCT(Q8_0, q8_0, false, 8, !SIGNED_CODES, parts_of_8_bits, NULL, BYTES_AS(q8_0))
PRODUCT(Q2_K, q2_k, true, 4, true, halves_of_4_bits, NULL, NULL)
PRODUCT(Q3_K, q3_k, true, 4, true, halves_of_4_bits, NULL, NULL)
PRODUCT(Q4_K, q4_k, false, 4, true, parts_of_4_bits, ARRANGE_ODD(q4_k), PACKED_AS(q4_k))
PRODUCT(Q5_K, q5_k, false, 5, true, parts_of_5_bits, NULL, NULL)
PRODUCT(Q6_K, q6_k, true, 6, true, halves_of_6_bits, NULL, NULL)
PRODUCT(IQ4_NL, iq4_nl, false, 8, !SIGNED_CODES, parts_of_8_bits, NULL, PACKED_AS(iq4_nl))
PRODUCT(IQ4_XS, iq4_xs, false, 8, !SIGNED_CODES, parts_of_8_bits, NULL, PACKED_AS(iq4_xs))
PRODUCT(TQ1_0, tq1_0, false, 4, true, parts_of_4_bits, NULL, NULL)
PRODUCT(TQ2_0, tq2_0, false, 4, true, parts_of_4_bits, NULL, NULL)
PRODUCT(MXFP4, mxfp4, false, 5, true, parts_of_5_bits, ARRANGE_ODD(mxfp4), PACKED_AS(mxfp4))
