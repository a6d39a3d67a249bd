// SPDX-License-Identifier: Apache-2.0
// The expressions of `pattern` (ECMA-262) as a tree, limited to the truly regular ones.
#ifndef ST_CONSTRAINT_SCHEMA_REGEX_H
#define ST_CONSTRAINT_SCHEMA_REGEX_H

#include "constraint/schema.h"

enum st_regex_kind {
    ST_REGEX_EMPTY,
    ST_REGEX_CHARS, // one of the ranges a .. a + b
    ST_REGEX_BOTH,  // node a, then b
    ST_REGEX_EITHER,
    ST_REGEX_REPEAT, // node a, min..max times
};

struct st_regex_node {
    enum st_regex_kind kind;
    size_t a, b;
    uint32_t min, max; // ST_ENDLESS
};

struct st_regex_tree {
    struct st_regex_node *nodes; // the tree is no deeper than the pattern has bytes
    size_t n_nodes, node_capacity, root;
    struct st_range *ranges; // sorted and disjoint within a node
    size_t n_ranges, range_capacity;
};

// An end that is not anchored by ^ or $ allows any text beside it. Failures are in s->code.status:
// STINT_E_UNSUPPORTED, STINT_E_ARG, STINT_E_LIMIT. Zero-initialise; free in any case.
void st_regex_read(struct st_schema *s, const char *text, const struct st_place *at,
                   struct st_regex_tree *tree);
void st_regex_free(struct st_regex_tree *tree);

#endif
