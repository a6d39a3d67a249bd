// SPDX-License-Identifier: Apache-2.0
// What `--method` names: a model as it is, as one of stint's packages, or as another quantization
// method would leave it.
#ifndef ST_EVAL_METHODS_H
#define ST_EVAL_METHODS_H

#include "eval/baseline.h"

struct st_subject {
    const struct stint_model *model; // to open sessions on
    struct stint_model *package;     // owned; or NULL
    struct st_baseline *baseline;    // owned; attach to every session; or NULL
};

// options->method NULL: the model as it is. STINT_E_ARG for an unknown method (the text lists the
// known), E_UNSUPPORTED for a model that is a package already, and what `stint prepare` gives.
stint_status st_subject_open(const struct stint_model *model, const stint_eval_options *options,
                             struct st_subject *subject);
void st_subject_close(struct st_subject *subject); // accepts a zeroed one

#endif
