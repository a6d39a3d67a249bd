// SPDX-License-Identifier: Apache-2.0
// One row at once on Arm; the includer defines vi_dot().
#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 1, PARTS = 8 };

typedef uint8x16_t vb;
typedef int32x4_t vi;
typedef float32x4_t vf;
typedef const uint8_t *vs;
typedef struct {
    uint8x16_t low, high; // four of each row
} vl;
typedef struct {
    float32x4_t low, high; // rows
} vm;

static inline vb vb_load(const void *p) {
    return vld1q_u8(p);
}
static inline vb vb_x(const void *p) {
    return vld1q_u8(p);
}
static inline vb vb_and(vb v, uint8_t mask) {
    return vandq_u8(v, vdupq_n_u8(mask));
}
static inline vb vb_select(uint8_t mask, vb a, vb b) {
    return vbslq_u8(vdupq_n_u8(mask), a, b);
}
static inline vb vb_double(vb v) {
    return vshlq_n_u8(v, 1);
}
static inline vb vb_append(vb a, vb b) {
    return vsliq_n_u8(b, a, 1);
}
#define vb_shl(v, n) vshlq_n_u8(v, n)
#define vb_shr(v, n) vshrq_n_u8(v, n)
static inline vb vb_append_low(vb a, vb b) {
    return vsliq_n_u8(b, vb_and(a, 15), 1);
}
static inline vb vb_append_high(vb a, vb b) {
    return vsliq_n_u8(b, vb_shr(a, 4), 1);
}

static inline vs vs_load(const uint8_t *p) {
    return p;
}
static inline vi vi_zero(void) {
    return vdupq_n_s32(0);
}
static inline vi vi_dot(vi sum, vb value, vb x);
static inline vi vi_add(vi sum, unsigned bits, vs scales, unsigned g, vb v0, vb x0, vb v1, vb x1) {
    (void)bits;
    return vmlaq_n_s32(sum, vi_dot(vi_dot(vi_zero(), v0, x0), v1, x1), scales[g]);
}
static inline vf vf_zero(void) {
    return vdupq_n_f32(0.0f);
}
static inline vf vf_add_scaled(vf sum, vi exact, float scale) {
    return vfmaq_n_f32(sum, vcvtq_f32_s32(exact), scale);
}
static inline void vf_rows(const vf v[PARTS], float rows[8]) {
    for (size_t p = 0; p < PARTS; p++) rows[p] = vaddvq_f32(v[p]);
}
static inline vl vl_load(const uint8_t *p) {
    return (vl){vld1q_u8(p), vld1q_u8(p + 16)};
}
static inline vl vl_load_half(const uint8_t *p) {
    uint8x16_t v = vld1q_u8(p);
    return (vl){v, vreinterpretq_u8_u32(vshrq_n_u32(vreinterpretq_u32_u8(v), 16))};
}
static inline vm vm_zero(void) {
    return (vm){vdupq_n_f32(0.0f), vdupq_n_f32(0.0f)};
}
// Of four rows, whose minima are 16 bytes.
static inline int32x4_t four_rows(uint8x16_t minima, int16x4_t sums) {
    int8x16_t m = vreinterpretq_s8_u8(minima);
    int16x8_t low = vmovl_s8(vget_low_s8(m)), high = vmovl_high_s8(m);
    int32x4_t r0 = vmull_s16(vget_low_s16(low), sums), r1 = vmull_s16(vget_high_s16(low), sums);
    int32x4_t r2 = vmull_s16(vget_low_s16(high), sums), r3 = vmull_s16(vget_high_s16(high), sums);
    return vpaddq_s32(vpaddq_s32(r0, r1), vpaddq_s32(r2, r3));
}
static inline vm vm_add(vm sum, vl minima, const int16_t *sums, float scale) {
    int16x4_t four = vld1_s16(sums);
    return (vm){vf_add_scaled(sum.low, four_rows(minima.low, four), scale),
                vf_add_scaled(sum.high, four_rows(minima.high, four), scale)};
}
static inline void vm_rows(vm v, float rows[8]) {
    vst1q_f32(rows, v.low);
    vst1q_f32(rows + 4, v.high);
}
