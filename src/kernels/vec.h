// SPDX-License-Identifier: Apache-2.0
// One float vector type per instruction set, chosen by the flags a file is compiled with
// (cmake/isa.cmake), so that a kernel body is written once and included by one thin file per set.
// Loads and stores take any alignment; the _n forms touch the first n < VF_LANES floats only.
#ifndef ST_KERNELS_VEC_H
#define ST_KERNELS_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>

#define VF_LANES 16
typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

static inline vf vf_load(const float *p) {
    return _mm512_loadu_ps(p);
}
static inline void vf_store(float *p, vf x) {
    _mm512_storeu_ps(p, x);
}
static inline vf vf_load_n(const float *p, size_t n) {
    return _mm512_maskz_loadu_ps((vm)((1u << n) - 1), p);
}
static inline void vf_store_n(float *p, vf x, size_t n) {
    _mm512_mask_storeu_ps(p, (vm)((1u << n) - 1), x);
}
static inline vf vf_set1(float x) {
    return _mm512_set1_ps(x);
}
static inline vf vf_add(vf a, vf b) {
    return _mm512_add_ps(a, b);
}
static inline vf vf_sub(vf a, vf b) {
    return _mm512_sub_ps(a, b);
}
static inline vf vf_mul(vf a, vf b) {
    return _mm512_mul_ps(a, b);
}
static inline vf vf_div(vf a, vf b) {
    return _mm512_div_ps(a, b);
}
static inline vf vf_fma(vf a, vf b, vf c) {
    return _mm512_fmadd_ps(a, b, c);
} // a b + c
static inline vf vf_max(vf a, vf b) {
    return _mm512_max_ps(a, b);
} // b where one is NaN
static inline vf vf_min(vf a, vf b) {
    return _mm512_min_ps(a, b);
}
static inline float vf_sum(vf a) {
    return _mm512_reduce_add_ps(a);
}
// Elements 0, 2, 4, ... (1, 3, 5, ...) of a then b, and the way back: zip_low is a[0] b[0] a[1] ...
static inline vf vf_even(vf a, vf b) {
    const vi at = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(a, at, b);
}
static inline vf vf_odd(vf a, vf b) {
    const vi at = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(a, at, b);
}
static inline vf vf_zip_low(vf a, vf b) {
    const vi at = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    return _mm512_permutex2var_ps(a, at, b);
}
static inline vf vf_zip_high(vf a, vf b) {
    const vi at = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    return _mm512_permutex2var_ps(a, at, b);
}
// out[i] = the sum of vector i
static inline void vf_sum4(vf a, vf b, vf c, vf d, float out[4]) {
    vf ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)); // a b a b ...
    vf cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    vf s = _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
    __m256 t = _mm256_add_ps(_mm512_castps512_ps256(s), _mm512_extractf32x8_ps(s, 1));
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1)));
}
static inline vf vf_round(vf a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline vm vf_lt(vf a, vf b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}
static inline vf vf_select(vm m, vf yes, vf no) {
    return _mm512_mask_blend_ps(m, no, yes);
}
static inline vf vf_abs(vf a) {
    return _mm512_abs_ps(a);
}
// x 2^n for whole n in [-126, 128]
static inline vf vf_scale2(vf x, vf n) {
    return _mm512_scalef_ps(x, n);
}
static inline vf vf_load_bf16(const void *p) {
    __m256i half = _mm256_loadu_si256((const __m256i *)p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}
static inline vf vf_load_f16(const void *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
static inline void vf_store_f16(uint16_t *p, vf x) {
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
static inline float vf_half(uint16_t h) { // one F16
    return _cvtsh_ss(h);
}
// How many lanes hold.
static inline size_t vf_count(vm m) {
    return (size_t)__builtin_popcount(m);
}
// Whole numbers in [-128, 255], as their lowest bytes.
static inline void vf_store_u8(uint8_t *p, vf x) {
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x)));
}
// a[i] - factor * b[i]
static inline vf vf_from_i32(const int32_t *a, const int32_t *b, int32_t factor) {
    vi product = _mm512_mullo_epi32(_mm512_loadu_si512(b), _mm512_set1_epi32(factor));
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_loadu_si512(a), product));
}
static inline vf vf_load_i8(const int8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

#elif defined(__AVX2__)
#include <immintrin.h>

#define VF_LANES 8
typedef __m256 vf;
typedef __m256i vi;
typedef __m256 vm;

static inline vi vf_first(size_t n) { // all ones in the first n lanes
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vf vf_load(const float *p) {
    return _mm256_loadu_ps(p);
}
static inline void vf_store(float *p, vf x) {
    _mm256_storeu_ps(p, x);
}
static inline vf vf_load_n(const float *p, size_t n) {
    return _mm256_maskload_ps(p, vf_first(n));
}
static inline void vf_store_n(float *p, vf x, size_t n) {
    _mm256_maskstore_ps(p, vf_first(n), x);
}
static inline vf vf_set1(float x) {
    return _mm256_set1_ps(x);
}
static inline vf vf_add(vf a, vf b) {
    return _mm256_add_ps(a, b);
}
static inline vf vf_sub(vf a, vf b) {
    return _mm256_sub_ps(a, b);
}
static inline vf vf_mul(vf a, vf b) {
    return _mm256_mul_ps(a, b);
}
static inline vf vf_div(vf a, vf b) {
    return _mm256_div_ps(a, b);
}
static inline vf vf_fma(vf a, vf b, vf c) {
    return _mm256_fmadd_ps(a, b, c);
}
static inline vf vf_max(vf a, vf b) {
    return _mm256_max_ps(a, b);
}
static inline vf vf_min(vf a, vf b) {
    return _mm256_min_ps(a, b);
}
static inline float vf_sum(vf a) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}
static inline vf vf_pairs_in_order(vf x) { // after a shuffle within each half
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(x), 0xd8));
}
static inline vf vf_even(vf a, vf b) {
    return vf_pairs_in_order(_mm256_shuffle_ps(a, b, 0x88));
}
static inline vf vf_odd(vf a, vf b) {
    return vf_pairs_in_order(_mm256_shuffle_ps(a, b, 0xdd));
}
static inline vf vf_zip_low(vf a, vf b) {
    return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x20);
}
static inline vf vf_zip_high(vf a, vf b) {
    return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x31);
}
static inline void vf_sum4(vf a, vf b, vf c, vf d, float out[4]) {
    vf s = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1)));
}
static inline vf vf_round(vf a) {
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline vm vf_lt(vf a, vf b) {
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}
static inline vf vf_select(vm m, vf yes, vf no) {
    return _mm256_blendv_ps(no, yes, m);
}
static inline vf vf_abs(vf a) {
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}
static inline vf vf_scale2(vf x, vf n) { // in two factors: 2^128 is no float
    vi whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
    vi bias = _mm256_set1_epi32(127), rest = _mm256_sub_epi32(whole, half);
    vi one = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    vi other = _mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(x, _mm256_castsi256_ps(one)), _mm256_castsi256_ps(other));
}
static inline vf vf_load_bf16(const void *p) {
    __m128i half = _mm_loadu_si128((const __m128i *)p);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}
static inline vf vf_load_f16(const void *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
static inline void vf_store_f16(uint16_t *p, vf x) {
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
static inline float vf_half(uint16_t h) { // one F16
    return _cvtsh_ss(h);
}
static inline size_t vf_count(vm m) {
    return (size_t)__builtin_popcount((unsigned)_mm256_movemask_ps(m));
}
static inline void vf_store_u8(uint8_t *p, vf x) {
    vi bytes = _mm256_and_si256(_mm256_cvtps_epi32(x), _mm256_set1_epi32(255));
    vi words = _mm256_packus_epi32(bytes, bytes), all = _mm256_packus_epi16(words, words);
    int32_t low = _mm256_extract_epi32(all, 0), high = _mm256_extract_epi32(all, 4);
    memcpy(p, &low, 4);
    memcpy(p + 4, &high, 4);
}
static inline vf vf_from_i32(const int32_t *a, const int32_t *b, int32_t factor) {
    vi product = _mm256_mullo_epi32(_mm256_loadu_si256((const vi *)b), _mm256_set1_epi32(factor));
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_loadu_si256((const vi *)a), product));
}
static inline vf vf_load_i8(const int8_t *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}

#elif defined(__ARM_NEON)
#include <arm_neon.h>

#define VF_LANES 4
typedef float32x4_t vf;
typedef uint32x4_t vm;

static inline vf vf_load(const float *p) {
    return vld1q_f32(p);
}
static inline void vf_store(float *p, vf x) {
    vst1q_f32(p, x);
}
static inline vf vf_load_n(const float *p, size_t n) {
    float t[4] = {0, 0, 0, 0};
    memcpy(t, p, n * sizeof *t);
    return vld1q_f32(t);
}
static inline void vf_store_n(float *p, vf x, size_t n) {
    float t[4];
    vst1q_f32(t, x);
    memcpy(p, t, n * sizeof *t);
}
static inline vf vf_set1(float x) {
    return vdupq_n_f32(x);
}
static inline vf vf_add(vf a, vf b) {
    return vaddq_f32(a, b);
}
static inline vf vf_sub(vf a, vf b) {
    return vsubq_f32(a, b);
}
static inline vf vf_mul(vf a, vf b) {
    return vmulq_f32(a, b);
}
static inline vf vf_div(vf a, vf b) {
    return vdivq_f32(a, b);
}
static inline vf vf_fma(vf a, vf b, vf c) {
    return vfmaq_f32(c, a, b);
}
static inline vf vf_max(vf a, vf b) {
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}
static inline vf vf_min(vf a, vf b) {
    return vbslq_f32(vcltq_f32(a, b), a, b);
}
static inline float vf_sum(vf a) {
    return vaddvq_f32(a);
}
static inline vf vf_even(vf a, vf b) {
    return vuzp1q_f32(a, b);
}
static inline vf vf_odd(vf a, vf b) {
    return vuzp2q_f32(a, b);
}
static inline vf vf_zip_low(vf a, vf b) {
    return vzip1q_f32(a, b);
}
static inline vf vf_zip_high(vf a, vf b) {
    return vzip2q_f32(a, b);
}
static inline void vf_sum4(vf a, vf b, vf c, vf d, float out[4]) {
    vst1q_f32(out, vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d)));
}
static inline vf vf_round(vf a) {
    return vrndnq_f32(a);
}
static inline vm vf_lt(vf a, vf b) {
    return vcltq_f32(a, b);
}
static inline vf vf_select(vm m, vf yes, vf no) {
    return vbslq_f32(m, yes, no);
}
static inline vf vf_abs(vf a) {
    return vabsq_f32(a);
}
static inline vf vf_scale2(vf x, vf n) {
    int32x4_t whole = vcvtq_s32_f32(n), half = vshrq_n_s32(whole, 1), bias = vdupq_n_s32(127);
    int32x4_t one = vshlq_n_s32(vaddq_s32(half, bias), 23);
    int32x4_t other = vshlq_n_s32(vaddq_s32(vsubq_s32(whole, half), bias), 23);
    return vmulq_f32(vmulq_f32(x, vreinterpretq_f32_s32(one)), vreinterpretq_f32_s32(other));
}
static inline vf vf_load_bf16(const void *p) {
    uint16_t t[4];
    memcpy(t, p, sizeof t);
    return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vld1_u16(t)), 16));
}
static inline vf vf_load_f16(const void *p) {
    uint16_t t[4];
    memcpy(t, p, sizeof t);
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(t)));
}
static inline void vf_store_f16(uint16_t *p, vf x) {
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(x)));
}
static inline float vf_half(uint16_t h) { // one F16
    return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(h))), 0);
}
static inline size_t vf_count(vm m) {
    return vaddvq_u32(vshrq_n_u32(m, 31));
}
static inline void vf_store_u8(uint8_t *p, vf x) {
    int16x4_t halves = vmovn_s32(vcvtnq_s32_f32(x));
    int8x8_t bytes = vmovn_s16(vcombine_s16(halves, halves));
    vst1_lane_s32((int32_t *)(void *)p, vreinterpret_s32_s8(bytes), 0);
}
static inline vf vf_from_i32(const int32_t *a, const int32_t *b, int32_t factor) {
    return vcvtq_f32_s32(vmlsq_n_s32(vld1q_s32(a), vld1q_s32(b), factor));
}
static inline vf vf_load_i8(const int8_t *p) {
    int32_t four;
    memcpy(&four, p, sizeof four);
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four))))));
}
static inline void vec_bits_times_16(uint32_t bits, int8_t *q) {
    const uint8x8_t own = vcreate_u8(0x8040201008040201u);
    for (int i = 0; i < 4; i++) {
        uint8x8_t set = vtst_u8(vdup_n_u8((uint8_t)(bits >> 8 * i)), own);
        vst1_s8(q + 8 * i, vreinterpret_s8_u8(vand_u8(set, vdup_n_u8(16))));
    }
}
static inline void vec_nibble_values(const int8_t values[16], const uint8_t *p, int8_t *q) {
    int8x16_t table = vld1q_s8(values);
    uint8x16_t codes = vld1q_u8(p);
    vst1q_s8(q, vqtbl1q_s8(table, vandq_u8(codes, vdupq_n_u8(15))));
    vst1q_s8(q + 16, vqtbl1q_s8(table, vshrq_n_u8(codes, 4)));
}

#else
#error "vec.h is for files with an instruction set in their name"
#endif

#if defined(__AVX2__)
// q[i] = bit i of bits ? 16 : 0, i in [0, 32)
static inline void vec_bits_times_16(uint32_t bits, int8_t *q) {
    const __m256i bytes =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i own = _mm256_set1_epi64x((long long)0x8040201008040201u);
    __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), bytes);
    __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, own), own);
    _mm256_storeu_si256((__m256i *)q, _mm256_and_si256(set, _mm256_set1_epi8(16)));
}
// q[i] = values[low nibble of p[i]], q[16 + i] = values[its high nibble], i in [0, 16)
static inline void vec_nibble_values(const int8_t values[16], const uint8_t *p, int8_t *q) {
    __m128i table = _mm_loadu_si128((const __m128i *)values);
    __m128i codes = _mm_loadu_si128((const __m128i *)p), mask = _mm_set1_epi8(15);
    __m128i high = _mm_and_si128(_mm_srli_epi16(codes, 4), mask);
    _mm_storeu_si128((__m128i *)q, _mm_shuffle_epi8(table, _mm_and_si128(codes, mask)));
    _mm_storeu_si128((__m128i *)(q + 16), _mm_shuffle_epi8(table, high));
}
#endif

#include "kernels/vec_exp.h"

#endif
