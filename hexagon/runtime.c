// SPDX-License-Identifier: Apache-2.0
// What the compiler calls.
#include "runtime.h"

void *memcpy(void *restrict to, const void *restrict from, size_t n) {
    unsigned char *t = to;
    const unsigned char *f = from;
    while (n-- > 0) *t++ = *f++;
    return to;
}

void *__hexagon_memcpy_likely_aligned_min32bytes_mult8bytes(void *restrict to,
                                                            const void *restrict from, size_t n);
void *__hexagon_memcpy_likely_aligned_min32bytes_mult8bytes(void *restrict to,
                                                            const void *restrict from, size_t n) {
    return memcpy(to, from, n);
}

void *memset(void *to, int byte, size_t n) {
    unsigned char *t = to;
    while (n-- > 0) *t++ = (unsigned char)byte;
    return to;
}

static uint32_t divide(uint32_t a, uint32_t b, uint32_t *rest) {
    uint32_t quotient = 0, left = 0;
    for (int i = 31; i >= 0; i--) {
        left = left << 1 | (a >> i & 1);
        if (left >= b) {
            left -= b;
            quotient |= 1u << i;
        }
    }
    *rest = left;
    return quotient;
}

uint32_t __hexagon_udivsi3(uint32_t a, uint32_t b) {
    uint32_t rest;
    return divide(a, b, &rest);
}

uint32_t __hexagon_umodsi3(uint32_t a, uint32_t b) {
    uint32_t rest;
    divide(a, b, &rest);
    return rest;
}
