// SPDX-License-Identifier: Apache-2.0
// The methods of `--method`: the model itself, one of stint's packages, or a simulation of another
// quantization method.
#ifndef ST_EVAL_METHODS_H
#define ST_EVAL_METHODS_H

#include "eval/baseline.h"

struct st_subject {
    const struct stint_model *model; // for opening sessions
    struct stint_model *package;     // owned; or NULL
    struct st_baseline *baseline;    // owned, must be attached to every session; or NULL
};

// options->method NULL: the model itself. STINT_E_ARG for an unknown method (the text lists the
// known ones), E_UNSUPPORTED for a model that is a package already, and the statuses of `stint
// prepare`.
stint_status st_subject_open(const struct stint_model *model, const stint_eval_options *options,
                             struct st_subject *subject);
void st_subject_close(struct st_subject *subject); // accepts a zeroed one

#endif
