// SPDX-License-Identifier: Apache-2.0
// The feedback of errors in closed form (QuIP, Chee et al. 2023, section 3): with H = M D M^T, the
// squared error of the outputs is the sum of D[i] * (error of weight i + sum over j < i of M[j][i]
// * error of weight j)^2, so each weight is rounded after the correction by those before it.
#include "prepare/quantize.h"

#include "base/size.h"

#include <math.h>

enum { TOGETHER = 32 }; // rows whose part is taken from each row before them at once

struct factoring {
    const struct st_elementwise *elementwise;
    float *h;
    size_t k, from, to; // rows [from, to) are final
};

// What rows [from, to) explain is taken from row j.
static void take_from(void *context, size_t j, size_t worker) {
    (void)worker;
    const struct factoring *f = context;
    float *target = f->h + j * f->k;
    for (size_t p = f->to; p-- > st_max(f->from, j + 1);) {
        const float *row = f->h + p * f->k;
        f->elementwise->axpy(-row[j] / row[p], row, j + 1, target);
    }
}

bool st_feedback_factor(float *h, size_t k, uint64_t n_tokens, double damp,
                        const struct st_elementwise *elementwise, struct st_pool *pool) {
    float shrink = (float)n_tokens / ((float)n_tokens + (float)k);
    double mean = 0.0;
    for (size_t i = 0; i < k; i++) mean += (double)h[i * k + i] / (double)k;
    // To the lower triangle, whose rows lie in one piece.
    for (size_t i = 0; i < k; i++) {
        h[i * k + i] += (float)(mean > 0.0 ? damp * mean : 1.0);
        for (size_t j = 0; j < i; j++) h[i * k + j] = shrink * h[j * k + i];
    }
    // From the last row: row p is D[p] times column p of M.
    struct factoring f = {.elementwise = elementwise, .h = h, .k = k};
    for (f.to = k; f.to > 0; f.to = f.from) {
        f.from = f.to > TOGETHER ? f.to - TOGETHER : 0;
        for (size_t p = f.to; p-- > f.from;) {
            take_from(&f, p, 0);
            if (!(h[p * k + p] > 0.0f) || !isfinite(h[p * k + p])) return false;
        }
        st_pool_run(pool, take_from, &f, f.from);
    }
    for (size_t i = 0; i < k; i++)
        for (size_t j = i + 1; j < k; j++) {
            h[i * k + j] = h[j * k + i] / h[j * k + j];
            h[j * k + i] = 0.0f;
        }
    for (size_t i = 0; i < k; i++) h[i * k + i] = 1.0f;
    return true;
}
