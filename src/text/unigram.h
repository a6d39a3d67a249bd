// SPDX-License-Identifier: Apache-2.0
// Unigram segmentation (Kudo 2018, section 3.2): the split of a piece with the largest sum of
// scores, by Viterbi.
#ifndef ST_TEXT_UNIGRAM_H
#define ST_TEXT_UNIGRAM_H

#include "text/bpe.h"

// `rules` says what unknown characters become; an unknown one costs 10 more than the worst token.
stint_status st_unigram_encode(const struct st_bpe *rules, const struct st_vocab *vocab,
                               double worst_score, const char *text, size_t n, struct st_ids *ids);

#endif
