// SPDX-License-Identifier: Apache-2.0
// OpenAI's /v1/responses: an output of items, which are reasoning, a message, and calls.
#include "server/protocol/responses.h"

#include <string.h>

// ---- items of the output

static const char reasoning[] = "reasoning", message[] = "message";

// "added" items are empty, those of the end are whole.
static void write_reasoning(const struct st_response *response, const struct st_transcript *choice,
                            bool whole, struct st_json_text *out) {
    st_json_format(out, "{\"id\":\"rs_%s\",\"type\":\"reasoning\",\"summary\":[],\"content\":[",
                   response->id);
    if (whole) {
        st_json_raw(out, "{\"type\":\"reasoning_text\",\"text\":");
        st_response_text(choice, st_transcript_all_thoughts(choice), out);
        st_json_raw(out, "}");
    }
    st_json_raw(out, "]}");
}

// The message's text: what stands around calls, or all.
static void write_text(const struct st_transcript *choice, struct st_json_text *out) {
    if (choice->calls.n > 0)
        st_json_string_of(out, choice->calls.content != NULL ? choice->calls.content : "");
    else
        st_response_text(choice, st_transcript_all(choice), out);
}

static void write_part(const struct st_transcript *choice, bool whole, struct st_json_text *out) {
    st_json_raw(out, "{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":");
    if (whole)
        write_text(choice, out);
    else
        st_json_raw(out, "\"\"");
    st_json_raw(out, "}");
}

static const char *item_status(const struct st_transcript *choice, bool whole) {
    if (!whole) return "in_progress";
    return strcmp(st_response_finish(choice), "length") == 0 ? "incomplete" : "completed";
}

static void write_message(const struct st_response *response, const struct st_transcript *choice,
                          bool whole, struct st_json_text *out) {
    st_json_format(out,
                   "{\"id\":\"msg_%s\",\"type\":\"message\",\"role\":\"assistant\","
                   "\"status\":\"%s\",\"content\":[",
                   response->id, item_status(choice, whole));
    if (whole) write_part(choice, true, out);
    st_json_raw(out, "]}");
}

static void write_call(const struct st_response *response, const struct st_tool_calls *calls,
                       size_t i, bool whole, struct st_json_text *out) {
    st_json_format(out,
                   "{\"id\":\"fc_%s_%zu\",\"type\":\"function_call\",\"call_id\":\"call_%s_%zu\","
                   "\"status\":\"%s\",\"name\":",
                   response->id, i, response->id, i, whole ? "completed" : "in_progress");
    st_json_string_of(out, calls->calls[i].name);
    st_json_raw(out, ",\"arguments\":");
    st_json_string_of(out, whole ? calls->calls[i].arguments : "");
    st_json_raw(out, "}");
}

static void write_output(const struct st_response *response, const struct st_transcript *choice,
                         struct st_json_text *out) {
    struct st_piece thoughts = st_transcript_all_thoughts(choice);
    const struct st_tool_calls *calls = &choice->calls;
    const char *comma = "";
    if (thoughts.to > thoughts.from) {
        write_reasoning(response, choice, true, out);
        comma = ",";
    }
    if (calls->n == 0 || (calls->content != NULL && *calls->content != 0)) {
        st_json_raw(out, comma);
        write_message(response, choice, true, out);
        comma = ",";
    }
    for (size_t i = 0; i < calls->n; i++, comma = ",") {
        st_json_raw(out, comma);
        write_call(response, calls, i, true, out);
    }
}

// The response itself; `choice` and `usage` are NULL at its beginning.
static void write_response(const struct st_response *response, const struct st_transcript *choice,
                           const struct st_response_usage *usage, struct st_json_text *out) {
    bool cut = choice != NULL && strcmp(st_response_finish(choice), "length") == 0;
    const char *status = choice == NULL ? "in_progress" : cut ? "incomplete" : "completed";
    st_json_format(out,
                   "{\"id\":\"%s\",\"object\":\"response\",\"created_at\":%lld,\"status\":\"%s\","
                   "\"error\":null,\"incomplete_details\":%s,\"instructions\":null,\"metadata\":{},"
                   "\"parallel_tool_calls\":true,\"temperature\":null,\"top_p\":null,"
                   "\"tool_choice\":\"auto\",\"tools\":[],\"model\":",
                   response->id, (long long)response->created, status,
                   cut ? "{\"reason\":\"max_output_tokens\"}" : "null");
    st_json_string_of(out, response->model);
    st_json_raw(out, ",\"output\":[");
    if (choice != NULL) write_output(response, choice, out);
    st_json_raw(out, "],\"usage\":");
    if (usage == NULL)
        st_json_raw(out, "null");
    else
        st_json_format(out,
                       "{\"input_tokens\":%zu,\"input_tokens_details\":{\"cached_tokens\":%zu,"
                       "\"cache_write_tokens\":0},\"output_tokens\":%zu,"
                       "\"output_tokens_details\":{\"reasoning_tokens\":%zu},\"total_tokens\":%zu}",
                       usage->prompt_tokens, usage->cached_tokens, usage->completion_tokens,
                       usage->reasoning_tokens, usage->prompt_tokens + usage->completion_tokens);
    st_json_raw(out, "}");
}

static void whole(const struct st_response *response, const struct st_transcript *choices,
                  size_t n_choices, const struct st_response_usage *usage,
                  struct st_json_text *out) {
    (void)n_choices; // one
    write_response(response, choices, usage, out);
}

// ---- streams

static void begin_event(const struct st_response *response, const char *type,
                        struct st_json_text *out) {
    st_json_format(out, "event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%zu", type, type,
                   response->state->n_events++);
}

static void end_event(struct st_json_text *out) {
    st_json_raw(out, "}\n\n");
}

// An event about the item that is open, or about its one part.
static void begin_item_event(const struct st_response *response, const char *type, bool part,
                             struct st_json_text *out) {
    const struct st_stream_state *state = response->state;
    begin_event(response, type, out);
    st_json_format(out, ",\"output_index\":%zu,\"item_id\":\"%s_%s\"", state->n_blocks - 1,
                   state->open == reasoning ? "rs" : "msg", response->id);
    if (part) st_json_raw(out, ",\"content_index\":0");
}

static void item_event(const struct st_response *response, const char *type, bool whole,
                       struct st_json_text *out) {
    const struct st_stream_state *state = response->state;
    begin_event(response, type, out);
    st_json_format(out, ",\"output_index\":%zu,\"item\":", state->n_blocks - 1);
    if (state->open == reasoning)
        write_reasoning(response, state->choice, whole, out);
    else
        write_message(response, state->choice, whole, out);
    end_event(out);
}

static void part_event(const struct st_response *response, const char *type, bool whole,
                       struct st_json_text *out) {
    begin_item_event(response, type, true, out);
    st_json_raw(out, ",\"part\":");
    write_part(response->state->choice, whole, out);
    end_event(out);
}

static void open_item(const struct st_response *response, const char *kind,
                      struct st_json_text *out) {
    response->state->n_blocks++;
    response->state->open = kind;
    item_event(response, "response.output_item.added", false, out);
    if (kind == message) part_event(response, "response.content_part.added", false, out);
}

// The item's text is complete.
static void close_item(const struct st_response *response, struct st_json_text *out) {
    struct st_stream_state *state = response->state;
    if (state->open == NULL) return;
    bool thinks = state->open == reasoning;
    begin_item_event(
        response, thinks ? "response.reasoning_text.done" : "response.output_text.done", true, out);
    st_json_raw(out, thinks ? ",\"text\":" : ",\"logprobs\":[],\"text\":");
    if (thinks)
        st_response_text(state->choice, st_transcript_all_thoughts(state->choice), out);
    else
        write_text(state->choice, out);
    end_event(out);
    if (!thinks) part_event(response, "response.content_part.done", true, out);
    item_event(response, "response.output_item.done", true, out);
    state->open = NULL;
}

static void begin_delta(const struct st_response *response, const char *kind,
                        struct st_json_text *out) {
    if (response->state->open != kind) {
        close_item(response, out);
        open_item(response, kind, out);
    }
    begin_item_event(response,
                     kind == reasoning ? "response.reasoning_text.delta"
                                       : "response.output_text.delta",
                     true, out);
    st_json_raw(out, kind == reasoning ? ",\"delta\":" : ",\"logprobs\":[],\"delta\":");
}

static void stream_piece(const struct st_response *response, const struct st_transcript *choice,
                         struct st_piece piece, const char *kind, struct st_json_text *out) {
    if (piece.to == piece.from) return;
    begin_delta(response, kind, out);
    st_response_text(choice, piece, out);
    end_event(out);
}

static void role(const struct st_response *response, size_t index, struct st_json_text *out) {
    static const char *const types[] = {"response.created", "response.in_progress"};
    (void)index;
    for (size_t i = 0; i < 2; i++) {
        begin_event(response, types[i], out);
        st_json_raw(out, ",\"response\":");
        write_response(response, NULL, NULL, out);
        end_event(out);
    }
}

static void thoughts(const struct st_response *response, size_t index,
                     const struct st_transcript *choice, struct st_piece piece,
                     struct st_json_text *out) {
    (void)index;
    stream_piece(response, choice, piece, reasoning, out);
}

static void piece(const struct st_response *response, size_t index,
                  const struct st_transcript *choice, struct st_piece piece,
                  struct st_json_text *out) {
    (void)index;
    stream_piece(response, choice, piece, message, out);
}

static void call_event(const struct st_response *response, const struct st_tool_calls *calls,
                       size_t i, const char *type, bool whole, struct st_json_text *out) {
    begin_event(response, type, out);
    st_json_format(out, ",\"output_index\":%zu,\"item\":", response->state->n_blocks - 1);
    write_call(response, calls, i, whole, out);
    end_event(out);
}

static void arguments_event(const struct st_response *response, const struct st_tool_calls *calls,
                            size_t i, const char *type, const char *field,
                            struct st_json_text *out) {
    begin_event(response, type, out);
    st_json_format(out, ",\"output_index\":%zu,\"item_id\":\"fc_%s_%zu\",\"name\":",
                   response->state->n_blocks - 1, response->id, i);
    st_json_string_of(out, calls->calls[i].name);
    st_json_format(out, ",\"%s\":", field);
    st_json_string_of(out, calls->calls[i].arguments);
    end_event(out);
}

static void calls(const struct st_response *response, size_t index,
                  const struct st_tool_calls *calls, const char *content,
                  struct st_json_text *out) {
    (void)index;
    if (*content != 0) {
        begin_delta(response, message, out);
        st_json_string_of(out, content);
        end_event(out);
    }
    close_item(response, out);
    for (size_t i = 0; i < calls->n; i++) {
        response->state->n_blocks++;
        call_event(response, calls, i, "response.output_item.added", false, out);
        arguments_event(response, calls, i, "response.function_call_arguments.delta", "delta", out);
        arguments_event(response, calls, i, "response.function_call_arguments.done", "arguments",
                        out);
        call_event(response, calls, i, "response.output_item.done", true, out);
    }
}

static void end(const struct st_response *response, size_t index, const char *reason,
                struct st_json_text *out) {
    (void)index;
    struct st_stream_state *state = response->state;
    bool empty = state->choice->calls.n == 0 && state->open != message;
    if (empty) { // a message without text
        close_item(response, out);
        open_item(response, message, out);
    }
    close_item(response, out);
    state->reason = reason;
}

static void last(const struct st_response *response, const struct st_response_usage *usage,
                 struct st_json_text *out) {
    bool cut = strcmp(response->state->reason, "length") == 0;
    begin_event(response, cut ? "response.incomplete" : "response.completed", out);
    st_json_raw(out, ",\"response\":");
    write_response(response, response->state->choice, usage, out);
    end_event(out);
}

static void aborted(const struct st_problem *why, struct st_json_text *out) {
    st_json_raw(out, "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\","
                     "\"param\":null,\"sequence_number\":0,\"message\":");
    st_json_string_of(out, why->text);
    st_json_raw(out, "}\n\n");
}

const struct st_protocol st_protocol_responses = {
    .stream_type = "text/event-stream; charset=utf-8",
    .id = "resp",
    .done = "",
    .translate = st_responses_translate,
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
