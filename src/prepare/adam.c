// SPDX-License-Identifier: Apache-2.0
#include "prepare/adam.h"

#include <math.h>

static const float beta1 = 0.9f, beta2 = 0.999f;

void st_adam_step(const struct st_adam *adam, const float *gradient, float divisor, size_t n,
                  float *w, float *first, float *second) {
    float step = (float)adam->step;
    float fix1 = 1.0f - powf(beta1, step), fix2 = 1.0f - powf(beta2, step);
    for (size_t i = 0; i < n; i++) {
        float g = gradient[i] / divisor;
        first[i] = beta1 * first[i] + (1.0f - beta1) * g;
        second[i] = beta2 * second[i] + (1.0f - beta2) * g * g;
        w[i] -=
            adam->rate * (first[i] / fix1 / (sqrtf(second[i] / fix2) + 1e-8f) + adam->decay * w[i]);
    }
}
