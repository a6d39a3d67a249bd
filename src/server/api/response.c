// SPDX-License-Identifier: Apache-2.0
#include "server/api/response.h"

#include "server/api/protocol.h"

#include <stdio.h>

static void begin(const struct st_response *response, const char *object,
                  struct st_json_text *out) {
    st_json_format(out,
                   "{\"id\":\"%s\",\"object\":\"%s\",\"created\":%lld,\"model\":", response->id,
                   object, (long long)response->created);
    st_json_string_of(out, response->model);
    st_json_raw(out, ",\"system_fingerprint\":");
    st_json_string_of(out, response->fingerprint);
    st_json_raw(out, ",\"choices\":[");
}

const char *st_response_finish(const struct st_transcript *choice) {
    if (choice->calls.n > 0) return "tool_calls";
    bool cut = choice->reason == STINT_STOP_LENGTH || choice->reason == STINT_STOP_CONTEXT;
    return cut ? "length" : "stop";
}

static void write_usage(const struct st_response *response, const struct st_response_usage *usage,
                        struct st_json_text *out) {
    st_json_format(out,
                   "{\"prompt_tokens\":%zu,\"completion_tokens\":%zu,\"total_tokens\":%zu,"
                   "\"prompt_tokens_details\":{\"cached_tokens\":%zu}",
                   usage->prompt_tokens, usage->completion_tokens,
                   usage->prompt_tokens + usage->completion_tokens, usage->cached_tokens);
    size_t n_drafted = usage->accepted_tokens + usage->rejected_tokens;
    if (response->reasons || n_drafted > 0) {
        st_json_raw(out, ",\"completion_tokens_details\":{");
        if (response->reasons)
            st_json_format(out, "\"reasoning_tokens\":%zu%s", usage->reasoning_tokens,
                           n_drafted > 0 ? "," : "");
        if (n_drafted > 0)
            st_json_format(out,
                           "\"accepted_prediction_tokens\":%zu,\"rejected_prediction_tokens\":%zu",
                           usage->accepted_tokens, usage->rejected_tokens);
        st_json_raw(out, "}");
    }
    st_json_raw(out, "}");
}

// A call's id must only differ from those of the other calls in the conversation.
static void write_calls(const struct st_response *response, size_t index,
                        const struct st_tool_calls *calls, bool chunk, struct st_json_text *out) {
    st_json_raw(out, "\"tool_calls\":[");
    for (size_t i = 0; i < calls->n; i++) {
        st_json_raw(out, i > 0 ? ",{" : "{");
        if (chunk) st_json_format(out, "\"index\":%zu,", i);
        st_json_format(out, "\"id\":\"call-%s-%zu-%zu\",\"type\":\"function\",", response->id,
                       index, i);
        st_json_raw(out, "\"function\":{\"name\":");
        st_json_string_of(out, calls->calls[i].name);
        st_json_raw(out, ",\"arguments\":");
        st_json_string_of(out, calls->calls[i].arguments);
        st_json_raw(out, "}}");
    }
    st_json_raw(out, "]");
}

void st_response_text(const struct st_transcript *choice, struct st_piece piece,
                      struct st_json_text *out) {
    const char *text = choice->text.data != NULL ? choice->text.data : "";
    st_json_quote(out, text + piece.from, piece.to - piece.from);
}

static void write_message(const struct st_response *response, size_t index,
                          const struct st_transcript *choice, struct st_piece piece,
                          struct st_json_text *out) {
    const struct st_tool_calls *calls = &choice->calls;
    struct st_piece thoughts = st_transcript_all_thoughts(choice);
    st_json_raw(out, "\"message\":{\"role\":\"assistant\",\"refusal\":null,");
    if (thoughts.to > thoughts.from) {
        st_json_raw(out, "\"reasoning_content\":");
        st_response_text(choice, thoughts, out);
        st_json_raw(out, ",");
    }
    st_json_raw(out, "\"content\":");
    if (calls->n == 0) {
        st_response_text(choice, piece, out);
    } else {
        bool none = calls->content == NULL || calls->content[0] == 0;
        st_json_string_of(out, none ? NULL : calls->content);
        st_json_raw(out, ",");
        write_calls(response, index, calls, false, out);
    }
    st_json_raw(out, "}");
}

static void write_logprobs(const struct st_response *response, const struct st_transcript *choice,
                           struct st_piece piece, struct st_json_text *out) {
    st_json_raw(out, ",\"logprobs\":");
    if (response->logprobs)
        st_logprobs_write(choice, response->tokenizer, piece, response->chat, out);
    else
        st_json_raw(out, "null");
}

void st_response_whole(const struct st_response *response, const struct st_transcript *choices,
                       size_t n_choices, const struct st_response_usage *usage,
                       struct st_json_text *out) {
    begin(response, response->chat ? "chat.completion" : "text_completion", out);
    for (size_t i = 0; i < n_choices; i++) {
        const struct st_transcript *choice = &choices[i];
        struct st_piece piece = st_transcript_all(choice);
        st_json_format(out, "%s{\"index\":%zu,", i > 0 ? "," : "", i);
        if (response->chat) {
            write_message(response, i, choice, piece, out);
        } else {
            st_json_raw(out, "\"text\":");
            st_response_text(choice, piece, out);
        }
        write_logprobs(response, choice, piece, out);
        st_json_format(out, ",\"finish_reason\":\"%s\"}", st_response_finish(choice));
    }
    st_json_raw(out, "],\"usage\":");
    write_usage(response, usage, out);
    st_json_raw(out, "}");
}

// The part of a chunk before the content of its one choice, and the part after it.
static void open_chunk(const struct st_response *response, size_t index, struct st_json_text *out) {
    st_json_raw(out, "data: ");
    begin(response, response->chat ? "chat.completion.chunk" : "text_completion", out);
    st_json_format(out, "{\"index\":%zu,\"%s\":", index, response->chat ? "delta" : "text");
}

static void close_chunk(const struct st_response *response, const char *reason,
                        struct st_json_text *out) {
    st_json_raw(out, ",\"finish_reason\":");
    st_json_string_of(out, reason);
    st_json_raw(out, "}]");
    if (response->so_far != NULL || response->usage_follows) st_json_raw(out, ",\"usage\":");
    if (response->so_far != NULL)
        write_usage(response, response->so_far, out);
    else if (response->usage_follows)
        st_json_raw(out, "null");
    st_json_raw(out, "}\n\n");
}

void st_response_role(const struct st_response *response, size_t index, struct st_json_text *out) {
    if (!response->chat) return;
    open_chunk(response, index, out);
    st_json_raw(out, "{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null");
    close_chunk(response, NULL, out);
}

void st_response_thoughts(const struct st_response *response, size_t index,
                          const struct st_transcript *choice, struct st_piece piece,
                          struct st_json_text *out) {
    if (piece.to == piece.from) return;
    open_chunk(response, index, out);
    st_json_raw(out, "{\"reasoning_content\":");
    st_response_text(choice, piece, out);
    st_json_raw(out, "},\"logprobs\":null");
    close_chunk(response, NULL, out);
}

void st_response_piece(const struct st_response *response, size_t index,
                       const struct st_transcript *choice, struct st_piece piece,
                       struct st_json_text *out) {
    bool tokens = response->logprobs && piece.last > piece.first;
    if (piece.to == piece.from && !tokens) return;
    open_chunk(response, index, out);
    if (response->chat) st_json_raw(out, "{\"content\":");
    st_response_text(choice, piece, out);
    if (response->chat) st_json_raw(out, "}");
    write_logprobs(response, choice, piece, out);
    close_chunk(response, NULL, out);
}

void st_response_calls(const struct st_response *response, size_t index,
                       const struct st_tool_calls *calls, const char *content,
                       struct st_json_text *out) {
    open_chunk(response, index, out);
    st_json_raw(out, "{");
    if (*content != 0) {
        st_json_raw(out, "\"content\":");
        st_json_string_of(out, content);
        st_json_raw(out, ",");
    }
    write_calls(response, index, calls, true, out);
    st_json_raw(out, "},\"logprobs\":null");
    close_chunk(response, NULL, out);
}

void st_response_end(const struct st_response *response, size_t index, const char *reason,
                     struct st_json_text *out) {
    open_chunk(response, index, out);
    st_json_raw(out, response->chat ? "{}" : "\"\"");
    st_json_raw(out, ",\"logprobs\":null");
    close_chunk(response, reason, out);
}

void st_response_last(const struct st_response *response, const struct st_response_usage *usage,
                      struct st_json_text *out) {
    if (!response->usage_follows) return;
    st_json_raw(out, "data: ");
    begin(response, response->chat ? "chat.completion.chunk" : "text_completion", out);
    st_json_raw(out, "],\"usage\":");
    write_usage(response, usage, out);
    st_json_raw(out, "}\n\n");
}

static void write_aborted(const struct st_problem *problem, struct st_json_text *out) {
    st_json_raw(out, "data: ");
    st_problem_write(problem, out);
    st_json_raw(out, "\n\n");
}

const struct st_protocol st_protocol_openai = {
    .stream_type = "text/event-stream; charset=utf-8",
    .done = "data: [DONE]\n\n",
    .whole = st_response_whole,
    .role = st_response_role,
    .thoughts = st_response_thoughts,
    .piece = st_response_piece,
    .calls = st_response_calls,
    .end = st_response_end,
    .last = st_response_last,
    .problem = st_problem_write,
    .aborted = write_aborted,
};
