// SPDX-License-Identifier: Apache-2.0
// Responses in OpenAI's form, st_protocol_openai: whole objects, and the chunks of a stream, each
// one server-sent event.
#ifndef ST_SERVER_RESPONSE_H
#define ST_SERVER_RESPONSE_H

#include "server/api/logprobs.h"

struct st_protocol;
struct st_response_usage;

// How far a stream has come, for protocols that say so; of one choice.
struct st_stream_state {
    size_t n_blocks;    // begun
    const char *open;   // type of the block that has not ended; NULL: none
    const char *reason; // why the answer ended
    size_t n_events;    // written
    const struct st_transcript *choice;
};

// Embeddings, float [n, width].
struct st_response_vectors {
    const float *data;
    size_t n, width;
    size_t dimensions; // that are written of each
    bool base64;       // their bytes
};

// The fields that all responses to one request share.
struct st_response {
    char id[40];
    int64_t created;         // seconds since 1970
    const char *model;       // name of the served model
    const char *fingerprint; // of model and settings: the same seed gives the same text
    bool chat;
    bool reasons; // the model may reason: usage has the number of those tokens
    bool logprobs;
    bool usage_follows;                     // chunks say "usage": null
    const struct st_response_usage *so_far; // that chunks say instead; NULL: none
    const struct stint_tokenizer *tokenizer;
    const struct st_protocol *protocol;
    struct st_stream_state *state; // of a stream
    size_t n_prompt;               // tokens of the first prompt
    struct st_response_vectors vectors;
};

struct st_response_usage {
    size_t prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens;
    size_t accepted_tokens, rejected_tokens; // of drafts
    double queue_seconds, prefill_seconds, decode_seconds;
};

// Text of the answer, quoted.
void st_response_text(const struct st_transcript *choice, struct st_piece piece,
                      struct st_json_text *out);
// Why an answer ended: "stop", "length" or "tool_calls".
const char *st_response_finish(const struct st_transcript *choice);

// The i-th vector, as an array or text (embed.c).
void st_response_vector(const struct st_response_vectors *vectors, size_t i,
                        struct st_json_text *out);

// A whole response, of choices that have ended.
void st_response_whole(const struct st_response *response, const struct st_transcript *choices,
                       size_t n_choices, const struct st_response_usage *usage,
                       struct st_json_text *out);

// Chunks. The first chunk of each choice of a chat has the role, the last one the reason of the
// end.
void st_response_role(const struct st_response *response, size_t index, struct st_json_text *out);
// A chunk of choice->reasoning.
void st_response_thoughts(const struct st_response *response, size_t index,
                          const struct st_transcript *choice, struct st_piece piece,
                          struct st_json_text *out);
void st_response_piece(const struct st_response *response, size_t index,
                       const struct st_transcript *choice, struct st_piece piece,
                       struct st_json_text *out);
// content: the text around the calls that was not streamed yet; may be "".
void st_response_calls(const struct st_response *response, size_t index,
                       const struct st_tool_calls *calls, const char *content,
                       struct st_json_text *out);
void st_response_end(const struct st_response *response, size_t index, const char *reason,
                     struct st_json_text *out);
// Only where the request asked for it.
void st_response_last(const struct st_response *response, const struct st_response_usage *usage,
                      struct st_json_text *out);

#endif
