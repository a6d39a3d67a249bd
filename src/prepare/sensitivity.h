// SPDX-License-Identifier: Apache-2.0
// How much a model loses by few bits in each of its linears: measured on the calibration text.
#ifndef ST_PREPARE_SENSITIVITY_H
#define ST_PREPARE_SENSITIVITY_H

#include "prepare/allocate.h"
#include "prepare/job.h"

// Sets n_weights and loss of the job's nested linears, and how many there are; they are for the
// caller to free. A loss is a divergence from the source, in nats a token: that of linears of a
// kind in some layers with their weights rounded to 3 bits, shared out by the errors that rounding
// to each number of bits makes in each of them.
stint_status st_sensitivity_measure(struct st_prepare_job *job, struct st_allocation **linears,
                                    uint32_t *n);

#endif
