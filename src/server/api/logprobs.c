// SPDX-License-Identifier: Apache-2.0
#include "server/api/logprobs.h"

#include <math.h>

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

static void write_chat(const struct st_transcript *transcript,
                       const struct stint_tokenizer *tokenizer, struct st_piece piece,
                       struct st_json_text *out) {
    st_json_raw(out, "{\"content\":[");
    for (size_t i = piece.first; i < piece.last; i++) {
        const struct st_spoken *token = &transcript->tokens[i];
        if (i > piece.first) st_json_raw(out, ",");
        write_entry(tokenizer, token->id, token->logprob, out);
        st_json_raw(out, ",\"top_logprobs\":[");
        for (size_t k = 0; k < token->n_top; k++) {
            const stint_alternative *top = &transcript->tops[token->first_top + k];
            if (k > 0) st_json_raw(out, ",");
            write_entry(tokenizer, top->id, top->logprob, out);
            st_json_raw(out, "}");
        }
        st_json_raw(out, "]}");
    }
    st_json_raw(out, "],\"refusal\":null}");
}

static void write_alternatives(const struct st_transcript *transcript,
                               const struct stint_tokenizer *tokenizer,
                               const struct st_spoken *token, struct st_json_text *out) {
    st_json_raw(out, "{");
    for (size_t k = 0; k < token->n_top; k++) {
        const stint_alternative *top = &transcript->tops[token->first_top + k];
        if (k > 0) st_json_raw(out, ",");
        write_token(tokenizer, top->id, out);
        st_json_raw(out, ":");
        st_json_real(out, top->logprob);
    }
    st_json_raw(out, "}");
}

static void write_text(const struct st_transcript *transcript,
                       const struct stint_tokenizer *tokenizer, struct st_piece piece,
                       struct st_json_text *out) {
    const struct st_spoken *tokens = transcript->tokens;
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
        if (isnan(tokens[i].logprob)) // nothing was said in front of it
            st_json_raw(out, "null");
        else
            write_alternatives(transcript, tokenizer, &tokens[i], out);
    }
    st_json_raw(out, tops ? "]}" : "}");
}

void st_logprobs_write(const struct st_transcript *transcript,
                       const struct stint_tokenizer *tokenizer, struct st_piece piece, bool chat,
                       struct st_json_text *out) {
    (chat ? write_chat : write_text)(transcript, tokenizer, piece, out);
}
