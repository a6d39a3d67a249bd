// SPDX-License-Identifier: Apache-2.0
// Parses statements and compiles whole templates. Each statement has a row with its parser, which
// also looks for the words that end it.
#include "template/parse.h"

#include "base/utf8.h"
#include "template/jinja.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define OP1(c) ST_JINJA_OP(c, 0)

typedef stint_status statement_fn(struct st_jinja_parser *p, struct st_jinja_node **node);

static statement_fn parse_statement;

static bool at_one_of(const struct st_jinja_parser *p, const char *const *words) {
    for (; *words; words++)
        if (st_jinja_at_name(p, *words)) return true;
    return false;
}

static stint_status expect_end(struct st_jinja_parser *p) {
    if (p->at->kind != ST_JINJA_T_BLOCK_END) return st_jinja_unexpected(p, "'%}'");
    p->at++;
    return STINT_OK;
}

// {{ a }}; pre: after the opening.
static stint_status parse_print(struct st_jinja_parser *p, struct st_jinja_node **node) {
    ST_TRY(st_jinja_node(p, ST_JINJA_N_PRINT, node));
    ST_TRY(st_jinja_expressions(p, true, &(*node)->a));
    if (p->at->kind != ST_JINJA_T_PRINT_END) return st_jinja_unexpected(p, "'}}'");
    p->at++;
    return STINT_OK;
}

// Parses statements up to a tag that begins with one of `ends`; p->at is then at that word.
static stint_status parse_body(struct st_jinja_parser *p, const char *const *ends,
                               struct st_jinja_node **last) {
    while (p->at->kind != ST_JINJA_T_END) {
        uint8_t kind = p->at->kind;
        if (kind == ST_JINJA_T_TEXT) {
            ST_TRY(st_jinja_node(p, ST_JINJA_N_TEXT, last));
            (*last)->value = st_jinja_string(p->at->text.data, p->at->text.n);
        }
        p->at++;
        if (kind == ST_JINJA_T_PRINT_BEGIN) ST_TRY(parse_print(p, last));
        if (kind == ST_JINJA_T_BLOCK_BEGIN) {
            if (at_one_of(p, ends)) return STINT_OK;
            ST_TRY(parse_statement(p, last));
            ST_TRY(expect_end(p));
        }
        while (*last) last = &(*last)->next; // a generation tag adds its whole body
    }
    return *ends ? st_jinja_unexpected(p, *ends) : STINT_OK;
}

// Parses from the end of a tag through its body and past the word `end`.
static stint_status parse_block(struct st_jinja_parser *p, const char *end,
                                struct st_jinja_node **body) {
    const char *const ends[] = {end, NULL};
    ST_TRY(expect_end(p));
    ST_TRY(parse_body(p, ends, body));
    p->at++;
    return STINT_OK;
}

static stint_status parse_if(struct st_jinja_parser *p, struct st_jinja_node **node) {
    static const char *const ends[] = {"endif", "elif", "else", NULL};
    ST_TRY(st_jinja_node(p, ST_JINJA_N_IF, node));
    bool has_condition = true;
    for (struct st_jinja_node **last = &(*node)->items;; last = &(*last)->next) {
        ST_TRY(st_jinja_node(p, ST_JINJA_N_BRANCH, last));
        if (has_condition) ST_TRY(st_jinja_expressions(p, false, &(*last)->a));
        ST_TRY(expect_end(p));
        p->ifs++;
        ST_TRY(parse_body(p, has_condition ? ends : (const char *const[]){"endif", NULL},
                          &(*last)->b));
        p->ifs--;
        if (st_jinja_skip_name(p, "endif")) return STINT_OK;
        has_condition = st_jinja_at_name(p, "elif");
        p->at++;
    }
}

static stint_status parse_for(struct st_jinja_parser *p, struct st_jinja_node **node) {
    static const char *const ends[] = {"endfor", "else", NULL};
    ST_TRY(st_jinja_node(p, ST_JINJA_N_FOR, node));
    struct st_jinja_node *loop = *node;
    ST_TRY(st_jinja_target(p, false, &loop->a));
    if (!st_jinja_skip_name(p, "in")) return st_jinja_unexpected(p, "'in'");
    ST_TRY(st_jinja_expressions(p, false, &loop->b));
    if (st_jinja_skip_name(p, "if")) ST_TRY(st_jinja_expression(p, true, &loop->c));
    if (st_jinja_at_name(p, "recursive"))
        return st_fail(STINT_E_UNSUPPORTED, "line %u: recursive loops are not supported",
                       p->at->line);
    ST_TRY(expect_end(p));
    p->loops++;
    ST_TRY(parse_body(p, ends, &loop->d));
    p->loops--;
    if (st_jinja_skip_name(p, "else")) return parse_block(p, "endfor", &loop->e);
    p->at++;
    return STINT_OK;
}

static stint_status parse_set(struct st_jinja_parser *p, struct st_jinja_node **node) {
    ST_TRY(st_jinja_node(p, ST_JINJA_N_SET, node));
    ST_TRY(st_jinja_target(p, true, &(*node)->a));
    if (st_jinja_skip_op(p, OP1('='))) return st_jinja_expressions(p, true, &(*node)->b);
    (*node)->kind = ST_JINJA_N_SET_BLOCK;
    ST_TRY(st_jinja_filters(p, false, &(*node)->b));
    return parse_block(p, "endset", &(*node)->d);
}

static stint_status parse_filter(struct st_jinja_parser *p, struct st_jinja_node **node) {
    ST_TRY(st_jinja_node(p, ST_JINJA_N_FILTERED, node));
    ST_TRY(st_jinja_filters(p, true, &(*node)->b));
    return parse_block(p, "endfilter", &(*node)->d);
}

static stint_status parse_params(struct st_jinja_parser *p, struct st_jinja_node **last) {
    ST_TRY(st_jinja_expect_op(p, OP1('(')));
    bool defaults = false;
    for (bool first = true; !st_jinja_at_op(p, OP1(')')); first = false) {
        if (!first) ST_TRY(st_jinja_expect_op(p, OP1(',')));
        ST_TRY(st_jinja_node(p, ST_JINJA_N_PARAM, last));
        ST_TRY(st_jinja_expect_name(p, &(*last)->name));
        if (st_jinja_skip_op(p, OP1('='))) {
            defaults = true;
            ST_TRY(st_jinja_expression(p, true, &(*last)->a));
        } else if (defaults) {
            return st_jinja_unexpected(p, "a default");
        }
        last = &(*last)->next;
    }
    return st_jinja_expect_op(p, OP1(')'));
}

static stint_status parse_macro(struct st_jinja_parser *p, struct st_jinja_node **node) {
    uint32_t loops = p->loops;
    ST_TRY(st_jinja_node(p, ST_JINJA_N_MACRO, node));
    ST_TRY(st_jinja_expect_name(p, &(*node)->name));
    ST_TRY(parse_params(p, &(*node)->items));
    p->loops = 0;
    ST_TRY(parse_block(p, "endmacro", &(*node)->d));
    p->loops = loops;
    return STINT_OK;
}

// Text that trainers mark as the model's own renders unchanged.
static stint_status parse_generation(struct st_jinja_parser *p, struct st_jinja_node **node) {
    return parse_block(p, "endgeneration", node);
}

static stint_status parse_jump(struct st_jinja_parser *p, enum st_jinja_node_kind kind,
                               struct st_jinja_node **node) {
    if (p->loops == 0)
        return st_fail(STINT_E_FORMAT, "line %u: '%.*s' outside a loop", p->at[-1].line,
                       (int)p->at[-1].text.n, p->at[-1].text.data);
    return st_jinja_node(p, kind, node);
}

static stint_status parse_break(struct st_jinja_parser *p, struct st_jinja_node **node) {
    return parse_jump(p, ST_JINJA_N_BREAK, node);
}

static stint_status parse_continue(struct st_jinja_parser *p, struct st_jinja_node **node) {
    return parse_jump(p, ST_JINJA_N_CONTINUE, node);
}

static const struct {
    const char *word;
    statement_fn *parse;
} statements[] = {
    {"if", parse_if},         {"for", parse_for},           {"set", parse_set},
    {"filter", parse_filter}, {"macro", parse_macro},       {"generation", parse_generation},
    {"break", parse_break},   {"continue", parse_continue},
};

static stint_status parse_statement(struct st_jinja_parser *p, struct st_jinja_node **node) {
    if (p->at->kind != ST_JINJA_T_NAME) return st_jinja_unexpected(p, "a statement");
    if (p->depth >= ST_JINJA_MAX_PARSE)
        return st_fail(STINT_E_LIMIT, "line %u: nested deeper than %d", p->at->line,
                       ST_JINJA_MAX_PARSE);
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        if (!st_jinja_skip_name(p, statements[i].word)) continue;
        p->depth++;
        ST_TRY(statements[i].parse(p, node));
        p->depth--;
        return STINT_OK;
    }
    int n = p->at->text.n < 60 ? (int)p->at->text.n : 60;
    return st_fail(STINT_E_UNSUPPORTED, "line %u: the statement '%.*s' is not supported",
                   p->at->line, n, p->at->text.data);
}

// ---- whole templates

static stint_status check_source(const char *source, size_t n) {
    if (n > ST_JINJA_MAX_SOURCE)
        return st_fail(STINT_E_LIMIT, "it has %zu bytes; the maximum is %d", n,
                       ST_JINJA_MAX_SOURCE);
    for (size_t i = 0, length; i < n; i += length) {
        length = st_utf8_length(source + i, n - i);
        if (length == 0 || source[i] == 0)
            return st_fail(STINT_E_FORMAT, "byte %zu is not UTF-8 text", i);
    }
    return STINT_OK;
}

static stint_status compile(const char *source, size_t n, struct st_jinja *jinja) {
    struct st_jinja_token *tokens = NULL;
    ST_TRY(check_source(source, n));
    ST_TRY(st_jinja_lex(&jinja->pool, source, n, &tokens));
    struct st_jinja_parser p = {.pool = &jinja->pool, .at = tokens};
    stint_status status = parse_body(&p, (const char *const[]){NULL}, &jinja->body);
    free(tokens);
    return status;
}

stint_status st_jinja_compile(const char *source, size_t n, struct st_jinja **out) {
    struct st_jinja *jinja = calloc(1, sizeof *jinja);
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    stint_status status = STINT_E_NOMEM;
    if (jinja && plain) {
        locale_t before = uselocale(plain); // for the decimal point
        jinja->pool.limit = ST_JINJA_MAX_MEMORY;
        status = compile(source, n, jinja);
        uselocale(before);
    } else {
        status = st_fail(STINT_E_NOMEM, "not enough memory");
    }
    if (plain) freelocale(plain);
    if (status != STINT_OK) {
        st_jinja_free(jinja);
        return st_fail_prefix("chat template: ");
    }
    *out = jinja;
    return STINT_OK;
}

void st_jinja_free(struct st_jinja *jinja) {
    if (!jinja) return;
    st_jinja_pool_free(&jinja->pool);
    free(jinja);
}
