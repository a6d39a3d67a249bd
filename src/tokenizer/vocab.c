// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/vocab.h"

#include "base/buffer.h"
#include "base/random.h"
#include "base/size.h"
#include "base/utf8.h"
#include "tokenizer/tokenizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint64_t st_vocab_hash(uint64_t hash, const char *text, size_t n) { // FNV-1a
    for (size_t i = 0; i < n; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return hash;
}

stint_status st_vocab_open(struct st_vocab *vocab, size_t max) {
    *vocab =
        (struct st_vocab){.capacity = max < INT32_MAX ? max : INT32_MAX, .seed = st_random_seed()};
    memset(vocab->bytes, 0xff, sizeof vocab->bytes);
    return STINT_OK;
}

void st_vocab_close(struct st_vocab *vocab) {
    free(vocab->pool);
    free(vocab->tokens);
    free(vocab->scores);
    free(vocab->slots);
    *vocab = (struct st_vocab){0};
}

static bool same(const struct st_vocab *v, int32_t id, const char *text, size_t n) {
    const struct st_token *t = &v->tokens[id];
    return t->bytes == n && memcmp(v->pool + t->start, text, n) == 0;
}

// The slot of this text, or the empty slot where it belongs.
static size_t find_slot(const struct st_vocab *v, uint64_t hash, const char *text, size_t n) {
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu; // every bit of the seed counts
    size_t i = (size_t)(hash ^ hash >> 33) & (v->n_slots - 1);
    while (v->slots[i] >= 0 && !same(v, v->slots[i], text, n)) i = (i + 1) & (v->n_slots - 1);
    return i;
}

static size_t slot_of(const struct st_vocab *v, const char *text, size_t n) {
    return find_slot(v, st_vocab_hash(v->seed, text, n), text, n);
}

static stint_status rehash(struct st_vocab *v, size_t n_slots) {
    int32_t *slots = malloc(n_slots * sizeof *slots);
    if (!slots) return st_fail(STINT_E_NOMEM, "no memory for a vocabulary");
    memset(slots, 0xff, n_slots * sizeof *slots);
    free(v->slots);
    v->slots = slots;
    v->n_slots = n_slots;
    for (size_t id = 0; id < v->n; id++) {
        const struct st_token *t = &v->tokens[id];
        if (t->kind == ST_TOKEN_NONE) continue;
        size_t i = slot_of(v, v->pool + t->start, t->bytes);
        if (v->slots[i] < 0) v->slots[i] = (int32_t)id;
    }
    return STINT_OK;
}

static size_t rounded_up(size_t n) {
    size_t rounded = 64;
    while (rounded < n) rounded *= 2;
    return rounded;
}

static stint_status resize(void **array, size_t n, size_t item_bytes) {
    void *grown = realloc(*array, n * item_bytes);
    if (!grown) return st_fail(STINT_E_NOMEM, "no memory for %zu tokens", n);
    *array = grown;
    return STINT_OK;
}

// Makes room for ids below n, with gaps.
static stint_status make_room(struct st_vocab *v, size_t n) {
    if (n <= v->n) return STINT_OK;
    size_t rounded = rounded_up(n);
    if (!v->tokens || rounded > rounded_up(v->n)) {
        ST_TRY(resize((void **)&v->tokens, rounded, sizeof *v->tokens));
        if (v->scores) ST_TRY(resize((void **)&v->scores, rounded, sizeof *v->scores));
    }
    memset(v->tokens + v->n, 0, (n - v->n) * sizeof *v->tokens);
    if (v->scores) memset(v->scores + v->n, 0, (n - v->n) * sizeof *v->scores);
    v->n = n;
    return v->n_slots < 2 * n ? rehash(v, 2 * rounded) : STINT_OK;
}

static stint_status set_score(struct st_vocab *v, int64_t id, double score) {
    if (!v->scores && score == 0.0) return STINT_OK;
    if (!v->scores) v->scores = calloc(rounded_up(v->n), sizeof *v->scores);
    if (!v->scores) return st_fail(STINT_E_NOMEM, "no memory for a vocabulary");
    v->scores[id] = score;
    return STINT_OK;
}

stint_status st_vocab_add(struct st_vocab *v, int64_t id, const char *text, size_t n,
                          enum st_token_kind kind, double score) {
    int shown = (int)st_min(n, 40);
    if (id < 0 || (uint64_t)id >= v->capacity)
        return st_fail(STINT_E_FORMAT, "token '%.*s': its id %lld is beyond what the file can hold",
                       shown, text, (long long)id);
    if (n > ST_PIECE_MAX_BYTES)
        return st_fail(STINT_E_FORMAT, "token %lld is %zu bytes long; the maximum is %d",
                       (long long)id, n, ST_PIECE_MAX_BYTES);
    if (!isfinite(score))
        return st_fail(STINT_E_FORMAT, "token '%.*s': its score is not a number", shown, text);
    if ((size_t)id < v->n && v->tokens[id].kind != ST_TOKEN_NONE) {
        if (same(v, (int32_t)id, text, n)) { // listed twice, e.g. also as an added token
            v->tokens[id].kind = (uint8_t)kind;
            return STINT_OK;
        }
        return st_fail(STINT_E_FORMAT, "tokens '%.*s' and '%.*s' have the same id %lld",
                       (int)st_min(v->tokens[id].bytes, 40), v->pool + v->tokens[id].start, shown,
                       text, (long long)id);
    }
    ST_TRY(make_room(v, (size_t)id + 1));
    ST_TRY(set_score(v, id, score));
    ST_TRY(st_grow((void **)&v->pool, &v->pool_capacity, v->pool_bytes, n + 1, 1));
    memcpy(v->pool + v->pool_bytes, text, n);
    v->pool[v->pool_bytes + n] = 0;
    v->tokens[id] =
        (struct st_token){.start = v->pool_bytes, .bytes = (uint32_t)n, .kind = (uint8_t)kind};
    v->pool_bytes += n + 1;
    v->longest = st_max(v->longest, n);
    size_t slot = slot_of(v, text, n);
    if (v->slots[slot] < 0) v->slots[slot] = (int32_t)id;
    return STINT_OK;
}

int32_t st_vocab_find(const struct st_vocab *vocab, const char *text, size_t n) {
    return vocab->n_slots && n <= vocab->longest ? vocab->slots[slot_of(vocab, text, n)] : -1;
}

int32_t st_vocab_find_model(const struct st_vocab *vocab, const char *text, size_t n) {
    int32_t id = st_vocab_find(vocab, text, n);
    return id >= 0 && vocab->tokens[id].outside ? -1 : id;
}

int32_t st_vocab_find_hashed(const struct st_vocab *vocab, uint64_t hash, const char *text,
                             size_t n) {
    int32_t id = vocab->n_slots ? vocab->slots[find_slot(vocab, hash, text, n)] : -1;
    return id >= 0 && vocab->tokens[id].outside ? -1 : id;
}

const char *st_vocab_text(const struct st_vocab *vocab, int32_t id, size_t *n) {
    if (id < 0 || (size_t)id >= vocab->n || vocab->tokens[id].kind == ST_TOKEN_NONE) return NULL;
    *n = vocab->tokens[id].bytes;
    return vocab->pool + vocab->tokens[id].start;
}

enum st_token_kind st_vocab_kind(const struct st_vocab *vocab, int32_t id) {
    if (id < 0 || (size_t)id >= vocab->n) return ST_TOKEN_NONE;
    return (enum st_token_kind)vocab->tokens[id].kind;
}

double st_vocab_score(const struct st_vocab *vocab, int32_t id) {
    return vocab->scores ? vocab->scores[id] : 0.0;
}

static int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void st_vocab_mark_bytes(struct st_vocab *vocab) {
    for (size_t id = 0; id < vocab->n; id++) {
        struct st_token *t = &vocab->tokens[id];
        const char *text = vocab->pool + t->start;
        if (t->kind == ST_TOKEN_NONE || t->bytes != 6 || memcmp(text, "<0x", 3) || text[5] != '>')
            continue;
        int high = hex(text[3]), low = hex(text[4]);
        if (high < 0 || low < 0) continue;
        t->kind = ST_TOKEN_BYTE;
        t->byte = (uint8_t)(high << 4 | low);
        vocab->bytes[t->byte] = (int32_t)id;
    }
}

void st_vocab_single_bytes(struct st_vocab *vocab) {
    for (int b = 0; b < 256; b++) {
        char c = (char)b;
        vocab->bytes[b] = st_vocab_find(vocab, &c, 1);
    }
}

// Printable Latin-1 characters stand for themselves, the other 68 bytes for U+0100 onwards, in
// order.
static int byte_of(uint32_t c) {
    bool direct = (c >= '!' && c <= '~') || (c >= 0xa1 && c <= 0xac) || (c >= 0xae && c <= 0xff);
    if (direct) return (int)c;
    if (c < 0x100 || c >= 0x100 + 68) return -1;
    c -= 0x100;
    if (c <= 0x20) return (int)c;               // 00..20
    if (c <= 0x42) return (int)c - 0x21 + 0x7f; // 7f..a0
    return 0xad;
}

bool st_byte_level_decode(const char *text, size_t n, char *out, size_t *n_out) {
    size_t written = 0;
    for (size_t i = 0; i < n;) {
        size_t length = st_utf8_length(text + i, n - i);
        int byte = length ? byte_of(st_utf8_decode(text + i, length)) : -1;
        if (byte < 0) return false;
        out[written++] = (char)byte;
        i += length;
    }
    *n_out = written;
    return true;
}

size_t st_byte_level_encode(unsigned char byte, char out[2]) {
    uint32_t c = byte;
    if (byte <= 0x20)
        c = 0x100u + byte;
    else if (byte >= 0x7f && byte <= 0xa0)
        c = 0x121u + byte - 0x7f;
    else if (byte == 0xad)
        c = 0x143;
    out[0] = (char)(c < 0x80 ? c : 0xc0 | c >> 6);
    out[1] = (char)(0x80 | (c & 0x3f));
    return c < 0x80 ? 1 : 2;
}
