// SPDX-License-Identifier: Apache-2.0
// Parsing: a template's text becomes tokens, then nodes in the pool of the compiled template.
#ifndef ST_TEMPLATE_PARSE_H
#define ST_TEMPLATE_PARSE_H

#include "template/value.h"

// ---- tokens

enum st_jinja_token_kind {
    ST_JINJA_T_END,
    ST_JINJA_T_TEXT, // outside {{ }} and {% %}
    ST_JINJA_T_PRINT_BEGIN,
    ST_JINJA_T_PRINT_END,
    ST_JINJA_T_BLOCK_BEGIN,
    ST_JINJA_T_BLOCK_END,
    ST_JINJA_T_NAME,
    ST_JINJA_T_STRING, // without its quotes and escapes
    ST_JINJA_T_INT,
    ST_JINJA_T_FLOAT,
    ST_JINJA_T_OPERATOR,
};

struct st_jinja_token {
    uint8_t kind;
    uint16_t op;
    uint32_t line;
    struct st_jinja_text text; // as written; for strings, the value
    union {
        int64_t integer;
        double real;
    };
};

// The tokens of source[0, n); the last one is END. *tokens is malloc'ed; the texts are in the pool.
stint_status st_jinja_lex(struct st_jinja_pool *pool, const char *source, size_t n,
                          struct st_jinja_token **tokens);

// Decodes the inside of a string literal, text[0, n), into the pool.
stint_status st_jinja_unescape(struct st_jinja_pool *pool, uint32_t line, struct st_jinja_text text,
                               struct st_jinja_text *out);

// ---- the tree

enum st_jinja_node_kind {
    // expressions
    ST_JINJA_N_CONST, // value
    ST_JINJA_N_NAME,  // name
    ST_JINJA_N_LIST,  // items
    ST_JINJA_N_TUPLE, // items
    ST_JINJA_N_DICT,  // items: PAIR a, b
    ST_JINJA_N_PAIR,
    ST_JINJA_N_NEGATIVE, // a
    ST_JINJA_N_POSITIVE, // a
    ST_JINJA_N_NOT,      // a
    ST_JINJA_N_AND,      // a, b
    ST_JINJA_N_OR,       // a, b
    ST_JINJA_N_BINARY,   // a op b
    ST_JINJA_N_COMPARE,  // a, items: OPERAND op a
    ST_JINJA_N_OPERAND,
    ST_JINJA_N_CONCAT,    // items
    ST_JINJA_N_CHOICE,    // b if a else c
    ST_JINJA_N_ATTRIBUTE, // a.name
    ST_JINJA_N_ITEM,      // a[b]
    ST_JINJA_N_SLICE,     // a[b:c:d]
    ST_JINJA_N_CALL,      // a(items)
    ST_JINJA_N_FILTER,    // a | builtin(items); a NULL: the text that a block captured
    ST_JINJA_N_TEST,      // a is builtin(items)
    ST_JINJA_N_KEYWORD,   // name=a, among arguments
    // statements
    ST_JINJA_N_TEXT,      // value
    ST_JINJA_N_PRINT,     // a
    ST_JINJA_N_IF,        // items: BRANCH, a the condition (NULL: else), b the body
    ST_JINJA_N_BRANCH,    //
    ST_JINJA_N_FOR,       // for a in b if c: body d, else e
    ST_JINJA_N_SET,       // a = b
    ST_JINJA_N_SET_BLOCK, // a = body d through the filters b (NULL: none)
    ST_JINJA_N_FILTERED,  // body d through the filters b
    ST_JINJA_N_MACRO,     // name(items: PARAM name, a its default or NULL), body d
    ST_JINJA_N_PARAM,
    ST_JINJA_N_BREAK,
    ST_JINJA_N_CONTINUE,
};

struct st_jinja_node {
    uint8_t kind;
    uint16_t op;
    uint32_t line;
    struct st_jinja_node *next; // the next in a list of items or statements
    struct st_jinja_text name;
    struct st_jinja_value value;
    const struct st_jinja_builtin *builtin;
    struct st_jinja_node *a, *b, *c, *d, *e, *items;
};

struct st_jinja {
    struct st_jinja_pool pool;
    struct st_jinja_node *body;
};

// ---- shared by the parsers of statements and expressions

struct st_jinja_parser {
    struct st_jinja_pool *pool;
    const struct st_jinja_token *at;
    uint32_t depth;
    uint32_t loops; // loops around this point, inside its macro
    uint32_t ifs;   // ifs around it: inside one, an unknown filter fails only when it runs
};

stint_status st_jinja_node(struct st_jinja_parser *p, enum st_jinja_node_kind kind,
                           struct st_jinja_node **node);
// Makes a node whose `a` is *node, and puts it into *node.
stint_status st_jinja_wrap(struct st_jinja_parser *p, enum st_jinja_node_kind kind,
                           struct st_jinja_node **node);
// Fails with the expected and the actual token.
stint_status st_jinja_unexpected(const struct st_jinja_parser *p, const char *expected);
// Fails with the name of an unknown filter or test.
stint_status st_jinja_no_builtin(const struct st_jinja_node *node);
bool st_jinja_at_op(const struct st_jinja_parser *p, int op);
bool st_jinja_at_name(const struct st_jinja_parser *p, const char *name);
bool st_jinja_skip_op(struct st_jinja_parser *p, int op);
bool st_jinja_skip_name(struct st_jinja_parser *p, const char *name);
stint_status st_jinja_expect_op(struct st_jinja_parser *p, int op);
stint_status st_jinja_expect_name(struct st_jinja_parser *p, struct st_jinja_text *name);

// Parses an expression; `whole` false: without "if else", as after the "in" of a loop.
stint_status st_jinja_expression(struct st_jinja_parser *p, bool whole,
                                 struct st_jinja_node **node);
// The same, or a tuple if there are commas.
stint_status st_jinja_expressions(struct st_jinja_parser *p, bool whole,
                                  struct st_jinja_node **node);
// Parses a name, a literal, or an expression in brackets.
stint_status st_jinja_primary(struct st_jinja_parser *p, struct st_jinja_node **node);
// Parses the target of an assignment: a name or a tuple of names; with `fields` also name.name.
stint_status st_jinja_target(struct st_jinja_parser *p, bool fields, struct st_jinja_node **node);
// Parses "| filter" or, if `first` is true, "filter", and the filters after it; *node stays NULL
// if there are none.
stint_status st_jinja_filters(struct st_jinja_parser *p, bool first, struct st_jinja_node **node);

#endif
