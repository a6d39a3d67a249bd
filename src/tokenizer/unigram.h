// SPDX-License-Identifier: Apache-2.0
// Unigram segmentation (Kudo 2018, section 3.2): the split of a piece with the largest sum of
// scores, by Viterbi.
#ifndef ST_TOKENIZER_UNIGRAM_H
#define ST_TOKENIZER_UNIGRAM_H

#include "tokenizer/bpe.h"

struct st_unigram {
    double worst,
        best; // scores of ordinary tokens; an unknown character costs 10 more than `worst`
    bool sentencepiece; // sums are float, and byte tokens are not found by their names
};

// Finds worst and best.
void st_unigram_measure(struct st_unigram *unigram, const struct st_vocab *vocab);

// `rules` says what unknown characters become.
stint_status st_unigram_encode(const struct st_unigram *unigram, const struct st_bpe *rules,
                               const struct st_vocab *vocab, const char *text, size_t n,
                               struct st_ids *ids);

#endif
