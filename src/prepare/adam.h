// SPDX-License-Identifier: Apache-2.0
#ifndef ST_PREPARE_ADAM_H
#define ST_PREPARE_ADAM_H

#include <stddef.h>
#include <stdint.h>

struct st_adam {
    float rate, decay; // decay: decoupled, 0: none
    uint64_t step;     // from 1 on
};

// One step of Adam (Kingma and Ba 2015) on w [n] along gradient / divisor. first and second:
// moments [n], zeros before the first step.
void st_adam_step(const struct st_adam *adam, const float *gradient, float divisor, size_t n,
                  float *w, float *first, float *second);

#endif
