// SPDX-License-Identifier: Apache-2.0
// What an answer has said so far: its text, which may begin with reasoning, and its tokens with
// their log-probabilities, which are sent together with their text. Text that a stop text cut off
// is never sent, and neither are the tokens of reasoning.
#ifndef ST_GENERATE_TRANSCRIPT_H
#define ST_GENERATE_TRANSCRIPT_H

#include "generate/generator.h"
#include "base/buffer.h"
#include "chat/tool_calls.h"

struct st_spoken {
    int32_t id;
    float logprob;
    size_t begin;            // offset at which its part of the text begins
    size_t first_top, n_top; // its alternatives
};

// Zero-initialise except for reasoning.phase; free with st_transcript_free.
struct st_transcript {
    struct st_bytes text; // the certain text, including reasoning and its marks
    struct st_reasoning reasoning;
    size_t n_thought; // offset up to which st_transcript_thoughts has returned reasoning
    size_t n_told;    // offset up to which st_transcript_news has returned the answer
    size_t n_held;    // bytes at the end that st_transcript_news leaves out: they may be a call
    struct st_spoken *tokens;
    size_t n_tokens, token_capacity, n_told_tokens;
    stint_alternative *tops;
    size_t n_tops, top_capacity;
    size_t n_decoded; // bytes of all tokens; some may not be certain
    bool ended;
    stint_stop_reason reason;   // where ended
    struct st_tool_calls calls; // n 0: the answer is text
};

void st_transcript_free(struct st_transcript *transcript);

// Adds a token that made n_made bytes of text, with the text that became certain; both can fail
// with STINT_E_NOMEM.
stint_status st_transcript_token(struct st_transcript *transcript, const struct st_token *token,
                                 size_t n_made);
stint_status st_transcript_text(struct st_transcript *transcript, const char *text, size_t n);
// Nothing follows.
void st_transcript_end(struct st_transcript *transcript, stint_stop_reason reason);

// The certain part of the answer without its reasoning; "" before it begins.
const char *st_transcript_answer(const struct st_transcript *transcript, size_t *n_bytes);
// The number of tokens of reasoning, including its marks.
size_t st_transcript_reasoning_tokens(const struct st_transcript *transcript);

// Text [from, to) and tokens [first, last) of a transcript.
struct st_piece {
    size_t from, to, first, last;
};
// The reasoning that can be sent now and was not sent before, without tokens; marks it as sent.
struct st_piece st_transcript_thoughts(struct st_transcript *transcript);
// The part of the answer that can be sent now and was not sent before; marks it as sent.
struct st_piece st_transcript_news(struct st_transcript *transcript);
// The whole reasoning and the whole answer, which has ended.
struct st_piece st_transcript_all_thoughts(const struct st_transcript *transcript);
struct st_piece st_transcript_all(const struct st_transcript *transcript);

#endif
