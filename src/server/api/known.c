// SPDX-License-Identifier: Apache-2.0
#include "server/api/known.h"

#include "stint.h"

#include <string.h>

// What clients of OpenAI's routes always send, and what changes no answer here.
#define IDLE                                                                                       \
    "user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key",          \
        "prompt_cache_retention", "cache_prompt"

static const char *const chat_used[] = {"messages",
                                        "grammar",
                                        "model",
                                        "max_tokens",
                                        "max_completion_tokens",
                                        "n",
                                        "ignore_eos",
                                        "best_of",
                                        "logit_bias",
                                        "stop",
                                        "stream",
                                        "stream_options",
                                        "tools",
                                        "tool_choice",
                                        "parallel_tool_calls",
                                        "response_format",
                                        "chat_template_kwargs",
                                        "continue_final_message",
                                        "add_generation_prompt",
                                        "reasoning_effort",
                                        "logprobs",
                                        "top_logprobs",
                                        NULL};
static const char *const chat_idle[] = {IDLE, "prediction", NULL};
static const struct st_known_refused chat_refused[] = {
    {"functions", "use tools"},
    {"function_call", "use tool_choice"},
    {"audio", "answers are text"},
    {"web_search_options", "the server does not search"},
    {"echo", "it is only for /v1/completions"},
    {"dry_sequence_breakers", "they are always line ends, ':', '\"' and '*'"},
    {NULL, NULL},
};
const struct st_known st_known_chat = {chat_used, chat_idle, chat_refused, true};

static const char *const text_used[] = {
    "prompt",  "grammar",    "model",      "max_tokens", "max_completion_tokens", "n",
    "best_of", "logit_bias", "stop",       "stream",     "stream_options",        "suffix",
    "echo",    "logprobs",   "ignore_eos", NULL};
static const char *const text_idle[] = {IDLE, NULL};
static const struct st_known_refused text_refused[] = {
    {"dry_sequence_breakers", "they are always line ends, ':', '\"' and '*'"},
    {NULL, NULL},
};
const struct st_known st_known_text = {text_used, text_idle, text_refused, true};

static const char *const none[] = {NULL};
static const struct st_known_refused tokenize_refused[] = {
    {"with_pieces", "ask /detokenize for each token"},
    {"return_token_strs", "ask /detokenize for each token"},
    {NULL, NULL},
};
static const char *const tokenize_used[] = {
    "content", "prompt", "add_special", "add_special_tokens", "model", NULL};
static const char *const detokenize_used[] = {"tokens", "model", NULL};
static const char *const slot_used[] = {"name", "model", NULL};
static const char *const embed_used[] = {"model", "input", "encoding_format", "dimensions", NULL};
static const char *const embed_idle[] = {"user", NULL};
const struct st_known st_known_tokenize = {tokenize_used, none, tokenize_refused, false};
const struct st_known st_known_detokenize = {detokenize_used, none, NULL, false};
const struct st_known st_known_slot = {slot_used, none, NULL, false};
const struct st_known st_known_embed = {embed_used, embed_idle, NULL, false};

static bool has(const char *const *names, const char *name) {
    for (; *names != NULL; names++)
        if (strcmp(*names, name) == 0) return true;
    return false;
}

static bool is_parameter(const char *name) {
    const stint_parameter *p;
    for (size_t i = 0; (p = stint_sampling_parameter(i)) != NULL; i++)
        if (strcmp(p->name, name) == 0 || (p->alias != NULL && strcmp(p->alias, name) == 0))
            return true;
    return false;
}

static bool is_neutral(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_STRING:
        return json_string_length(value) == 0;
    case JSON_ARRAY:
        return json_array_size(value) == 0;
    case JSON_OBJECT:
        return json_object_size(value) == 0;
    case JSON_INTEGER:
    case JSON_REAL:
        return json_number_value(value) == 0;
    default:
        return json_is_false(value);
    }
}

static bool refuse(const char *name, const char *inside, const char *mend,
                   struct st_problem *problem) {
    char path[ST_PROBLEM_PARAM_BYTES];
    snprintf(path, sizeof path, "%.30s%s%.40s", inside != NULL ? inside : "",
             inside != NULL ? "." : "", name);
    return st_refuse(problem, 400, path, "'%s' is not supported%s%s", path,
                     mend != NULL ? ": " : "", mend != NULL ? mend : "");
}

static bool check(const char *name, const json_t *value, const struct st_known *known,
                  const char *inside, struct st_problem *problem) {
    const struct st_known_refused *row = known->refused;
    for (; row != NULL && row->name != NULL; row++)
        if (strcmp(row->name, name) == 0)
            return is_neutral(value) || refuse(name, inside, row->mend, problem);
    if (has(known->used, name) || has(known->idle, name) || (known->sampling && is_parameter(name)))
        return true;
    return refuse(name, inside, NULL, problem);
}

bool st_known_check(const json_t *object, const struct st_known *known, const char *inside,
                    struct st_problem *problem) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value) {
        if (!json_is_null(value) && !check(name, value, known, inside, problem)) return false;
    }
    return true;
}
