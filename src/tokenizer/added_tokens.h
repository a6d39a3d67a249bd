// SPDX-License-Identifier: Apache-2.0
// Finding added tokens in text.
#ifndef ST_TOKENIZER_ADDED_TOKENS_H
#define ST_TOKENIZER_ADDED_TOKENS_H

#include "tokenizer/parts.h"

// Where a search is. Zero-initialise.
struct st_added_search {
    size_t at;         // where to look next
    size_t start, end; // of the match, with the white space that it takes along
    int32_t id;
};

// The next added token of text[0, n), valid UTF-8; false where there is none. `normalized`: of
// those that are looked for after normalisation; `plain`: special ones are passed over.
bool st_added_next(const struct stint_tokenizer *t, bool normalized, bool plain, const char *text,
                   size_t n, struct st_added_search *search);

// Puts t->added in the order that the search needs.
void st_added_sort(struct stint_tokenizer *t);

#endif
