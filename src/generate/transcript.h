// SPDX-License-Identifier: Apache-2.0
// What an answer has said so far: its text, of which the beginning may be reasoning, and its tokens
// with their log-probabilities, which are told when the text that they made is. What a stop text
// cut off stays untold, and so do the tokens of reasoning.
#ifndef ST_GENERATE_TRANSCRIPT_H
#define ST_GENERATE_TRANSCRIPT_H

#include "generate/generator.h"
#include "base/buffer.h"
#include "chat/tool_calls.h"

struct st_spoken {
    int32_t id;
    float logprob;
    size_t begin;            // byte of the text at which what it made begins
    size_t first_top, n_top; // its alternatives
};

// Zero-initialise but for reasoning.phase; free with st_transcript_free.
struct st_transcript {
    struct st_bytes text; // what became certain, reasoning and its marks included
    struct st_reasoning reasoning;
    size_t n_thought; // bytes up to which reasoning was taken by st_transcript_thoughts
    size_t n_told;    // bytes up to which the answer was taken by st_transcript_news
    struct st_spoken *tokens;
    size_t n_tokens, token_capacity, n_told_tokens;
    stint_alternative *tops;
    size_t n_tops, top_capacity;
    size_t n_decoded; // bytes that the tokens made, of which some may not be certain
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

// The answer without its reasoning, as far as it is certain; "" before it begins.
const char *st_transcript_answer(const struct st_transcript *transcript, size_t *n_bytes);
// Tokens that reasoning took, its marks included.
size_t st_transcript_reasoning_tokens(const struct st_transcript *transcript);

// Text [from, to) and tokens [first, last) of a transcript.
struct st_piece {
    size_t from, to, first, last;
};
// Reasoning that may be told now and was not before, without tokens; marks it as told.
struct st_piece st_transcript_thoughts(struct st_transcript *transcript);
// What of the answer may be told now and was not before; marks it as told.
struct st_piece st_transcript_news(struct st_transcript *transcript);
// All of the reasoning and of the answer, which has ended.
struct st_piece st_transcript_all_thoughts(const struct st_transcript *transcript);
struct st_piece st_transcript_all(const struct st_transcript *transcript);

#endif
