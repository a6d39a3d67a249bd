// SPDX-License-Identifier: Apache-2.0
// Tokens by their bytes, as trees that a constraint walks: if a byte is refused, so are all tokens
// that begin with it. There are two trees: one of tokens that are whole characters of plain text
// inside a JSON string, which is most of a vocabulary, and one of all others.
#ifndef ST_CONSTRAINT_TOKEN_TRIE_H
#define ST_CONSTRAINT_TOKEN_TRIE_H

#include "constraint/constraint.h"

enum { ST_TRIE_DEPTH = 512 };

struct st_trie_node {
    uint32_t skip;  // the node after all nodes below this one
    int32_t token;  // the first token that ends here, or -1; `same` links the others
    uint16_t depth; // from 1
    uint8_t byte;
};

struct st_trie {
    struct st_trie_node *nodes; // a node precedes the nodes below it
    size_t n;
};

struct st_constraint_vocab {
    size_t n_tokens, mask_bytes;
    int32_t *same; // [n_tokens] the next token with the same bytes, or -1
    struct st_trie plain, others;
    uint8_t *plain_mask;     // [mask_bytes] the plain ones
    int32_t *by_length;      // the plain ones, shorter ones first
    uint32_t *length_starts; // [longest + 2] start of each number of characters in by_length
    size_t longest;          // characters of the longest plain token
};

#endif
