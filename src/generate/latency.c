// SPDX-License-Identifier: Apache-2.0
#include "generate/latency.h"

#include <math.h>

static const double first_seconds = 1e-6, bins_per_octave = 16.0;

void st_latency_add(struct st_latency *l, double seconds) {
    double bin = round(bins_per_octave * log2(fmax(seconds, first_seconds) / first_seconds));
    l->bins[(uint32_t)fmin(bin, ST_LATENCY_BINS - 1)]++;
    l->n++;
}

double st_latency_quantile(const struct st_latency *l, double share) {
    double wanted = share * l->n, sum = 0.0;
    for (uint32_t i = 0; i < ST_LATENCY_BINS && l->n > 0; i++) {
        sum += l->bins[i];
        if (sum >= wanted && sum > 0.0) return first_seconds * exp2(i / bins_per_octave);
    }
    return 0.0;
}
