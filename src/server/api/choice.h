// SPDX-License-Identifier: Apache-2.0
// One answer as it grows: its text, which may begin with reasoning, and its tokens with their
// log-probabilities, which are sent together with their text. Text that a stop text cut off is
// never sent, and neither are the tokens of reasoning.
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
    size_t begin;            // offset at which its part of the text begins
    size_t first_top, n_top; // its alternatives
};

// Zero-initialise except for reasoning.phase; free with st_choice_free.
struct st_choice {
    struct st_bytes text; // the certain text, including reasoning and its marks
    struct st_reasoning reasoning;
    size_t n_thought; // offset up to which st_choice_thoughts has returned reasoning
    size_t n_told;    // offset up to which st_choice_news has returned the answer
    struct st_chosen *tokens;
    size_t n_tokens, token_capacity, n_told_tokens;
    struct st_engine_alternative *tops;
    size_t n_tops, top_capacity;
    size_t n_decoded; // bytes of all tokens; some may not be certain
    enum st_engine_end end;
    struct st_engine_usage usage;
    struct st_tool_calls calls; // n 0: the answer is text
};

void st_choice_free(struct st_choice *choice);

// Adds the contents of one event. STINT_E_NOMEM.
stint_status st_choice_take(struct st_choice *choice, const struct st_engine_event *event);

// The certain part of the answer without its reasoning; "" before it begins.
const char *st_choice_answer(const struct st_choice *choice, size_t *n_bytes);
// The number of tokens of reasoning, including its marks.
size_t st_choice_reasoning_tokens(const struct st_choice *choice);

// Text [from, to) and tokens [first, last) of a choice.
struct st_piece {
    size_t from, to, first, last;
};
// The reasoning that can be sent now and was not sent before, without tokens; marks it as sent.
struct st_piece st_choice_thoughts(struct st_choice *choice);
// The part of the answer that can be sent now and was not sent before; marks it as sent.
struct st_piece st_choice_news(struct st_choice *choice);
// The whole reasoning and the whole answer, which has ended.
struct st_piece st_choice_all_thoughts(const struct st_choice *choice);
struct st_piece st_choice_all(const struct st_choice *choice);

// "stop", "length" or "tool_calls".
const char *st_choice_finish(const struct st_choice *choice);

// The log-probabilities of tokens [first, last): for chats an object with "content", for
// completions an object of arrays.
void st_choice_logprobs(const struct st_choice *choice, const struct stint_tokenizer *tokenizer,
                        struct st_piece piece, bool chat, struct st_json_text *out);

#endif
