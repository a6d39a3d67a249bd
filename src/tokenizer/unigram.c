// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/unigram.h"

#include "base/buffer.h"
#include "base/size.h"
#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>

// The best way to reach a position: its score, and the token that ends there.
struct step {
    double score;
    size_t from; // SIZE_MAX: not reached yet
    int32_t id;  // -1: an unknown character
};

void st_unigram_measure(struct st_unigram *unigram, const struct st_vocab *vocab) {
    unigram->worst = unigram->best = 0.0;
    bool first = true;
    for (size_t id = 0; id < vocab->n; id++) {
        double score = st_vocab_score(vocab, (int32_t)id);
        if (vocab->tokens[id].kind != ST_TOKEN_NORMAL || vocab->tokens[id].outside) continue;
        unigram->worst = first ? score : fmin(unigram->worst, score);
        unigram->best = first ? score : fmax(unigram->best, score);
        first = false;
    }
}

// User-defined tokens have no score of their own. They get one that wins, higher for longer tokens.
static bool score_of(const struct st_unigram *unigram, const struct st_vocab *vocab, int32_t id,
                     double *score) {
    const struct st_token *t = &vocab->tokens[id];
    *score = st_vocab_score(vocab, id);
    if (t->kind == ST_TOKEN_ADDED && unigram->sentencepiece)
        *score = (double)(float)((double)t->bytes * unigram->best - 0.1);
    return t->kind == ST_TOKEN_NORMAL || t->kind == ST_TOKEN_ADDED ||
           (t->kind == ST_TOKEN_BYTE && !unigram->sentencepiece);
}

static void relax(const struct st_unigram *unigram, struct step *steps, size_t from, size_t to,
                  double score, int32_t id) {
    double sum = steps[from].score + score;
    if (unigram->sentencepiece) sum = (double)(float)sum;
    // Scores of damaged files can add up to minus infinity. Such a path still counts as a path.
    if (sum > steps[to].score || steps[to].from == SIZE_MAX)
        steps[to] = (struct step){sum, from, id};
}

static void search(const struct st_unigram *unigram, const struct st_vocab *vocab, const char *text,
                   size_t n, struct step *steps) {
    double unknown = unigram->worst - 10.0, score;
    for (size_t i = 1; i <= n; i++) steps[i] = (struct step){-INFINITY, SIZE_MAX, -1};
    steps[0] = (struct step){0};
    for (size_t i = 0; i < n;) {
        size_t character = st_max(1, st_utf8_length(text + i, n - i)), end = i;
        uint64_t hash = vocab->seed;
        bool single = false;
        while (end < n && end - i < vocab->longest) {
            size_t bytes = st_max(1, st_utf8_length(text + end, n - end));
            hash = st_vocab_hash(hash, text + end, bytes);
            end += bytes;
            int32_t id = st_vocab_find_hashed(vocab, hash, text + i, end - i);
            if (id < 0 || !score_of(unigram, vocab, id, &score)) continue;
            single = single || end - i == character;
            relax(unigram, steps, i, end, score, id);
        }
        if (!single) relax(unigram, steps, i, i + character, unknown, -1);
        i += character;
    }
}

stint_status st_unigram_encode(const struct st_unigram *unigram, const struct st_bpe *rules,
                               const struct st_vocab *vocab, const char *text, size_t n,
                               struct st_ids *ids) {
    size_t bytes;
    struct step *steps = NULL;
    if (st_size_mul(n + 1, sizeof *steps, &bytes)) steps = malloc(bytes);
    if (!steps) return st_fail(STINT_E_NOMEM, "no memory to split %zu bytes", n);
    search(unigram, vocab, text, n, steps);
    // Reverses the links, from the end to the beginning.
    size_t next = SIZE_MAX;
    for (size_t at = n; at != SIZE_MAX;) {
        size_t from = at ? steps[at].from : SIZE_MAX;
        steps[at].from = next; // now the next position of the path
        next = at;
        at = from;
    }
    stint_status status = STINT_OK;
    for (size_t at = 0; status == STINT_OK && steps[at].from != SIZE_MAX; at = steps[at].from) {
        size_t end = steps[at].from;
        status = steps[end].id >= 0 ? st_ids_append(ids, steps[end].id)
                                    : st_unknown_append(rules, vocab, text + at, end - at, ids);
    }
    free(steps);
    return status;
}
