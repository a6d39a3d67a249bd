// SPDX-License-Identifier: Apache-2.0
// Reads GBNF: rules `name ::= choice`, texts, classes, groups, operators, `#` to the end of a line.
// A rule ends where the next one begins, or the text.
#include "constraint/grammar.h"

#include "base/size.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum {
    NODES_MAX = 1 << 16,
    RULES_MAX = 1000,
    DEPTH_MAX = 64, // nested parentheses
    REPEAT_MAX = 1000,
    RANGES_MAX = 256,
};

static uint32_t fail(struct st_grammar *g, stint_status status, const char *what) {
    if (g->status == STINT_OK)
        g->status = st_fail(status, "grammar: at byte %zu: %s", (size_t)(g->at - g->text), what);
    return 0;
}

static uint32_t add_node(struct st_grammar *g, struct st_grammar_node node) {
    if (g->n_nodes >= NODES_MAX) return fail(g, STINT_E_LIMIT, "it is too large");
    if (g->status == STINT_OK)
        g->status = st_grow((void **)&g->nodes, &g->node_capacity, g->n_nodes, 1, sizeof *g->nodes);
    if (g->status != STINT_OK) return 0;
    g->nodes[g->n_nodes] = node;
    return (uint32_t)g->n_nodes++;
}

// ---- reading

static void skip_space(struct st_grammar *g) {
    for (;; g->at++) {
        if (*g->at == '#') g->at += strcspn(g->at, "\n");
        if (*g->at == 0 || !strchr(" \t\r\n", *g->at)) return;
    }
}

static size_t name_length(const char *at) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    return strspn(at, letters);
}

// True before `name ::=`, where the rule before ends.
static bool is_definition(const char *at) {
    size_t n = name_length(at);
    return n > 0 && strncmp(at + n + strspn(at + n, " \t\r\n"), "::=", 3) == 0;
}

static uint32_t find_rule(struct st_grammar *g, const char *name, size_t n) {
    for (size_t i = 0; i < g->n_rules; i++)
        if (g->rules[i].n_name == n && memcmp(g->rules[i].name, name, n) == 0) return (uint32_t)i;
    if (g->n_rules >= RULES_MAX) return fail(g, STINT_E_LIMIT, "it has too many rules");
    if (g->status == STINT_OK)
        g->status = st_grow((void **)&g->rules, &g->rule_capacity, g->n_rules, 1, sizeof *g->rules);
    if (g->status != STINT_OK) return 0;
    g->rules[g->n_rules] = (struct st_grammar_rule){.name = name, .n_name = n};
    return (uint32_t)g->n_rules++;
}

static uint32_t read_hexadecimal(struct st_grammar *g, int n) {
    uint32_t value = 0;
    for (int i = 0; i < n; i++, g->at++) {
        static const char digits[] = "0123456789abcdef";
        const char *found = *g->at ? strchr(digits, *g->at | 0x20) : NULL;
        if (*g->at >= '0' && *g->at <= '9') found = digits + (*g->at - '0');
        if (!found) return fail(g, STINT_E_ARG, "a hexadecimal digit is missing");
        value = value << 4 | (uint32_t)(found - digits);
    }
    return value;
}

static uint32_t read_escape(struct st_grammar *g) {
    char c = *g->at;
    if (c == 0) return fail(g, STINT_E_ARG, "an escape is not complete");
    g->at++;
    switch (c) {
    case 'x':
        return read_hexadecimal(g, 2);
    case 'u':
        return read_hexadecimal(g, 4);
    case 'U':
        return read_hexadecimal(g, 8);
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        if (strchr("\"\\[]-^/", c)) return (uint32_t)c;
        return fail(g, STINT_E_ARG, "the escape is not known");
    }
}

// One character of a text or class. pre: there is one.
static uint32_t read_char(struct st_grammar *g) {
    if (*g->at == '\\') {
        g->at++;
        return read_escape(g);
    }
    size_t n = st_utf8_length(g->at, strnlen(g->at, 4));
    if (n == 0) return fail(g, STINT_E_ARG, "the text is not UTF-8");
    uint32_t c = st_utf8_decode(g->at, n);
    g->at += n;
    return c;
}

static bool is_char(uint32_t c) {
    return c != 0 && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
}

static uint32_t read_text(struct st_grammar *g) {
    struct st_grammar_node node = {.kind = ST_GRAMMAR_TEXT, .from = (uint32_t)g->bytes.count};
    g->at++;
    while (*g->at != '"' && g->status == STINT_OK) {
        uint8_t bytes[4];
        if (*g->at == 0) return fail(g, STINT_E_ARG, "'\"' is missing");
        uint32_t c = read_char(g);
        if (!is_char(c)) return fail(g, STINT_E_ARG, "it is not a character");
        if (g->status == STINT_OK)
            g->status = st_bytes_append(&g->bytes, (char *)bytes, st_code_encode(c, bytes));
    }
    if (g->status != STINT_OK) return 0; // perhaps at the end
    g->at++;
    node.n = (uint32_t)g->bytes.count - node.from;
    return add_node(g, node);
}

static int by_low(const void *a, const void *b) {
    const struct st_range *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

// Sorted, disjoint, without surrogates; or all characters but those. `out` has room for n + 3.
static size_t tidy(struct st_range *ranges, size_t n, bool inverse, struct st_range *out) {
    size_t n_merged = 0, n_out = 0;
    ranges[n++] = inverse ? (struct st_range){0xd800, 0xdfff} : (struct st_range){1, 0};
    qsort(ranges, n, sizeof *ranges, by_low);
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].low > ranges[i].high) continue;
        if (n_merged > 0 && ranges[i].low <= ranges[n_merged - 1].high + 1)
            ranges[n_merged - 1].high = (uint32_t)st_max(ranges[n_merged - 1].high, ranges[i].high);
        else
            ranges[n_merged++] = ranges[i];
    }
    uint32_t at = 1;
    for (size_t i = 0; i < n_merged; i++) {
        struct st_range range = ranges[i];
        if (!inverse && range.low < 0xd800 && range.high > 0xdfff) {
            out[n_out++] = (struct st_range){range.low, 0xd7ff};
            range.low = 0xe000;
        }
        if (!inverse)
            out[n_out++] = range;
        else if (range.low > at)
            out[n_out++] = (struct st_range){at, range.low - 1};
        at = range.high + 1;
    }
    if (inverse && at <= 0x10ffff) out[n_out++] = (struct st_range){at, 0x10ffff};
    return n_out;
}

static uint32_t add_class(struct st_grammar *g, struct st_range *ranges, size_t n, bool inverse) {
    struct st_range tidied[RANGES_MAX + 4];
    size_t n_tidied = tidy(ranges, n, inverse, tidied);
    struct st_grammar_node node = {
        .kind = ST_GRAMMAR_CHARS, .from = (uint32_t)g->n_ranges, .n = (uint32_t)n_tidied};
    if (g->status == STINT_OK && n_tidied > 0)
        g->status = st_grow((void **)&g->ranges, &g->range_capacity, g->n_ranges, n_tidied,
                            sizeof *g->ranges);
    if (g->status != STINT_OK) return 0;
    if (n_tidied > 0) memcpy(g->ranges + g->n_ranges, tidied, n_tidied * sizeof *tidied);
    g->n_ranges += n_tidied;
    return add_node(g, node);
}

static uint32_t read_class(struct st_grammar *g) {
    struct st_range ranges[RANGES_MAX + 1];
    size_t n = 0;
    g->at++;
    bool inverse = *g->at == '^';
    if (inverse) g->at++;
    while (*g->at != ']' && g->status == STINT_OK) {
        if (*g->at == 0) return fail(g, STINT_E_ARG, "']' is missing");
        if (n == RANGES_MAX) return fail(g, STINT_E_LIMIT, "a class is too large");
        uint32_t low = read_char(g), high = low;
        if (g->at[0] == '-' && g->at[1] != ']' && g->at[1] != 0) {
            g->at++;
            high = read_char(g);
        }
        if (low == 0 && high > 0) low = 1; // NUL, which no text has
        if (!is_char(low) || !is_char(high) || low > high)
            return fail(g, STINT_E_ARG, "a range is backwards, or not of characters");
        ranges[n++] = (struct st_range){low, high};
    }
    if (g->status != STINT_OK) return 0; // perhaps at the end
    g->at++;
    return add_class(g, ranges, n, inverse);
}

static uint32_t read_choice(struct st_grammar *g);

static uint32_t read_group(struct st_grammar *g) {
    g->at++;
    if (++g->depth > DEPTH_MAX) return fail(g, STINT_E_LIMIT, "it nests too deep");
    uint32_t node = read_choice(g);
    g->depth--;
    if (*g->at != ')') return fail(g, STINT_E_ARG, "')' is missing");
    g->at++;
    return node;
}

// 0 at the end of a sequence.
static uint32_t read_item(struct st_grammar *g) {
    size_t n = name_length(g->at);
    if (*g->at == '"') return read_text(g);
    if (*g->at == '[') return read_class(g);
    if (*g->at == '(') return read_group(g);
    if (*g->at == '.') {
        struct st_range none[1];
        g->at++;
        return add_class(g, none, 0, true);
    }
    if (n == 0 || is_definition(g->at)) return 0;
    uint32_t rule = find_rule(g, g->at, n);
    g->at += n;
    return add_node(g, (struct st_grammar_node){.kind = ST_GRAMMAR_RULE, .from = rule});
}

static uint32_t read_count(struct st_grammar *g, uint32_t otherwise) {
    char *end;
    if (*g->at < '0' || *g->at > '9') return otherwise;
    unsigned long count = strtoul(g->at, &end, 10);
    g->at = end;
    if (count > REPEAT_MAX) return fail(g, STINT_E_LIMIT, "a repetition is above 1000");
    return (uint32_t)count;
}

// The operators behind an item; `max` 0 is endless, so that {0} and {0,0} are refused.
static uint32_t read_repeats(struct st_grammar *g, uint32_t item) {
    for (; *g->at && strchr("*+?{", *g->at) && g->status == STINT_OK; skip_space(g)) {
        struct st_grammar_node node = {.kind = ST_GRAMMAR_REPEAT, .first = item};
        char c = *g->at++;
        node.min = c == '+';
        node.max = c == '?';
        if (c == '{') {
            node.min = read_count(g, 0);
            node.max = node.min;
            if (*g->at == ',') {
                g->at++;
                node.max = read_count(g, 0);
            }
            if (*g->at != '}') return fail(g, STINT_E_ARG, "'}' is missing");
            if (g->at[-1] != ',' && (node.max == 0 || node.max < node.min))
                return fail(g, STINT_E_ARG, "a repetition is backwards, or none");
            g->at++;
        }
        item = add_node(g, node);
    }
    return item;
}

static uint32_t read_sequence(struct st_grammar *g) {
    uint32_t list = add_node(g, (struct st_grammar_node){.kind = ST_GRAMMAR_SEQUENCE}), last = 0;
    for (skip_space(g); g->status == STINT_OK; skip_space(g)) {
        uint32_t item = read_item(g);
        if (!item) break;
        skip_space(g);
        item = read_repeats(g, item);
        if (g->status != STINT_OK) break;
        if (last)
            g->nodes[last].next = item;
        else
            g->nodes[list].first = item;
        last = item;
    }
    return list;
}

static uint32_t read_choice(struct st_grammar *g) {
    uint32_t list = add_node(g, (struct st_grammar_node){.kind = ST_GRAMMAR_CHOICE}), last = 0;
    for (;; g->at++) {
        uint32_t item = read_sequence(g);
        if (g->status != STINT_OK) return 0;
        if (last)
            g->nodes[last].next = item;
        else
            g->nodes[list].first = item;
        last = item;
        if (*g->at != '|') return list;
    }
}

void st_grammar_read(struct st_grammar *g) {
    add_node(g, (struct st_grammar_node){.kind = ST_GRAMMAR_SEQUENCE});
    find_rule(g, "root", 4);
    for (skip_space(g); *g->at && g->status == STINT_OK; skip_space(g)) {
        size_t n = name_length(g->at);
        if (!is_definition(g->at)) {
            fail(g, STINT_E_ARG, "this is no rule and no part of one");
            return;
        }
        uint32_t rule = find_rule(g, g->at, n);
        if (g->status == STINT_OK && g->rules[rule].body)
            fail(g, STINT_E_ARG, "the rule is defined twice");
        g->at = strstr(g->at + n, "::=") + 3;
        uint32_t body = read_choice(g);
        if (g->status == STINT_OK) g->rules[rule].body = body;
    }
}
