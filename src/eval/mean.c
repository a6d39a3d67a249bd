// SPDX-License-Identifier: Apache-2.0
#include "eval/mean.h"

#include <math.h>
#include <stddef.h>

void st_mean_add(struct st_mean *mean, double value) {
    mean->n += 1.0;
    mean->sum += value;
    mean->squares += value * value;
}

double st_mean_value(const struct st_mean *mean) {
    return mean->n > 0.0 ? mean->sum / mean->n : 0.0;
}

double st_mean_error(const struct st_mean *mean) {
    if (mean->n < 2.0) return 0.0;
    double value = st_mean_value(mean);
    return sqrt(fmax(mean->squares / mean->n - value * value, 0.0) / (mean->n - 1.0));
}

// The 95 % quantile of Student's t, by Cornish and Fisher's expansion at that of the normal
// distribution, which 3 degrees of freedom and more bring within 0.3 %.
static double student(double freedom) {
    static const double terms[] = {1.6448536, 1.5237691, 1.4202030, 0.9830015},
                        few[] = {6.3138, 2.9200};
    double sum = 0.0;
    if (freedom <= 2.0) return few[freedom > 1.0];
    for (size_t i = sizeof terms / sizeof *terms; i-- > 0;) sum = sum / freedom + terms[i];
    return sum;
}

double st_mean_bound(const struct st_mean *mean) {
    if (mean->n < 2.0) return INFINITY;
    return st_mean_value(mean) + student(mean->n - 1.0) * st_mean_error(mean);
}
