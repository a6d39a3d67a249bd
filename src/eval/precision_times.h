// SPDX-License-Identifier: Apache-2.0
// What each precision costs: the time of a prompt's token and of a step, measured here or stated
// for another machine.
#ifndef ST_EVAL_PRECISION_TIMES_H
#define ST_EVAL_PRECISION_TIMES_H

#include "eval/fork.h"

struct st_precision_times {
    // By bits, ms; 0: not known.
    double token[ST_PRECISION_INT8 + 1], step[ST_PRECISION_INT8 + 1];
};

// "8:0.5:6,4:0.9:4": at 8 bits 0.5 ms for a prompt's token and 6 ms for a step, ... of all
// precisions that the model has. STINT_E_ARG.
stint_status st_precision_times_read(const struct stint_model *model, const char *text,
                                     struct st_precision_times *times);

// All precisions of a fork's model in turn, several times; the shortest times count. Prompts are
// the last tokens of ids [n], n > 0. Leaves no text in the session.
stint_status st_precision_times_measure(struct st_fork *fork, const int32_t *ids, size_t n,
                                        struct st_precision_times *times);

// Seconds of the fork's answer and of its prompt, read at a precision.
double st_precision_times_answer(const struct st_precision_times *times, const struct st_fork *fork,
                                 unsigned prefill);

#endif
