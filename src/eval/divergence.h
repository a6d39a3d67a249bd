// SPDX-License-Identifier: Apache-2.0
// How far one distribution of the next token is from another.
#ifndef ST_EVAL_DIVERGENCE_H
#define ST_EVAL_DIVERGENCE_H

#include <stddef.h>

// KL(softmax(exact) || softmax(logits)) over [vocab], in nats.
double st_divergence(const float *exact, const float *logits, size_t vocab);

#endif
