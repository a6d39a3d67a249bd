// SPDX-License-Identifier: Apache-2.0
// Bytes as the body of both completion endpoints: refused with a sentence and a client's status, or
// taken with every value in its range; a schema in it is compiled or refused.
#include "server/api/request.h"
#include "constraint/constraint.h"
#include "generate/parameters.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_problem(const struct st_problem *problem) {
    struct st_json_text out = {0};
    if (problem->status < 400 || problem->status > 599 || problem->text[0] == 0) abort();
    st_problem_write(problem, &out);
    json_t *json = json_loadb(out.bytes.data, out.bytes.count, 0, NULL);
    if (json == NULL) abort();
    json_decref(json);
    st_bytes_free(&out.bytes);
}

static void check_request(const struct st_request *request) {
    const stint_sampling *s = &request->sampling;
    if (request->n < 1 || request->n > ST_REQUEST_MAX_N) abort();
    if (request->n_stops > ST_REQUEST_MAX_STOPS || request->n_top > ST_REQUEST_MAX_TOP) abort();
    if (!(s->temperature >= 0 && s->temperature <= 2) || !(s->top_p >= 0 && s->top_p <= 1)) abort();
    if (st_sampling_check(s) != STINT_OK) abort();
    for (uint32_t i = 0; i < request->n_stops; i++)
        if (request->stops[i][0] == 0) abort();
    if (request->chat) {
        if (json_array_size(request->messages) == 0) abort();
        return;
    }
    for (size_t i = 0; i < st_request_prompts(request); i++)
        if (st_request_prompt(request, i) == NULL) abort();
}

// What the answer must follow, as the server compiles it.
static void compile(const struct st_request *request) {
    struct st_constraint *constraint = NULL;
    json_t *calls = NULL;
    if (st_calls_schema(&request->tools, &calls) != STINT_OK) abort();
    const json_t *schema = calls != NULL ? calls : request->schema;
    if (schema != NULL && st_constraint_schema(schema, &constraint) == STINT_OK)
        st_constraint_free(constraint);
    json_decref(calls);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const stint_sampling openai = {.size = sizeof openai, .temperature = 1.0f};
    for (int chat = 0; chat < 2; chat++) {
        struct st_request request;
        struct st_problem problem;
        if (!st_request_parse((const char *)data, size, chat == 1, &openai, &request, &problem)) {
            check_problem(&problem);
            continue;
        }
        check_request(&request);
        if (request.chat) compile(&request);
        st_request_free(&request);
    }
    return 0;
}
