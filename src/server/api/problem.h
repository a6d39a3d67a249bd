// SPDX-License-Identifier: Apache-2.0
// The reason for refusing a request: the HTTP status, the field, and a sentence that says how to
// fix it. Written as JSON in the form that OpenAI's clients turn into exceptions.
#ifndef ST_SERVER_PROBLEM_H
#define ST_SERVER_PROBLEM_H

#include "base/status.h"
#include "server/api/json_text.h"

enum { ST_PROBLEM_TEXT_BYTES = 512, ST_PROBLEM_PARAM_BYTES = 80 };

struct st_problem {
    int status;                         // of HTTP
    const char *code;                   // for programs; static. NULL: the default of the status
    char param[ST_PROBLEM_PARAM_BYTES]; // "" if it is not about a field
    char text[ST_PROBLEM_TEXT_BYTES];
};

// Fills *problem; `param` may be NULL. Returns false, so that callers can `return st_refuse(...)`.
bool st_refuse(struct st_problem *problem, int status, const char *param, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// The same for this thread's last failure, whose status says whether the request or the server
// caused it.
bool st_refuse_failure(struct st_problem *problem, stint_status status, const char *param);

// The HTTP status for a status of the library.
int st_problem_http(stint_status status);

// {"error":{"message","type","param","code"}}
void st_problem_write(const struct st_problem *problem, struct st_json_text *out);

#endif
