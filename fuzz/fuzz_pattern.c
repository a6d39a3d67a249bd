// SPDX-License-Identifier: Apache-2.0
// A tokenizer's pattern up to the first NUL, then one byte for what is done with a match, the rest
// text: matches lie in order within the text, and pieces are the text cut, whatever the pattern. A
// pattern whose first byte is 1 is written in the parts of patterns, one a byte, so that it
// compiles.
#include "tokenizer/pretokenize.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PATTERN_MAX = 400, TEXT_MAX = 2000 };

static void find_all(const struct st_regex *regex, const char *text, size_t n) {
    struct st_effort effort = st_effort_of(n);
    for (size_t from = 0, start, end; from <= n; from = end > from ? end : from + 1) {
        if (st_regex_find_next(regex, text, n, from, &effort, &start, &end) != STINT_OK) return;
        if (start == n) return;
        if (start < from || end < start || end > n) abort();
    }
}

static void split(struct st_regex *regex, const char *text, size_t n, uint8_t how) {
    const struct st_pretokenizer step = {.kind = ST_PRETOKENIZE_SPLIT,
                                         .regex = regex,
                                         .behavior = (enum st_split)(how % 5),
                                         .invert = how / 5 % 2};
    struct st_bytes taken = {0};
    struct st_pieces pieces = {0};
    if (st_bytes_append(&taken, text, n) != STINT_OK) abort();
    if (st_pretokenize(&step, 1, true, &taken, &pieces) == STINT_OK) {
        size_t at = 0;
        for (size_t i = 0; i < pieces.count; i++) {
            struct st_span span = pieces.spans[i];
            if (span.start < at || span.end < span.start || span.end > n) abort();
            if (step.behavior != ST_SPLIT_REMOVED && span.start != at) abort(); // a gap
            at = span.end;
        }
        if (step.behavior != ST_SPLIT_REMOVED && at != n) abort();
    }
    st_pieces_free(&pieces);
    st_bytes_free(&taken);
}

// Text of the fuzzer's letters, but UTF-8, which is what the tokenizer hands over.
static size_t make_text(const uint8_t *data, size_t size, char text[TEXT_MAX]) {
    size_t n = 0;
    for (size_t i = 0; i < size && n + 2 <= TEXT_MAX; i++) {
        if (data[i] >= 0x80) text[n++] = (char)(0xc2 + data[i] % 30);
        text[n++] = (char)(data[i] >= 0x80 ? 0x80 + data[i] % 64 : data[i]);
    }
    return n;
}

// Groups that are left open are closed at the end; what would close none is left out.
static size_t write_pattern(const uint8_t *parts, size_t n_parts, char pattern[PATTERN_MAX]) {
    static const char *const atoms[] = {
        "a",      "b",       "\xc3\xa9", "0",          " ",    ".",     "\\s",   "\\S", "\\p{L}",
        "\\p{N}", "[^a\\s]", "[a-c]",    "[\\r\\n]",   "\\w",  "^",     "$",     "\\b", "\\B",
        "\\G",    "\\K",     "|",        "(",          "(?:",  "(?i:",  "(?>",   "(?=", "(?!",
        "(?<=",   "(?<!",    ")",        "(?(DEFINE)", "(?1)", "(?R)",  "\\1",   "*",   "+",
        "?",      "*?",      "+?",       "++",         "{2}",  "{1,3}", "{0,2}+"};
    enum { N_ATOMS = sizeof atoms / sizeof *atoms, LONGEST = 12 };
    size_t n = 0, n_open = 0;
    for (size_t i = 0; i < n_parts && n + n_open + LONGEST < PATTERN_MAX; i++) {
        const char *atom = atoms[parts[i] % N_ATOMS];
        bool opens = atom[0] == '(' && !strchr(atom, ')'), closes = atom[0] == ')';
        opens = opens || strcmp(atom, "(?(DEFINE)") == 0;
        if (closes && n_open == 0) continue;
        n_open = n_open + opens - closes;
        n = (size_t)(stpcpy(pattern + n, atom) - pattern);
    }
    memset(pattern + n, ')', n_open);
    return n + n_open;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *pattern = (const char *)data;
    char text[TEXT_MAX], written[PATTERN_MAX];
    size_t n_pattern = size ? strnlen(pattern, size) : 0, rest = n_pattern + 2, n_own = n_pattern;
    struct st_regex *regex = NULL;
    if (n_pattern > PATTERN_MAX || rest > size) return 0;
    if (data[0] == 1) {
        n_own = write_pattern(data + 1, n_pattern - 1, written);
        pattern = written;
    }
    if (st_regex_open(pattern, n_own, &regex) != STINT_OK) return 0;
    size_t n = make_text(data + rest, size - rest, text);
    find_all(regex, text, n);
    split(regex, text, n, data[n_pattern + 1]);
    st_regex_close(regex);
    return 0;
}
