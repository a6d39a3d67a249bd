// SPDX-License-Identifier: Apache-2.0
// Checked arithmetic on sizes that came from outside, and the few integer helpers everyone needs.
#ifndef ST_BASE_SIZE_H
#define ST_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// False, with *out untouched, where the exact result does not fit.
static inline bool st_size_add(size_t a, size_t b, size_t *out) {
    size_t r;
    if (__builtin_add_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

static inline bool st_size_mul(size_t a, size_t b, size_t *out) {
    size_t r;
    if (__builtin_mul_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

static inline size_t st_min(size_t a, size_t b) {
    return a < b ? a : b;
}
static inline size_t st_max(size_t a, size_t b) {
    return a > b ? a : b;
}
static inline size_t st_ceil_div(size_t a, size_t b) {
    return a / b + (a % b != 0);
}
// The smallest multiple of `b` that is >= a; pre: it fits.
static inline size_t st_round_up(size_t a, size_t b) {
    return st_ceil_div(a, b) * b;
}

#endif
