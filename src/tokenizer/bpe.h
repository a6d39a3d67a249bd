// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding (Sennrich et al. 2016) of one piece: neighbouring symbols are joined, the best
// pair first, the leftmost of equal pairs first. The best pair is the first in a merge list, or the
// one whose joined token has the highest score (SentencePiece).
#ifndef ST_TOKENIZER_BPE_H
#define ST_TOKENIZER_BPE_H

#include "tokenizer/vocab.h"

#include "tokenizer/tokenizer.h"

struct st_merge {
    uint64_t pair; // left id << 32 | right id
    uint32_t rank;
    int32_t id; // of the joined token
};

struct st_bpe {
    struct st_merge *merges; // [n_merges]
    size_t n_merges;
    uint32_t *slots;    // open addressing by pair: a merge's index plus 1; 0 is empty
    size_t n_slots;     // a power of two; 0: joined by score
    uint64_t seed;      // of the hash
    bool byte_level;    // the first symbols are bytes, not characters
    bool byte_fallback; // an unknown character becomes the tokens of its bytes
    bool fuse_unknown;  // neighbouring unknown characters become one token
    bool ignore_merges; // a piece that is a token is not split
    // No token has U+2581 after another character, so no join crosses the start of a word and each
    // word is encoded by itself. Set by st_bpe_find_words.
    bool words;
    int32_t unknown; // -1: unknown characters are left out
};

stint_status st_bpe_open_merges(struct st_bpe *bpe, size_t n_merges);
void st_bpe_close(struct st_bpe *bpe);
// The rank-th merge; false if its parts or its result are not tokens.
bool st_bpe_add_merge(struct st_bpe *bpe, const struct st_vocab *vocab, uint32_t rank,
                      const char *left, size_t n_left, const char *right, size_t n_right);

void st_bpe_find_words(struct st_bpe *bpe, const struct st_vocab *vocab);

// Scratch of one encoding, reused from piece to piece. Zero-initialise.
struct st_bpe_scratch {
    struct st_symbol *symbols;
    struct st_candidate_pair *heap;
    size_t symbol_capacity, heap_capacity;
};
void st_bpe_scratch_free(struct st_bpe_scratch *scratch);

stint_status st_bpe_encode(const struct st_bpe *bpe, const struct st_vocab *vocab,
                           struct st_bpe_scratch *scratch, const char *text, size_t n,
                           struct st_ids *ids);

// Appends the ids of a character that is not a token. Shared with the unigram model.
stint_status st_unknown_append(const struct st_bpe *bpe, const struct st_vocab *vocab,
                               const char *text, size_t n, struct st_ids *ids);

#endif
