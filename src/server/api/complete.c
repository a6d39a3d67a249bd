// SPDX-License-Identifier: Apache-2.0
// /v1/chat/completions and /v1/completions: from a body to an answer in progress.
#include "generate/calls.h"
#include "server/api/handlers.h"
#include "server/api/infill.h"
#include "server/api/protocol.h"
#include "server/api/state.h"
#include "constraint/constraint.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

// All prompts of a request, as token ids.
struct prompts {
    struct st_ids ids[ST_REQUEST_MAX_PROMPTS];
    struct st_answer_prompt at[ST_REQUEST_MAX_PROMPTS];
    size_t n;
    enum st_reasoning_phase reasoning; // the phase in which an answer to them begins
};

static void free_prompts(struct prompts *prompts) {
    for (size_t i = 0; i < prompts->n; i++) st_ids_free(&prompts->ids[i]);
}

static bool add_prompt(const struct st_served *served, struct prompts *prompts,
                       struct st_problem *problem, const char *param) {
    const struct st_ids *ids = &prompts->ids[prompts->n - 1];
    if (ids->count == 0) return st_refuse(problem, 400, param, "the prompt is empty");
    if (ids->count >= served->context) {
        st_refuse(problem, 400, param,
                  "the prompt has %zu tokens, and prompt and answer together may have %zu; shorten "
                  "it, or start the server with a larger --ctx",
                  ids->count, served->context);
        problem->code = "context_length_exceeded";
        return false;
    }
    prompts->at[prompts->n - 1] = (struct st_answer_prompt){ids->data, ids->count};
    return true;
}

// Tokenizing takes many times the memory of its text, so a text that cannot fit is refused before.
static bool check_bytes(const struct st_served *served, size_t n, struct st_problem *problem,
                        const char *param) {
    size_t max = st_tokenizer_max_bytes(served->tokenizer, served->context);
    if (n <= max) return true;
    st_refuse(
        problem, 400, param,
        "the prompt has %zu bytes, and %zu tokens, which prompt and answer together may have, "
        "hold at most %zu; shorten it, or start the server with a larger --ctx",
        n, served->context, max);
    problem->code = "context_length_exceeded";
    return false;
}

static bool encode(const struct st_served *served, const char *text, uint32_t flags,
                   struct prompts *prompts, struct st_problem *problem, const char *param) {
    if (!check_bytes(served, strlen(text), problem, param)) return false;
    struct st_ids *ids = &prompts->ids[prompts->n++];
    stint_status status = st_tokenizer_encode(served->tokenizer, text, strlen(text), flags, ids);
    if (status != STINT_OK) return st_refuse_failure(problem, status, param);
    return add_prompt(served, prompts, problem, param);
}

static stint_status append_text(char **text, const char *more) {
    size_t n = strlen(*text), n_more = strlen(more);
    char *longer = realloc(*text, n + n_more + 1);
    if (longer == NULL) {
        free(*text);
        return st_fail(STINT_E_NOMEM, "no memory for a prompt");
    }
    memcpy(longer + n, more, n_more + 1);
    *text = longer;
    return STINT_OK;
}

static bool chat_prompt(const struct st_served *served, const struct st_request *request,
                        struct prompts *prompts, struct st_problem *problem) {
    char *text;
    stint_status status =
        st_chat_prompt_thinking(served->chat, request->messages, request->tools.list,
                                request->thinking, &text, &prompts->reasoning);
    if (status == STINT_OK && request->begun != NULL) status = append_text(&text, request->begun);
    if (request->begun != NULL) prompts->reasoning = ST_REASONING_NONE;
    if (status != STINT_OK) return st_refuse_failure(problem, status, "messages");
    bool ok = encode(served, text, 0, prompts, problem, "messages");
    free(text);
    return ok;
}

static bool copy_ids(const struct st_served *served, const json_t *array, struct prompts *prompts,
                     struct st_problem *problem) {
    struct st_ids *ids = &prompts->ids[prompts->n++];
    size_t vocab = st_tokenizer_vocab(served->tokenizer);
    for (size_t i = 0; i < json_array_size(array); i++) {
        int64_t id = json_integer_value(json_array_get(array, i));
        if (id < 0 || (uint64_t)id >= vocab)
            return st_refuse(problem, 400, "prompt", "token %lld is not one of 0 to %zu",
                             (long long)id, vocab - 1);
        if (st_ids_append(ids, (int32_t)id) != STINT_OK)
            return st_refuse_failure(problem, STINT_E_NOMEM, NULL);
    }
    return add_prompt(served, prompts, problem, "prompt");
}

static bool infill_prompt(const struct st_served *served, struct st_request *request,
                          struct prompts *prompts, struct st_problem *problem) {
    size_t n = strlen(json_string_value(request->prompt)) + strlen(request->suffix);
    if (!check_bytes(served, n, problem, "prompt")) return false;
    return st_infill_prompt(served, request, &prompts->ids[prompts->n++], problem) &&
           add_prompt(served, prompts, problem, "prompt");
}

static bool text_prompts(const struct st_served *served, struct st_request *request,
                         struct prompts *prompts, struct st_problem *problem) {
    if (request->suffix != NULL) return infill_prompt(served, request, prompts, problem);
    for (size_t i = 0; i < st_request_prompts(request); i++) {
        const json_t *prompt = st_request_prompt(request, i);
        bool ok = json_is_string(prompt)
                      ? encode(served, json_string_value(prompt), STINT_TOKENIZE_ADD_BOS, prompts,
                               problem, "prompt")
                      : copy_ids(served, prompt, prompts, problem);
        if (!ok) return false;
    }
    return true;
}

static stint_status compact_object(struct st_constraint **constraint) {
    json_t *schema = json_pack("{s:s}", "type", "object");
    if (schema == NULL) return st_fail(STINT_E_NOMEM, "no memory for a schema");
    stint_status status = st_constraint_compact(schema, constraint);
    json_decref(schema);
    return status;
}

// The constraint of the answer; *constraint is NULL if there is none.
static bool constrain(const struct st_request *request, struct st_constraint **constraint,
                      struct st_problem *problem) {
    json_t *calls;
    const char *param = "response_format";
    stint_status status = st_calls_schema(&request->tools, &calls);
    *constraint = NULL;
    if (status == STINT_OK && calls != NULL) {
        param = "tools";
        status = st_constraint_schema(calls, constraint);
    } else if (status == STINT_OK && request->grammar != NULL) {
        param = "grammar";
        status = st_constraint_grammar(request->grammar, constraint);
    } else if (status == STINT_OK && request->format == ST_FORMAT_SCHEMA) {
        status = (request->compact ? st_constraint_compact : st_constraint_schema)(request->schema,
                                                                                   constraint);
    } else if (status == STINT_OK && request->format == ST_FORMAT_JSON) {
        status = request->compact ? compact_object(constraint) : st_constraint_json(constraint);
    }
    json_decref(calls);
    return status == STINT_OK || st_refuse_failure(problem, status, param);
}

static bool check(const struct st_server *server, const struct st_served *served,
                  const struct st_request *request, struct st_problem *problem) {
    size_t vocab = st_tokenizer_vocab(served->tokenizer);
    for (size_t i = 0; i < request->n_biases; i++)
        if ((size_t)request->biases[i].id >= vocab)
            return st_refuse(problem, 400, "logit_bias",
                             "'logit_bias': token %d is not one of 0 to %zu", request->biases[i].id,
                             vocab - 1);
    size_t n = request->chat ? 1 : st_request_prompts(request);
    size_t max = (size_t)served->n_slots + server->n_queue;
    if (n * request->best_of > max)
        return st_refuse(problem, 400, request->best_of > request->n ? "best_of" : "n",
                         "the request asks for %zu answers at once; slots and queue hold %zu",
                         n * request->best_of, max);
    return true;
}

static void name_answer(const struct st_served *served, const struct st_request *request,
                        uint64_t random, struct st_response *response) {
    *response = (struct st_response){.created = time(NULL),
                                     .model = served->name,
                                     .fingerprint = served->fingerprint,
                                     .chat = request->chat,
                                     .logprobs = request->logprobs,
                                     .usage_follows = request->include_usage,
                                     .tokenizer = served->tokenizer,
                                     .protocol = &st_protocol_openai};
    snprintf(response->id, sizeof response->id, "%s-%016llx", request->chat ? "chatcmpl" : "cmpl",
             (unsigned long long)random);
}

static bool start(struct st_server *server, struct st_request *request, struct st_call *call) {
    const struct st_served *served = call->served;
    struct prompts prompts = {.n = 0};
    struct st_constraint *constraint = NULL;
    uint64_t random[2];
    struct st_response response;
    bool ok = check(server, served, request, &call->problem) &&
              (request->chat ? chat_prompt(served, request, &prompts, &call->problem)
                             : text_prompts(served, request, &prompts, &call->problem));
    if (ok && getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        ok = st_refuse(&call->problem, 500, NULL, "the system has no random numbers");
    if (ok) ok = constrain(request, &constraint, &call->problem);
    // A constrained answer has no reasoning, even if the model would reason against its template.
    if (ok && constraint != NULL && request->thinking == ST_CHAT_THINKS_NOT)
        prompts.reasoning = ST_REASONING_NONE;
    if (ok) {
        name_answer(served, request, random[0], &response);
        if (call->protocol != NULL) {
            response.protocol = call->protocol;
            snprintf(response.id, sizeof response.id, "%s_%016llx", call->protocol->id,
                     (unsigned long long)random[0]);
        }
        response.n_prompt = prompts.at[0].n;
        response.reasons = prompts.reasoning != ST_REASONING_NONE;
        if (!request->seeded) request->sampling.seed = random[1];
        ok = st_answer_open(&(struct st_answer_options){.served = served,
                                                        .metrics = server->metrics,
                                                        .response = &response,
                                                        .request = request,
                                                        .constraint = constraint,
                                                        .reasoning = prompts.reasoning,
                                                        .prompts = prompts.at,
                                                        .n_prompts = prompts.n,
                                                        .owner = call->owner},
                            &call->answer, &call->problem);
    }
    free_prompts(&prompts);
    return ok;
}

// Other protocols' bodies become those of chats.
bool st_call_body(const struct st_call *call, json_t **body, struct st_problem *problem) {
    json_t *chat = NULL;
    if (call->protocol == NULL) {
        *body = json_incref(call->object);
        return true;
    }
    bool ok = call->protocol->translate(call->object, &chat, problem);
    *body = chat;
    return ok;
}

static bool complete(struct st_server *server, struct st_call *call, bool chat) {
    struct st_request request;
    json_t *body;
    if (!st_call_body(call, &body, &call->problem) ||
        !st_request_read(body, chat, &call->served->sampling, &request, &call->problem))
        return false;
    bool ok = start(server, &request, call);
    st_request_free(&request); // the parts that the answer took over are no longer in it
    return ok;
}

bool st_handle_chat(struct st_server *server, struct st_call *call) {
    return complete(server, call, true);
}

bool st_handle_text(struct st_server *server, struct st_call *call) {
    return complete(server, call, false);
}
