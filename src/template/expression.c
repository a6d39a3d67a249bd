// SPDX-License-Identifier: Apache-2.0
// Parses expressions by recursive descent, with the precedence of Jinja2's operators.
#include "template/builtin.h"
#include "template/parse.h"

#include <string.h>

#define OP1(c)    ST_JINJA_OP(c, 0)
#define OP2(c, d) ST_JINJA_OP(c, d)

typedef stint_status parse_fn(struct st_jinja_parser *p, struct st_jinja_node **node);

static parse_fn parse_unary;
static stint_status parse_postfix(struct st_jinja_parser *p, struct st_jinja_node **node);

static stint_status enter(struct st_jinja_parser *p) {
    if (p->depth >= ST_JINJA_MAX_PARSE)
        return st_fail(STINT_E_LIMIT, "line %u: nested deeper than %d", p->at->line,
                       ST_JINJA_MAX_PARSE);
    p->depth++;
    return STINT_OK;
}

// ---- binary operators

static bool at_one_of(const struct st_jinja_parser *p, const uint16_t *ops) {
    for (; *ops; ops++)
        if (st_jinja_at_op(p, *ops)) return true;
    return false;
}

static stint_status parse_binary(struct st_jinja_parser *p, const uint16_t *ops, parse_fn *part,
                                 struct st_jinja_node **node) {
    ST_TRY(part(p, node));
    while (at_one_of(p, ops)) {
        ST_TRY(st_jinja_wrap(p, ST_JINJA_N_BINARY, node));
        (*node)->op = p->at++->op;
        ST_TRY(part(p, &(*node)->b));
    }
    return STINT_OK;
}

static stint_status parse_power(struct st_jinja_parser *p, struct st_jinja_node **node) {
    static const uint16_t ops[] = {OP2('*', '*'), 0};
    return parse_binary(p, ops, parse_unary, node);
}

static stint_status parse_product(struct st_jinja_parser *p, struct st_jinja_node **node) {
    static const uint16_t ops[] = {OP1('*'), OP1('/'), OP2('/', '/'), OP1('%'), 0};
    return parse_binary(p, ops, parse_power, node);
}

static stint_status parse_concat(struct st_jinja_parser *p, struct st_jinja_node **node) {
    ST_TRY(parse_product(p, node));
    if (!st_jinja_at_op(p, OP1('~'))) return STINT_OK;
    struct st_jinja_node **last = &(*node)->next;
    ST_TRY(st_jinja_wrap(p, ST_JINJA_N_CONCAT, node));
    (*node)->items = (*node)->a;
    while (st_jinja_skip_op(p, OP1('~'))) {
        ST_TRY(parse_product(p, last));
        last = &(*last)->next;
    }
    return STINT_OK;
}

static stint_status parse_sum(struct st_jinja_parser *p, struct st_jinja_node **node) {
    static const uint16_t ops[] = {OP1('+'), OP1('-'), 0};
    return parse_binary(p, ops, parse_concat, node);
}

// The operators 'i' and 'n' stand for "in" and "not in".
static int comparison(struct st_jinja_parser *p) {
    static const uint16_t ops[] = {OP2('=', '='), OP2('!', '='), OP1('<'), OP2('<', '='),
                                   OP1('>'),      OP2('>', '='), 0};
    if (at_one_of(p, ops)) return p->at++->op;
    if (st_jinja_skip_name(p, "in")) return OP1('i');
    bool not_in = st_jinja_at_name(p, "not") && p->at[1].kind == ST_JINJA_T_NAME &&
                  st_jinja_same(p->at[1].text, (struct st_jinja_text){"in", 2});
    if (!not_in) return 0;
    p->at += 2;
    return OP1('n');
}

static stint_status parse_compare(struct st_jinja_parser *p, struct st_jinja_node **node) {
    ST_TRY(parse_sum(p, node));
    int op = comparison(p);
    if (!op) return STINT_OK;
    ST_TRY(st_jinja_wrap(p, ST_JINJA_N_COMPARE, node));
    for (struct st_jinja_node **last = &(*node)->items; op; op = comparison(p)) {
        ST_TRY(st_jinja_node(p, ST_JINJA_N_OPERAND, last));
        (*last)->op = (uint16_t)op;
        ST_TRY(parse_sum(p, &(*last)->a));
        last = &(*last)->next;
    }
    return STINT_OK;
}

static stint_status parse_not(struct st_jinja_parser *p, struct st_jinja_node **node) {
    if (!st_jinja_at_name(p, "not")) return parse_compare(p, node);
    ST_TRY(enter(p));
    ST_TRY(st_jinja_node(p, ST_JINJA_N_NOT, node));
    p->at++;
    ST_TRY(parse_not(p, &(*node)->a));
    p->depth--;
    return STINT_OK;
}

static stint_status parse_and(struct st_jinja_parser *p, struct st_jinja_node **node) {
    ST_TRY(parse_not(p, node));
    while (st_jinja_skip_name(p, "and")) {
        ST_TRY(st_jinja_wrap(p, ST_JINJA_N_AND, node));
        ST_TRY(parse_not(p, &(*node)->b));
    }
    return STINT_OK;
}

static stint_status parse_or(struct st_jinja_parser *p, struct st_jinja_node **node) {
    ST_TRY(parse_and(p, node));
    while (st_jinja_skip_name(p, "or")) {
        ST_TRY(st_jinja_wrap(p, ST_JINJA_N_OR, node));
        ST_TRY(parse_and(p, &(*node)->b));
    }
    return STINT_OK;
}

static stint_status parse_choice(struct st_jinja_parser *p, struct st_jinja_node **node) {
    ST_TRY(parse_or(p, node));
    while (st_jinja_skip_name(p, "if")) {
        ST_TRY(st_jinja_wrap(p, ST_JINJA_N_CHOICE, node));
        struct st_jinja_node *choice = *node;
        choice->b = choice->a;
        ST_TRY(parse_or(p, &choice->a));
        if (st_jinja_skip_name(p, "else")) ST_TRY(st_jinja_expression(p, true, &choice->c));
    }
    return STINT_OK;
}

stint_status st_jinja_expression(struct st_jinja_parser *p, bool whole,
                                 struct st_jinja_node **node) {
    ST_TRY(enter(p));
    ST_TRY(whole ? parse_choice(p, node) : parse_or(p, node));
    p->depth--;
    return STINT_OK;
}

// ---- one operand with its prefixes and suffixes

static stint_status parse_argument(struct st_jinja_parser *p, bool *keywords,
                                   struct st_jinja_node **last) {
    bool keyword = p->at->kind == ST_JINJA_T_NAME && p->at[1].kind == ST_JINJA_T_OPERATOR &&
                   p->at[1].op == OP1('=');
    if (st_jinja_at_op(p, OP1('*')) || st_jinja_at_op(p, OP2('*', '*')))
        return st_fail(STINT_E_UNSUPPORTED, "line %u: arguments with '*' are not supported",
                       p->at->line);
    if (!keyword && *keywords) return st_jinja_unexpected(p, "a keyword argument");
    if (!keyword) return st_jinja_expression(p, true, last);
    *keywords = true;
    ST_TRY(st_jinja_node(p, ST_JINJA_N_KEYWORD, last));
    (*last)->name = p->at->text;
    p->at += 2;
    return st_jinja_expression(p, true, &(*last)->a);
}

// pre: at the opening bracket.
static stint_status parse_arguments(struct st_jinja_parser *p, struct st_jinja_node **last) {
    bool keywords = false;
    p->at++;
    for (bool first = true; !st_jinja_at_op(p, OP1(')')); first = false) {
        if (!first) ST_TRY(st_jinja_expect_op(p, OP1(',')));
        if (st_jinja_at_op(p, OP1(')'))) break;
        ST_TRY(parse_argument(p, &keywords, last));
        last = &(*last)->next;
    }
    return st_jinja_expect_op(p, OP1(')'));
}

static stint_status parse_dotted(struct st_jinja_parser *p, struct st_jinja_node *node) {
    ST_TRY(st_jinja_expect_name(p, &node->name));
    if (!st_jinja_at_op(p, OP1('.'))) return STINT_OK;
    return st_fail(STINT_E_UNSUPPORTED, "line %u: '%.*s.' is not supported", p->at->line,
                   (int)node->name.n, node->name.data);
}

// Templates use filters and tests that only some environments have inside an "if".
static stint_status check_builtin(const struct st_jinja_parser *p,
                                  const struct st_jinja_node *node) {
    if (node->builtin || p->ifs) return STINT_OK;
    st_jinja_no_builtin(node);
    return st_fail_prefix("line %u: ", node->line);
}

stint_status st_jinja_filters(struct st_jinja_parser *p, bool first, struct st_jinja_node **node) {
    for (; first || st_jinja_skip_op(p, OP1('|')); first = false) {
        ST_TRY(st_jinja_wrap(p, ST_JINJA_N_FILTER, node));
        ST_TRY(parse_dotted(p, *node));
        (*node)->builtin = st_jinja_filter((*node)->name);
        ST_TRY(check_builtin(p, *node));
        if (st_jinja_at_op(p, OP1('('))) ST_TRY(parse_arguments(p, &(*node)->items));
    }
    return STINT_OK;
}

// True at the start of a test's argument without brackets.
static bool at_argument(const struct st_jinja_parser *p) {
    if (st_jinja_at_name(p, "else") || st_jinja_at_name(p, "or") || st_jinja_at_name(p, "and"))
        return false;
    return (p->at->kind >= ST_JINJA_T_NAME && p->at->kind <= ST_JINJA_T_FLOAT) ||
           st_jinja_at_op(p, OP1('[')) || st_jinja_at_op(p, OP1('{'));
}

// "is [not] test"; pre: after "is".
static stint_status parse_test(struct st_jinja_parser *p, struct st_jinja_node **node) {
    bool negated = st_jinja_skip_name(p, "not");
    ST_TRY(st_jinja_wrap(p, ST_JINJA_N_TEST, node));
    struct st_jinja_node *test = *node;
    ST_TRY(parse_dotted(p, test));
    test->builtin = st_jinja_test(test->name);
    ST_TRY(check_builtin(p, test));
    if (st_jinja_at_op(p, OP1('('))) {
        ST_TRY(parse_arguments(p, &test->items));
    } else if (at_argument(p)) {
        if (st_jinja_at_name(p, "is")) return st_jinja_unexpected(p, "no second test");
        ST_TRY(st_jinja_primary(p, &test->items));
        ST_TRY(parse_postfix(p, &test->items));
    }
    return negated ? st_jinja_wrap(p, ST_JINJA_N_NOT, node) : STINT_OK;
}

static stint_status parse_part(struct st_jinja_parser *p, struct st_jinja_node **part) {
    bool left_out = st_jinja_at_op(p, OP1(':')) || st_jinja_at_op(p, OP1(']'));
    return left_out ? STINT_OK : st_jinja_expression(p, true, part);
}

// [index] or [from:to:step]; pre: at the opening bracket.
static stint_status parse_subscript(struct st_jinja_parser *p, struct st_jinja_node **node) {
    ST_TRY(st_jinja_wrap(p, ST_JINJA_N_ITEM, node));
    struct st_jinja_node *item = *node;
    p->at++;
    if (st_jinja_at_op(p, OP1(']'))) return st_jinja_unexpected(p, "an index");
    ST_TRY(parse_part(p, &item->b));
    if (st_jinja_skip_op(p, OP1(':'))) {
        item->kind = ST_JINJA_N_SLICE;
        ST_TRY(parse_part(p, &item->c));
        if (st_jinja_skip_op(p, OP1(':'))) ST_TRY(parse_part(p, &item->d));
    }
    if (st_jinja_at_op(p, OP1(',')))
        return st_fail(STINT_E_UNSUPPORTED, "line %u: an index of several parts is not supported",
                       p->at->line);
    return st_jinja_expect_op(p, OP1(']'));
}

// .name or .0; pre: at the dot.
static stint_status parse_attribute(struct st_jinja_parser *p, struct st_jinja_node **node) {
    ST_TRY(st_jinja_wrap(p, ST_JINJA_N_ATTRIBUTE, node));
    p->at++;
    if (p->at->kind != ST_JINJA_T_INT) return st_jinja_expect_name(p, &(*node)->name);
    (*node)->kind = ST_JINJA_N_ITEM;
    ST_TRY(st_jinja_node(p, ST_JINJA_N_CONST, &(*node)->b));
    (*node)->b->value = st_jinja_integer(p->at++->integer);
    return STINT_OK;
}

static stint_status parse_postfix(struct st_jinja_parser *p, struct st_jinja_node **node) {
    for (;;) {
        if (st_jinja_at_op(p, OP1('.'))) {
            ST_TRY(parse_attribute(p, node));
        } else if (st_jinja_at_op(p, OP1('['))) {
            ST_TRY(parse_subscript(p, node));
        } else if (st_jinja_at_op(p, OP1('('))) {
            ST_TRY(st_jinja_wrap(p, ST_JINJA_N_CALL, node));
            ST_TRY(parse_arguments(p, &(*node)->items));
        } else {
            return STINT_OK;
        }
    }
}

// Filters, tests and calls, in any order.
static stint_status parse_behind(struct st_jinja_parser *p, struct st_jinja_node **node) {
    for (;;) {
        if (st_jinja_at_op(p, OP1('|'))) {
            ST_TRY(st_jinja_filters(p, false, node));
        } else if (st_jinja_skip_name(p, "is")) {
            ST_TRY(parse_test(p, node));
        } else if (st_jinja_at_op(p, OP1('('))) {
            ST_TRY(st_jinja_wrap(p, ST_JINJA_N_CALL, node));
            ST_TRY(parse_arguments(p, &(*node)->items));
        } else {
            return STINT_OK;
        }
    }
}

// Signs bind tighter than filters: -x|abs is (-x)|abs.
static stint_status parse_signed(struct st_jinja_parser *p, struct st_jinja_node **node) {
    bool minus = st_jinja_at_op(p, OP1('-'));
    if (minus || st_jinja_at_op(p, OP1('+'))) {
        ST_TRY(enter(p));
        p->at++;
        ST_TRY(parse_signed(p, node));
        ST_TRY(st_jinja_wrap(p, minus ? ST_JINJA_N_NEGATIVE : ST_JINJA_N_POSITIVE, node));
        p->depth--;
    } else {
        ST_TRY(st_jinja_primary(p, node));
    }
    return parse_postfix(p, node);
}

static stint_status parse_unary(struct st_jinja_parser *p, struct st_jinja_node **node) {
    ST_TRY(parse_signed(p, node));
    return parse_behind(p, node);
}
