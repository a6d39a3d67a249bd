// SPDX-License-Identifier: Apache-2.0
// Encoding: broken UTF-8 is repaired, added tokens are cut out, the text between them is normalized
// and split into pieces, and the model encodes each piece.
#include "tokenizer/tokenizer.h"

#include "base/size.h"
#include "base/utf8.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/parts.h"
#include "tokenizer/unigram.h"

#include <string.h>

struct encoding {
    const struct stint_tokenizer *t;
    uint32_t flags;
    struct st_ids *ids;
    struct st_bpe_scratch scratch;
    bool first; // nothing has been encoded yet
};

static stint_status encode_pieces(struct encoding *e, struct st_bytes *text) {
    const struct stint_tokenizer *t = e->t;
    struct st_pieces pieces = {0};
    stint_status status =
        st_pretokenize(t->pretokenizers, t->n_pretokenizers, e->first, text, &pieces);
    e->first = false;
    for (size_t i = 0; status == STINT_OK && i < pieces.count; i++) {
        const char *piece = pieces.text.data + pieces.spans[i].start;
        size_t n = pieces.spans[i].end - pieces.spans[i].start;
        status = t->is_unigram
                     ? st_unigram_encode(&t->unigram, &t->bpe, &t->vocab, piece, n, e->ids)
                     : st_bpe_encode(&t->bpe, &t->vocab, &e->scratch, piece, n, e->ids);
    }
    st_pieces_free(&pieces);
    return status;
}

typedef stint_status text_fn(struct encoding *e, const char *text, size_t n);

// Calls `rest` for the text between added tokens and appends the ids of the added tokens.
static stint_status cut_added(struct encoding *e, bool normalized, const char *text, size_t n,
                              text_fn *rest) {
    struct st_added_search found = {0};
    bool plain = (e->flags & STINT_TOKENIZE_PLAIN) != 0;
    size_t done = 0;
    while (st_added_next(e->t, normalized, plain, text, n, &found)) {
        if (found.start > done) ST_TRY(rest(e, text + done, found.start - done));
        ST_TRY(st_ids_append(e->ids, found.id));
        e->first = false;
        done = found.end;
    }
    return done < n ? rest(e, text + done, n - done) : STINT_OK;
}

static stint_status encode_normalized(struct encoding *e, const char *text, size_t n) {
    struct st_bytes copy = {0};
    if (n == 0) return STINT_OK;
    ST_TRY(st_bytes_append(&copy, text, n));
    stint_status status = encode_pieces(e, &copy);
    st_bytes_free(&copy);
    return status;
}

static stint_status encode_segment(struct encoding *e, const char *text, size_t n) {
    struct st_bytes copy = {0};
    if (n == 0) return STINT_OK;
    ST_TRY(st_bytes_append(&copy, text, n));
    stint_status status = st_normalize(e->t->normalizers, e->t->n_normalizers, &copy);
    if (status == STINT_OK) status = cut_added(e, true, copy.data, copy.count, encode_normalized);
    st_bytes_free(&copy);
    return status;
}

// Makes the text valid UTF-8: each broken sequence becomes U+FFFD.
static stint_status repair(const char *text, size_t n, struct st_bytes *out) {
    size_t done = 0;
    for (size_t i = 0; i < n;) {
        size_t length = st_utf8_length(text + i, n - i);
        if (length) {
            i += length;
            continue;
        }
        ST_TRY(st_bytes_append(out, text + done, i - done));
        ST_TRY(st_bytes_append(out, "\xef\xbf\xbd", 3));
        done = i += st_utf8_broken(text + i, n - i);
    }
    return st_bytes_append(out, text + done, n - done);
}

stint_status st_tokenizer_encode(const struct stint_tokenizer *tokenizer, const char *text,
                                 size_t n_bytes, uint32_t flags, struct st_ids *ids) {
    struct encoding e = {.t = tokenizer, .flags = flags, .ids = ids, .first = true};
    struct st_bytes valid = {0};
    stint_status status = repair(text, n_bytes, &valid);
    bool bos = (flags & STINT_TOKENIZE_ADD_BOS) && tokenizer->add_bos && tokenizer->bos >= 0;
    if (status == STINT_OK && bos) status = st_ids_append(ids, tokenizer->bos);
    if (status == STINT_OK) status = cut_added(&e, false, valid.data, valid.count, encode_segment);
    bool end = (flags & STINT_TOKENIZE_ADD_END) && tokenizer->end >= 0;
    if (status == STINT_OK && end) status = st_ids_append(ids, tokenizer->end);
    st_bpe_scratch_free(&e.scratch);
    st_bytes_free(&valid);
    return status;
}

size_t st_tokenizer_max_bytes(const struct stint_tokenizer *tokenizer, size_t n_tokens) {
    enum { SHRINKS = 4 }; // what normal forms and lower case save at most: three bytes become one
    size_t bytes, per_token = tokenizer->vocab.longest;
    if (tokenizer->n_normalizers > 0) per_token *= SHRINKS;
    return st_size_mul(n_tokens, st_max(per_token, 4), &bytes) ? bytes : SIZE_MAX;
}

size_t st_tokenizer_vocab(const struct stint_tokenizer *tokenizer) {
    return tokenizer->vocab.n;
}
int32_t st_tokenizer_bos(const struct stint_tokenizer *tokenizer) {
    return tokenizer->bos;
}
int32_t st_tokenizer_eos(const struct stint_tokenizer *tokenizer) {
    return tokenizer->eos;
}

bool st_tokenizer_is_special(const struct stint_tokenizer *tokenizer, int32_t id) {
    enum st_token_kind kind = st_vocab_kind(&tokenizer->vocab, id);
    return kind == ST_TOKEN_CONTROL || kind == ST_TOKEN_UNKNOWN;
}

int32_t st_tokenizer_find(const struct stint_tokenizer *tokenizer, const char *text) {
    return st_vocab_find(&tokenizer->vocab, text, strlen(text));
}

const char *st_tokenizer_chat_template(const struct stint_tokenizer *tokenizer) {
    return tokenizer->chat_template;
}
