// SPDX-License-Identifier: Apache-2.0
#include "text/unigram.h"

#include "base/size.h"
#include "text/buffer.h"
#include "text/utf8.h"

#include <math.h>
#include <stdlib.h>

// The best way to reach a position: its score, and the token that ends there.
struct step {
    double score;
    size_t from;
    int32_t id; // -1: an unknown character
};

static void relax(struct step *to, double score, size_t from, int32_t id) {
    if (score > to->score) *to = (struct step){score, from, id};
}

static void search(const struct st_vocab *vocab, double unknown_score, const char *text, size_t n,
                   struct step *steps) {
    for (size_t i = 1; i <= n; i++) steps[i].score = -INFINITY;
    steps[0] = (struct step){0};
    for (size_t i = 0; i < n;) {
        size_t character = st_max(1, st_utf8_length(text + i, n - i)), end = i;
        bool single = false;
        while (end < n && end - i < vocab->longest) {
            end += st_max(1, st_utf8_length(text + end, n - end));
            int32_t id = st_vocab_find_model(vocab, text + i, end - i);
            enum st_token_kind kind = st_vocab_kind(vocab, id);
            if (id < 0 || (kind != ST_TOKEN_NORMAL && kind != ST_TOKEN_ADDED)) continue;
            single = single || end - i == character;
            // User-defined tokens have no score of their own: they always win, the longer the more.
            double score =
                kind == ST_TOKEN_ADDED ? (double)(end - i) * 0.1 : (double)vocab->tokens[id].score;
            relax(&steps[end], steps[i].score + score, i, id);
        }
        if (!single) relax(&steps[i + character], steps[i].score + unknown_score, i, -1);
        i += character;
    }
}

stint_status st_unigram_encode(const struct st_bpe *rules, const struct st_vocab *vocab,
                               double worst_score, const char *text, size_t n, struct st_ids *ids) {
    size_t bytes;
    struct step *steps = NULL;
    if (st_size_mul(n + 1, sizeof *steps, &bytes)) steps = malloc(bytes);
    if (!steps) return st_fail(STINT_E_NOMEM, "no memory to split %zu bytes", n);
    search(vocab, worst_score - 10.0, text, n, steps);
    // Backwards from the end: turn the links round.
    size_t next = SIZE_MAX;
    for (size_t at = n; at != SIZE_MAX;) {
        size_t from = at ? steps[at].from : SIZE_MAX;
        steps[at].from = next; // from here on: where the path goes
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
