// SPDX-License-Identifier: Apache-2.0
// Random patterns of two letters allow the texts that PCRE2 finds them in, of the lengths allowed.
#include "constraint/constraint.h"
#include "support/support.h"
#include "tokenizer/regex.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { PATTERN_MAX = 400, LONGEST = 6 };

static void add(char *pattern, const char *text) {
    strncat(pattern, text, PATTERN_MAX - strlen(pattern) - 1);
}

static void add_random(char *pattern, int depth) {
    static const char *const atoms[] = {"a", "b", ".", "[ab]", "[^a]", "\\\\w", "aa", "ab"};
    static const char *const repeats[] = {"", "", "", "*", "+", "?", "{2}", "{1,2}", "{2,}", "*?"};
    for (size_t i = 0, n = ts_random_below(4); i < n; i++) {
        if (depth && ts_random_below(3) == 0) {
            add(pattern, ts_random_below(2) ? "(" : "(?:");
            add_random(pattern, depth - 1);
            if (ts_random_below(2)) {
                add(pattern, "|");
                add_random(pattern, depth - 1);
            }
            add(pattern, ")");
        } else {
            const char *atom = atoms[ts_random_below(8)];
            add(pattern, atom);
        }
        add(pattern, repeats[ts_random_below(10)]);
    }
}

static bool accepts(const struct st_constraint *c, const char *text) {
    struct st_constraint_state *s = NULL;
    assert_int_equal(st_constraint_begin(c, &s), STINT_OK);
    bool ok = st_constraint_push(s, text, strlen(text)) && st_constraint_complete(s);
    st_constraint_end(s);
    return ok;
}

// The pattern for text with a mark behind it: the ends that it leaves open take letters.
static struct st_regex *open_regex(const char *pattern, bool begins, bool ends) {
    char marked[2 * PATTERN_MAX];
    struct st_regex *regex = NULL;
    snprintf(marked, sizeof marked, "^%s%.*s%s!", begins ? "" : "[ab]*",
             (int)(strlen(pattern) - begins - ends), pattern + begins, ends ? "" : "[ab]*");
    assert_int_equal(st_regex_open(marked, strlen(marked), &regex), STINT_OK);
    return regex;
}

// False where PCRE2, which tries one way after the other, gives up.
static bool find(const struct st_regex *regex, const char *text, size_t n, bool *found) {
    char marked[LONGEST + 1];
    size_t start, end;
    memcpy(marked, text, n);
    marked[n] = '!';
    if (st_regex_find(regex, marked, n + 1, 0, &start, &end) != STINT_OK) return false;
    *found = start == 0;
    return true;
}

// All texts of the letters a and b up to a length.
static void compare(const char *schema, const struct st_constraint *c, const struct st_regex *regex,
                    size_t min, size_t max) {
    for (unsigned bits = 1; bits < 2u << LONGEST; bits++) { // the highest bit is the length
        char text[LONGEST + 3] = "\"";
        size_t n = 31 - (size_t)__builtin_clz(bits);
        for (size_t i = 0; i < n; i++) text[1 + i] = bits >> i & 1 ? 'b' : 'a';
        text[1 + n] = '"';
        bool found;
        if (!find(regex, text + 1, n, &found)) return;
        found = found && n >= min && n <= max;
        if ((c && accepts(c, text)) != found) fail_msg("%s: %s", schema, text);
    }
}

static void patterns_are_found(void **state) {
    (void)state;
    for (int round = 0; round < 300; round++) {
        char body[PATTERN_MAX] = "", schema[2 * PATTERN_MAX];
        bool begins = ts_random_below(2), ends = ts_random_below(2), bounded = ts_random_below(2);
        size_t min = bounded ? ts_random_below(4) : 0;
        size_t max = bounded ? min + ts_random_below(4) : SIZE_MAX;
        add_random(body, 2);
        int n = snprintf(schema, sizeof schema, "{\"type\":\"string\",\"pattern\":\"%s(%s)%s\"",
                         begins ? "^" : "", body, ends ? "$" : "");
        snprintf(schema + n, sizeof schema - (size_t)n,
                 bounded ? ",\"minLength\":%zu,\"maxLength\":%zu}" : "}", min, max);
        json_t *json = json_loads(schema, 0, NULL);
        struct st_constraint *c = NULL;
        assert_non_null(json);
        if (st_constraint_schema(json, &c) != STINT_OK && !strstr(st_error_text(), "no JSON text"))
            fail_msg("%s: %s", schema, st_error_text());
        const char *pattern = json_string_value(json_object_get(json, "pattern"));
        struct st_regex *regex = open_regex(pattern, begins, ends);
        compare(schema, c, regex, min, max);
        st_regex_close(regex);
        st_constraint_free(c);
        json_decref(json);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(patterns_are_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
