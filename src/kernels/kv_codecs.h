// SPDX-License-Identifier: Apache-2.0
// How each type of kv_types.h writes and reads a row of n values. A type gives
// - kv_<type>_store: a row from floats;
// - kv_<type>_at: value d, which is the definition;
// - kv_<type>_part: count values from d on in a vector, then zeros. d is a multiple of VF_LANES, so
//   they lie in one block. Only in files that include vec.h.
#ifndef ST_KERNELS_KV_CODECS_H
#define ST_KERNELS_KV_CODECS_H

#include "base/half.h"
#include "kernels/kv_types.h"

#include <stdint.h>
#include <string.h>

static inline void kv_f32_store(const float *x, size_t n, void *row) {
    memcpy(row, x, n * sizeof *x);
}

static inline float kv_f32_at(const void *row, size_t n, size_t d) {
    (void)n;
    return ((const float *)row)[d];
}

static inline float kv_f16_at(const void *row, size_t n, size_t d) {
    (void)n;
    return st_f32_from_f16(((const uint16_t *)row)[d]);
}

#ifdef VF_LANES

static inline vf kv_f32_part(const void *row, size_t n, size_t d, size_t count) {
    (void)n;
    const float *from = (const float *)row + d;
    return count == VF_LANES ? vf_load(from) : vf_load_n(from, count);
}

static inline void kv_f16_store(const float *x, size_t n, void *row) {
    uint16_t *to = row;
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) vf_store_f16(to + i, vf_load(x + i));
    for (; i < n; i++) to[i] = st_f16_from_f32(x[i]);
}

static inline vf kv_f16_part(const void *row, size_t n, size_t d, size_t count) {
    (void)n;
    const uint16_t *from = (const uint16_t *)row + d;
    if (count == VF_LANES) return vf_load_f16(from);
    uint16_t t[VF_LANES] = {0};
    memcpy(t, from, count * sizeof *t);
    return vf_load_f16(t);
}

#else

static inline void kv_f16_store(const float *x, size_t n, void *row) {
    for (size_t i = 0; i < n; i++) ((uint16_t *)row)[i] = st_f16_from_f32(x[i]);
}

#endif
#endif
