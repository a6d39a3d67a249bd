// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include "base/clock.h"

#include <sys/random.h>

uint64_t st_random_seed(void) {
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed) return seed;
    return st_now_ns() * 0x9e3779b97f4a7c15u ^ (uint64_t)(uintptr_t)&seed; // early at boot
}

double st_random_draw(uint64_t seed, uint64_t n) { // SplitMix64, Steele et al. 2014
    uint64_t z = seed + (n + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}
