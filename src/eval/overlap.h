// SPDX-License-Identifier: Apache-2.0
// Scores of a generated text against references. Pure functions on texts.
#ifndef ST_EVAL_OVERLAP_H
#define ST_EVAL_OVERLAP_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

// All set *value to a score in [0, 1]: the best over the references, but for BLEU, which counts
// them together. STINT_E_NOMEM.

// ROUGE-L (Lin 2004): F1 of the longest common subsequence of lower-case words of letters and
// digits, as the rouge_score package defines them.
stint_status st_rouge_l(const char *text, char *const *references, size_t n, double *value);
// F1 of the words in common, as SQuAD defines it (Rajpurkar et al. 2016): lower case, without
// punctuation and articles.
stint_status st_token_f1(const char *text, char *const *references, size_t n, double *value);

// BLEU (Papineni et al. 2002) of a corpus, as sacrebleu's default: tokens of mteval-13a, n-grams up
// to 4, exponential smoothing, the reference of the closest length.
enum { ST_BLEU_ORDER = 4 };
struct st_bleu {
    uint64_t same[ST_BLEU_ORDER], total[ST_BLEU_ORDER]; // n-grams: common, generated
    uint64_t written, expected;                         // tokens
};
stint_status st_bleu_add(struct st_bleu *bleu, const char *text, char *const *references, size_t n);
double st_bleu_value(const struct st_bleu *bleu); // [0, 1]
// BLEU of a single text, as sacrebleu's sentence_bleu: orders of which it has no n-gram do not
// count.
stint_status st_sentence_bleu(const char *text, char *const *references, size_t n, double *value);

#endif
