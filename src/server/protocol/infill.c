// SPDX-License-Identifier: Apache-2.0
// /infill of llama.cpp's server, which editors use: what is between input_prefix + prompt and
// input_suffix.
#include "server/api/fields.h"
#include "server/api/known.h"
#include "server/api/protocol.h"

#include <stdlib.h>
#include <string.h>

static const char *const used[] = {"input_prefix", "input_suffix", "prompt", "n_predict",
                                   "max_tokens",   "stream",       "stop",   NULL};
// Editors send these; slots and samplers are what `stint serve` was told.
static const char *const idle[] = {
    "model",           "id_slot",          "cache_prompt",    "n_indent", "samplers",
    "t_max_prompt_ms", "t_max_predict_ms", "response_fields", NULL};
static const struct st_known_refused refused[] = {
    {"input_extra", "only the text around the place is read"}, {NULL, NULL}};
const struct st_known st_known_infill = {used, idle, refused, true};

static bool take_text(const json_t *body, json_t *text, struct st_problem *problem) {
    const char *prefix = "", *prompt = "", *suffix = "";
    if (!st_field_string(body, "input_prefix", &prefix, problem) ||
        !st_field_string(body, "prompt", &prompt, problem) ||
        !st_field_string(body, "input_suffix", &suffix, problem))
        return false;
    json_t *made = json_pack("s+", prefix, prompt);
    return (json_object_set_new(text, "prompt", made) == 0 &&
            json_object_set_new(text, "suffix", json_string(suffix)) == 0) ||
           st_protocol_no_memory(problem);
}

static bool take_sampling(const json_t *body, json_t *text, struct st_problem *problem) {
    const stint_parameter *p;
    for (size_t i = 0; (p = stint_sampling_parameter(i)) != NULL; i++) {
        const char *const names[2] = {p->name, p->alias};
        for (size_t k = 0; k < 2 && names[k] != NULL; k++) {
            const json_t *value = st_field(body, names[k]);
            if (value != NULL && json_object_set(text, names[k], (json_t *)value) != 0)
                return st_protocol_no_memory(problem);
        }
    }
    return true;
}

static bool translate(const json_t *body, json_t **text, struct st_problem *problem) {
    static const char *const names[][2] = {
        {"max_tokens", "max_tokens"}, {"stop", "stop"}, {"stream", "stream"}};
    int64_t n = 128;
    if (!st_field_int(body, "n_predict", -2, UINT32_MAX, &n, problem)) return false;
    json_t *made = json_object();
    bool ok = made != NULL &&
              json_object_set_new(made, "max_tokens", json_integer(n < 0 ? UINT32_MAX : n)) == 0;
    ok = (ok && st_protocol_copy(body, names, sizeof names / sizeof *names, made)) ||
         st_protocol_no_memory(problem);
    ok = ok && take_text(body, made, problem) && take_sampling(body, made, problem);
    if (ok)
        *text = made;
    else
        json_decref(made);
    return ok;
}

static void write_end(const char *reason, const struct st_response *response,
                      const struct st_response_usage *usage, struct st_json_text *out) {
    st_json_format(out,
                   ",\"stop\":true,\"stop_type\":\"%s\",\"tokens_predicted\":%zu,"
                   "\"tokens_evaluated\":%zu,\"model\":",
                   strcmp(reason, "length") == 0 ? "limit" : "eos", usage->completion_tokens,
                   usage->prompt_tokens);
    st_json_string_of(out, response->model);
    st_json_raw(out, "}");
}

static void whole(const struct st_response *response, const struct st_transcript *choices,
                  size_t n_choices, const struct st_response_usage *usage,
                  struct st_json_text *out) {
    (void)n_choices; // one
    st_json_raw(out, "{\"content\":");
    st_response_text(choices, st_transcript_all(choices), out);
    write_end(st_response_finish(choices), response, usage, out);
}

static void role(const struct st_response *response, size_t index, struct st_json_text *out) {
    (void)response, (void)index, (void)out;
}

static void thoughts(const struct st_response *response, size_t index,
                     const struct st_transcript *choice, struct st_piece piece,
                     struct st_json_text *out) {
    (void)response, (void)index, (void)choice, (void)piece, (void)out; // texts have none
}

static void piece(const struct st_response *response, size_t index,
                  const struct st_transcript *choice, struct st_piece piece,
                  struct st_json_text *out) {
    (void)response, (void)index;
    if (piece.to == piece.from) return;
    st_json_raw(out, "data: {\"content\":");
    st_response_text(choice, piece, out);
    st_json_raw(out, ",\"stop\":false}\n\n");
}

static void calls(const struct st_response *response, size_t index,
                  const struct st_tool_calls *calls, const char *content,
                  struct st_json_text *out) {
    (void)response, (void)index, (void)calls, (void)content, (void)out; // nor calls
}

static void end(const struct st_response *response, size_t index, const char *reason,
                struct st_json_text *out) {
    (void)index, (void)out;
    response->state->reason = reason;
}

static void last(const struct st_response *response, const struct st_response_usage *usage,
                 struct st_json_text *out) {
    st_json_raw(out, "data: {\"content\":\"\"");
    write_end(response->state->reason, response, usage, out);
    st_json_raw(out, "\n\n");
}

static void aborted(const struct st_problem *why, struct st_json_text *out) {
    st_json_raw(out, "data: ");
    st_problem_write(why, out);
    st_json_raw(out, "\n\n");
}

const struct st_protocol st_protocol_infill = {
    .stream_type = "text/event-stream; charset=utf-8",
    .id = "infill",
    .done = "",
    .translate = translate,
    .whole = whole,
    .role = role,
    .thoughts = thoughts,
    .piece = piece,
    .calls = calls,
    .end = end,
    .last = last,
    .problem = st_problem_write,
    .aborted = aborted,
};
