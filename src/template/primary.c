// SPDX-License-Identifier: Apache-2.0
// The parser's steps from token to token, and the operands of expressions: names, literals, lists,
// tuples, dicts.
#include "template/parse.h"

#include <stdio.h>
#include <string.h>

#define OP1(c) ST_JINJA_OP(c, 0)

stint_status st_jinja_node(struct st_jinja_parser *p, enum st_jinja_node_kind kind,
                           struct st_jinja_node **node) {
    void *taken;
    ST_TRY(st_jinja_take(p->pool, sizeof **node, &taken));
    *node = taken;
    (*node)->kind = (uint8_t)kind;
    (*node)->line = p->at->line;
    return STINT_OK;
}

stint_status st_jinja_wrap(struct st_jinja_parser *p, enum st_jinja_node_kind kind,
                           struct st_jinja_node **node) {
    struct st_jinja_node *outer;
    ST_TRY(st_jinja_node(p, kind, &outer));
    outer->a = *node;
    *node = outer;
    return STINT_OK;
}

stint_status st_jinja_unexpected(const struct st_jinja_parser *p, const char *expected) {
    static const char *const names[] = {
        "the end of the template", "text", "'{{'", "'}}'", "'{%'", "'%}'"};
    const struct st_jinja_token *t = p->at;
    if (t->kind < sizeof names / sizeof *names)
        return st_fail(STINT_E_FORMAT, "line %u: expected %s, found %s", t->line, expected,
                       names[t->kind]);
    int n = t->text.n < 40 ? (int)t->text.n : 40;
    return st_fail(STINT_E_FORMAT, "line %u: expected %s, found '%.*s'", t->line, expected, n,
                   t->text.data);
}

stint_status st_jinja_no_builtin(const struct st_jinja_node *node) {
    int n = node->name.n < 60 ? (int)node->name.n : 60;
    return st_fail(STINT_E_UNSUPPORTED, "there is no %s '%.*s'",
                   node->kind == ST_JINJA_N_FILTER ? "filter" : "test", n, node->name.data);
}

bool st_jinja_at_op(const struct st_jinja_parser *p, int op) {
    return p->at->kind == ST_JINJA_T_OPERATOR && p->at->op == op;
}

bool st_jinja_at_name(const struct st_jinja_parser *p, const char *name) {
    return p->at->kind == ST_JINJA_T_NAME &&
           st_jinja_same(p->at->text, (struct st_jinja_text){name, strlen(name)});
}

bool st_jinja_skip_op(struct st_jinja_parser *p, int op) {
    bool there = st_jinja_at_op(p, op);
    p->at += there;
    return there;
}

bool st_jinja_skip_name(struct st_jinja_parser *p, const char *name) {
    bool there = st_jinja_at_name(p, name);
    p->at += there;
    return there;
}

stint_status st_jinja_expect_op(struct st_jinja_parser *p, int op) {
    char expected[8];
    snprintf(expected, sizeof expected, "'%c%c'", op & 0xff, op >> 8 ? op >> 8 : '\'');
    if (!(op >> 8)) expected[3] = 0;
    return st_jinja_skip_op(p, op) ? STINT_OK : st_jinja_unexpected(p, expected);
}

stint_status st_jinja_expect_name(struct st_jinja_parser *p, struct st_jinja_text *name) {
    if (p->at->kind != ST_JINJA_T_NAME) return st_jinja_unexpected(p, "a name");
    *name = p->at++->text;
    return STINT_OK;
}

// ---- literals

// Adjacent strings are joined.
static stint_status parse_string(struct st_jinja_parser *p, struct st_jinja_node *node) {
    struct st_jinja_text text = p->at++->text;
    while (p->at->kind == ST_JINJA_T_STRING) {
        void *taken;
        struct st_jinja_text more = p->at++->text;
        ST_TRY(st_jinja_take(p->pool, text.n + more.n + 1, &taken));
        char *both = taken;
        if (text.n) memcpy(both, text.data, text.n);
        if (more.n) memcpy(both + text.n, more.data, more.n);
        text = (struct st_jinja_text){both, text.n + more.n};
    }
    node->value = st_jinja_string(text.data, text.n);
    return STINT_OK;
}

// Parses a name, or a constant that looks like a name.
static void parse_word(struct st_jinja_parser *p, struct st_jinja_node *node) {
    node->name = p->at->text;
    if (st_jinja_at_name(p, "true") || st_jinja_at_name(p, "True"))
        node->value = st_jinja_truth(true);
    else if (st_jinja_at_name(p, "false") || st_jinja_at_name(p, "False"))
        node->value = st_jinja_truth(false);
    else if (st_jinja_at_name(p, "none") || st_jinja_at_name(p, "None"))
        node->value = st_jinja_none();
    else
        node->kind = ST_JINJA_N_NAME;
    p->at++;
}

// Parses expressions up to and including the closing bracket.
static stint_status parse_items(struct st_jinja_parser *p, int close, struct st_jinja_node **last) {
    for (bool first = true; !st_jinja_at_op(p, close); first = false) {
        if (!first) ST_TRY(st_jinja_expect_op(p, OP1(',')));
        if (st_jinja_at_op(p, close)) break;
        ST_TRY(st_jinja_expression(p, true, last));
        if (close == OP1('}')) {
            ST_TRY(st_jinja_wrap(p, ST_JINJA_N_PAIR, last));
            ST_TRY(st_jinja_expect_op(p, OP1(':')));
            ST_TRY(st_jinja_expression(p, true, &(*last)->b));
        }
        last = &(*last)->next;
    }
    return st_jinja_expect_op(p, close);
}

static stint_status parse_brackets(struct st_jinja_parser *p, struct st_jinja_node **node) {
    bool dict = st_jinja_at_op(p, OP1('{'));
    if (st_jinja_skip_op(p, OP1('('))) {
        if (st_jinja_skip_op(p, OP1(')'))) return st_jinja_node(p, ST_JINJA_N_TUPLE, node);
        ST_TRY(st_jinja_expressions(p, true, node));
        return st_jinja_expect_op(p, OP1(')'));
    }
    if (!dict && !st_jinja_at_op(p, OP1('['))) return st_jinja_unexpected(p, "an expression");
    ST_TRY(st_jinja_node(p, dict ? ST_JINJA_N_DICT : ST_JINJA_N_LIST, node));
    p->at++;
    return parse_items(p, dict ? OP1('}') : OP1(']'), &(*node)->items);
}

stint_status st_jinja_primary(struct st_jinja_parser *p, struct st_jinja_node **node) {
    if (p->at->kind == ST_JINJA_T_OPERATOR || p->at->kind < ST_JINJA_T_NAME)
        return parse_brackets(p, node);
    ST_TRY(st_jinja_node(p, ST_JINJA_N_CONST, node));
    switch (p->at->kind) {
    case ST_JINJA_T_NAME:
        parse_word(p, *node);
        return STINT_OK;
    case ST_JINJA_T_STRING:
        return parse_string(p, *node);
    case ST_JINJA_T_INT:
        (*node)->value = st_jinja_integer(p->at++->integer);
        return STINT_OK;
    default:
        (*node)->value = st_jinja_real(p->at++->real);
        return STINT_OK;
    }
}

// ---- tuples without brackets

static bool at_tuple_end(const struct st_jinja_parser *p) {
    return p->at->kind == ST_JINJA_T_PRINT_END || p->at->kind == ST_JINJA_T_BLOCK_END ||
           st_jinja_at_op(p, OP1(')')) || st_jinja_at_op(p, OP1('=')) || st_jinja_at_name(p, "in");
}

// *node is the first part; pre: at a comma.
static stint_status parse_rest(struct st_jinja_parser *p, bool target, bool whole,
                               struct st_jinja_node **node) {
    struct st_jinja_node **last = &(*node)->next;
    ST_TRY(st_jinja_wrap(p, ST_JINJA_N_TUPLE, node));
    (*node)->items = (*node)->a;
    while (st_jinja_skip_op(p, OP1(',')) && !at_tuple_end(p)) {
        ST_TRY(target ? st_jinja_primary(p, last) : st_jinja_expression(p, whole, last));
        last = &(*last)->next;
    }
    return STINT_OK;
}

stint_status st_jinja_expressions(struct st_jinja_parser *p, bool whole,
                                  struct st_jinja_node **node) {
    ST_TRY(st_jinja_expression(p, whole, node));
    return st_jinja_at_op(p, OP1(',')) ? parse_rest(p, false, whole, node) : STINT_OK;
}

static stint_status check_target(const struct st_jinja_parser *p,
                                 const struct st_jinja_node *node) {
    if (node->kind == ST_JINJA_N_NAME) return STINT_OK;
    if (node->kind != ST_JINJA_N_TUPLE) return st_jinja_unexpected(p, "a name to assign to before");
    for (const struct st_jinja_node *item = node->items; item; item = item->next)
        ST_TRY(check_target(p, item));
    return STINT_OK;
}

stint_status st_jinja_target(struct st_jinja_parser *p, bool fields, struct st_jinja_node **node) {
    ST_TRY(st_jinja_primary(p, node));
    if (fields && (*node)->kind == ST_JINJA_N_NAME && st_jinja_skip_op(p, OP1('.'))) {
        ST_TRY(st_jinja_wrap(p, ST_JINJA_N_ATTRIBUTE, node));
        return st_jinja_expect_name(p, &(*node)->name);
    }
    if (st_jinja_at_op(p, OP1(','))) ST_TRY(parse_rest(p, true, true, node));
    return check_target(p, *node);
}
