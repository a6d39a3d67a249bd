// SPDX-License-Identifier: Apache-2.0
#include "constraint/token_trie.h"

#include "base/buffer.h"
#include "base/size.h"
#include "base/sort.h"
#include "base/utf8.h"
#include "constraint/run.h"
#include "tokenizer/parts.h"

#include <stdlib.h>
#include <string.h>

enum { REFUSED = -1, UNKNOWN = -2 }; // values of st_seen.next

struct token_text {
    size_t start; // in the pool
    uint32_t n, chars;
    int32_t id;
};

struct texts {
    struct st_bytes pool;
    struct token_text *tokens; // [n] the tokens that may ever be allowed
    size_t n, n_plain;         // the plain ones come first
};

// The number of characters, if the text needs no escape inside a JSON string; else 0.
static uint32_t plain_chars(const char *text, size_t n) {
    uint32_t chars = 0;
    for (size_t i = 0, length; i < n; i += length, chars++) {
        length = st_utf8_length(text + i, n - i);
        if (!length || (unsigned char)text[i] < 0x20 || text[i] == '"' || text[i] == '\\') return 0;
    }
    return chars;
}

static bool may_be_written(const struct stint_tokenizer *t, int32_t id) {
    enum st_token_kind kind = st_vocab_kind(&t->vocab, id);
    return (kind == ST_TOKEN_NORMAL || kind == ST_TOKEN_BYTE) && !t->vocab.tokens[id].added;
}

static stint_status read_texts(const struct stint_tokenizer *t, struct texts *out) {
    char text[ST_PIECE_MAX_BYTES];
    size_t n_tokens = st_tokenizer_vocab(t);
    out->tokens = calloc(st_max(n_tokens, 1), sizeof *out->tokens);
    if (!out->tokens) return st_fail(STINT_E_NOMEM, "no memory for %zu tokens", n_tokens);
    for (size_t id = 0; id < n_tokens; id++) {
        if (!may_be_written(t, (int32_t)id)) continue;
        size_t n = st_tokenizer_piece(t, (int32_t)id, text);
        if (n == 0 || n > ST_TRIE_DEPTH) continue;
        struct token_text token = {.start = out->pool.count, .n = (uint32_t)n, .id = (int32_t)id};
        token.chars = plain_chars(text, n);
        ST_TRY(st_bytes_append(&out->pool, text, n));
        out->n_plain += token.chars > 0;
        out->tokens[out->n++] = token;
    }
    return STINT_OK;
}

static int by_text(const void *a, const void *b, void *pool) {
    const struct token_text *x = a, *y = b;
    if ((x->chars == 0) != (y->chars == 0)) return x->chars == 0 ? 1 : -1;
    int order = memcmp((char *)pool + x->start, (char *)pool + y->start, st_min(x->n, y->n));
    if (order) return order;
    return x->n != y->n ? (x->n > y->n) - (x->n < y->n) : (x->id > y->id) - (x->id < y->id);
}

static size_t shared_bytes(const char *pool, const struct token_text *a,
                           const struct token_text *b) {
    size_t i = 0, n = st_min(a->n, b->n);
    while (i < n && pool[a->start + i] == pool[b->start + i]) i++;
    return i;
}

// pre: sorted. `same` links tokens with the same bytes.
static stint_status build(const char *pool, const struct token_text *tokens, size_t n,
                          int32_t *same, struct st_trie *trie) {
    size_t n_nodes = 0, open[ST_TRIE_DEPTH + 1]; // the nodes from the root to the last one
    for (size_t i = 0; i < n; i++)
        n_nodes += tokens[i].n - (i ? shared_bytes(pool, &tokens[i - 1], &tokens[i]) : 0);
    trie->nodes = calloc(st_max(n_nodes, 1), sizeof *trie->nodes);
    if (!trie->nodes) return st_fail(STINT_E_NOMEM, "no memory for %zu nodes", n_nodes);
    for (size_t i = 0, depth = 0; i <= n; i++) {
        size_t shared = i && i < n ? shared_bytes(pool, &tokens[i - 1], &tokens[i]) : 0;
        for (; depth > shared; depth--) trie->nodes[open[depth]].skip = (uint32_t)trie->n;
        if (i == n) break;
        for (; depth < tokens[i].n; trie->n++) {
            uint8_t byte = (uint8_t)pool[tokens[i].start + depth];
            open[++depth] = trie->n;
            trie->nodes[trie->n] =
                (struct st_trie_node){.token = -1, .depth = (uint16_t)depth, .byte = byte};
        }
        struct st_trie_node *node = &trie->nodes[open[depth]];
        same[tokens[i].id] = node->token;
        node->token = tokens[i].id;
    }
    return STINT_OK;
}

// Counting sort of the plain tokens by their number of characters.
static stint_status order_plain(const struct texts *texts, struct st_constraint_vocab *v) {
    for (size_t i = 0; i < texts->n_plain; i++)
        v->longest = st_max(v->longest, texts->tokens[i].chars);
    v->by_length = calloc(st_max(texts->n_plain, 1), sizeof *v->by_length);
    v->length_starts = calloc(v->longest + 2, sizeof *v->length_starts);
    uint32_t *next = calloc(v->longest + 2, sizeof *next);
    if (!v->by_length || !v->length_starts || !next) {
        free(next);
        return st_fail(STINT_E_NOMEM, "no memory for %zu tokens", texts->n_plain);
    }
    for (size_t i = 0; i < texts->n_plain; i++) v->length_starts[texts->tokens[i].chars + 1]++;
    for (size_t i = 1; i < v->longest + 2; i++) v->length_starts[i] += v->length_starts[i - 1];
    memcpy(next, v->length_starts, (v->longest + 2) * sizeof *next);
    for (size_t i = 0; i < texts->n_plain; i++) {
        int32_t id = texts->tokens[i].id;
        v->by_length[next[texts->tokens[i].chars]++] = id;
        v->plain_mask[id / 8] |= (uint8_t)(1u << id % 8);
    }
    free(next);
    return STINT_OK;
}

static stint_status fill(const struct stint_tokenizer *t, struct texts *texts,
                         struct st_constraint_vocab *v) {
    v->n_tokens = st_tokenizer_vocab(t);
    v->mask_bytes = st_ceil_div(v->n_tokens, 8);
    v->same = malloc(st_max(v->n_tokens, 1) * sizeof *v->same);
    v->plain_mask = calloc(st_max(v->mask_bytes, 1), 1);
    if (!v->same || !v->plain_mask)
        return st_fail(STINT_E_NOMEM, "no memory for %zu tokens", v->n_tokens);
    memset(v->same, 0xff, v->n_tokens * sizeof *v->same);
    ST_TRY(read_texts(t, texts));
    const char *pool = texts->pool.data;
    size_t n_plain = texts->n_plain;
    st_sort(texts->tokens, texts->n, sizeof *texts->tokens, by_text, texts->pool.data);
    ST_TRY(build(pool, texts->tokens, n_plain, v->same, &v->plain));
    ST_TRY(build(pool, texts->tokens + n_plain, texts->n - n_plain, v->same, &v->others));
    return order_plain(texts, v);
}

stint_status st_constraint_vocab_open(const struct stint_tokenizer *tokenizer,
                                      struct st_constraint_vocab **vocab) {
    struct texts texts = {0};
    struct st_constraint_vocab *v = calloc(1, sizeof *v);
    if (!v) return st_fail(STINT_E_NOMEM, "no memory for a vocabulary");
    stint_status status = fill(tokenizer, &texts, v);
    st_bytes_free(&texts.pool);
    free(texts.tokens);
    if (status == STINT_OK)
        *vocab = v;
    else
        st_constraint_vocab_close(v);
    return status;
}

void st_constraint_vocab_close(struct st_constraint_vocab *vocab) {
    if (!vocab) return;
    free(vocab->same);
    free(vocab->plain.nodes);
    free(vocab->others.nodes);
    free(vocab->plain_mask);
    free(vocab->by_length);
    free(vocab->length_starts);
    free(vocab);
}

static size_t slot_of(const struct st_seen *seen, const struct st_thread *threads, size_t n) {
    uint32_t hash = (uint32_t)n;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ threads[i].place) * 0x9e3779b1u + threads[i].count * 0x85ebca6bu +
               threads[i].frame;
    size_t slot = (hash ^ hash >> 15) % ST_SEEN_SLOTS;
    for (int set; (set = seen->slots[slot]) >= 0; slot = (slot + 1) % ST_SEEN_SLOTS)
        if (seen->n_threads[set] == n &&
            memcmp(seen->threads[set], threads, n * sizeof *threads) == 0)
            break;
    return slot;
}

// The index of a set, new or known. UNKNOWN if it is not cached: it is large, or it uses frames of
// the walk itself, which are dropped again.
static int find_set(struct st_seen *seen, const struct st_thread *threads, size_t n) {
    if (n > ST_SEEN_THREADS) return UNKNOWN;
    for (size_t i = 0; i < n; i++)
        if (threads[i].frame >= seen->n_frames) return UNKNOWN;
    size_t slot = slot_of(seen, threads, n);
    if (seen->slots[slot] >= 0) return seen->slots[slot];
    if (seen->n_sets == ST_SEEN_MAX) return UNKNOWN;
    memcpy(seen->threads[seen->n_sets], threads, n * sizeof *threads);
    for (size_t byte = 0; byte < 256; byte++) seen->next[seen->n_sets][byte] = UNKNOWN;
    seen->n_threads[seen->n_sets] = (uint8_t)n;
    seen->slots[slot] = (int16_t)seen->n_sets;
    return (int)seen->n_sets++;
}

// Like st_constraint_step. *set is the set of the threads before the step, then of those after it.
static size_t step(struct st_constraint_state *s, int *set, size_t first, size_t n, uint8_t byte,
                   size_t to) {
    struct st_seen *seen = &s->seen;
    int from = *set, known = from >= 0 ? seen->next[from][byte] : UNKNOWN;
    *set = known;
    if (known == REFUSED) return 0;
    if (known >= 0 && to + seen->n_threads[known] <= ST_THREADS_MAX) {
        n = seen->n_threads[known];
        memcpy(s->threads + to, seen->threads[known], n * sizeof *s->threads);
        return n;
    }
    n = st_constraint_step(s, first, n, byte, to);
    *set = n ? find_set(seen, s->threads + to, n) : REFUSED;
    if (from >= 0) seen->next[from][byte] = (int16_t)*set;
    return n;
}

// Walks down the tree; the thread sets of the nodes above follow each other in the pool.
static void walk(struct st_constraint_state *s, const struct st_constraint_vocab *v,
                 const struct st_trie *trie, uint8_t *allowed) {
    size_t starts[ST_TRIE_DEPTH + 2] = {0, s->n_threads}; // start of the set at each depth
    size_t frames[ST_TRIE_DEPTH + 1] = {s->n_frames};
    int sets[ST_TRIE_DEPTH + 1] = {find_set(&s->seen, s->threads, s->n_threads)};
    for (size_t i = 0; i < trie->n;) {
        const struct st_trie_node *node = &trie->nodes[i];
        size_t depth = node->depth, from = starts[depth - 1], to = starts[depth];
        s->n_frames = frames[depth - 1];
        sets[depth] = sets[depth - 1];
        size_t n = step(s, &sets[depth], from, to - from, node->byte, to);
        starts[depth + 1] = to + n;
        frames[depth] = s->n_frames;
        if (n)
            for (int32_t id = node->token; id >= 0; id = v->same[id])
                allowed[id / 8] |= (uint8_t)(1u << id % 8);
        i = n ? i + 1 : node->skip;
    }
    s->n_frames = frames[0];
}

// Inside a free string every plain token that is not too long is allowed. True if this decides all
// plain tokens.
static bool allow_plain(const struct st_constraint_state *s, const struct st_constraint_vocab *v,
                        uint8_t *allowed) {
    size_t room = 0, n_strings = 0;
    for (size_t i = 0; i < s->n_threads; i++) {
        const struct st_instr *in = &s->constraint->code[s->threads[i].place];
        if (in->op != ST_OP_STRING) continue;
        room = st_max(room, in->max - s->threads[i].count);
        n_strings++;
    }
    if (room >= v->longest) {
        if (n_strings) memcpy(allowed, v->plain_mask, v->mask_bytes);
        return n_strings > 0;
    }
    for (size_t i = 0; i < v->length_starts[room + 1]; i++)
        allowed[v->by_length[i] / 8] |= (uint8_t)(1u << v->by_length[i] % 8);
    return n_strings > 0 && n_strings == s->n_threads;
}

void st_constraint_mask(struct st_constraint_state *state, const struct st_constraint_vocab *vocab,
                        uint8_t *allowed) {
    state->seen.n_sets = 0;
    state->seen.n_frames = state->n_frames;
    memset(state->seen.slots, 0xff, sizeof state->seen.slots);
    memset(allowed, 0, vocab->mask_bytes);
    if (!allow_plain(state, vocab, allowed)) walk(state, vocab, &vocab->plain, allowed);
    walk(state, vocab, &vocab->others, allowed);
}
