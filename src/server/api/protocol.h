// SPDX-License-Identifier: Apache-2.0
// A protocol is a translation: of its request to the body of /v1/chat/completions, and of an answer
// to its own form. Each has a row of this kind, in a file of its own, and rows of st_routes.
#ifndef ST_SERVER_PROTOCOL_H
#define ST_SERVER_PROTOCOL_H

#include "server/api/problem.h"
#include "server/api/response.h"

#include <jansson.h>

struct st_protocol {
    const char *stream_type; // content type of a stream
    const char *id;          // how the ids of answers begin
    const char *done;        // the last bytes of a stream
    // A new body of a chat, or of a completion, which may borrow nothing; false with *problem
    // filled. NULL: the body is one.
    bool (*translate)(const json_t *body, json_t **chat, struct st_problem *problem);
    // As the functions of response.h, which are OpenAI's row.
    void (*whole)(const struct st_response *response, const struct st_transcript *choices,
                  size_t n_choices, const struct st_response_usage *usage,
                  struct st_json_text *out);
    void (*role)(const struct st_response *response, size_t index, struct st_json_text *out);
    void (*thoughts)(const struct st_response *response, size_t index,
                     const struct st_transcript *choice, struct st_piece piece,
                     struct st_json_text *out);
    void (*piece)(const struct st_response *response, size_t index,
                  const struct st_transcript *choice, struct st_piece piece,
                  struct st_json_text *out);
    void (*calls)(const struct st_response *response, size_t index,
                  const struct st_tool_calls *calls, const char *content, struct st_json_text *out);
    void (*end)(const struct st_response *response, size_t index, const char *reason,
                struct st_json_text *out);
    void (*last)(const struct st_response *response, const struct st_response_usage *usage,
                 struct st_json_text *out);
    void (*problem)(const struct st_problem *problem, struct st_json_text *out);
    void (*aborted)(const struct st_problem *problem, struct st_json_text *out); // in a stream
};

extern const struct st_protocol st_protocol_openai;     // api/response.c
extern const struct st_protocol st_protocol_embeddings; // api/embed.c, which has no streams
extern const struct st_protocol st_protocol_infill;     // protocol/infill.c
extern const struct st_protocol st_protocol_responses;  // protocol/responses.c
extern const struct st_protocol st_protocol_anthropic;  // protocol/anthropic.c
extern const struct st_protocol st_protocol_ollama_chat, st_protocol_ollama_generate; // ollama.c
extern const struct st_protocol st_protocol_ollama_embed,
    st_protocol_ollama_embeddings; // protocol/ollama_embed.c

// For translations. Copies the members of `from` that `names` lists as {theirs, ours}; absent ones
// are left out.
bool st_protocol_copy(const json_t *from, const char *const (*names)[2], size_t n, json_t *to);
// Anthropic's and Ollama's answers continue a text of the assistant that ends the messages.
bool st_protocol_continue(json_t *chat, struct st_problem *problem);
// Its "type"; "" where it has none.
const char *st_protocol_type(const json_t *object);
// Takes `item` over, which may be NULL: no memory.
bool st_protocol_append(json_t *list, json_t *item, struct st_problem *problem);
// The chat's new list of messages, which begins with `system` unless that is NULL. Borrowed; NULL
// with *problem filled.
json_t *st_protocol_messages(const json_t *system, json_t *chat, struct st_problem *problem);
// The body's tools, which have this type or none, and their schema under this name.
bool st_protocol_tools(const json_t *body, const char *type, const char *parameters, json_t *chat,
                       struct st_problem *problem);
bool st_protocol_no_memory(struct st_problem *problem);

#endif
