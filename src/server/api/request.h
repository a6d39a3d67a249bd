// SPDX-License-Identifier: Apache-2.0
// The body of /v1/chat/completions and /v1/completions as a checked struct: every field has its
// type and range; fields that are not known are refused by name (known.h).
#ifndef ST_SERVER_REQUEST_H
#define ST_SERVER_REQUEST_H

#include "generate/calls.h"
#include "server/api/fields.h"

enum {
    ST_REQUEST_TREE_BYTES = 16 << 20, // that the values of a body may take once they are read
    ST_REQUEST_MAX_N = 8,
    ST_REQUEST_MAX_STOPS = 4,
    ST_REQUEST_FORMAT_STOPS = 4, // texts that end answers to prompts of a form
    ST_REQUEST_MAX_TOP = STINT_MAX_TOP,
    ST_REQUEST_MAX_PROMPTS = 64,
    ST_REQUEST_MAX_MESSAGES = 4096,
    ST_REQUEST_MAX_TOOLS = 128,
    ST_REQUEST_MAX_BIASES = 1024,
    ST_REQUEST_TEXT_TOKENS = 16 // the default max_tokens of /v1/completions
};

enum st_answer_format { ST_FORMAT_TEXT, ST_FORMAT_JSON, ST_FORMAT_SCHEMA };

struct st_request {
    json_t *body; // everything that follows borrows from it
    bool chat;
    const char *model;      // NULL: not given
    const json_t *messages; // of a chat
    const json_t *prompt;   // of a completion: a string, or an array; see st_request_prompts()
    const char *suffix;     // of a completion: the text behind the answer; NULL: none
    struct st_tools tools;
    enum st_chat_thinking thinking;
    const char *begun; // text of the assistant that the answer continues; the last message, which
                       // is not in `messages` then. NULL: none
    uint32_t n, best_of;    // choices of a prompt, the likeliest of so many answers
    uint32_t max_tokens;    // 0: until the context is full
    stint_sampling sampling;
    bool seeded;              // by the client, or the server's own options
    stint_logit_bias *biases; // [n_biases], owned by the request
    size_t n_biases;
    const char *stops[ST_REQUEST_MAX_STOPS + ST_REQUEST_FORMAT_STOPS];
    uint32_t n_stops;
    bool echo;      // a completion begins with its prompt
    bool no_answer; // max_tokens is 0
    bool logprobs;
    uint32_t n_top;
    bool stream, include_usage;
    bool continuous_usage; // each chunk has the usage so far
    bool ignore_eos;       // without effect under a constraint
    enum st_answer_format format;
    const json_t *schema; // of ST_FORMAT_SCHEMA
    const char *grammar;  // GBNF that the answer follows; NULL: none
    bool compact;         // JSON of the format has no blanks
};

// Reads body, which is taken over, even on failure; `sampling` holds where it says nothing. False
// with *problem filled; nothing is left to free then. Else free with st_request_free.
bool st_request_read(json_t *body, bool chat, const stint_sampling *sampling,
                     struct st_request *request, struct st_problem *problem);
// The same for body[0, n_bytes), whose fields must be known.
bool st_request_parse(const char *body, size_t n_bytes, bool chat, const stint_sampling *sampling,
                      struct st_request *request, struct st_problem *problem);
void st_request_free(struct st_request *request);

// Parses JSON of one object without NUL characters: *object is a new reference. 413: so many values
// that they would take more than ST_REQUEST_TREE_BYTES.
bool st_request_object(const char *body, size_t n_bytes, json_t **object,
                       struct st_problem *problem);

// The number of prompts of a completion: one for a string or an array of ids, one per element for
// an array of those.
size_t st_request_prompts(const struct st_request *request);
const json_t *st_request_prompt(const struct st_request *request, size_t i);

// The fields that only a chat has (request_chat.c): messages, tools, response_format. pre:
// request->body.
bool st_request_chat(struct st_request *request, struct st_problem *problem);

#endif
