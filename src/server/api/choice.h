// SPDX-License-Identifier: Apache-2.0
// One answer as it grows: its text, of which the beginning may be reasoning, and its tokens with
// their log-probabilities, which are told when the text that they made is. What a stop text cut off
// stays untold, and so do the tokens of reasoning.
#ifndef ST_SERVER_CHOICE_H
#define ST_SERVER_CHOICE_H

#include "chat/reasoning.h"
#include "chat/tool_calls.h"
#include "server/api/json_text.h"
#include "server/scheduler/engine.h"
#include "tokenizer/tokenizer.h"

struct st_chosen {
    int32_t id;
    float logprob;
    size_t begin;            // byte of the text at which what it made begins
    size_t first_top, n_top; // its alternatives
};

// Zero-initialise but for reasoning.phase; free with st_choice_free.
struct st_choice {
    struct st_bytes text; // what became certain, reasoning and its marks included
    struct st_reasoning reasoning;
    size_t n_thought; // bytes up to which reasoning was taken by st_choice_thoughts
    size_t n_told;    // bytes up to which the answer was taken by st_choice_news
    struct st_chosen *tokens;
    size_t n_tokens, token_capacity, n_told_tokens;
    struct st_engine_alternative *tops;
    size_t n_tops, top_capacity;
    size_t n_decoded; // bytes that the tokens made, of which some may not be certain
    enum st_engine_end end;
    struct st_engine_usage usage;
    struct st_tool_calls calls; // n 0: the answer is text
};

void st_choice_free(struct st_choice *choice);

// Adds what one event says. STINT_E_NOMEM.
stint_status st_choice_take(struct st_choice *choice, const struct st_engine_event *event);

// The answer without its reasoning, as far as it is certain; "" before it begins.
const char *st_choice_answer(const struct st_choice *choice, size_t *n_bytes);
// Tokens that reasoning took, its marks included.
size_t st_choice_reasoning_tokens(const struct st_choice *choice);

// Text [from, to) and tokens [first, last) of a choice.
struct st_piece {
    size_t from, to, first, last;
};
// Reasoning that may be told now and was not before, without tokens; marks it as told.
struct st_piece st_choice_thoughts(struct st_choice *choice);
// What of the answer may be told now and was not before; marks it as told.
struct st_piece st_choice_news(struct st_choice *choice);
// All of the reasoning and of the answer, which has ended.
struct st_piece st_choice_all_thoughts(const struct st_choice *choice);
struct st_piece st_choice_all(const struct st_choice *choice);

// "stop", "length" or "tool_calls".
const char *st_choice_finish(const struct st_choice *choice);

// The log-probabilities of tokens [first, last): as chats have them, an object with "content", or
// as completions do, an object of arrays.
void st_choice_logprobs(const struct st_choice *choice, const struct stint_tokenizer *tokenizer,
                        struct st_piece piece, bool chat, struct st_json_text *out);

#endif
