// SPDX-License-Identifier: Apache-2.0
// The denominator of a softmax.
#ifndef ST_BASE_LOG_SUM_H
#define ST_BASE_LOG_SUM_H

#include <stddef.h>

// ln of the sum of exp over logits [n].
double st_log_sum(const float *logits, size_t n);

#endif
