// SPDX-License-Identifier: Apache-2.0
// Prompts that ask for the middle between a prefix and a suffix, by the marks of the model's family
// (Bavarian et al. 2022, arXiv 2207.14255; prefix, suffix, middle).
#ifndef ST_SERVER_INFILL_H
#define ST_SERVER_INFILL_H

#include "server/api/request.h"
#include "server/models/served.h"

// Appends the prompt's ids, and to the request the texts that end such answers. False with
// *problem: the model has no such marks.
bool st_infill_prompt(const struct st_served *served, struct st_request *request,
                      struct st_ids *ids, struct st_problem *problem);

#endif
