// SPDX-License-Identifier: Apache-2.0
// Why a request is refused, as a client is told: HTTP's status, the field it is about, a sentence
// with the mend. Written as JSON in the shape that OpenAI's clients turn into exceptions.
#ifndef ST_SERVER_PROBLEM_H
#define ST_SERVER_PROBLEM_H

#include "base/status.h"
#include "server/api/json_text.h"

enum { ST_PROBLEM_TEXT_BYTES = 512, ST_PROBLEM_PARAM_BYTES = 80 };

struct st_problem {
    int status;       // HTTP's
    const char *code; // for programs; static. NULL: the status' own, if it has one
    char param[ST_PROBLEM_PARAM_BYTES]; // "" where it is about no field
    char text[ST_PROBLEM_TEXT_BYTES];
};

// Fills *problem; `param` may be NULL. Always false, so that `return st_refuse(...)` is one step.
bool st_refuse(struct st_problem *problem, int status, const char *param, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// The same of this thread's last failure, whose status says whether the request or the server is
// to blame.
bool st_refuse_failure(struct st_problem *problem, stint_status status, const char *param);

// HTTP's status for a library's.
int st_problem_http(stint_status status);

// {"error":{"message","type","param","code"}}
void st_problem_write(const struct st_problem *problem, struct st_json_text *out);

#endif
