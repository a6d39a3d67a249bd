// SPDX-License-Identifier: Apache-2.0
#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokenizer/regex.h"

#include "base/buffer.h"

#include <pcre2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// PCRE2 does not tell what a match took, but gives up at a limit. So a match is tried with low
// limits first and charged with those that it exceeds.
enum { N_LIMITS = 6, FIRST_LIMIT = 64, LIMIT_FACTOR = 16, MATCH_COST = 16 };
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION // an input must not take a second
enum { EFFORT_BASE = 2000, EFFORT_PER_BYTE = 20, EFFORT_ALONE = 10000 };
#else
enum { EFFORT_BASE = 100000, EFFORT_PER_BYTE = 200, EFFORT_ALONE = 10000000 };
#endif

struct st_regex {
    pcre2_code *code;
    pcre2_match_context *contexts[N_LIMITS]; // one for each limit
};

// Classes that PCRE2 means differently from Oniguruma, spelled out: \s there is White_Space
// (PCRE2's has U+180E too), \w has marks and all letters, \h is a hexadecimal digit.
static const struct class {
    char letter, negated;
    const char *inside;
} classes[] = {
    {'s', 'S', "\\t-\\r\\x{85}\\p{Z}"},
    {'w', 'W', "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"},
    {'h', 'H', "0-9A-Fa-f"},
};

// Translates an escape of two characters. A negated one inside a class stays as it is.
static stint_status translate_escape(const char *escape, bool in_class, struct st_bytes *out) {
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        bool negated = escape[1] == classes[i].negated;
        if ((!negated && escape[1] != classes[i].letter) || (negated && in_class)) continue;
        if (!in_class) ST_TRY(st_bytes_append(out, negated ? "[^" : "[", negated ? 2 : 1));
        ST_TRY(st_bytes_append(out, classes[i].inside, strlen(classes[i].inside)));
        return in_class ? STINT_OK : st_bytes_append(out, "]", 1);
    }
    return st_bytes_append(out, escape, 2);
}

// *begins_lines: the pattern has ^.
static stint_status translate(const char *pattern, size_t n, struct st_bytes *out,
                              bool *begins_lines) {
    bool in_class = false;
    ST_TRY(st_bytes_append(out, "(*LF)", 5)); // $ and . treat only LF as the end of a line
    for (size_t i = 0; i < n;) {
        size_t length = 1;
        if (pattern[i] == '\\' && i + 1 < n) {
            ST_TRY(translate_escape(pattern + i, in_class, out));
            i += 2;
            continue;
        }
        if (in_class && pattern[i] == '[') { // [:alpha:]
            const char *end = memmem(pattern + i, n - i, ":]", 2);
            if (end && i + 1 < n && pattern[i + 1] == ':') length = (size_t)(end - pattern) + 2 - i;
        } else if (pattern[i] == '[') {
            in_class = true;
            if (i + length < n && pattern[i + length] == '^') length++;
            if (i + length < n && pattern[i + length] == ']') length++;
        } else if (pattern[i] == ']') {
            in_class = false;
        } else if (pattern[i] == '^' && !in_class) {
            *begins_lines = true;
        }
        ST_TRY(st_bytes_append(out, pattern + i, length));
        i += length;
    }
    return STINT_OK;
}

static stint_status compile(const struct st_bytes *pattern, bool begins_lines,
                            struct st_regex *regex) {
    int error;
    PCRE2_SIZE offset;
    // The JIT code of PCRE2 10.42 looks for starts of lines in a way that misses matches.
    uint32_t search = begins_lines ? PCRE2_NO_START_OPTIMIZE : 0;
    regex->code =
        pcre2_compile((PCRE2_SPTR)pattern->data, pattern->count,
                      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | search,
                      &error, &offset, NULL);
    if (!regex->code) {
        char text[128] = "";
        pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof text);
        return st_fail(STINT_E_UNSUPPORTED, "regular expression '%.*s': at %zu: %s",
                       (int)(pattern->count < 200 ? pattern->count : 200), pattern->data,
                       (size_t)offset, text);
    }
    pcre2_jit_compile(regex->code,
                      PCRE2_JIT_COMPLETE); // matching falls back to the interpreter if this fails
    uint32_t limit = FIRST_LIMIT;
    for (int i = 0; i < N_LIMITS; i++, limit *= LIMIT_FACTOR) {
        regex->contexts[i] = pcre2_match_context_create(NULL);
        if (!regex->contexts[i])
            return st_fail(STINT_E_NOMEM, "no memory for a regular expression");
        pcre2_set_match_limit(regex->contexts[i], limit);
        pcre2_set_heap_limit(regex->contexts[i], 65536); // KiB
    }
    return STINT_OK;
}

stint_status st_regex_open(const char *pattern, size_t n, struct st_regex **regex) {
    struct st_bytes translated = {0};
    struct st_regex *r = calloc(1, sizeof *r);
    if (!r) return st_fail(STINT_E_NOMEM, "no memory for a regular expression");
    bool begins_lines = false;
    stint_status status = translate(pattern, n, &translated, &begins_lines);
    if (status == STINT_OK) status = compile(&translated, begins_lines, r);
    st_bytes_free(&translated);
    if (status != STINT_OK) {
        st_regex_close(r);
        return status;
    }
    *regex = r;
    return STINT_OK;
}

void st_regex_close(struct st_regex *regex) {
    if (!regex) return;
    for (int i = 0; i < N_LIMITS; i++) pcre2_match_context_free(regex->contexts[i]);
    pcre2_code_free(regex->code);
    free(regex);
}

struct st_effort st_effort_of(size_t n_bytes) {
    return (struct st_effort){EFFORT_BASE + (uint64_t)EFFORT_PER_BYTE * n_bytes};
}

static bool take(struct st_effort *effort, uint64_t n) {
    if (effort->left < n) return false;
    effort->left -= n;
    return true;
}

static int match(const struct st_regex *regex, PCRE2_SPTR subject, size_t n, size_t from,
                 struct st_effort *effort, pcre2_match_data *data) {
    int rc = PCRE2_ERROR_MATCHLIMIT;
    uint32_t limit = FIRST_LIMIT;
    for (int i = 0; i < N_LIMITS && rc == PCRE2_ERROR_MATCHLIMIT; i++, limit *= LIMIT_FACTOR) {
        if (!take(effort, i == 0 ? MATCH_COST : limit)) break;
        rc = pcre2_match(regex->code, subject, n, from, PCRE2_NO_UTF_CHECK, data,
                         regex->contexts[i]);
        if (rc == PCRE2_ERROR_JIT_STACKLIMIT) // the interpreter keeps its state on the heap
            rc = pcre2_match(regex->code, subject, n, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data,
                             regex->contexts[i]);
    }
    return rc;
}

stint_status st_regex_find(const struct st_regex *regex, const char *text, size_t n, size_t from,
                           size_t *start, size_t *end) {
    struct st_effort effort = {EFFORT_ALONE};
    return st_regex_find_next(regex, text, n, from, &effort, start, end);
}

stint_status st_regex_find_next(const struct st_regex *regex, const char *text, size_t n,
                                size_t from, struct st_effort *effort, size_t *start, size_t *end) {
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    if (!data) return st_fail(STINT_E_NOMEM, "no memory to match a regular expression");
    // PCRE2's JIT code may read anywhere if it begins within a character.
    while (from < n && ((unsigned char)text[from] & 0xc0) == 0x80) from++;
    int rc = match(regex, (PCRE2_SPTR)(n ? text : ""), n, from, effort, data);
    const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(data);
    size_t first = rc >= 0 ? offsets[0] : n, last = rc >= 0 ? offsets[1] : n;
    pcre2_match_data_free(data);
    if (rc >= 0 && (first < from || first > last || last > n))
        return st_fail(STINT_E_FORMAT,
                       "a regular expression of the tokenizer uses \\K in a lookaround: its match "
                       "is [%zu, %zu), searched from %zu",
                       first, last, from);
    if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH) {
        *start = first;
        *end = last;
        return STINT_OK;
    }
    return st_fail(STINT_E_LIMIT,
                   "a regular expression of the tokenizer gives up on this text (PCRE2 error %d)",
                   rc);
}
