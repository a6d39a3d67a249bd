// SPDX-License-Identifier: Apache-2.0
// Symbols are a doubly linked list over the piece; a binary heap holds every pair that could be
// joined. A pair whose symbols changed since it was pushed is dropped when it is popped. n symbols
// take O(n log n) time.
#include "tokenizer/bpe.h"

#include "base/buffer.h"
#include "base/random.h"
#include "base/size.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

struct st_symbol {
    size_t start, bytes; // in the text; bytes 0: joined into its left neighbour
    size_t left, right;  // neighbours; NONE
    int32_t id;          // -1: no token
};

struct st_candidate_pair {
    double order; // smaller is better
    size_t left, right;
    size_t bytes; // of both when this was pushed
    int32_t id;   // of the joined token
};

static const size_t NONE = SIZE_MAX;

static size_t slot_of(const struct st_bpe *bpe, uint64_t pair) {
    uint64_t hash = (pair ^ bpe->seed) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 32) * 0xff51afd7ed558ccdu;
    return (size_t)(hash >> 20) & (bpe->n_slots - 1);
}

stint_status st_bpe_open_merges(struct st_bpe *bpe, size_t n_merges) {
    size_t n = 16, bytes;
    while (n < SIZE_MAX / 4 && n / 2 < n_merges) n *= 2;
    if (st_size_mul(n, sizeof *bpe->merges, &bytes)) {
        bpe->merges = malloc(st_max(n_merges, 1) * sizeof *bpe->merges);
        bpe->slots = calloc(n, sizeof *bpe->slots);
    }
    if (!bpe->merges || !bpe->slots)
        return st_fail(STINT_E_NOMEM, "no memory for %zu merges", n_merges);
    bpe->n_slots = n;
    bpe->n_merges = 0;
    bpe->seed = st_random_seed();
    return STINT_OK;
}

void st_bpe_close(struct st_bpe *bpe) {
    free(bpe->merges);
    free(bpe->slots);
    bpe->merges = NULL;
    bpe->slots = NULL;
}

// The pair's slot, or the empty one where it belongs.
static uint32_t *find_slot(const struct st_bpe *bpe, uint64_t pair) {
    size_t i = slot_of(bpe, pair);
    while (bpe->slots[i] && bpe->merges[bpe->slots[i] - 1].pair != pair)
        i = (i + 1) & (bpe->n_slots - 1);
    return &bpe->slots[i];
}

static const struct st_merge *find_merge(const struct st_bpe *bpe, int32_t left, int32_t right) {
    uint32_t at = *find_slot(bpe, (uint64_t)(uint32_t)left << 32 | (uint32_t)right);
    return at ? &bpe->merges[at - 1] : NULL;
}

bool st_bpe_add_merge(struct st_bpe *bpe, const struct st_vocab *vocab, uint32_t rank,
                      const char *left, size_t n_left, const char *right, size_t n_right) {
    char joined[ST_PIECE_MAX_BYTES];
    if (n_left + n_right > sizeof joined) return false;
    memcpy(joined, left, n_left);
    memcpy(joined + n_left, right, n_right);
    int32_t a = st_vocab_find_model(vocab, left, n_left),
            b = st_vocab_find_model(vocab, right, n_right);
    int32_t id = st_vocab_find_model(vocab, joined, n_left + n_right);
    if (a < 0 || b < 0 || id < 0) return false;
    uint64_t pair = (uint64_t)(uint32_t)a << 32 | (uint32_t)b;
    uint32_t *slot = find_slot(bpe, pair);
    if (*slot) return true; // the first one counts
    bpe->merges[bpe->n_merges++] = (struct st_merge){pair, rank, id};
    *slot = (uint32_t)bpe->n_merges;
    return true;
}

void st_bpe_scratch_free(struct st_bpe_scratch *scratch) {
    free(scratch->symbols);
    free(scratch->heap);
    *scratch = (struct st_bpe_scratch){0};
}

struct encoder {
    const struct st_bpe *bpe;
    const struct st_vocab *vocab;
    const char *text;
    struct st_symbol *symbols;
    struct st_candidate_pair *heap;
    size_t n_heap;
};

static bool before(const struct st_candidate_pair *a, const struct st_candidate_pair *b) {
    return a->order != b->order ? a->order < b->order : a->left < b->left;
}

static void push(struct encoder *e, struct st_candidate_pair pair) {
    size_t i = e->n_heap++;
    for (; i > 0 && before(&pair, &e->heap[(i - 1) / 2]); i = (i - 1) / 2)
        e->heap[i] = e->heap[(i - 1) / 2];
    e->heap[i] = pair;
}

static struct st_candidate_pair pop(struct encoder *e) {
    struct st_candidate_pair top = e->heap[0], last = e->heap[--e->n_heap];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= e->n_heap) break;
        if (child + 1 < e->n_heap && before(&e->heap[child + 1], &e->heap[child])) child++;
        if (!before(&e->heap[child], &last)) break;
        e->heap[i] = e->heap[child];
        i = child;
    }
    if (e->n_heap) e->heap[i] = last;
    return top;
}

// Pushes the pair of a symbol and its right neighbour if they can be joined.
static void consider(struct encoder *e, size_t left) {
    if (left == NONE || e->symbols[left].right == NONE) return;
    size_t right = e->symbols[left].right;
    const struct st_symbol *a = &e->symbols[left], *b = &e->symbols[right];
    struct st_candidate_pair pair = {.left = left, .right = right, .bytes = a->bytes + b->bytes};
    if (e->bpe->n_slots) {
        const struct st_merge *merge =
            a->id < 0 || b->id < 0 ? NULL : find_merge(e->bpe, a->id, b->id);
        if (!merge) return;
        pair.order = merge->rank;
        pair.id = merge->id;
    } else {
        pair.id = st_vocab_find_model(e->vocab, e->text + a->start, pair.bytes);
        if (pair.id < 0 || st_vocab_kind(e->vocab, pair.id) == ST_TOKEN_UNUSED) return;
        pair.order = -st_vocab_score(e->vocab, pair.id);
    }
    push(e, pair);
}

static void join_all(struct encoder *e) {
    while (e->n_heap) {
        struct st_candidate_pair pair = pop(e);
        struct st_symbol *a = &e->symbols[pair.left], *b = &e->symbols[pair.right];
        if (a->bytes == 0 || b->bytes == 0 || a->right != pair.right ||
            a->bytes + b->bytes != pair.bytes)
            continue;
        a->bytes += b->bytes;
        a->id = pair.id;
        a->right = b->right;
        b->bytes = 0;
        if (a->right != NONE) e->symbols[a->right].left = pair.left;
        consider(e, a->left);
        consider(e, pair.left);
    }
}

// A character that is unknown and stands for nothing is left out here: its neighbours may join.
static size_t split(const struct encoder *e, size_t n) {
    bool drops = e->bpe->n_slots && e->bpe->unknown < 0 && !e->bpe->byte_fallback;
    size_t count = 0;
    for (size_t i = 0; i < n;) {
        size_t bytes = e->bpe->byte_level ? 1 : st_max(1, st_utf8_length(e->text + i, n - i));
        int32_t id = e->bpe->byte_level ? e->vocab->bytes[(unsigned char)e->text[i]]
                                        : st_vocab_find_model(e->vocab, e->text + i, bytes);
        if (id >= 0 || !drops) {
            e->symbols[count] =
                (struct st_symbol){i, bytes, count ? count - 1 : NONE, count + 1, id};
            count++;
        }
        i += bytes;
    }
    if (count) e->symbols[count - 1].right = NONE;
    return count;
}

stint_status st_unknown_append(const struct st_bpe *bpe, const struct st_vocab *vocab,
                               const char *text, size_t n, struct st_ids *ids) {
    bool all = bpe->byte_fallback;
    for (size_t i = 0; i < n; i++) all = all && vocab->bytes[(unsigned char)text[i]] >= 0;
    for (size_t i = 0; all && i < n; i++)
        ST_TRY(st_ids_append(ids, vocab->bytes[(unsigned char)text[i]]));
    if (all || bpe->unknown < 0) return STINT_OK;
    if (bpe->fuse_unknown && ids->count && ids->data[ids->count - 1] == bpe->unknown)
        return STINT_OK;
    return st_ids_append(ids, bpe->unknown);
}

static bool is_mark(const char *text, size_t n) {
    return n >= 3 && memcmp(text, "\xe2\x96\x81", 3) == 0;
}

// The first offset in text[0, n) at which a mark follows another character; n if there is none.
static size_t next_word(const char *text, size_t n) {
    bool after_mark = true;
    for (size_t i = 0; i < n;) {
        bool mark = is_mark(text + i, n - i);
        if (mark && !after_mark) return i;
        after_mark = mark;
        i += mark ? 3 : 1;
    }
    return n;
}

void st_bpe_find_words(struct st_bpe *bpe, const struct st_vocab *vocab) {
    bpe->words = !bpe->byte_level;
    for (size_t id = 0; id < vocab->n && bpe->words; id++) {
        size_t n = 0;
        const char *text = st_vocab_text(vocab, (int32_t)id, &n);
        bpe->words = !text || next_word(text, n) == n;
    }
}

static stint_status encode_word(const struct st_bpe *bpe, const struct st_vocab *vocab,
                                struct st_bpe_scratch *scratch, const char *text, size_t n,
                                struct st_ids *ids) {
    ST_TRY(st_grow((void **)&scratch->symbols, &scratch->symbol_capacity, 0, n,
                   sizeof *scratch->symbols));
    // Each join removes a symbol and pushes at most two pairs.
    ST_TRY(
        st_grow((void **)&scratch->heap, &scratch->heap_capacity, 0, 3 * n, sizeof *scratch->heap));
    struct encoder e = {bpe, vocab, text, scratch->symbols, scratch->heap, 0};
    size_t count = split(&e, n);
    for (size_t i = 0; i < count; i++) consider(&e, i);
    join_all(&e);
    for (size_t i = 0; i < count; i++) {
        const struct st_symbol *s = &e.symbols[i];
        if (s->bytes == 0) continue;
        if (s->id >= 0)
            ST_TRY(st_ids_append(ids, s->id));
        else
            ST_TRY(st_unknown_append(bpe, vocab, text + s->start, s->bytes, ids));
    }
    return STINT_OK;
}

stint_status st_bpe_encode(const struct st_bpe *bpe, const struct st_vocab *vocab,
                           struct st_bpe_scratch *scratch, const char *text, size_t n,
                           struct st_ids *ids) {
    int32_t whole = bpe->ignore_merges ? st_vocab_find_model(vocab, text, n) : -1;
    if (whole >= 0) return st_ids_append(ids, whole);
    for (size_t at = 0; at < n;) {
        size_t word = bpe->words ? next_word(text + at, n - at) : n;
        ST_TRY(encode_word(bpe, vocab, scratch, text + at, word, ids));
        at += word;
    }
    return STINT_OK;
}
