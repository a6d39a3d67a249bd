// SPDX-License-Identifier: Apache-2.0
#include "server/api/choice.h"

#include <stdlib.h>
#include <string.h>

void st_choice_free(struct st_choice *choice) {
    st_bytes_free(&choice->text);
    free(choice->tokens);
    free(choice->tops);
    st_tool_calls_free(&choice->calls);
    *choice = (struct st_choice){0};
}

static stint_status take_token(struct st_choice *choice, const struct st_engine_event *event) {
    ST_TRY(st_grow((void **)&choice->tokens, &choice->token_capacity, choice->n_tokens, 1,
                   sizeof *choice->tokens));
    ST_TRY(st_grow((void **)&choice->tops, &choice->top_capacity, choice->n_tops, event->n_top,
                   sizeof *choice->tops));
    choice->tokens[choice->n_tokens++] = (struct st_chosen){.id = event->id,
                                                            .logprob = event->logprob,
                                                            .begin = choice->n_decoded,
                                                            .first_top = choice->n_tops,
                                                            .n_top = event->n_top};
    if (event->n_top > 0)
        memcpy(choice->tops + choice->n_tops, event->top, event->n_top * sizeof *event->top);
    choice->n_tops += event->n_top;
    choice->n_decoded += event->n_made;
    return STINT_OK;
}

stint_status st_choice_take(struct st_choice *choice, const struct st_engine_event *event) {
    if (event->end != ST_ENGINE_GOES_ON) choice->end = event->end;
    if (event->usage != NULL) choice->usage = *event->usage;
    if (event->id >= 0) ST_TRY(take_token(choice, event));
    ST_TRY(st_bytes_append(&choice->text, event->text, event->n_bytes));
    st_reasoning_push(&choice->reasoning, event->text, event->n_bytes);
    if (event->end != ST_ENGINE_GOES_ON) st_reasoning_end(&choice->reasoning);
    return STINT_OK;
}

static size_t answer_begin(const struct st_choice *choice) {
    return st_reasoning_before_answer(&choice->reasoning, choice->text.count);
}

const char *st_choice_answer(const struct st_choice *choice, size_t *n_bytes) {
    size_t begin = answer_begin(choice);
    *n_bytes = choice->text.count - begin;
    return *n_bytes > 0 ? choice->text.data + begin : "";
}

static size_t token_end(const struct st_choice *choice, size_t i) {
    return i + 1 < choice->n_tokens ? choice->tokens[i + 1].begin : choice->n_decoded;
}

// A token with both the blank after the reasoning and the answer's first word belongs to the
// answer.
size_t st_choice_reasoning_tokens(const struct st_choice *choice) {
    size_t n = 0, begin = answer_begin(choice);
    while (n < choice->n_tokens && choice->tokens[n].begin < begin && token_end(choice, n) <= begin)
        n++;
    return n;
}

// The number of tokens whose text is at least partly certain; all tokens if nothing was cut off.
static size_t certain_tokens(const struct st_choice *choice, size_t first) {
    size_t n = first;
    bool over = choice->end != ST_ENGINE_GOES_ON;
    if (over && choice->n_decoded <= choice->text.count) return choice->n_tokens;
    while (n < choice->n_tokens && choice->tokens[n].begin < choice->text.count) n++;
    return n;
}

struct st_piece st_choice_thoughts(struct st_choice *choice) {
    const struct st_reasoning *reasoning = &choice->reasoning;
    struct st_piece piece = {.from = choice->n_thought, .to = reasoning->to};
    if (piece.from < reasoning->from) piece.from = reasoning->from;
    choice->n_thought = piece.to;
    return piece;
}

struct st_piece st_choice_news(struct st_choice *choice) {
    enum st_reasoning_phase phase = choice->reasoning.phase;
    struct st_piece piece = {choice->n_told, choice->n_told, choice->n_told_tokens,
                             choice->n_told_tokens};
    if (phase != ST_REASONING_NONE && phase != ST_REASONING_OVER) return piece;
    size_t begin = answer_begin(choice);
    if (piece.from < begin) {
        piece.from = begin;
        piece.first = st_choice_reasoning_tokens(choice);
    }
    piece.to = choice->text.count;
    piece.last = certain_tokens(choice, piece.first);
    choice->n_told = piece.to;
    choice->n_told_tokens = piece.last;
    return piece;
}

struct st_piece st_choice_all_thoughts(const struct st_choice *choice) {
    struct st_choice untold = *choice;
    untold.n_thought = 0;
    return st_choice_thoughts(&untold);
}

struct st_piece st_choice_all(const struct st_choice *choice) {
    struct st_choice untold = *choice;
    untold.n_told = untold.n_told_tokens = 0;
    return st_choice_news(&untold);
}

const char *st_choice_finish(const struct st_choice *choice) {
    if (choice->calls.n > 0) return "tool_calls";
    return choice->end == ST_ENGINE_LENGTH ? "length" : "stop";
}

// The text of a single token, with its leading space; incomplete characters become U+FFFD.
static void write_token(const struct stint_tokenizer *tokenizer, int32_t id,
                        struct st_json_text *out) {
    char bytes[ST_PIECE_MAX_BYTES];
    st_json_quote(out, bytes, st_tokenizer_piece(tokenizer, id, bytes));
}

static void write_entry(const struct stint_tokenizer *tokenizer, int32_t id, float logprob,
                        struct st_json_text *out) {
    char bytes[ST_PIECE_MAX_BYTES];
    size_t n = st_tokenizer_piece(tokenizer, id, bytes);
    st_json_raw(out, "{\"token\":");
    st_json_quote(out, bytes, n);
    st_json_raw(out, ",\"logprob\":");
    st_json_real(out, logprob);
    st_json_raw(out, ",\"bytes\":[");
    for (size_t i = 0; i < n; i++)
        st_json_format(out, i > 0 ? ",%u" : "%u", (unsigned char)bytes[i]);
    st_json_raw(out, "]");
}

static void write_chat(const struct st_choice *choice, const struct stint_tokenizer *tokenizer,
                       struct st_piece piece, struct st_json_text *out) {
    st_json_raw(out, "{\"content\":[");
    for (size_t i = piece.first; i < piece.last; i++) {
        const struct st_chosen *token = &choice->tokens[i];
        if (i > piece.first) st_json_raw(out, ",");
        write_entry(tokenizer, token->id, token->logprob, out);
        st_json_raw(out, ",\"top_logprobs\":[");
        for (size_t k = 0; k < token->n_top; k++) {
            const struct st_engine_alternative *top = &choice->tops[token->first_top + k];
            if (k > 0) st_json_raw(out, ",");
            write_entry(tokenizer, top->id, top->logprob, out);
            st_json_raw(out, "}");
        }
        st_json_raw(out, "]}");
    }
    st_json_raw(out, "],\"refusal\":null}");
}

static void write_alternatives(const struct st_choice *choice,
                               const struct stint_tokenizer *tokenizer,
                               const struct st_chosen *token, struct st_json_text *out) {
    st_json_raw(out, "{");
    for (size_t k = 0; k < token->n_top; k++) {
        const struct st_engine_alternative *top = &choice->tops[token->first_top + k];
        if (k > 0) st_json_raw(out, ",");
        write_token(tokenizer, top->id, out);
        st_json_raw(out, ":");
        st_json_real(out, top->logprob);
    }
    st_json_raw(out, "}");
}

static void write_text(const struct st_choice *choice, const struct stint_tokenizer *tokenizer,
                       struct st_piece piece, struct st_json_text *out) {
    const struct st_chosen *tokens = choice->tokens;
    bool tops = false;
    st_json_raw(out, "{\"tokens\":[");
    for (size_t i = piece.first; i < piece.last; i++) {
        if (i > piece.first) st_json_raw(out, ",");
        write_token(tokenizer, tokens[i].id, out);
        tops = tops || tokens[i].n_top > 0;
    }
    st_json_raw(out, "],\"token_logprobs\":[");
    for (size_t i = piece.first; i < piece.last; i++) {
        if (i > piece.first) st_json_raw(out, ",");
        st_json_real(out, tokens[i].logprob);
    }
    st_json_raw(out, "],\"text_offset\":[");
    for (size_t i = piece.first; i < piece.last; i++)
        st_json_format(out, i > piece.first ? ",%zu" : "%zu", tokens[i].begin);
    st_json_raw(out, tops ? "],\"top_logprobs\":[" : "],\"top_logprobs\":null");
    for (size_t i = piece.first; tops && i < piece.last; i++) {
        if (i > piece.first) st_json_raw(out, ",");
        write_alternatives(choice, tokenizer, &tokens[i], out);
    }
    st_json_raw(out, tops ? "]}" : "}");
}

void st_choice_logprobs(const struct st_choice *choice, const struct stint_tokenizer *tokenizer,
                        struct st_piece piece, bool chat, struct st_json_text *out) {
    (chat ? write_chat : write_text)(choice, tokenizer, piece, out);
}
