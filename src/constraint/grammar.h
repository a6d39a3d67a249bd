// SPDX-License-Identifier: Apache-2.0
// A grammar that was read: rules of nodes.
#ifndef ST_CONSTRAINT_GRAMMAR_H
#define ST_CONSTRAINT_GRAMMAR_H

#include "base/buffer.h"
#include "constraint/code.h"

enum st_grammar_kind {
    ST_GRAMMAR_TEXT,
    ST_GRAMMAR_CHARS,
    ST_GRAMMAR_RULE,
    ST_GRAMMAR_SEQUENCE,
    ST_GRAMMAR_CHOICE,
    ST_GRAMMAR_REPEAT
};

struct st_grammar_node {
    enum st_grammar_kind kind;
    uint32_t first, next; // the first child; the next sibling; 0: none
    uint32_t from, n;     // ST_GRAMMAR_TEXT: in the bytes; ST_GRAMMAR_CHARS: in the ranges;
                          // ST_GRAMMAR_RULE: `from` is the rule
    uint32_t min, max;    // ST_GRAMMAR_REPEAT; max 0: endless
};

struct st_grammar_rule {
    const char *name;
    size_t n_name;
    uint32_t body; // a node; 0: not defined
    uint32_t start;
    bool is_empty_possible, recurs;
};

struct st_grammar {
    const char *text, *at;
    size_t depth;
    stint_status status;
    struct st_grammar_node *nodes; // [n_nodes] the 0th is none
    size_t n_nodes, node_capacity;
    struct st_bytes bytes;
    struct st_range *ranges;
    size_t n_ranges, range_capacity;
    struct st_grammar_rule *rules;
    size_t n_rules, rule_capacity;
    struct st_code code;
};

// Reads the rules of g->text; the 0th rule is root. The first failure is in g->status. Free nodes,
// ranges, rules and bytes.
void st_grammar_read(struct st_grammar *g);

#endif
