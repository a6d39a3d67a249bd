// SPDX-License-Identifier: Apache-2.0
// GBNF, the grammars of llama.cpp, compiled to the code of a constraint. Nodes are written from
// their ends to their starts. Rules that lead back to themselves nest at most ST_NEST_MAX deep, but
// for references at their ends, which are jumps.
#include "constraint/grammar.h"

#include "base/size.h"
#include "constraint/constraint.h"

#include <stdlib.h>
#include <string.h>

// ---- checking

static bool may_be_empty(const struct st_grammar *g, uint32_t at) {
    const struct st_grammar_node *node = &g->nodes[at];
    bool all = true, any = false;
    for (uint32_t i = node->first; i; i = node->kind == ST_GRAMMAR_REPEAT ? 0 : g->nodes[i].next) {
        bool one = may_be_empty(g, i);
        all = all && one;
        any = any || one;
    }
    switch (node->kind) {
    case ST_GRAMMAR_TEXT:
        return node->n == 0;
    case ST_GRAMMAR_RULE:
        return g->rules[node->from].is_empty_possible;
    case ST_GRAMMAR_SEQUENCE:
        return all;
    case ST_GRAMMAR_CHOICE:
        return any;
    case ST_GRAMMAR_REPEAT:
        return any || node->min == 0;
    default:
        return false;
    }
}

// Notes in a row of bits the rules that a node names: all, or those with which it may begin.
static void mark(const struct st_grammar *g, uint32_t at, bool all, uint64_t *row) {
    const struct st_grammar_node *node = &g->nodes[at];
    if (node->kind == ST_GRAMMAR_RULE) row[node->from / 64] |= UINT64_C(1) << node->from % 64;
    for (uint32_t i = node->first; i; i = node->kind == ST_GRAMMAR_REPEAT ? 0 : g->nodes[i].next) {
        mark(g, i, all, row);
        if (!all && node->kind == ST_GRAMMAR_SEQUENCE && !may_be_empty(g, i)) break;
    }
}

static bool has(const uint64_t *row, size_t i) {
    return row[i / 64] >> i % 64 & 1;
}

// Which rules lead to which, at once or through others (Warshall). rows: [n_rules][n_words].
static void find_paths(const struct st_grammar *g, bool all, uint64_t *rows, size_t n_words) {
    memset(rows, 0, g->n_rules * n_words * sizeof *rows);
    for (size_t i = 0; i < g->n_rules; i++) mark(g, g->rules[i].body, all, rows + i * n_words);
    for (size_t k = 0; k < g->n_rules; k++)
        for (size_t i = 0; i < g->n_rules; i++)
            for (size_t w = 0; has(rows + i * n_words, k) && w < n_words; w++)
                rows[i * n_words + w] |= rows[k * n_words + w];
}

// Finds the rules that lead to themselves. Those that begin with themselves are refused.
static void check_circles(struct st_grammar *g) {
    size_t n_words = g->n_rules / 64 + 1;
    uint64_t *rows = g->status == STINT_OK ? malloc(g->n_rules * n_words * sizeof *rows) : NULL;
    if (!rows && g->status == STINT_OK)
        g->status = st_fail(STINT_E_NOMEM, "no memory for a grammar");
    if (!rows) return;
    find_paths(g, false, rows, n_words);
    for (size_t i = 0; i < g->n_rules && g->status == STINT_OK; i++)
        if (has(rows + i * n_words, i))
            g->status = st_fail(STINT_E_UNSUPPORTED, "grammar: the rule '%.*s' begins with itself",
                                (int)st_min(g->rules[i].n_name, 64), g->rules[i].name);
    find_paths(g, true, rows, n_words);
    for (size_t i = 0; i < g->n_rules; i++) g->rules[i].recurs = has(rows + i * n_words, i);
    free(rows);
}

static void check_rules(struct st_grammar *g) {
    for (size_t i = 0; i < g->n_rules && g->status == STINT_OK; i++)
        if (!g->rules[i].body)
            g->status = st_fail(STINT_E_ARG, "grammar: there is no rule '%.*s'",
                                (int)st_min(g->rules[i].n_name, 64), g->rules[i].name);
    for (bool changed = true; changed && g->status == STINT_OK;) {
        changed = false;
        for (size_t i = 0; i < g->n_rules; i++) {
            if (g->rules[i].is_empty_possible || !may_be_empty(g, g->rules[i].body)) continue;
            g->rules[i].is_empty_possible = changed = true;
        }
    }
    check_circles(g);
}

// ---- writing

static uint32_t write_node(struct st_grammar *g, uint32_t at, uint32_t next);

static uint32_t write_repeat(struct st_grammar *g, const struct st_grammar_node *node,
                             uint32_t next) {
    uint32_t place = next;
    if (node->max == 0) {
        uint32_t ahead = st_code_ahead(&g->code);
        uint32_t more = write_node(g, node->first, ahead);
        st_code_set(&g->code, ahead, st_code_split(&g->code, more, next));
        place = ahead;
    }
    for (uint32_t i = node->min; i < node->max && g->code.status == STINT_OK; i++)
        place = st_code_split(&g->code, write_node(g, node->first, place), next);
    for (uint32_t i = 0; i < node->min && g->code.status == STINT_OK; i++)
        place = write_node(g, node->first, place);
    return place;
}

static uint32_t write_rule(struct st_grammar *g, const struct st_grammar_rule *rule,
                           uint32_t next) {
    bool last = g->code.status == STINT_OK && next && g->code.out->code[next].op == ST_OP_RETURN;
    return last ? rule->start : st_code_call(&g->code, rule->start, rule->recurs, next);
}

// A sequence is written from its last item on.
static uint32_t write_sequence(struct st_grammar *g, uint32_t item, uint32_t next) {
    size_t n = 0;
    for (uint32_t i = item; i; i = g->nodes[i].next) n++;
    uint32_t *items = calloc(n + 1, sizeof *items);
    if (!items && g->code.status == STINT_OK)
        g->code.status = st_fail(STINT_E_NOMEM, "no memory for a grammar");
    if (g->code.status == STINT_OK) {
        size_t k = 0;
        for (uint32_t i = item; i; i = g->nodes[i].next) items[k++] = i;
        while (k-- > 0 && next) next = write_node(g, items[k], next);
    }
    free(items);
    return next;
}

static uint32_t write_node(struct st_grammar *g, uint32_t at, uint32_t next) {
    const struct st_grammar_node *node = &g->nodes[at];
    uint32_t place = 0;
    if (!next || g->code.status != STINT_OK) return 0;
    switch (node->kind) {
    case ST_GRAMMAR_TEXT: // without any text there are no bytes at all
        return node->n ? st_code_text(&g->code, g->bytes.data + node->from, node->n, next) : next;
    case ST_GRAMMAR_CHARS:
        return st_code_chars(&g->code, node->n ? g->ranges + node->from : NULL, node->n, next);
    case ST_GRAMMAR_RULE:
        return write_rule(g, &g->rules[node->from], next);
    case ST_GRAMMAR_SEQUENCE:
        return write_sequence(g, node->first, next);
    case ST_GRAMMAR_REPEAT:
        return write_repeat(g, node, next);
    case ST_GRAMMAR_CHOICE:
        for (uint32_t i = node->first; i; i = g->nodes[i].next)
            place = st_code_split(&g->code, write_node(g, i, next), place);
        return place;
    }
    return 0;
}

static stint_status write_all(struct st_grammar *g, struct st_constraint **constraint) {
    st_code_open(&g->code);
    for (size_t i = 0; i < g->n_rules; i++) g->rules[i].start = st_code_ahead(&g->code);
    for (size_t i = 0; i < g->n_rules && g->code.status == STINT_OK; i++)
        st_code_set(&g->code, g->rules[i].start,
                    write_node(g, g->rules[i].body, st_code_return(&g->code)));
    uint32_t start = st_code_call(&g->code, g->rules[0].start, false, g->code.end);
    stint_status status = st_code_close(&g->code, start, constraint);
    return status == STINT_E_ARG ? st_fail(status, "grammar: no text follows it") : status;
}

stint_status st_constraint_grammar(const char *text, struct st_constraint **constraint) {
    struct st_grammar g = {.text = text, .at = text};
    st_grammar_read(&g);
    if (g.status == STINT_OK) check_rules(&g);
    if (g.status == STINT_OK) g.status = write_all(&g, constraint);
    free(g.nodes);
    free(g.ranges);
    free(g.rules);
    st_bytes_free(&g.bytes);
    return g.status;
}
