// SPDX-License-Identifier: Apache-2.0
// SplitMix64. The seed is chosen on first use.
#include "support/support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t first_state(void) {
    const char *text = getenv("STINT_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)now.tv_sec ^ (uint64_t)now.tv_nsec;
    printf("STINT_SEED=%" PRIu64 "\n", seed);
    fflush(stdout);
    return seed;
}

uint64_t ts_random(void) {
    static bool ready;
    static uint64_t state;
    if (!ready) state = first_state();
    ready = true;
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

size_t ts_random_below(size_t n) {
    return (size_t)(ts_random() % n);
}

float ts_random_float(float low, float high) {
    return low + (high - low) * (float)(ts_random() >> 40) * 0x1p-24f;
}

void ts_random_bytes(void *data, size_t bytes) {
    unsigned char *out = data;
    for (size_t i = 0; i < bytes; i++) out[i] = (unsigned char)ts_random();
}
