// SPDX-License-Identifier: Apache-2.0
// The vectors of blocks_body.h on Arm, in registers of 128 bits: a part has two of them. The
// including file has dot_add(sum, a, b): sum[i] += a[4 i + j] * b[4 i + j] for j in [0, 4), of
// signed bytes. How panels are multiplied is in blocks_arm_lanes.h, or its own.
#include <arm_neon.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/size.h"
#include "kernels/blocks.h"
#include "kernels/prefetch.h"

#define INLINE   static inline __attribute__((always_inline))
#define UNROLLED _Pragma("GCC unroll 16")

typedef struct {
    uint8x16_t of[4]; // two for each part
} codes;
typedef struct {
    float32x4_t of[2];
} halves;
typedef struct {
    float32x4_t of[4];
} wide, sums; // of parts of 32: the first two
typedef float32x4_t floats;
typedef int8x16_t lanes;

enum { SIGNED_CODES = true, LANES = 4, TOGETHER = 4 };

INLINE void prefetch(const unsigned char *p, size_t bytes) {
    st_prefetch(p, bytes);
}
INLINE float half_at(const unsigned char *p) {
    float16x4_t h = vreinterpret_f16_u16(vld1_dup_u16((const void *)p));
    return vgetq_lane_f32(vcvt_f32_f16(h), 0);
}

// ---- Eight floats

INLINE halves halves_set1(float x) {
    return (halves){{vdupq_n_f32(x), vdupq_n_f32(x)}};
}
INLINE halves halves_times(halves v, float x) {
    return (halves){{vmulq_n_f32(v.of[0], x), vmulq_n_f32(v.of[1], x)}};
}
INLINE void halves_store(float *p, halves v) {
    vst1q_f32(p, v.of[0]);
    vst1q_f32(p + 4, v.of[1]);
}
// ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)).
INLINE float halves_total(halves v) {
    float32x4_t s = vaddq_f32(v.of[0], v.of[1]);
    float32x2_t t = vadd_f32(vget_low_f32(s), vget_high_f32(s));
    return vget_lane_f32(t, 0) + vget_lane_f32(t, 1);
}
INLINE halves halves_of(const uint16_t h[8]) {
    uint16x8_t v = vld1q_u16(h);
    return (halves){{vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(v))),
                     vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(v)))}};
}

// The half at p[i * stride] for i in [0, n), zeros behind them; n in [1, 8].
INLINE halves halves_at(const unsigned char *p, size_t stride, size_t n) {
    uint16_t h[8] = {0};
    UNROLLED for (size_t i = 0; i < 8; i++) if (i < n) memcpy(h + i, p + i * stride, sizeof *h);
    return halves_of(h);
}

// Two halves at p[i * stride].
INLINE void halves_pairs_at(const unsigned char *p, size_t stride, size_t n, halves *first,
                            halves *second) {
    *first = halves_at(p, stride, n);
    *second = halves_at(p + 2, stride, n);
}

// st_mxfp4_scale() of the byte at p[i * stride] for i in [0, n), zeros behind them; n in [1, 8].
INLINE halves halves_of_exponents(const unsigned char *p, size_t stride, size_t n) {
    const uint32x4_t subnormal = vdupq_n_u32(0x00200000), two = vdupq_n_u32(2);
    uint32_t e[8], there[8];
    halves v;
    UNROLLED for (size_t i = 0; i < 8; i++) {
        e[i] = i < n ? p[i * stride] : 0;
        there[i] = i < n ? UINT32_MAX : 0;
    }
    UNROLLED for (size_t j = 0; j < 2; j++) {
        uint32x4_t x = vld1q_u32(e + 4 * j);
        uint32x4_t normal = vshlq_n_u32(vsubq_u32(x, vdupq_n_u32(1)), 23);
        uint32x4_t scale =
            vbslq_u32(vcltq_u32(x, two), vshlq_u32(subnormal, vreinterpretq_s32_u32(x)), normal);
        v.of[j] = vreinterpretq_f32_u32(vandq_u32(scale, vld1q_u32(there + 4 * j)));
    }
    return v;
}

// ---- Codes

#define EACH_OF UNROLLED for (size_t j = 0; j < 4; j++)

INLINE uint8x16_t keep(uint8x16_t v, uint8_t mask) {
    return vandq_u8(v, vdupq_n_u8(mask));
}
// To the right, or for n below 0 to the left.
INLINE uint8x16_t shift(uint8x16_t v, int n) {
    return vshlq_u8(v, vdupq_n_s8((int8_t)-n));
}
INLINE codes codes_load(const unsigned char *first, const unsigned char *second) {
    return (codes){
        {vld1q_u8(first), vld1q_u8(first + 16), vld1q_u8(second), vld1q_u8(second + 16)}};
}
INLINE codes codes_nibbles(const unsigned char *first, const unsigned char *second) {
    uint8x16_t a = vld1q_u8(first), b = vld1q_u8(second);
    return (codes){{keep(a, 15), vshrq_n_u8(a, 4), keep(b, 15), vshrq_n_u8(b, 4)}};
}
INLINE codes codes_low_high(const unsigned char *p) {
    uint8x16_t a = vld1q_u8(p), b = vld1q_u8(p + 16);
    return (codes){{keep(a, 15), keep(b, 15), vshrq_n_u8(a, 4), vshrq_n_u8(b, 4)}};
}
INLINE codes codes_two_bits(const unsigned char *p, int i) {
    codes v = codes_load(p, p);
    EACH_OF v.of[j] = keep(shift(v.of[j], 4 * i + 2 * (int)(j / 2)), 3);
    return v;
}
INLINE codes codes_six_bits(const unsigned char *low, const unsigned char *high, int i) {
    codes v = codes_load(low, low + 32), pairs = codes_load(high, high);
    EACH_OF v.of[j] = vorrq_u8(keep(shift(v.of[j], 4 * i), 15),
                               keep(shift(pairs.of[j], 4 * i + 2 * (int)(j / 2) - 4), 0x30));
    return v;
}
INLINE codes codes_or_bits(codes v, const unsigned char *p, int bit, char value) {
    codes bits = codes_load(p, p);
    EACH_OF v.of[j] =
        vorrq_u8(v.of[j], keep(vtstq_u8(bits.of[j], vdupq_n_u8((uint8_t)(1 << (bit + (int)j / 2)))),
                               (uint8_t)value));
    return v;
}
// 16 in each byte whose bit of p[0, 2) is set.
INLINE uint8x16_t sixteens(const unsigned char *p) {
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    return keep(vtstq_u8(vcombine_u8(vdup_n_u8(p[0]), vdup_n_u8(p[1])), bit), 16);
}
INLINE codes codes_add_16(codes v, const unsigned char *first, const unsigned char *second) {
    EACH_OF v.of[j] = vorrq_u8(v.of[j], sixteens((j < 2 ? first : second) + 2 * (j % 2)));
    return v;
}
INLINE codes codes_of_signed(codes v) {
    return v;
}
INLINE codes codes_lookup(const uint8_t table[16], codes v) {
    uint8x16_t values = vld1q_u8(table);
    EACH_OF v.of[j] = vqtbl1q_u8(values, v.of[j]);
    return v;
}
// Each byte of v times its factor, modulo 256, times 3, over 256.
INLINE codes codes_digits(codes v, const uint8_t factor[64]) {
    EACH_OF {
        uint8x16_t x = vmulq_u8(v.of[j], vld1q_u8(factor + 16 * j));
        uint8x16_t a = vcgeq_u8(x, vdupq_n_u8(86)), b = vcgeq_u8(x, vdupq_n_u8(171));
        v.of[j] = vsubq_u8(vdupq_n_u8(0), vaddq_u8(a, b));
    }
    return v;
}

// ---- Sixteen floats

INLINE wide wide_of(int8x16_t v, bool with_sign) {
    wide w;
    uint8x16_t u = vreinterpretq_u8_s8(v);
    int16x8_t low =
        with_sign ? vmovl_s8(vget_low_s8(v)) : vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(u)));
    int16x8_t high = with_sign ? vmovl_high_s8(v) : vreinterpretq_s16_u16(vmovl_high_u8(u));
    w.of[0] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(low)));
    w.of[1] = vcvtq_f32_s32(vmovl_high_s16(low));
    w.of[2] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(high)));
    w.of[3] = vcvtq_f32_s32(vmovl_high_s16(high));
    return w;
}
INLINE wide wide_of_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    const uint32_t v[4] = {a, b, c, d};
    return wide_of(vreinterpretq_s8_u32(vld1q_u32(v)), false);
}
INLINE wide wide_of_signed(const unsigned char *p) {
    return wide_of(vreinterpretq_s8_u8(vld1q_u8(p)), true);
}
INLINE wide wide_times(wide v, float low, float high) {
    EACH_OF v.of[j] = vmulq_n_f32(v.of[j], j < 2 ? low : high);
    return v;
}
INLINE wide wide_less(wide v, float x) {
    EACH_OF v.of[j] = vsubq_f32(v.of[j], vdupq_n_f32(x));
    return v;
}
INLINE void wide_split(wide v, halves *low, halves *high) {
    *low = (halves){{v.of[0], v.of[1]}};
    *high = (halves){{v.of[2], v.of[3]}};
}

// ---- Products

INLINE sums sums_zero(void) {
    const float32x4_t zero = vdupq_n_f32(0.0f);
    return (sums){{zero, zero, zero, zero}};
}
INLINE float sums_total(const sums *sum, bool by_16) {
    if (!by_16) return halves_total((halves){{sum->of[0], sum->of[1]}});
    return halves_total(
        (halves){{vaddq_f32(sum->of[0], sum->of[2]), vaddq_f32(sum->of[1], sum->of[3])}});
}
// 16 codes with the half-part `half` of an input, as four sums.
INLINE int32x4_t exact_half(uint8x16_t code, const struct st_blocks_chunk *x, size_t half) {
    const int32x4_t zero = vdupq_n_s32(0);
    int8x16_t w = vreinterpretq_s8_u8(code);
    int32x4_t high = dot_add(zero, w, vld1q_s8(x->high + 16 * half));
    return dot_add(vshlq_n_s32(high, 7), w, vld1q_s8(x->low + 16 * half));
}
// Of half-parts 4 i to 4 i + 3, which are pair i.
INLINE int32x4_t four_sums(const codes *code, size_t i, size_t n_pairs,
                           const struct st_blocks_chunk *x) {
    int32x4_t exact[4];
    if (i >= n_pairs) return vdupq_n_s32(0);
    EACH_OF exact[j] = exact_half(code[i].of[j], x, 4 * i + j);
    return vpaddq_s32(vpaddq_s32(exact[0], exact[1]), vpaddq_s32(exact[2], exact[3]));
}
INLINE void sums_add_32(sums *sum, const codes *code, halves scale, halves minimum, size_t n_pairs,
                        const struct st_blocks_chunk *x, int bits, bool minima) {
    (void)bits;
    UNROLLED for (size_t j = 0; j < 2; j++) {
        int32x4_t parts =
            vpaddq_s32(four_sums(code, 2 * j, n_pairs, x), four_sums(code, 2 * j + 1, n_pairs, x));
        float32x4_t scales = vmulq_f32(scale.of[j], vld1q_f32(x->scale + 4 * j));
        sum->of[j] = vfmaq_f32(sum->of[j], vcvtq_f32_s32(parts), scales);
        if (minima) sum->of[j] = vfmsq_f32(sum->of[j], minimum.of[j], vld1q_f32(x->sum + 4 * j));
    }
}
INLINE void sums_add_16(sums *sum, const codes *code, wide scale, wide minimum, size_t n_pairs,
                        const struct st_blocks_chunk *x, int bits) {
    (void)bits;
    EACH_OF {
        float32x2_t two = vld1_f32(x->scale + 2 * j);
        float32x4_t of_x = vcombine_f32(vdup_lane_f32(two, 0), vdup_lane_f32(two, 1));
        float32x4_t exact = vcvtq_f32_s32(four_sums(code, j, n_pairs, x));
        sum->of[j] = vfmaq_f32(sum->of[j], exact, vmulq_f32(scale.of[j], of_x));
        sum->of[j] = vfmsq_f32(sum->of[j], minimum.of[j], vld1q_f32(x->half_sum + 4 * j));
    }
}

// ---- Panels

INLINE void codes_store(unsigned char *p, codes v) {
    EACH_OF vst1q_u8(p + 16 * j, v.of[j]);
}
INLINE void wide_store(float *p, wide v) {
    EACH_OF vst1q_f32(p + 4 * j, v.of[j]);
}
INLINE lanes lanes_load(const void *p) {
    return vld1q_s8(p);
}
INLINE floats floats_load(const float *p) {
    return vld1q_f32(p);
}
INLINE void floats_store(float *p, floats v) {
    vst1q_f32(p, v);
}
INLINE floats floats_set1(float x) {
    return vdupq_n_f32(x);
}
INLINE floats floats_add(floats a, floats b) {
    return vaddq_f32(a, b);
}
INLINE floats floats_mul(floats a, floats b) {
    return vmulq_f32(a, b);
}
INLINE floats floats_fma(floats a, floats b, floats c) {
    return vfmaq_f32(c, a, b);
}
INLINE floats floats_fnma(floats a, floats b, floats c) {
    return vfmsq_f32(c, a, b);
}
// Four rows of four groups of four bytes.
INLINE void transpose(const unsigned char *from, size_t row_bytes, unsigned char *to) {
    uint32x4_t v[4];
    EACH_OF v[j] = vreinterpretq_u32_u8(vld1q_u8(from + j * row_bytes));
    uint64x2_t a = vreinterpretq_u64_u32(vtrn1q_u32(v[0], v[1]));
    uint64x2_t b = vreinterpretq_u64_u32(vtrn2q_u32(v[0], v[1]));
    uint64x2_t c = vreinterpretq_u64_u32(vtrn1q_u32(v[2], v[3]));
    uint64x2_t d = vreinterpretq_u64_u32(vtrn2q_u32(v[2], v[3]));
    vst1q_u8(to, vreinterpretq_u8_u64(vtrn1q_u64(a, c)));
    vst1q_u8(to + 16, vreinterpretq_u8_u64(vtrn1q_u64(b, d)));
    vst1q_u8(to + 32, vreinterpretq_u8_u64(vtrn2q_u64(a, c)));
    vst1q_u8(to + 48, vreinterpretq_u8_u64(vtrn2q_u64(b, d)));
}
