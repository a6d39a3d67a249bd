// SPDX-License-Identifier: Apache-2.0
// Anthropic's /v1/messages: blocks of text, thinking, calls and results.
#include "server/api/fields.h"
#include "server/api/known.h"
#include "server/api/protocol.h"

#include <string.h>

// ---- requests

static const char *const used[] = {
    "model",       "messages", "system", "max_tokens",  "stop_sequences", "stream",   "seed",
    "temperature", "top_p",    "top_k",  "tool_choice", "tools",          "thinking", NULL};
static const char *const idle[] = {"metadata", "service_tier", "cache_control", "inference_geo",
                                   NULL};
static const struct st_known_refused refused[] = {
    {"mcp_servers", "use tools"}, {"container", NULL},     {"context_management", NULL},
    {"output_config", NULL},      {"output_format", NULL}, {NULL, NULL}};
const struct st_known st_known_anthropic = {used, idle, refused, false};

// A call of an earlier answer, and what it gave.
static json_t *call_of(const json_t *block) {
    json_t *input = json_object_get(block, "input");
    return json_pack("{s:s, s:O?, s:{s:O?, s:o}}", "type", "function", "id",
                     json_object_get(block, "id"), "function", "name",
                     json_object_get(block, "name"), "arguments",
                     input != NULL ? json_incref(input) : json_object());
}

static json_t *result_of(const json_t *block) {
    json_t *content = json_object_get(block, "content");
    return json_pack("{s:s, s:O?, s:o}", "role", "tool", "tool_call_id",
                     json_object_get(block, "tool_use_id"), "content",
                     content != NULL ? json_incref(content) : json_string(""));
}

// The blocks of one message: results become messages of their own, in front of its text.
struct blocks {
    json_t *messages, *texts, *calls;
};

static bool take_block(const json_t *block, struct blocks *to, struct st_problem *problem) {
    const char *type = st_protocol_type(block);
    if (strcmp(type, "text") == 0)
        return st_protocol_append(to->texts, json_incref((json_t *)block), problem);
    if (strcmp(type, "tool_use") == 0)
        return st_protocol_append(to->calls, call_of(block), problem);
    if (strcmp(type, "tool_result") == 0)
        return st_protocol_append(to->messages, result_of(block), problem);
    if (strcmp(type, "thinking") == 0 || strcmp(type, "redacted_thinking") == 0) return true;
    return st_refuse(problem, 400, "messages", "blocks of type '%.40s' are not supported", type);
}

static bool take_message(const json_t *message, json_t *messages, struct st_problem *problem) {
    json_t *content = json_object_get(message, "content"), *block;
    struct blocks to = {messages, json_array(), json_array()};
    size_t i;
    bool ok = true;
    if (!json_is_array(content)) {
        json_decref(to.texts);
        json_decref(to.calls);
        return st_protocol_append(messages, json_incref((json_t *)message), problem);
    }
    json_array_foreach(content, i, block) ok = ok && take_block(block, &to, problem);
    size_t n_texts = json_array_size(to.texts), n_calls = json_array_size(to.calls);
    if (ok && n_texts + n_calls > 0) {
        json_t *made = json_pack("{s:O?, s:O?}", "role", json_object_get(message, "role"),
                                 "content", n_texts > 0 ? to.texts : NULL);
        if (n_calls > 0 && json_object_set(made, "tool_calls", to.calls) != 0)
            ok = st_protocol_no_memory(problem);
        ok = st_protocol_append(messages, made, problem) && ok;
    }
    json_decref(to.texts);
    json_decref(to.calls);
    return ok;
}

static bool take_messages(const json_t *body, json_t *chat, struct st_problem *problem) {
    const json_t *given = st_field(body, "messages");
    json_t *messages = st_protocol_messages(st_field(body, "system"), chat, problem);
    if (messages == NULL) return false;
    for (size_t i = 0; i < json_array_size(given); i++)
        if (!take_message(json_array_get(given, i), messages, problem)) return false;
    return true;
}

// {"type": "auto", "any", "none" or "tool", "name", "disable_parallel_tool_use"}
static bool take_choice(const json_t *body, json_t *chat, struct st_problem *problem) {
    const json_t *choice = st_field(body, "tool_choice");
    if (choice == NULL) return true;
    bool named = strcmp(st_protocol_type(choice), "tool") == 0, one = false;
    if (!st_field_bool(choice, "disable_parallel_tool_use", &one, problem)) return false;
    json_t *made = named ? json_pack("{s:s, s:O?}", "type", "function", "name",
                                     json_object_get(choice, "name"))
                         : json_string(st_protocol_type(choice));
    if (json_object_set_new(chat, "tool_choice", made) != 0 ||
        (one && json_object_set_new(chat, "parallel_tool_calls", json_false()) != 0))
        return st_protocol_no_memory(problem);
    return true;
}

static bool take_thinking(const json_t *body, json_t *chat, struct st_problem *problem) {
    const json_t *thinking = st_field(body, "thinking");
    if (thinking == NULL) return true;
    bool on = strcmp(st_protocol_type(thinking), "disabled") != 0;
    json_t *made = json_pack("{s:b}", "enable_thinking", on);
    return json_object_set_new(chat, "chat_template_kwargs", made) == 0 ||
           st_protocol_no_memory(problem);
}

static bool translate(const json_t *body, json_t **chat, struct st_problem *problem) {
    static const char *const names[][2] = {
        {"model", "model"}, {"max_tokens", "max_tokens"}, {"temperature", "temperature"},
        {"top_p", "top_p"}, {"top_k", "top_k"},           {"stop_sequences", "stop"},
        {"seed", "seed"},   {"stream", "stream"},
    };
    int64_t n;
    if (st_field(body, "max_tokens") == NULL)
        return st_refuse(problem, 400, "max_tokens", "'max_tokens' is missing");
    if (!st_field_int(body, "max_tokens", 1, UINT32_MAX, &n, problem)) return false;
    json_t *made = json_object();
    bool ok = st_protocol_copy(body, names, sizeof names / sizeof *names, made) ||
              st_protocol_no_memory(problem);
    ok = ok && take_messages(body, made, problem) &&
         st_protocol_tools(body, "custom", "input_schema", made, problem) &&
         take_choice(body, made, problem) && take_thinking(body, made, problem) &&
         st_protocol_continue(made, problem);
    if (ok)
        *chat = made;
    else
        json_decref(made);
    return ok;
}

// ---- answers

static const char *reason_of(const char *finish) {
    if (strcmp(finish, "tool_calls") == 0) return "tool_use";
    return strcmp(finish, "length") == 0 ? "max_tokens" : "end_turn";
}

static void write_call(const struct st_response *response, const struct st_tool_calls *calls,
                       size_t i, const char *input, struct st_json_text *out) {
    st_json_format(out, "{\"type\":\"tool_use\",\"id\":\"toolu_%s_%zu\",\"name\":", response->id,
                   i);
    st_json_string_of(out, calls->calls[i].name);
    st_json_raw(out, ",\"input\":");
    st_json_raw(out, input);
    st_json_raw(out, "}");
}

static void begin_message(const struct st_response *response, struct st_json_text *out) {
    st_json_format(
        out, "{\"id\":\"%s\",\"type\":\"message\",\"role\":\"assistant\",\"model\":", response->id);
    st_json_string_of(out, response->model);
    st_json_raw(out, ",\"stop_sequence\":null,\"content\":[");
}

static void write_usage(const struct st_response_usage *usage, struct st_json_text *out) {
    st_json_format(out,
                   "\"usage\":{\"input_tokens\":%zu,\"output_tokens\":%zu,"
                   "\"cache_read_input_tokens\":%zu}",
                   usage->prompt_tokens - usage->cached_tokens, usage->completion_tokens,
                   usage->cached_tokens);
}

static void whole(const struct st_response *response, const struct st_transcript *choices,
                  size_t n_choices, const struct st_response_usage *usage,
                  struct st_json_text *out) {
    const struct st_transcript *choice = &choices[0];
    struct st_piece thoughts = st_transcript_all_thoughts(choice), all = st_transcript_all(choice);
    const char *comma = "";
    (void)n_choices; // one
    begin_message(response, out);
    if (thoughts.to > thoughts.from) {
        st_json_raw(out, "{\"type\":\"thinking\",\"signature\":\"\",\"thinking\":");
        st_response_text(choice, thoughts, out);
        st_json_raw(out, "}");
        comma = ",";
    }
    const char *content = choice->calls.content;
    if (choice->calls.n == 0 || (content != NULL && *content != 0)) {
        st_json_format(out, "%s{\"type\":\"text\",\"text\":", comma);
        if (choice->calls.n == 0)
            st_response_text(choice, all, out);
        else
            st_json_string_of(out, content);
        st_json_raw(out, "}");
        comma = ",";
    }
    for (size_t i = 0; i < choice->calls.n; i++, comma = ",") {
        st_json_raw(out, comma);
        write_call(response, &choice->calls, i, choice->calls.calls[i].arguments, out);
    }
    st_json_format(out, "],\"stop_reason\":\"%s\",", reason_of(st_response_finish(choice)));
    write_usage(usage, out);
    st_json_raw(out, "}");
}

// ---- streams

static void begin_event(const char *type, struct st_json_text *out) {
    st_json_format(out, "event: %s\ndata: {\"type\":\"%s\"", type, type);
}

static void end_event(struct st_json_text *out) {
    st_json_raw(out, "}\n\n");
}

static void close_block(const struct st_response *response, struct st_json_text *out) {
    struct st_stream_state *state = response->state;
    if (state->open == NULL) return;
    begin_event("content_block_stop", out);
    st_json_format(out, ",\"index\":%zu", state->n_blocks - 1);
    end_event(out);
    state->open = NULL;
}

// Opens a block of this type unless it is open; the caller writes the content between.
static void open_block(const struct st_response *response, const char *type,
                       struct st_json_text *out) {
    struct st_stream_state *state = response->state;
    close_block(response, out);
    begin_event("content_block_start", out);
    st_json_format(out, ",\"index\":%zu,\"content_block\":", state->n_blocks++);
    state->open = type;
}

static void delta(const struct st_response *response, const char *type, const char *field,
                  struct st_json_text *out) {
    begin_event("content_block_delta", out);
    st_json_format(out, ",\"index\":%zu,\"delta\":{\"type\":\"%s\",\"%s\":",
                   response->state->n_blocks - 1, type, field);
}

static void stream_piece(const struct st_response *response, const struct st_transcript *choice,
                         struct st_piece piece, const char *block, struct st_json_text *out) {
    bool text = strcmp(block, "text") == 0;
    if (piece.to == piece.from) return;
    if (response->state->open == NULL || strcmp(response->state->open, block) != 0) {
        open_block(response, block, out);
        st_json_format(out, "{\"type\":\"%s\",\"%s\":\"\"%s}", block, block,
                       text ? "" : ",\"signature\":\"\"");
        end_event(out);
    }
    delta(response, text ? "text_delta" : "thinking_delta", block, out);
    st_response_text(choice, piece, out);
    st_json_raw(out, "}");
    end_event(out);
}

static void role(const struct st_response *response, size_t index, struct st_json_text *out) {
    (void)index;
    begin_event("message_start", out);
    st_json_raw(out, ",\"message\":");
    begin_message(response, out);
    st_json_format(out,
                   "],\"stop_reason\":null,\"usage\":{\"input_tokens\":%zu,"
                   "\"output_tokens\":0}}",
                   response->n_prompt);
    end_event(out);
}

static void thoughts(const struct st_response *response, size_t index,
                     const struct st_transcript *choice, struct st_piece piece,
                     struct st_json_text *out) {
    (void)index;
    stream_piece(response, choice, piece, "thinking", out);
}

static void piece(const struct st_response *response, size_t index,
                  const struct st_transcript *choice, struct st_piece piece,
                  struct st_json_text *out) {
    (void)index;
    stream_piece(response, choice, piece, "text", out);
}

static void calls(const struct st_response *response, size_t index,
                  const struct st_tool_calls *calls, const char *content,
                  struct st_json_text *out) {
    (void)index;
    if (*content != 0) {
        if (response->state->open == NULL) {
            open_block(response, "text", out);
            st_json_raw(out, "{\"type\":\"text\",\"text\":\"\"}");
            end_event(out);
        }
        delta(response, "text_delta", "text", out);
        st_json_string_of(out, content);
        st_json_raw(out, "}");
        end_event(out);
    }
    for (size_t i = 0; i < calls->n; i++) {
        open_block(response, "tool_use", out);
        write_call(response, calls, i, "{}", out);
        end_event(out);
        delta(response, "input_json_delta", "partial_json", out);
        st_json_string_of(out, calls->calls[i].arguments);
        st_json_raw(out, "}");
        end_event(out);
    }
}

static void end(const struct st_response *response, size_t index, const char *reason,
                struct st_json_text *out) {
    (void)index;
    close_block(response, out);
    response->state->reason = reason_of(reason);
}

static void last(const struct st_response *response, const struct st_response_usage *usage,
                 struct st_json_text *out) {
    begin_event("message_delta", out);
    st_json_format(out, ",\"delta\":{\"stop_reason\":\"%s\",\"stop_sequence\":null},",
                   response->state->reason);
    write_usage(usage, out);
    end_event(out);
    begin_event("message_stop", out);
    end_event(out);
}

// ---- problems

static void problem(const struct st_problem *problem, struct st_json_text *out) {
    static const struct {
        int status;
        const char *type;
    } types[] = {{401, "authentication_error"}, {403, "permission_error"}, {404, "not_found_error"},
                 {413, "request_too_large"},    {429, "rate_limit_error"}, {500, "api_error"},
                 {503, "overloaded_error"}};
    const char *type = "invalid_request_error";
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].status == problem->status) type = types[i].type;
    st_json_format(out, "{\"type\":\"error\",\"error\":{\"type\":\"%s\",\"message\":", type);
    st_json_string_of(out, problem->text);
    st_json_raw(out, "}}");
}

static void aborted(const struct st_problem *why, struct st_json_text *out) {
    st_json_raw(out, "event: error\ndata: ");
    problem(why, out);
    st_json_raw(out, "\n\n");
}

const struct st_protocol st_protocol_anthropic = {
    .stream_type = "text/event-stream; charset=utf-8",
    .id = "msg",
    .done = "",
    .translate = translate,
    .whole = whole,
    .role = role,
    .thoughts = thoughts,
    .piece = piece,
    .calls = calls,
    .end = end,
    .last = last,
    .problem = problem,
    .aborted = aborted,
};
