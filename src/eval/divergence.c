// SPDX-License-Identifier: Apache-2.0
#include "eval/divergence.h"

#include "base/log_sum.h"

#include <math.h>

double st_divergence(const float *exact, const float *logits, size_t vocab) {
    double log_p = -st_log_sum(exact, vocab), log_q = -st_log_sum(logits, vocab), sum = 0.0;
    for (size_t v = 0; v < vocab; v++) {
        double p = (double)exact[v] + log_p;
        sum += exp(p) * (p - ((double)logits[v] + log_q));
    }
    return sum;
}
