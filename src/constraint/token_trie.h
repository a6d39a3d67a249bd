// SPDX-License-Identifier: Apache-2.0
// Tokens by their bytes, as trees that a constraint walks: where a byte is refused, all tokens that
// begin so are. Two trees: tokens that are whole characters of plain text within a JSON string,
// which is most of a vocabulary, and all others.
#ifndef ST_CONSTRAINT_TOKEN_TRIE_H
#define ST_CONSTRAINT_TOKEN_TRIE_H

#include "constraint/constraint.h"

enum { ST_TRIE_DEPTH = 512 };

struct st_trie_node {
    uint32_t skip;  // the node behind all that lie below this one
    int32_t token;  // the first that ends here, or -1; more by `same`
    uint16_t depth; // from 1
    uint8_t byte;
};

struct st_trie {
    struct st_trie_node *nodes; // a node before those below it
    size_t n;
};

struct st_constraint_vocab {
    size_t n_tokens, mask_bytes;
    int32_t *same; // [n_tokens] the next token of the same bytes, or -1
    struct st_trie plain, others;
    uint8_t *plain_mask;     // [mask_bytes] the plain ones
    int32_t *by_length;      // the plain ones, shorter ones first
    uint32_t *length_starts; // [longest + 2] of each number of characters in by_length
    size_t longest;          // characters of a plain one
};

#endif
