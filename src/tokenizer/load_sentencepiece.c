// SPDX-License-Identifier: Apache-2.0
// tokenizer.model: SentencePiece's ModelProto, read field by field from its protobuf wire format.
// Fields that do not matter here are skipped.
#include "tokenizer/parts.h"

#include <stdlib.h>
#include <string.h>

struct wire {
    const unsigned char *at, *end;
};

// One field: number, and its value as an integer or as bytes.
struct field {
    uint64_t number, value;
    struct wire bytes;
    unsigned type; // 0 varint, 1 eight bytes, 2 bytes, 5 four bytes
};

static bool read_varint(struct wire *w, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        unsigned char byte = *w->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

static bool read_fixed(struct wire *w, size_t n, uint64_t *value) {
    if ((size_t)(w->end - w->at) < n) return false;
    *value = 0;
    for (size_t i = 0; i < n; i++) *value |= (uint64_t)w->at[i] << 8 * i;
    w->at += n;
    return true;
}

static stint_status next_field(struct wire *w, struct field *f) {
    uint64_t key, n;
    bool ok = read_varint(w, &key);
    f->number = key >> 3;
    f->type = key & 7;
    if (ok && f->type == 0)
        ok = read_varint(w, &f->value);
    else if (ok && f->type == 1)
        ok = read_fixed(w, 8, &f->value);
    else if (ok && f->type == 5)
        ok = read_fixed(w, 4, &f->value);
    else if (ok && f->type == 2) {
        ok = read_varint(w, &n) && n <= (uint64_t)(w->end - w->at);
        if (ok) {
            f->bytes = (struct wire){w->at, w->at + n};
            w->at += n;
        }
    } else
        ok = false;
    return ok ? STINT_OK : st_fail(STINT_E_FORMAT, "not a SentencePiece model, or damaged");
}

// The settings of the model, with SentencePiece's defaults.
struct spm {
    struct stint_tokenizer *t;
    int64_t n_pieces;
    uint64_t model_type; // 1 unigram, 2 BPE
    bool byte_fallback, dummy_prefix, squeeze, escape;
    struct wire charsmap;
    int64_t unknown, bos, eos;
};

static enum st_token_kind kind_of(uint64_t type) {
    static const enum st_token_kind kinds[] = {ST_TOKEN_NORMAL,  ST_TOKEN_NORMAL, ST_TOKEN_UNKNOWN,
                                               ST_TOKEN_CONTROL, ST_TOKEN_ADDED,  ST_TOKEN_UNUSED,
                                               ST_TOKEN_BYTE};
    return type < sizeof kinds / sizeof *kinds ? kinds[type] : ST_TOKEN_NORMAL;
}

static stint_status read_piece(struct spm *m, struct wire w) {
    struct wire text = {0};
    uint64_t type = 1;
    float score = 0.0f;
    struct field f = {0};
    while (w.at < w.end) {
        ST_TRY(next_field(&w, &f));
        if (f.number == 1 && f.type == 2) text = f.bytes;
        if (f.number == 2 && f.type == 5) {
            uint32_t bits = (uint32_t)f.value;
            memcpy(&score, &bits, sizeof score);
        }
        if (f.number == 3 && f.type == 0) type = f.value;
    }
    enum st_token_kind kind = kind_of(type);
    size_t n = (size_t)(text.end - text.at);
    int64_t id = m->n_pieces++;
    if (n == 0) return st_fail(STINT_E_FORMAT, "piece %lld is empty", (long long)id);
    if (kind == ST_TOKEN_ADDED) {
        struct st_added added = {.text = (char *)text.at, .bytes = n, .id = (int32_t)id};
        added.normalized = true;
        return st_tokenizer_add_token(m->t, &added);
    }
    if (kind == ST_TOKEN_BYTE)
        kind = ST_TOKEN_NORMAL; // st_vocab_mark_bytes looks at its text later
    return st_vocab_add(&m->t->vocab, id, (const char *)text.at, n, kind, (double)score);
}

static stint_status read_trainer(struct spm *m, struct wire w) {
    struct field f = {0};
    while (w.at < w.end) {
        ST_TRY(next_field(&w, &f));
        if (f.type != 0) continue;
        if (f.number == 3) m->model_type = f.value;
        if (f.number == 35) m->byte_fallback = f.value != 0;
        if (f.number == 40) m->unknown = (int32_t)f.value;
        if (f.number == 41) m->bos = (int32_t)f.value;
        if (f.number == 42) m->eos = (int32_t)f.value;
    }
    return STINT_OK;
}

static stint_status read_normalizer(struct spm *m, struct wire w) {
    struct field f = {0};
    while (w.at < w.end) {
        ST_TRY(next_field(&w, &f));
        if (f.number == 2 && f.type == 2) m->charsmap = f.bytes;
        if (f.type != 0) continue;
        if (f.number == 3) m->dummy_prefix = f.value != 0;
        if (f.number == 4) m->squeeze = f.value != 0;
        if (f.number == 5) m->escape = f.value != 0;
    }
    return STINT_OK;
}

static stint_status read_fields(struct spm *m, struct wire w) {
    struct field f = {0};
    while (w.at < w.end) {
        ST_TRY(next_field(&w, &f));
        if (f.type != 2) continue;
        if (f.number == 1) ST_TRY(read_piece(m, f.bytes));
        if (f.number == 2) ST_TRY(read_trainer(m, f.bytes));
        if (f.number == 3) ST_TRY(read_normalizer(m, f.bytes));
    }
    return STINT_OK;
}

static stint_status apply_steps(struct spm *m) {
    struct stint_tokenizer *t = m->t;
    size_t n = (size_t)(m->charsmap.end - m->charsmap.at);
    if (n) {
        struct st_normalizer step = {
            .kind = ST_NORMALIZE_CHARSMAP, .from = malloc(n), .from_bytes = n};
        if (!step.from) return st_fail(STINT_E_NOMEM, "no memory for a tokenizer");
        memcpy(step.from, m->charsmap.at, n);
        ST_TRY(st_tokenizer_add_normalizer(t, step));
    }
    if (m->squeeze)
        ST_TRY(
            st_tokenizer_add_normalizer(t, (struct st_normalizer){.kind = ST_NORMALIZE_SQUEEZE}));
    if (m->dummy_prefix) ST_TRY(st_tokenizer_add_prepend(t, " ", 1));
    if (m->escape) ST_TRY(st_tokenizer_add_replace(t, " ", "\xe2\x96\x81"));
    t->metaspace = m->escape;
    t->strip_first_space = m->dummy_prefix || m->squeeze;
    return STINT_OK;
}

static stint_status finish(struct spm *m) {
    struct stint_tokenizer *t = m->t;
    if (m->model_type != 1 && m->model_type != 2)
        return st_fail(STINT_E_UNSUPPORTED,
                       "model type %llu: only unigram (1) and BPE (2) are known",
                       (unsigned long long)m->model_type);
    t->is_unigram = t->unigram.sentencepiece = m->model_type == 1;
    t->bpe.byte_fallback = m->byte_fallback;
    t->bpe.fuse_unknown = true;
    t->bpe.unknown = m->unknown >= 0 && m->unknown < m->n_pieces ? (int32_t)m->unknown : -1;
    t->bos = m->bos >= 0 && m->bos < m->n_pieces ? (int32_t)m->bos : -1;
    t->eos = m->eos >= 0 && m->eos < m->n_pieces ? (int32_t)m->eos : -1;
    t->add_bos = t->bos >= 0;
    // User-defined pieces are searched for in normalized text, so the pieces themselves are not
    // normalized. A unigram model finds them by their scores.
    for (size_t i = 0; t->is_unigram && i < t->n_added; i++) free(t->added[i].text);
    if (t->is_unigram) t->n_added = 0;
    ST_TRY(st_tokenizer_finish(t));
    return apply_steps(m);
}

stint_status st_tokenizer_from_sentencepiece(const char *name, const void *data, size_t bytes,
                                             struct stint_tokenizer **tokenizer) {
    struct spm m = {.model_type = 1,
                    .dummy_prefix = true,
                    .squeeze = true,
                    .escape = true,
                    .unknown = 0,
                    .bos = 1,
                    .eos = 2};
    const unsigned char *start = data;
    stint_status status = st_tokenizer_new(bytes / 5 + 65536, &m.t);
    if (status == STINT_OK && bytes) status = read_fields(&m, (struct wire){start, start + bytes});
    if (status == STINT_OK) status = finish(&m);
    if (status != STINT_OK) {
        st_tokenizer_close(m.t);
        return st_fail_prefix("%s: ", name);
    }
    *tokenizer = m.t;
    return STINT_OK;
}
