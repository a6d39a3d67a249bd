// SPDX-License-Identifier: Apache-2.0
// A checkpoint in float with the nested weights of a package beside its own: drafts, and precision
// schedules, whose highest precision is then float.
#ifndef ST_MODEL_NESTED_FROM_H
#define ST_MODEL_NESTED_FROM_H

#include "model/model.h"

// Opens the package and lends its nested weights to the linears of `model`, which is bound and
// holds it from then on. E_ARG where `model` is a package itself, E_UNSUPPORTED where its weights
// are read on demand, E_FORMAT where the package has no nested weights or is of another model.
stint_status st_nested_from_open(const char *package, struct stint_model *model);
void st_nested_from_close(struct stint_model *model);

#endif
