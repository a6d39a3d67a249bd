// SPDX-License-Identifier: Apache-2.0
#include "server/api/problem.h"

#include <stdarg.h>
#include <stdio.h>

// The HTTP status, OpenAI's type, and the code for problems that do not name one.
static const struct kind {
    int status;
    const char *type, *code;
} kinds[] = {
    {400, "invalid_request_error", NULL},
    {401, "authentication_error", "invalid_api_key"},
    {403, "invalid_request_error", "forbidden"},
    {404, "invalid_request_error", "not_found"},
    {405, "invalid_request_error", "method_not_allowed"},
    {409, "invalid_request_error", "slot_files_full"},
    {413, "invalid_request_error", "body_too_large"},
    {429, "rate_limit_error", "queue_full"},
    {431, "invalid_request_error", "headers_too_large"},
    {500, "server_error", NULL},
    {503, "server_error", "unavailable"},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static const struct {
    stint_status status;
    int http;
} statuses[] = {
    {STINT_E_ARG, 400},         {STINT_E_FORMAT, 400}, {STINT_E_LIMIT, 400},
    {STINT_E_UNSUPPORTED, 400}, {STINT_E_NOMEM, 503},  {STINT_E_CANCELED, 503},
};

int st_problem_http(stint_status status) {
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == status) return statuses[i].http;
    return 500;
}

bool st_refuse(struct st_problem *problem, int status, const char *param, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    problem->status = status;
    problem->code = NULL;
    snprintf(problem->param, sizeof problem->param, "%s", param != NULL ? param : "");
    vsnprintf(problem->text, sizeof problem->text, format, arguments);
    va_end(arguments);
    return false;
}

bool st_refuse_failure(struct st_problem *problem, stint_status status, const char *param) {
    return st_refuse(problem, st_problem_http(status), param, "%s", st_error_text());
}

void st_problem_write(const struct st_problem *problem, struct st_json_text *out) {
    const struct kind *kind = &kinds[N_KINDS - 2]; // 500
    for (size_t i = 0; i < N_KINDS; i++)
        if (kinds[i].status == problem->status) kind = &kinds[i];
    const char *code = problem->code != NULL ? problem->code : kind->code;
    st_json_raw(out, "{\"error\":{\"message\":");
    st_json_string_of(out, problem->text);
    st_json_raw(out, ",\"type\":");
    st_json_string_of(out, kind->type);
    st_json_raw(out, ",\"param\":");
    st_json_string_of(out, problem->param[0] != 0 ? problem->param : NULL);
    st_json_raw(out, ",\"code\":");
    st_json_string_of(out, code);
    st_json_raw(out, "}}");
}
