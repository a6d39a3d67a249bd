// SPDX-License-Identifier: Apache-2.0
// One row at once on Arm; the includer defines vi_dot().
#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 1, FLIP = 0 };

typedef uint8x16_t vb;
typedef int32x4_t vi;
typedef float32x4_t vf;

static inline vb vb_load(const void *p) {
    return vld1q_u8(p);
}
static inline vb vb_x(const void *p) {
    return vld1q_u8(p);
}
static inline vb vb_rows(const int8_t *rows, unsigned bits) {
    vb v = vdupq_n_u8(0);
    if (bits == 4) return vb_load(rows);
    memcpy(&v, rows, (size_t)1 << bits);
    return v;
}
static inline vb vb_and(vb v, uint8_t mask) {
    return vandq_u8(v, vdupq_n_u8(mask));
}
static inline vb vb_xor(vb v, uint8_t mask) {
    return veorq_u8(v, vdupq_n_u8(mask));
}
static inline vb vb_select(uint8_t mask, vb a, vb b) {
    return vbslq_u8(vdupq_n_u8(mask), a, b);
}
static inline vb vb_lookup(vb table, vb index) {
    return vqtbl1q_u8(table, index);
}
static inline vb vb_equal(vb v, uint8_t to) {
    return vceqq_u8(v, vdupq_n_u8(to));
}
static inline vb vb_blend(vb a, vb b, vb where) {
    return vbslq_u8(where, b, a);
}
#define vb_shl(v, n) vshlq_n_u8(v, n)
#define vb_shr(v, n) vshrq_n_u8(v, n)

static inline vi vi_start(int32_t offset) {
    (void)offset; // of centroids without sign
    return vdupq_n_s32(0);
}
static inline vf vf_zero(void) {
    return vdupq_n_f32(0.0f);
}
static inline vf vf_add_scaled(vf sum, vi exact, float scale) {
    return vfmaq_n_f32(sum, vcvtq_f32_s32(exact), scale);
}
static inline void vf_rows(vf v, float rows[LANES]) {
    rows[0] = vaddvq_f32(v);
}
