// SPDX-License-Identifier: Apache-2.0
// Ollama's /api/chat and /api/generate. A stream is one JSON object per line, and is what a request
// gets that does not say.
#include "server/api/fields.h"
#include "server/protocol/ollama.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

// ---- requests

static const char *const idle[] = {"keep_alive", NULL};

#define REFUSED                                                                                    \
    {"logprobs", "they are in OpenAI's form of chats"}, {"top_logprobs", NULL},                    \
        {"truncate", "prompts are not cut"}, {"shift", "prompts are not cut"}, {                   \
        NULL, NULL                                                                                 \
    }
static const char *const chat_used[] = {"model",  "messages", "tools", "options",
                                        "format", "stream",   "think", NULL};
static const struct st_known_refused chat_refused[] = {REFUSED};
const struct st_known st_known_ollama_chat = {chat_used, idle, chat_refused, false};

static const char *const generate_used[] = {"model",  "prompt", "system", "options",
                                            "format", "stream", "think",  NULL};
static const struct st_known_refused generate_refused[] = {
    {"suffix", NULL},
    {"images", "models read only texts"},
    {"template", "the model's own is used"},
    {"context", "send the conversation to /api/chat"},
    {"raw", "use /v1/completions"},
    REFUSED,
};
const struct st_known st_known_ollama_generate = {generate_used, idle, generate_refused, false};

// How a machine is used is what `stint serve` was told.
static const char *const options_used[] = {"temperature",
                                           "top_k",
                                           "top_p",
                                           "min_p",
                                           "seed",
                                           "stop",
                                           "repeat_penalty",
                                           "repeat_last_n",
                                           "presence_penalty",
                                           "frequency_penalty",
                                           "num_predict",
                                           NULL};
static const char *const options_idle[] = {"num_ctx",    "num_batch",    "num_gpu",      "main_gpu",
                                           "num_thread", "use_mmap",     "use_mlock",    "numa",
                                           "low_vram",   "mirostat_eta", "mirostat_tau", NULL};
static const struct st_known_refused options_refused[] = {
    {"typical_p", NULL},        {"tfs_z", NULL}, {"mirostat", NULL}, {"num_keep", NULL},
    {"penalize_newline", NULL}, {NULL, NULL}};
static const char *const none[] = {NULL};
const struct st_known st_known_ollama_machine = {none, options_idle, NULL, false};
static const struct st_known known_options = {options_used, options_idle, options_refused, false};

bool st_ollama_model(const json_t *body, json_t *chat, struct st_problem *problem) {
    static const char tag[] = ":latest";
    const char *name = json_string_value(st_field(body, "model"));
    size_t n = name != NULL ? strlen(name) : 0, n_tag = sizeof tag - 1;
    if (name == NULL) return st_refuse(problem, 400, "model", "'model' is missing");
    if (n > n_tag && strcmp(name + n - n_tag, tag) == 0) n -= n_tag;
    return json_object_set_new(chat, "model", json_stringn(name, n)) == 0 ||
           st_protocol_no_memory(problem);
}

static bool take_options(const json_t *body, json_t *chat, struct st_problem *problem) {
    static const char *const names[][2] = {
        {"temperature", "temperature"},
        {"top_k", "top_k"},
        {"top_p", "top_p"},
        {"min_p", "min_p"},
        {"seed", "seed"},
        {"stop", "stop"},
        {"repeat_penalty", "repeat_penalty"},
        {"repeat_last_n", "repeat_last_n"},
        {"presence_penalty", "presence_penalty"},
        {"frequency_penalty", "frequency_penalty"},
    };
    const json_t *options = st_field(body, "options");
    int64_t n = 0;
    if (options == NULL) return true;
    if (!json_is_object(options))
        return st_refuse(problem, 400, "options", "'options' must be an object");
    if (!st_known_check(options, &known_options, "options", problem) ||
        !st_field_int(options, "num_predict", -2, UINT32_MAX, &n, problem))
        return false;
    if (!st_protocol_copy(options, names, sizeof names / sizeof *names, chat) ||
        (n > 0 && json_object_set_new(chat, "max_tokens", json_integer(n)) != 0))
        return st_protocol_no_memory(problem);
    return true;
}

// "json" or a schema.
static bool take_format(const json_t *body, json_t *chat, struct st_problem *problem) {
    const json_t *format = st_field(body, "format");
    const char *word = json_string_value(format);
    json_t *made;
    if (format == NULL || (word != NULL && *word == 0)) return true;
    if (word != NULL && strcmp(word, "json") == 0)
        made = json_pack("{s:s}", "type", "json_object");
    else if (json_is_object(format))
        made = json_pack("{s:s, s:{s:s, s:O}}", "type", "json_schema", "json_schema", "name",
                         "format", "schema", format);
    else
        return st_refuse(problem, 400, "format", "'format' must be \"json\" or a JSON schema");
    return json_object_set_new(chat, "response_format", made) == 0 ||
           st_protocol_no_memory(problem);
}

static bool take_stream(const json_t *body, json_t *chat, struct st_problem *problem) {
    bool stream = true, think = false, given = st_field(body, "think") != NULL;
    if (!st_field_bool(body, "stream", &stream, problem) ||
        !st_field_bool(body, "think", &think, problem))
        return false;
    bool ok = json_object_set_new(chat, "stream", json_boolean(stream)) == 0;
    if (given)
        ok = ok && json_object_set_new(chat, "chat_template_kwargs",
                                       json_pack("{s:b}", "enable_thinking", think)) == 0;
    return ok || st_protocol_no_memory(problem);
}

static bool take_common(const json_t *body, json_t *chat, struct st_problem *problem) {
    return st_ollama_model(body, chat, problem) && take_options(body, chat, problem) &&
           take_format(body, chat, problem) && take_stream(body, chat, problem);
}

static bool take_messages(const json_t *body, json_t *chat, struct st_problem *problem) {
    static const char *const names[][2] = {{"messages", "messages"}, {"tools", "tools"}};
    const json_t *messages = st_field(body, "messages");
    for (size_t i = 0; i < json_array_size(messages); i++)
        if (json_array_size(json_object_get(json_array_get(messages, i), "images")) > 0)
            return st_refuse(problem, 400, "messages", "'images' are not supported");
    return (st_protocol_copy(body, names, 2, chat) || st_protocol_no_memory(problem)) &&
           st_protocol_continue(chat, problem);
}

static bool take_prompt(const json_t *body, json_t *chat, struct st_problem *problem) {
    const json_t *system = st_field(body, "system"), *prompt = st_field(body, "prompt");
    if (!json_is_string(prompt)) return st_refuse(problem, 400, "prompt", "'prompt' is missing");
    json_t *messages = json_array();
    bool ok = messages != NULL;
    if (system != NULL && ok)
        ok = json_array_append_new(
                 messages, json_pack("{s:s, s:O}", "role", "system", "content", system)) == 0;
    ok = ok && json_array_append_new(
                   messages, json_pack("{s:s, s:O}", "role", "user", "content", prompt)) == 0;
    return (json_object_set_new(chat, "messages", messages) == 0 && ok) ||
           st_protocol_no_memory(problem);
}

typedef bool take_fn(const json_t *body, json_t *chat, struct st_problem *problem);

static bool translate(const json_t *body, take_fn *take, json_t **chat,
                      struct st_problem *problem) {
    json_t *made = json_object();
    bool ok = made != NULL && take_common(body, made, problem) && take(body, made, problem);
    if (ok)
        *chat = made;
    else
        json_decref(made);
    return ok;
}

static bool translate_chat(const json_t *body, json_t **chat, struct st_problem *problem) {
    return translate(body, take_messages, chat, problem);
}

static bool translate_generate(const json_t *body, json_t **chat, struct st_problem *problem) {
    return translate(body, take_prompt, chat, problem);
}

// ---- answers. The functions that differ have the field of the text: "response", or NULL in chats.

static void begin(const struct st_response *response, struct st_json_text *out) {
    char when[32];
    struct tm tm;
    time_t seconds = (time_t)response->created;
    if (gmtime_r(&seconds, &tm) == NULL || strftime(when, sizeof when, "%FT%TZ", &tm) == 0)
        when[0] = 0;
    st_json_raw(out, "{\"model\":");
    st_json_string_of(out, response->model);
    st_json_format(out, ",\"created_at\":\"%s\",", when);
}

static const char *done_reason(const char *finish) {
    return strcmp(finish, "length") == 0 ? "length" : "stop";
}

static uint64_t nanoseconds(double seconds) {
    return (uint64_t)(seconds * 1e9 + 0.5);
}

static void write_end(const char *reason, const struct st_response_usage *usage,
                      struct st_json_text *out) {
    uint64_t prefill = nanoseconds(usage->prefill_seconds);
    uint64_t decode = nanoseconds(usage->decode_seconds);
    st_json_format(out,
                   ",\"done\":true,\"done_reason\":\"%s\",\"prompt_eval_count\":%zu,"
                   "\"eval_count\":%zu,\"total_duration\":%" PRIu64 ",\"load_duration\":0,"
                   "\"prompt_eval_duration\":%" PRIu64 ",\"eval_duration\":%" PRIu64 "}",
                   reason, usage->prompt_tokens, usage->completion_tokens,
                   nanoseconds(usage->queue_seconds) + prefill + decode, prefill, decode);
}

static void write_calls(const struct st_tool_calls *calls, struct st_json_text *out) {
    st_json_raw(out, ",\"tool_calls\":[");
    for (size_t i = 0; i < calls->n; i++) {
        st_json_raw(out, i > 0 ? ",{\"function\":{\"name\":" : "{\"function\":{\"name\":");
        st_json_string_of(out, calls->calls[i].name);
        st_json_raw(out, ",\"arguments\":");
        st_json_raw(out, calls->calls[i].arguments); // an object
        st_json_raw(out, "}}");
    }
    st_json_raw(out, "]");
}

static void open_text(bool chat, struct st_json_text *out) {
    st_json_raw(out, chat ? "\"message\":{\"role\":\"assistant\",\"content\":" : "\"response\":");
}

static void write_whole(const struct st_response *response, const struct st_transcript *choice,
                        const struct st_response_usage *usage, bool chat,
                        struct st_json_text *out) {
    struct st_piece thoughts = st_transcript_all_thoughts(choice), all = st_transcript_all(choice);
    begin(response, out);
    open_text(chat, out);
    if (choice->calls.n > 0)
        st_json_string_of(out, choice->calls.content != NULL ? choice->calls.content : "");
    else
        st_response_text(choice, all, out);
    if (thoughts.to > thoughts.from) {
        st_json_raw(out, ",\"thinking\":");
        st_response_text(choice, thoughts, out);
    }
    if (choice->calls.n > 0) write_calls(&choice->calls, out);
    if (chat) st_json_raw(out, "}");
    write_end(done_reason(st_response_finish(choice)), usage, out);
}

static void whole_chat(const struct st_response *response, const struct st_transcript *choices,
                       size_t n_choices, const struct st_response_usage *usage,
                       struct st_json_text *out) {
    (void)n_choices; // one
    write_whole(response, choices, usage, true, out);
}

static void whole_generate(const struct st_response *response, const struct st_transcript *choices,
                           size_t n_choices, const struct st_response_usage *usage,
                           struct st_json_text *out) {
    (void)n_choices;
    write_whole(response, choices, usage, false, out);
}

static void role(const struct st_response *response, size_t index, struct st_json_text *out) {
    (void)response, (void)index, (void)out; // each line has it
}

static void write_line(const struct st_response *response, const struct st_transcript *choice,
                       struct st_piece piece, bool chat, bool thinks, struct st_json_text *out) {
    if (piece.to == piece.from) return;
    begin(response, out);
    open_text(chat, out);
    if (thinks) st_json_raw(out, "\"\",\"thinking\":");
    st_response_text(choice, piece, out);
    st_json_raw(out, chat ? "},\"done\":false}\n" : ",\"done\":false}\n");
}

static void chat_thoughts(const struct st_response *response, size_t index,
                          const struct st_transcript *choice, struct st_piece piece,
                          struct st_json_text *out) {
    (void)index;
    write_line(response, choice, piece, true, true, out);
}

static void chat_piece(const struct st_response *response, size_t index,
                       const struct st_transcript *choice, struct st_piece piece,
                       struct st_json_text *out) {
    (void)index;
    write_line(response, choice, piece, true, false, out);
}

static void generate_thoughts(const struct st_response *response, size_t index,
                              const struct st_transcript *choice, struct st_piece piece,
                              struct st_json_text *out) {
    (void)index;
    write_line(response, choice, piece, false, true, out);
}

static void generate_piece(const struct st_response *response, size_t index,
                           const struct st_transcript *choice, struct st_piece piece,
                           struct st_json_text *out) {
    (void)index;
    write_line(response, choice, piece, false, false, out);
}

static void calls(const struct st_response *response, size_t index,
                  const struct st_tool_calls *calls, const char *content,
                  struct st_json_text *out) {
    (void)index;
    begin(response, out);
    open_text(true, out); // /api/generate has no tools
    st_json_string_of(out, content);
    write_calls(calls, out);
    st_json_raw(out, "},\"done\":false}\n");
}

static void end(const struct st_response *response, size_t index, const char *reason,
                struct st_json_text *out) {
    (void)index, (void)out;
    response->state->reason = done_reason(reason);
}

static void write_last(const struct st_response *response, const struct st_response_usage *usage,
                       bool chat, struct st_json_text *out) {
    begin(response, out);
    open_text(chat, out);
    st_json_raw(out, chat ? "\"\"}" : "\"\"");
    write_end(response->state->reason, usage, out);
    st_json_raw(out, "\n");
}

static void chat_last(const struct st_response *response, const struct st_response_usage *usage,
                      struct st_json_text *out) {
    write_last(response, usage, true, out);
}

static void generate_last(const struct st_response *response, const struct st_response_usage *usage,
                          struct st_json_text *out) {
    write_last(response, usage, false, out);
}

void st_ollama_problem(const struct st_problem *problem, struct st_json_text *out) {
    st_json_raw(out, "{\"error\":");
    st_json_string_of(out, problem->text);
    st_json_raw(out, "}");
}

static void aborted(const struct st_problem *why, struct st_json_text *out) {
    st_ollama_problem(why, out);
    st_json_raw(out, "\n");
}

const struct st_protocol st_protocol_ollama_chat = {
    .stream_type = "application/x-ndjson",
    .id = "chat",
    .done = "",
    .translate = translate_chat,
    .whole = whole_chat,
    .role = role,
    .thoughts = chat_thoughts,
    .piece = chat_piece,
    .calls = calls,
    .end = end,
    .last = chat_last,
    .problem = st_ollama_problem,
    .aborted = aborted,
};

const struct st_protocol st_protocol_ollama_generate = {
    .stream_type = "application/x-ndjson",
    .id = "generate",
    .done = "",
    .translate = translate_generate,
    .whole = whole_generate,
    .role = role,
    .thoughts = generate_thoughts,
    .piece = generate_piece,
    .calls = calls,
    .end = end,
    .last = generate_last,
    .problem = st_ollama_problem,
    .aborted = aborted,
};
