// SPDX-License-Identifier: Apache-2.0
// What kernels/vec_norm.h, dequantize_layout.h and block_parts.h need of C and of base/half.h. Behind
// this come they and kernels/block_types.h.
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
typedef char int8_t;

INLINE float st_float_from_bits(uint32_t u) {
    return as_float(u);
}
INLINE uint32_t st_float_bits(float x) {
    return as_uint(x);
}
INLINE float st_f32_from_f16(uint16_t h) {
    return vload_half(0, (const half *)&h);
}
