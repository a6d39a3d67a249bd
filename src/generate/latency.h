// SPDX-License-Identifier: Apache-2.0
// How long steps took: a histogram whose bins grow, so that quantiles are within 3 % and nothing is
// allocated.
#ifndef ST_GENERATE_LATENCY_H
#define ST_GENERATE_LATENCY_H

#include <stdint.h>

enum { ST_LATENCY_BINS = 448 }; // 16 to the octave, from a microsecond to four minutes

// Zero-initialise.
struct st_latency {
    uint32_t n, bins[ST_LATENCY_BINS];
};

void st_latency_add(struct st_latency *latency, double seconds);
// Seconds that a share of the steps (0.5: half) did not exceed; 0 without steps.
double st_latency_quantile(const struct st_latency *latency, double share);

#endif
