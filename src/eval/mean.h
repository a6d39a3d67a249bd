// SPDX-License-Identifier: Apache-2.0
// A mean of scores, updated one value at a time, and how certain it is.
#ifndef ST_EVAL_MEAN_H
#define ST_EVAL_MEAN_H

struct st_mean {
    double n, sum, squares;
};
void st_mean_add(struct st_mean *mean, double value);
double st_mean_value(const struct st_mean *mean);
double st_mean_error(const struct st_mean *mean); // 0 with fewer than two values
// The true mean is below it with a certainty of 95 %, by Student's t: few values tell little of how
// far values scatter. INFINITY with fewer than two.
double st_mean_bound(const struct st_mean *mean);

#endif
