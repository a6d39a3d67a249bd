// SPDX-License-Identifier: Apache-2.0
#include "constraint/schema_regex.h"

#include "base/buffer.h"
#include "base/size.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum {
    PATTERN_BYTES = 1024,
    GROUPS_MAX = 32, // nested
    REPEATS_MAX = 1000,
    LAST_CHAR = 0x10ffff,
};

struct pattern {
    struct st_schema *s;
    const struct st_place *place;
    struct st_regex_tree *tree;
    const char *text;
    size_t n, at, depth;
};

static bool ok(const struct pattern *p) {
    return p->s->code.status == STINT_OK;
}

static void stumble(struct pattern *p, stint_status status, const char *what) {
    st_schema_fail(p->s, status, p->place, "'pattern': at %zu: %s", p->at, what);
}

static size_t add_node(struct pattern *p, struct st_regex_node node) {
    if (ok(p))
        p->s->code.status = st_grow((void **)&p->tree->nodes, &p->tree->node_capacity,
                                    p->tree->n_nodes, 1, sizeof *p->tree->nodes);
    if (!ok(p)) return 0;
    p->tree->nodes[p->tree->n_nodes] = node;
    return p->tree->n_nodes++;
}

static void add_range(struct pattern *p, uint32_t low, uint32_t high) {
    if (ok(p))
        p->s->code.status = st_grow((void **)&p->tree->ranges, &p->tree->range_capacity,
                                    p->tree->n_ranges, 1, sizeof *p->tree->ranges);
    if (ok(p)) p->tree->ranges[p->tree->n_ranges++] = (struct st_range){low, high};
}

static int by_low(const void *a, const void *b) {
    const struct st_range *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

// Sorts the ranges from `first` on and joins them; with `negated` they become their complement.
static void finish_ranges(struct pattern *p, size_t first, bool negated) {
    size_t to = first;
    if (!ok(p)) return;
    if (p->tree->n_ranges > first)
        qsort(p->tree->ranges + first, p->tree->n_ranges - first, sizeof *p->tree->ranges, by_low);
    for (size_t i = first; i < p->tree->n_ranges; i++) {
        struct st_range r = p->tree->ranges[i];
        if (to > first && r.low <= p->tree->ranges[to - 1].high + 1)
            p->tree->ranges[to - 1].high = (uint32_t)st_max(p->tree->ranges[to - 1].high, r.high);
        else
            p->tree->ranges[to++] = r;
    }
    p->tree->n_ranges = to;
    if (!negated) return;
    uint32_t low = 0;
    for (size_t i = first; i < to; i++) {
        struct st_range r = p->tree->ranges[i];
        if (r.low > low) add_range(p, low, r.low - 1);
        low = r.high + 1;
    }
    if (low <= LAST_CHAR) add_range(p, low, LAST_CHAR);
    if (!ok(p)) return;
    memmove(p->tree->ranges + first, p->tree->ranges + to,
            (p->tree->n_ranges - to) * sizeof *p->tree->ranges);
    p->tree->n_ranges -= to - first;
}

static const struct class {
    char letter;
    uint8_t n;
    struct st_range ranges[10];
} classes[] = {
    {'d', 1, {{'0', '9'}}},
    {'w', 4, {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
    {'s',
     10,
     {{0x09, 0x0d},
      {0x20, 0x20},
      {0xa0, 0xa0},
      {0x1680, 0x1680},
      {0x2000, 0x200a},
      {0x2028, 0x2029},
      {0x202f, 0x202f},
      {0x205f, 0x205f},
      {0x3000, 0x3000},
      {0xfeff, 0xfeff}}},
};

// \d, \D and so on; false if `letter` is not such a class.
static bool add_class(struct pattern *p, char letter) {
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (classes[i].letter != (letter | 0x20)) continue;
        size_t first = p->tree->n_ranges;
        for (size_t r = 0; r < classes[i].n; r++)
            add_range(p, classes[i].ranges[r].low, classes[i].ranges[r].high);
        finish_ranges(p, first, letter != classes[i].letter);
        return true;
    }
    return false;
}

static uint32_t read_hex(struct pattern *p, size_t n) {
    uint32_t value = 0;
    for (size_t i = 0; i < n; i++, p->at++) {
        char c = p->at < p->n ? p->text[p->at] : 0;
        if (!((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'))) {
            stumble(p, STINT_E_ARG, "a hexadecimal digit is missing");
            return 0;
        }
        value = value << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value;
}

// A single character after a backslash.
static uint32_t read_escape(struct pattern *p) {
    static const char letters[] = "nrtfv0", controls[] = "\n\r\t\f\v";
    char c = p->at < p->n ? p->text[p->at] : 0;
    const char *found = c ? strchr(letters, c) : NULL;
    p->at++;
    if (found) return (unsigned char)controls[found - letters];
    if (c == 'x') return read_hex(p, 2);
    if (c == 'u') {
        uint32_t value = read_hex(p, 4);
        if (value < 0xd800 || value > 0xdfff) return value;
        stumble(p, STINT_E_UNSUPPORTED, "half of a surrogate pair");
    } else if (!c || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) {
        stumble(p, c ? STINT_E_UNSUPPORTED : STINT_E_ARG, "this escape is not supported");
    }
    return (unsigned char)c;
}

static uint32_t read_char(struct pattern *p) {
    size_t n = p->at < p->n ? st_utf8_length(p->text + p->at, p->n - p->at) : 0;
    if (n == 0) {
        stumble(p, STINT_E_ARG, "it ends too early");
        return 0;
    }
    if (p->text[p->at] == '\\') {
        p->at++;
        return read_escape(p);
    }
    p->at += n;
    return st_utf8_decode(p->text + p->at - n, n);
}

// True if the class was one of \d \w \s.
static bool read_class_escape(struct pattern *p) {
    if (p->at + 1 >= p->n || p->text[p->at] != '\\' || !add_class(p, p->text[p->at + 1]))
        return false;
    p->at += 2;
    return true;
}

static uint32_t read_class_char(struct pattern *p) {
    if (p->at + 1 < p->n && p->text[p->at] == '\\' && p->text[p->at + 1] == 'b') {
        p->at += 2;
        return '\b';
    }
    if (p->at + 1 < p->n && p->text[p->at] == '\\' && p->text[p->at + 1] == '-') p->at++;
    return read_char(p);
}

// The rest of a class, after the bracket.
static void read_set(struct pattern *p) {
    size_t first = p->tree->n_ranges;
    bool negated = p->at < p->n && p->text[p->at] == '^';
    p->at += negated;
    while (ok(p) && p->at < p->n && p->text[p->at] != ']') {
        if (read_class_escape(p)) continue;
        uint32_t low = read_class_char(p), high = low;
        if (p->at + 1 < p->n && p->text[p->at] == '-' && p->text[p->at + 1] != ']') {
            p->at++;
            high = read_class_char(p);
        }
        if (low > high) stumble(p, STINT_E_ARG, "a range runs backwards");
        add_range(p, low, high);
    }
    if (p->at++ >= p->n) stumble(p, STINT_E_ARG, "']' is missing");
    finish_ranges(p, first, negated);
}

static size_t read_either(struct pattern *p);

static size_t read_group(struct pattern *p) {
    if (p->depth >= GROUPS_MAX) stumble(p, STINT_E_LIMIT, "too many nested groups");
    if (p->at < p->n && p->text[p->at] == '?') {
        if (p->at + 1 >= p->n || p->text[p->at + 1] != ':')
            stumble(p, STINT_E_UNSUPPORTED, "only (...) and (?:...) are supported");
        p->at += 2;
    }
    if (!ok(p)) return 0;
    p->depth++;
    size_t node = read_either(p);
    p->depth--;
    if (p->at >= p->n || p->text[p->at] != ')') stumble(p, STINT_E_ARG, "')' is missing");
    p->at++;
    return node;
}

static size_t read_atom(struct pattern *p) {
    size_t first = p->tree->n_ranges;
    char c = p->text[p->at];
    if (strchr("*+?{}])^$", c)) {
        stumble(p, strchr("*+?)", c) ? STINT_E_ARG : STINT_E_UNSUPPORTED,
                "this character is not supported here");
        return 0;
    }
    if (c == '(') {
        p->at++;
        return read_group(p);
    }
    if (c == '[') {
        p->at++;
        read_set(p);
    } else if (c == '.') {
        p->at++;
        add_range(p, '\n', '\n');
        add_range(p, '\r', '\r');
        add_range(p, 0x2028, 0x2029);
        finish_ranges(p, first, true);
    } else if (!read_class_escape(p)) {
        uint32_t one = read_char(p);
        add_range(p, one, one);
    }
    return add_node(p, (struct st_regex_node){
                           .kind = ST_REGEX_CHARS, .a = first, .b = p->tree->n_ranges - first});
}

static uint32_t read_number(struct pattern *p) {
    uint32_t number = 0;
    size_t first = p->at;
    while (p->at < p->n && p->text[p->at] >= '0' && p->text[p->at] <= '9' && number <= REPEATS_MAX)
        number = number * 10 + (uint32_t)(p->text[p->at++] - '0');
    if (number > REPEATS_MAX) stumble(p, STINT_E_LIMIT, "more than 1000 repetitions");
    if (p->at == first) stumble(p, STINT_E_UNSUPPORTED, "'{' without a number");
    return number;
}

// False if there is no repetition.
static bool read_repeat(struct pattern *p, uint32_t *min, uint32_t *max) {
    char c = p->at < p->n ? p->text[p->at] : 0;
    if (!c || !strchr("*+?{", c)) return false;
    p->at++;
    *min = c == '+';
    *max = c == '?' ? 1 : ST_ENDLESS;
    if (c == '{') {
        *min = *max = read_number(p);
        if (p->at < p->n && p->text[p->at] == ',') {
            p->at++;
            bool open = p->at < p->n && p->text[p->at] == '}';
            *max = open ? ST_ENDLESS : read_number(p);
        }
        if (p->at >= p->n || p->text[p->at++] != '}') stumble(p, STINT_E_ARG, "'}' is missing");
        if (*min > *max) stumble(p, STINT_E_ARG, "a repetition runs backwards");
    }
    if (p->at < p->n && p->text[p->at] == '?') p->at++; // a lazy repetition matches the same texts
    return true;
}

static size_t any_text(struct pattern *p) {
    size_t first = p->tree->n_ranges;
    add_range(p, 0, LAST_CHAR);
    size_t any = add_node(p, (struct st_regex_node){.kind = ST_REGEX_CHARS, .a = first, .b = 1});
    return add_node(p,
                    (struct st_regex_node){.kind = ST_REGEX_REPEAT, .a = any, .max = ST_ENDLESS});
}

// One alternative. At the top level its ends may be anchored; an end that is not allows any text
// beside it.
static size_t read_sequence(struct pattern *p) {
    bool top = p->depth == 0, anchored = top && p->at < p->n && p->text[p->at] == '^';
    bool ended = false;
    p->at += anchored;
    size_t all = top && !anchored ? any_text(p)
                                  : add_node(p, (struct st_regex_node){.kind = ST_REGEX_EMPTY});
    while (ok(p) && !ended && p->at < p->n && p->text[p->at] != '|' && p->text[p->at] != ')') {
        uint32_t min, max;
        bool last = p->at + 1 == p->n || p->text[p->at + 1] == '|';
        if (top && last && p->text[p->at] == '$') {
            ended = true;
            p->at++;
            break;
        }
        size_t one = read_atom(p);
        if (ok(p) && read_repeat(p, &min, &max))
            one = add_node(p, (struct st_regex_node){
                                  .kind = ST_REGEX_REPEAT, .a = one, .min = min, .max = max});
        all = add_node(p, (struct st_regex_node){.kind = ST_REGEX_BOTH, .a = all, .b = one});
    }
    if (top && !ended)
        all =
            add_node(p, (struct st_regex_node){.kind = ST_REGEX_BOTH, .a = all, .b = any_text(p)});
    return all;
}

static size_t read_either(struct pattern *p) {
    size_t all = read_sequence(p);
    while (ok(p) && p->at < p->n && p->text[p->at] == '|') {
        p->at++;
        size_t other = read_sequence(p);
        all = add_node(p, (struct st_regex_node){.kind = ST_REGEX_EITHER, .a = all, .b = other});
    }
    return all;
}

void st_regex_read(struct st_schema *s, const char *text, const struct st_place *at,
                   struct st_regex_tree *tree) {
    struct pattern p = {.s = s, .place = at, .tree = tree, .text = text, .n = strlen(text)};
    if (p.n > PATTERN_BYTES) stumble(&p, STINT_E_LIMIT, "more than 1024 bytes");
    if (ok(&p)) tree->root = read_either(&p);
    if (ok(&p) && p.at < p.n) stumble(&p, STINT_E_ARG, "')' without '('");
}

void st_regex_free(struct st_regex_tree *tree) {
    free(tree->nodes);
    free(tree->ranges);
}
