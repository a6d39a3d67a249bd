// SPDX-License-Identifier: Apache-2.0
#include "server/api/request.h"

#include "server/api/known.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// About what the values of a text take in memory once they are read. Containers without content are
// the worst: a hundred times their own length.
static size_t tree_bytes(const char *body, size_t n_bytes) {
    enum { CONTAINER = 300, PAIR = 120, VALUE = 40 };
    size_t bytes = 0;
    bool quoted = false;
    for (size_t i = 0; i < n_bytes; i++) {
        char c = body[i];
        if (c == '\\' && quoted)
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted)
            bytes += c == '[' || c == '{' ? CONTAINER : c == ':' ? PAIR : c == ',' ? VALUE : 0;
    }
    return bytes;
}

bool st_request_object(const char *body, size_t n_bytes, json_t **object,
                       struct st_problem *problem) {
    json_error_t error;
    if (tree_bytes(body, n_bytes) > ST_REQUEST_TREE_BYTES)
        return st_refuse(problem, 413, NULL, "the body has too many values");
    errno = 0;
    json_t *json = json_loadb(n_bytes > 0 ? body : "", n_bytes, JSON_REJECT_DUPLICATES, &error);
    if (errno == ENOMEM) { // jansson may have ignored it
        json_decref(json);
        return st_refuse(problem, 503, NULL, "not enough memory to read the body");
    }
    if (json == NULL)
        return st_refuse(problem, 400, NULL, "the body is not valid JSON: %s (line %d, column %d)",
                         error.text, error.line, error.column);
    if (!json_is_object(json)) {
        json_decref(json);
        return st_refuse(problem, 400, NULL, "the body must be a JSON object");
    }
    *object = json;
    return true;
}

static bool read_parameter(const json_t *body, const stint_parameter *p, stint_sampling *sampling,
                           struct st_problem *problem) {
    bool by_alias = p->alias != NULL && st_field(body, p->name) == NULL;
    const char *name = by_alias ? p->alias : p->name;
    void *to = (char *)sampling + p->offset;
    switch (p->type) {
    case STINT_PARAMETER_FLOAT:
        return st_field_real(body, name, p->request_min, p->request_max, to, problem);
    case STINT_PARAMETER_UINT:
        return st_field_uint(body, name, (uint32_t)p->request_min, (uint32_t)p->request_max, to,
                             problem);
    case STINT_PARAMETER_UINT64:
        return st_field_int(body, name, INT64_MIN, INT64_MAX, to, problem);
    }
    return false;
}

static bool read_sampling(struct st_request *request, struct st_problem *problem) {
    const json_t *body = request->body;
    const stint_parameter *p;
    for (size_t i = 0; (p = stint_sampling_parameter(i)) != NULL; i++)
        if (!read_parameter(body, p, &request->sampling, problem)) return false;
    // 0 means "off" to the sampler, but "only the likeliest token" to a client.
    if (st_field(body, "top_p") != NULL && request->sampling.top_p == 0.0f &&
        st_field(body, "top_k") == NULL)
        request->sampling.top_k = 1;
    request->seeded = st_field(body, "seed") != NULL || request->sampling.seed != 0;
    return true;
}

// A token id as a name in JSON: digits without leading zeros.
static bool read_id(const char *name, int32_t *id) {
    size_t n = strlen(name);
    if (n == 0 || n > 9 || strspn(name, "0123456789") != n || (n > 1 && name[0] == '0'))
        return false;
    *id = (int32_t)strtol(name, NULL, 10);
    return true;
}

static bool read_bias(const char *name, const json_t *value, stint_logit_bias *bias,
                      struct st_problem *problem) {
    double number = json_number_value(value);
    if (!read_id(name, &bias->id))
        return st_refuse(problem, 400, "logit_bias",
                         "'logit_bias': '%.40s' is not the id of a token", name);
    if (!json_is_number(value) || !(number >= -100 && number <= 100))
        return st_refuse(problem, 400, "logit_bias",
                         "'logit_bias' of token %d must be a number from -100 to 100", bias->id);
    bias->value = number > -100 ? (float)number : -INFINITY;
    return true;
}

// {"token id": bias to add to its logit}
static bool read_biases(struct st_request *request, struct st_problem *problem) {
    const json_t *object = st_field(request->body, "logit_bias");
    json_t *value;
    const char *name;
    size_t n = json_object_size(object);
    if (object == NULL) return true;
    if (!json_is_object(object))
        return st_refuse(problem, 400, "logit_bias", "'logit_bias' is %s; it must be an object",
                         st_field_type(object));
    if (n > ST_REQUEST_MAX_BIASES)
        return st_refuse(problem, 400, "logit_bias",
                         "'logit_bias' has %zu tokens; the maximum is %d", n,
                         ST_REQUEST_MAX_BIASES);
    request->biases = calloc(n + 1, sizeof *request->biases);
    if (request->biases == NULL) return st_refuse(problem, 503, NULL, "not enough memory");
    json_object_foreach((json_t *)object, name, value) {
        if (!read_bias(name, value, &request->biases[request->n_biases], problem)) return false;
        request->n_biases++;
    }
    return true;
}

static bool read_stop(const json_t *value, struct st_request *request, struct st_problem *problem) {
    if (!json_is_string(value) || json_string_length(value) == 0)
        return st_refuse(problem, 400, "stop", "'stop' must not contain empty texts");
    request->stops[request->n_stops++] = json_string_value(value);
    return true;
}

static bool read_stops(struct st_request *request, struct st_problem *problem) {
    const json_t *stop = st_field(request->body, "stop");
    if (stop == NULL) return true;
    if (!json_is_array(stop)) return read_stop(stop, request, problem);
    if (json_array_size(stop) > ST_REQUEST_MAX_STOPS)
        return st_refuse(problem, 400, "stop", "'stop' has %zu texts; the maximum is %d",
                         json_array_size(stop), ST_REQUEST_MAX_STOPS);
    for (size_t i = 0; i < json_array_size(stop); i++)
        if (!read_stop(json_array_get(stop, i), request, problem)) return false;
    return true;
}

static const char *const stream_used[] = {"include_usage", "continuous_usage_stats", NULL};
static const char *const stream_idle[] = {"include_obfuscation", NULL};
static const struct st_known stream_options = {stream_used, stream_idle, NULL, false};

static bool read_stream(struct st_request *request, struct st_problem *problem) {
    if (!st_field_bool(request->body, "stream", &request->stream, problem)) return false;
    const json_t *options = st_field(request->body, "stream_options");
    if (options == NULL) return true;
    if (!json_is_object(options))
        return st_refuse(problem, 400, "stream_options", "'stream_options' must be an object");
    if (!request->stream)
        return st_refuse(problem, 400, "stream_options",
                         "'stream_options' are only for \"stream\": true");
    return st_known_check(options, &stream_options, "stream_options", problem) &&
           st_field_bool(options, "include_usage", &request->include_usage, problem) &&
           st_field_bool(options, "continuous_usage_stats", &request->continuous_usage, problem);
}

static bool read_best_of(struct st_request *request, struct st_problem *problem) {
    request->best_of = request->n;
    if (!st_field_uint(request->body, "best_of", 1, ST_REQUEST_MAX_N, &request->best_of, problem))
        return false;
    if (request->best_of < request->n)
        return st_refuse(problem, 400, "best_of", "'best_of' is %u; it must be at least 'n', %u",
                         request->best_of, request->n);
    if (request->best_of > request->n && request->stream)
        return st_refuse(problem, 400, "best_of",
                         "'best_of' chooses at the end, so a stream cannot have more than 'n'");
    return true;
}

static bool is_ids(const json_t *value) {
    return json_is_array(value) && json_is_integer(json_array_get(value, 0));
}

static bool check_prompt(const json_t *value, struct st_problem *problem) {
    if (json_is_string(value)) return true;
    if (!is_ids(value))
        return st_refuse(problem, 400, "prompt",
                         "'prompt' must be a text, an array of texts, an array of token ids, or "
                         "an array of those");
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!json_is_integer(json_array_get(value, i)))
            return st_refuse(problem, 400, "prompt", "'prompt': token %zu is not an integer", i);
    return true;
}

static bool read_text(struct st_request *request, struct st_problem *problem) {
    request->prompt = st_field(request->body, "prompt");
    request->max_tokens = ST_REQUEST_TEXT_TOKENS;
    if (request->prompt == NULL) return st_refuse(problem, 400, "prompt", "'prompt' is missing");
    size_t n = st_request_prompts(request);
    if (n == 0 || n > ST_REQUEST_MAX_PROMPTS)
        return st_refuse(problem, 400, "prompt", "%zu prompts; there must be 1 to %d", n,
                         ST_REQUEST_MAX_PROMPTS);
    for (size_t i = 0; i < n; i++)
        if (!check_prompt(st_request_prompt(request, i), problem)) return false;
    if (!st_field_string(request->body, "suffix", &request->suffix, problem)) return false;
    if (request->suffix != NULL && *request->suffix == 0) request->suffix = NULL;
    if (request->suffix != NULL && !json_is_string(request->prompt))
        return st_refuse(problem, 400, "suffix", "'suffix' needs one text as 'prompt'");
    // For completions it is the number of alternatives; 0 gives only those of the sampled tokens.
    request->logprobs = st_field(request->body, "logprobs") != NULL;
    if (!st_field_bool(request->body, "echo", &request->echo, problem)) return false;
    if (request->suffix != NULL && request->echo)
        return st_refuse(problem, 400, "echo", "'echo' and 'suffix' exclude each other");
    return st_field_uint(request->body, "logprobs", 0, ST_REQUEST_MAX_TOP, &request->n_top,
                         problem);
}

// 0 is only for completions: the prompt is computed, and nothing else.
static bool read_max_tokens(struct st_request *request, struct st_problem *problem) {
    static const char *const names[] = {"max_tokens", "max_completion_tokens"};
    uint32_t min = request->chat ? 1 : 0;
    for (size_t i = 0; i < 2; i++) {
        if (!st_field_uint(request->body, names[i], min, UINT32_MAX, &request->max_tokens, problem))
            return false;
    }
    request->no_answer = !request->chat && request->max_tokens == 0;
    return true;
}

static bool read_grammar(struct st_request *request, struct st_problem *problem) {
    if (!st_field_string(request->body, "grammar", &request->grammar, problem)) return false;
    if (request->grammar == NULL) return true;
    if (request->format != ST_FORMAT_TEXT || request->tools.choice == ST_TOOLS_REQUIRED ||
        request->begun != NULL)
        return st_refuse(problem, 400, "grammar",
                         "'grammar' and another form of the answer exclude each other");
    return true;
}

static bool read_common(struct st_request *request, struct st_problem *problem) {
    const json_t *body = request->body;
    request->n = 1;
    return st_field_string(body, "model", &request->model, problem) &&
           st_field_uint(body, "n", 1, ST_REQUEST_MAX_N, &request->n, problem) &&
           read_grammar(request, problem) && read_max_tokens(request, problem) &&
           read_sampling(request, problem) && read_biases(request, problem) &&
           read_stops(request, problem) && read_stream(request, problem) &&
           st_field_bool(body, "ignore_eos", &request->ignore_eos, problem) &&
           read_best_of(request, problem);
}

bool st_request_read(json_t *body, bool chat, const stint_sampling *sampling,
                     struct st_request *request, struct st_problem *problem) {
    struct st_request made = {.body = body, .chat = chat, .sampling = *sampling};
    bool ok = (chat ? st_request_chat(&made, problem) : read_text(&made, problem)) &&
              read_common(&made, problem);
    if (ok)
        *request = made;
    else
        st_request_free(&made);
    return ok;
}

bool st_request_parse(const char *body, size_t n_bytes, bool chat, const stint_sampling *sampling,
                      struct st_request *request, struct st_problem *problem) {
    json_t *json;
    if (!st_request_object(body, n_bytes, &json, problem)) return false;
    if (st_known_check(json, chat ? &st_known_chat : &st_known_text, NULL, problem))
        return st_request_read(json, chat, sampling, request, problem);
    json_decref(json);
    return false;
}

void st_request_free(struct st_request *request) {
    json_decref(request->body);
    free(request->biases);
    *request = (struct st_request){0};
}

size_t st_request_prompts(const struct st_request *request) {
    const json_t *prompt = request->prompt;
    return json_is_array(prompt) && !is_ids(prompt) ? json_array_size(prompt) : 1;
}

const json_t *st_request_prompt(const struct st_request *request, size_t i) {
    const json_t *prompt = request->prompt;
    return json_is_array(prompt) && !is_ids(prompt) ? json_array_get(prompt, i) : prompt;
}
