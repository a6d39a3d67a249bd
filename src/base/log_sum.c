// SPDX-License-Identifier: Apache-2.0
#include "base/log_sum.h"

#include <math.h>

double st_log_sum(const float *logits, size_t n) {
    double sum = 0.0;
    float most = -INFINITY;
    for (size_t v = 0; v < n; v++) most = fmaxf(most, logits[v]);
    for (size_t v = 0; v < n; v++) sum += exp((double)(logits[v] - most));
    return log(sum) + (double)most;
}
