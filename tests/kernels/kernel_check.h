// SPDX-License-Identifier: Apache-2.0
// What the kernel checks share: arrays with guards on both sides that no kernel may touch, at any
// alignment.
#ifndef TESTS_KERNEL_CHECK_H
#define TESTS_KERNEL_CHECK_H

#include "support/support.h"

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { KC_GUARD = 64 };

struct kc_array {
    unsigned char *memory;
    size_t bytes;
    void *data; // bytes, KC_GUARD bytes behind the start of memory, `offset` further
    size_t offset;
};

static inline struct kc_array kc_make(size_t bytes, size_t offset) {
    struct kc_array a = {.bytes = bytes, .offset = offset};
    a.memory = malloc(bytes + offset + 2 * KC_GUARD);
    assert_non_null(a.memory);
    memset(a.memory, 0xa5, bytes + offset + 2 * KC_GUARD);
    a.data = a.memory + KC_GUARD + offset;
    return a;
}

// Floats, off by one float from any larger alignment, random in [-range, range).
static inline struct kc_array kc_floats(size_t n, float range) {
    struct kc_array a = kc_make(n * sizeof(float), ts_random_below(4) * sizeof(float));
    for (size_t i = 0; i < n; i++) ((float *)a.data)[i] = ts_random_float(-range, range);
    return a;
}

static inline void kc_free(struct kc_array *a, const char *who) {
    for (size_t i = 0; i < KC_GUARD + a->offset; i++)
        if (a->memory[i] != 0xa5) fail_msg("%s wrote %zu bytes before its array", who, i);
    for (size_t i = 0; i < KC_GUARD; i++)
        if (a->memory[KC_GUARD + a->offset + a->bytes + i] != 0xa5)
            fail_msg("%s wrote %zu bytes past its array", who, i);
    free(a->memory);
}

// |got - wanted| <= bound, or both NaN, or both the same infinity.
static inline void kc_near(const float *got, const float *wanted, size_t n, float bound,
                           const char *who) {
    for (size_t i = 0; i < n; i++) {
        if (got[i] == wanted[i] || (isnan(got[i]) && isnan(wanted[i]))) continue;
        if (!(fabsf(got[i] - wanted[i]) <= bound))
            fail_msg("%s: element %zu of %zu is %.9g, expected %.9g +- %g", who, i, n,
                     (double)got[i], (double)wanted[i], (double)bound);
    }
}

#endif
