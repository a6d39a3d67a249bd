// SPDX-License-Identifier: Apache-2.0
#include "generate/transcript.h"

#include <stdlib.h>
#include <string.h>

void st_transcript_free(struct st_transcript *t) {
    st_bytes_free(&t->text);
    free(t->tokens);
    free(t->tops);
    st_tool_calls_free(&t->calls);
    *t = (struct st_transcript){0};
}

stint_status st_transcript_token(struct st_transcript *t, const struct st_token *token,
                                 size_t n_made) {
    ST_TRY(st_grow((void **)&t->tokens, &t->token_capacity, t->n_tokens, 1, sizeof *t->tokens));
    ST_TRY(st_grow((void **)&t->tops, &t->top_capacity, t->n_tops, token->n_top, sizeof *t->tops));
    t->tokens[t->n_tokens++] = (struct st_spoken){.id = token->id,
                                                  .logprob = token->logprob,
                                                  .begin = t->n_decoded,
                                                  .first_top = t->n_tops,
                                                  .n_top = token->n_top};
    if (token->n_top > 0)
        memcpy(t->tops + t->n_tops, token->top, token->n_top * sizeof *token->top);
    t->n_tops += token->n_top;
    t->n_decoded += n_made;
    return STINT_OK;
}

stint_status st_transcript_text(struct st_transcript *t, const char *text, size_t n) {
    ST_TRY(st_bytes_append(&t->text, text, n));
    st_reasoning_push(&t->reasoning, text, n);
    return STINT_OK;
}

void st_transcript_end(struct st_transcript *t, stint_stop_reason reason) {
    t->ended = true;
    t->reason = reason;
    st_reasoning_end(&t->reasoning);
}

static size_t answer_begin(const struct st_transcript *t) {
    return st_reasoning_before_answer(&t->reasoning, t->text.count);
}

const char *st_transcript_answer(const struct st_transcript *t, size_t *n_bytes) {
    size_t begin = answer_begin(t);
    *n_bytes = t->text.count - begin;
    return *n_bytes > 0 ? t->text.data + begin : "";
}

static size_t token_end(const struct st_transcript *t, size_t i) {
    return i + 1 < t->n_tokens ? t->tokens[i + 1].begin : t->n_decoded;
}

// A token with both the blank after the reasoning and the answer's first word belongs to the
// answer.
size_t st_transcript_reasoning_tokens(const struct st_transcript *t) {
    size_t n = 0, begin = answer_begin(t);
    while (n < t->n_tokens && t->tokens[n].begin < begin && token_end(t, n) <= begin) n++;
    return n;
}

// The number of tokens whose text is at least partly certain; all tokens if nothing was cut off.
static size_t certain_tokens(const struct st_transcript *t, size_t first) {
    size_t n = first, end = t->text.count - t->n_held;
    if (t->ended && t->n_decoded <= end) return t->n_tokens;
    while (n < t->n_tokens && t->tokens[n].begin < end) n++;
    return n;
}

struct st_piece st_transcript_thoughts(struct st_transcript *t) {
    const struct st_reasoning *reasoning = &t->reasoning;
    struct st_piece piece = {.from = t->n_thought, .to = reasoning->to};
    if (piece.from < reasoning->from) piece.from = reasoning->from;
    t->n_thought = piece.to;
    return piece;
}

struct st_piece st_transcript_news(struct st_transcript *t) {
    enum st_reasoning_phase phase = t->reasoning.phase;
    struct st_piece piece = {t->n_told, t->n_told, t->n_told_tokens, t->n_told_tokens};
    if (phase != ST_REASONING_NONE && phase != ST_REASONING_OVER) return piece;
    size_t begin = answer_begin(t);
    if (piece.from < begin) {
        piece.from = begin;
        piece.first = st_transcript_reasoning_tokens(t);
    }
    piece.to = t->text.count - t->n_held;
    if (piece.to < piece.from) piece.to = piece.from;
    piece.last = certain_tokens(t, piece.first);
    t->n_told = piece.to;
    t->n_told_tokens = piece.last;
    return piece;
}

struct st_piece st_transcript_all_thoughts(const struct st_transcript *t) {
    struct st_transcript untold = *t;
    untold.n_thought = 0;
    return st_transcript_thoughts(&untold);
}

struct st_piece st_transcript_all(const struct st_transcript *t) {
    struct st_transcript untold = *t;
    untold.n_told = untold.n_told_tokens = untold.n_held = 0;
    return st_transcript_news(&untold);
}
