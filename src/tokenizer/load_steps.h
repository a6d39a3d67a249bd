// SPDX-License-Identifier: Apache-2.0
// Parts of tokenizer.json that several readers use.
#ifndef ST_TOKENIZER_LOAD_STEPS_H
#define ST_TOKENIZER_LOAD_STEPS_H

#include "tokenizer/parts.h"

// Each takes one object with a "type", or a Sequence of them (depth guards against nesting), or
// NULL.
stint_status st_load_normalizer(struct stint_tokenizer *t, const json_t *step, int depth);
stint_status st_load_pretokenizer(struct stint_tokenizer *t, const json_t *step, int depth);
stint_status st_load_decoder(struct stint_tokenizer *t, const json_t *step, int depth);

// Makes a token special if the vocabulary has it. Call st_added_sort after the last one.
stint_status st_load_special(struct stint_tokenizer *t, const char *text);

// special, normalized, lstrip, rstrip, single_word
stint_status st_load_added_flags(const json_t *item, struct st_added *added);

stint_status st_load_bpe_vocab(struct stint_tokenizer *t, const json_t *vocab);
stint_status st_load_merge(struct stint_tokenizer *t, uint32_t rank, const char *left,
                           size_t n_left, const char *right, size_t n_right);

#endif
