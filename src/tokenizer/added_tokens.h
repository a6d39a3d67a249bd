// SPDX-License-Identifier: Apache-2.0
// Finding added tokens in text.
#ifndef ST_TOKENIZER_ADDED_TOKENS_H
#define ST_TOKENIZER_ADDED_TOKENS_H

#include "tokenizer/parts.h"

// The state of a search. Zero-initialise.
struct st_added_search {
    size_t at;         // where to look next
    size_t start, end; // of the match, including the white space that it consumes
    int32_t id;
};

// Finds the next added token in text[0, n), which is valid UTF-8; false if there is none.
// `normalized`: searches for the tokens that are matched after normalisation. `plain`: skips
// special tokens.
bool st_added_next(const struct stint_tokenizer *t, bool normalized, bool plain, const char *text,
                   size_t n, struct st_added_search *search);

// Sorts t->added as the search needs it.
void st_added_sort(struct stint_tokenizer *t);

#endif
