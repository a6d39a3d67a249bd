// SPDX-License-Identifier: Apache-2.0
// Characters and strings as bytes. A range of characters becomes sequences of byte ranges. Two
// sequences of disjoint ranges begin with equal or with disjoint byte ranges, so they merge into a
// tree.
#include "constraint/code.h"

#include "base/buffer.h"
#include "base/size.h"

#include <stdlib.h>
#include <string.h>

struct sequence {
    uint8_t n, low[4], high[4];
};

struct sequences {
    struct sequence *data;
    size_t n, capacity;
};

uint8_t st_code_encode(uint32_t c, uint8_t out[4]) {
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    uint8_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--) {
        out[i] = (uint8_t)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    out[0] = (uint8_t)(lead[n] | c);
    return n;
}

// The last character of the longest range from `low` that one sequence of byte ranges covers.
static uint32_t sequence_end(uint32_t low, uint32_t high) {
    static const uint32_t last[] = {0, 0x7f, 0x7ff, 0xffff, 0x10ffff};
    uint8_t bytes[4];
    uint8_t n = st_code_encode(low, bytes);
    if (high > last[n]) high = last[n];
    for (int level = n - 1; level > 0;
         level--) { // characters that differ only in the last `level` bytes
        uint32_t size = 1u << 6 * level;
        if (low % size != 0 || low + (size - 1) > high) continue;
        uint32_t end = level == n - 1 ? high : (uint32_t)st_min(high, low | (size * 64 - 1));
        return low + (end - low + 1) / size * size - 1;
    }
    return (uint32_t)st_min(high, n == 1 ? high : low | 0x3f);
}

static stint_status split_runs(const struct st_range *ranges, size_t n, struct sequences *out) {
    for (size_t i = 0; i < n; i++) {
        for (uint32_t low = ranges[i].low; low <= ranges[i].high;) {
            uint32_t end = sequence_end(low, ranges[i].high);
            ST_TRY(st_grow((void **)&out->data, &out->capacity, out->n, 1, sizeof *out->data));
            struct sequence *s = &out->data[out->n++];
            s->n = st_code_encode(low, s->low);
            st_code_encode(end, s->high);
            low = end + 1;
        }
    }
    return STINT_OK;
}

static uint32_t write_sequences(struct st_code *code, const struct sequence *s, size_t n,
                                uint8_t at, uint32_t next);

static size_t sequence_edges(struct st_code *code, const struct sequence *s, size_t n, uint8_t at,
                             uint32_t next, struct st_edge *edges) {
    size_t n_edges = 0;
    for (size_t i = 0; i < n && code->status == STINT_OK;) {
        size_t first = i;
        uint8_t low = s[i].low[at], high = s[i].high[at];
        while (i < n && s[i].low[at] == low) i++;
        uint32_t to = at + 1 == s[first].n
                          ? next
                          : write_sequences(code, s + first, i - first, (uint8_t)(at + 1), next);
        edges[n_edges++] = (struct st_edge){low, high, to};
    }
    return n_edges;
}

static uint32_t write_sequences(struct st_code *code, const struct sequence *s, size_t n,
                                uint8_t at, uint32_t next) {
    struct st_edge edges[256];
    return st_code_edges(code, edges, sequence_edges(code, s, n, at, next, edges));
}

uint32_t st_code_chars(struct st_code *code, const struct st_range *ranges, size_t n,
                       uint32_t next) {
    struct sequences found = {0};
    uint32_t place = 0;
    if (!next || code->status != STINT_OK) return 0;
    code->status = split_runs(ranges, n, &found);
    if (code->status == STINT_OK) place = write_sequences(code, found.data, found.n, 0, next);
    free(found.data);
    return place;
}

static bool contains(const struct st_range *ranges, size_t n, uint32_t c) {
    for (size_t i = 0; i < n; i++)
        if (c >= ranges[i].low && c <= ranges[i].high) return true;
    return false;
}

// Writes escapes for those of the characters that a string cannot contain: a short one such as \n
// where it exists, else \u001f.
static uint32_t write_escapes(struct st_code *code, const struct st_range *ranges, size_t n,
                              uint32_t next) {
    static const char special[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    static const char digits[] = "0123456789abcdef";
    char texts[40][6];
    struct st_literal literals[40];
    size_t n_literals = 0;
    for (uint32_t c = 1; c <= '\\'; c++) {
        const char *short_form = strchr(special, (int)c);
        if (!contains(ranges, n, c) || (c >= 0x20 && !short_form)) continue;
        char *text = texts[n_literals];
        memcpy(text, "\\u00", 4);
        text[4] = digits[c >> 4];
        text[5] = digits[c & 15];
        if (short_form) text[1] = letters[short_form - special];
        literals[n_literals++] = (struct st_literal){text, short_form ? 2 : 6, next};
    }
    return st_code_literals(code, literals, n_literals);
}

uint32_t st_code_string_chars(struct st_code *code, const struct st_range *ranges, size_t n,
                              uint32_t next) {
    static const struct st_range plain[] = {
        {0x20, 0x21}, {0x23, 0x5b}, {0x5d, 0xd7ff}, {0xe000, 0x10ffff}};
    size_t n_both = 0, i = 0, p = 0;
    if (!next || code->status != STINT_OK) return 0;
    struct st_range *both = calloc(n + 4, sizeof *both);
    if (!both) {
        code->status = st_fail(STINT_E_NOMEM, "no memory for a constraint");
        return 0;
    }
    while (i < n && p < 4) { // the intersection; each step ends one of the two ranges
        uint32_t low = (uint32_t)st_max(ranges[i].low, plain[p].low);
        uint32_t high = (uint32_t)st_min(ranges[i].high, plain[p].high);
        if (low <= high) both[n_both++] = (struct st_range){low, high};
        if (ranges[i].high < plain[p].high)
            i++;
        else
            p++;
    }
    uint32_t escaped = write_escapes(code, ranges, n, next);
    uint32_t place = st_code_split(code, st_code_chars(code, both, n_both, next), escaped);
    free(both);
    return place;
}

static uint32_t hex(struct st_code *code, uint32_t next) {
    struct st_edge edges[] = {{'0', '9', next}, {'A', 'F', next}, {'a', 'f', next}};
    return st_code_edges(code, edges, 3);
}

// After \u: four digits, not all zero. A high surrogate must be followed by a low one.
static uint32_t write_unit(struct st_code *code, uint32_t next) {
    uint32_t one = hex(code, next), two = hex(code, one), three = hex(code, two);
    struct st_edge low[] = {{'C', 'F', two}, {'c', 'f', two}};
    struct st_edge surrogate[] = {{'D', 'D', st_code_edges(code, low, 2)}, {'d', 'd', 0}};
    surrogate[1].next = surrogate[0].next;
    uint32_t pair =
        hex(code, hex(code, st_code_text(code, "\\u", 2, st_code_edges(code, surrogate, 2))));
    struct st_edge after_d[] = {
        {'0', '7', two}, {'8', '9', pair}, {'A', 'B', pair}, {'a', 'b', pair}};
    uint32_t d = st_code_edges(code, after_d, 4);
    struct st_edge last[] = {{'1', '9', next}, {'A', 'F', next}, {'a', 'f', next}};
    struct st_edge third[] = {{'0', '0', st_code_edges(code, last, 3)},
                              {'1', '9', one},
                              {'A', 'F', one},
                              {'a', 'f', one}};
    struct st_edge second[] = {{'0', '0', st_code_edges(code, third, 4)},
                               {'1', '9', two},
                               {'A', 'F', two},
                               {'a', 'f', two}};
    struct st_edge first[] = {{'0', '0', st_code_edges(code, second, 4)},
                              {'1', '9', three},
                              {'A', 'C', three},
                              {'D', 'D', d},
                              {'E', 'F', three},
                              {'a', 'c', three},
                              {'d', 'd', d},
                              {'e', 'f', three}};
    return st_code_edges(code, first, 8);
}

static uint32_t write_any_escape(struct st_code *code, uint32_t next) {
    struct st_edge edges[] = {
        {'"', '"', next}, {'/', '/', next}, {'\\', '\\', next},
        {'b', 'b', next}, {'f', 'f', next}, {'n', 'n', next},
        {'r', 'r', next}, {'t', 't', next}, {'u', 'u', write_unit(code, next)}};
    return st_code_edges(code, edges, 9);
}

uint32_t st_code_string_tail(struct st_code *code, uint32_t min, uint32_t max, uint32_t next) {
    // Ordered by frequency: ASCII comes first.
    static const struct st_range plain[] = {
        {0x23, 0x5b}, {0x5d, 0x7f}, {0x20, 0x21}, {0x80, 0xd7ff}, {0xe000, 0x10ffff}};
    struct st_edge edges[256];
    struct sequences found = {0};
    if (!next || min > max || code->status != STINT_OK) return 0;
    uint32_t tail =
        st_code_instr(code, (struct st_instr){.op = ST_OP_STRING, .min = min, .max = max});
    code->status = split_runs(plain, 5, &found);
    edges[0] = (struct st_edge){'"', '"', next};
    size_t n = 1 + sequence_edges(code, found.data, found.n, 0, tail, edges + 1);
    free(found.data);
    edges[n++] = (struct st_edge){'\\', '\\', write_any_escape(code, tail)};
    uint32_t place = st_code_edges(code, edges, n);
    if (code->status != STINT_OK) return 0;
    code->out->code[tail].a =
        code->out->code[place].a; // takes over its edges; all of them are written
    code->out->code[tail].b = code->out->code[place].b;
    return tail;
}
