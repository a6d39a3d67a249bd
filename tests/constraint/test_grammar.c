// SPDX-License-Identifier: Apache-2.0
// Grammars in GBNF: which texts they allow, which grammars are refused, and laws of random walks.
#include "constraint/constraint.h"
#include "constraint/run.h"
#include "support/support.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define JSON                                                                                       \
    "root ::= value\n"                                                                             \
    "value ::= object | array | string | number | \"true\" | \"null\"\n"                           \
    "object ::= \"{\" ws ( string \":\" ws value (\",\" ws string \":\" ws value)* )? \"}\" ws\n"  \
    "array ::= \"[\" ws (value (\",\" ws value)*)? \"]\" ws # a list\n"                            \
    "string ::= \"\\\"\" ([^\"\\\\\\x7F\\x00-\\x1F] | \"\\\\\" [\"\\\\bfnrt])* \"\\\"\" ws\n"      \
    "number ::= \"-\"? [0-9]{1,5} ws\n"                                                            \
    "ws ::= [ \\n]{0,2}"

static const struct {
    const char *grammar;
    const char *texts[12]; // + follows it, ~ is a beginning, - is refused
} cases[] = {
    {"root ::= \"a\" | \"bc\"", {"+a", "+bc", "~b", "~", "-c", "-ab"}},
    {"root ::= [a-c]+ [^x-z\\n]", {"+ab", "+abca!", "~a", "-ax", "-a\n", "-d"}},
    {"root ::= (\"x\" y)* # end\ny ::=\n  \"1\"\n  | \"2\"", {"+", "+x1", "+x1x2", "~x", "-x3"}},
    {"root ::= \"a\"{2} \"b\"{1,3} \"c\"{2,} \"d\"?",
     {"+aabcc", "+aabbbccccd", "~aab", "~aabc", "-aaa", "-aabbbb", "-aabccdd"}},
    {"root ::= \"a\" | []", {"+a", "~", "-b"}}, // a class of no characters; there are no others
    {"root ::= .", {"+a", "+\xc3\xa9", "+\n", "~\xc3", "-ab", "-\xed\xa0"}},
    {"root ::= \"\\u00e9\\x41\\\"\\n\"",
     {"+\xc3\xa9"
      "A\"\n",
      "~\xc3\xa9"
      "A",
      "-e"}},
    {"root ::= [\xc3\xa4-\xc3\xbc\\]\\-]", {"+\xc3\xa9", "+]", "+-", "-a", "-\xc3\xbd"}},
    {"root ::= item+\nitem ::= \"- \" [^\\n]+ \"\\n\"", {"+- a\n", "+- a\n- b\n", "~- a", "-a"}},
    {"root ::= \"(\" root \")\" | \"x\"", {"+x", "+((x))", "~((x)", "-)", "-(x))"}},
    {"root ::= \"a\" root | \"\"",
     {"+", "+aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "-b"}},
    {"root ::= (\"a\"? )* \"b\"", {"+b", "+aaab", "~aa", "-c"}},
    {JSON, {"+{\"a\": [1, -22, null]}", "+\"x\\n\"", "~{\"a\"", "-{a", "-[1,,", "-123456"}},
};

static struct st_constraint *compile(const char *grammar) {
    struct st_constraint *c = NULL;
    if (st_constraint_grammar(grammar, &c) != STINT_OK)
        fail_msg("%s: %s", grammar, st_error_text());
    return c;
}

static void texts_follow_their_grammars(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct st_constraint *c = compile(cases[i].grammar);
        for (const char *const *t = cases[i].texts; *t; t++) {
            struct st_constraint_state *s = NULL;
            assert_int_equal(st_constraint_begin(c, &s), STINT_OK);
            bool part = st_constraint_push(s, *t + 1, strlen(*t + 1));
            char mark = !part ? '-' : st_constraint_complete(s) ? '+' : '~';
            if (mark != **t) fail_msg("%s: %s is %c", cases[i].grammar, *t, mark);
            st_constraint_end(s);
        }
        st_constraint_free(c);
    }
}

static void bad_grammars_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *grammar;
        stint_status status;
        const char *named;
    } bad[] = {
        {"", STINT_E_ARG, "no rule 'root'"},
        {"a ::= \"b\"", STINT_E_ARG, "no rule 'root'"},
        {"root ::= a", STINT_E_ARG, "no rule 'a'"},
        {"root ::= \"a", STINT_E_ARG, "'\"' is missing"},
        {"root ::= [a", STINT_E_ARG, "']' is missing"},
        {"root ::= (\"a\"", STINT_E_ARG, "')' is missing"},
        {"root ::= [z-a]", STINT_E_ARG, "backwards"},
        {"root ::= \"\\q\"", STINT_E_ARG, "escape"},
        {"root ::= \"\\x0g\"", STINT_E_ARG, "hexadecimal"},
        {"root ::= \"\\ud800\"", STINT_E_ARG, "not a character"},
        {"root ::= \"a\"{3,2}", STINT_E_ARG, "backwards"},
        {"root ::= \"a\"{0}", STINT_E_ARG, "none"},
        {"root ::= \"a\"{2", STINT_E_ARG, "'}' is missing"},
        {"root ::= \"a\"{9999}", STINT_E_LIMIT, "1000"},
        {"root ::= \"a\" )", STINT_E_ARG, "no rule and no part"},
        {"root ::= \"a\"\nroot ::= \"b\"", STINT_E_ARG, "twice"},
        {"root ::= root \"a\" | \"b\"", STINT_E_UNSUPPORTED, "begins with itself"},
        {"root ::= a\na ::= \"\"? b \"c\"\nb ::= a", STINT_E_UNSUPPORTED, "begins with itself"},
        {"root ::= \"(\" root \")\"", STINT_E_ARG, "no text"},
        {"root ::= ((\"a\"{1000}){1000}){1000}", STINT_E_LIMIT, "steps"},
        {"root ::= \"\xc3\"", STINT_E_ARG, "UTF-8"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct st_constraint *c = NULL;
        stint_status status = st_constraint_grammar(bad[i].grammar, &c);
        if (status != bad[i].status || c || !strstr(st_error_text(), bad[i].named))
            fail_msg("%s: %d, %s", bad[i].grammar, status, st_error_text());
    }
}

static void deep_grammars_are_refused(void **state) {
    (void)state;
    char text[600] = "root ::= ";
    struct st_constraint *c = NULL;
    memset(text + 9, '(', 500);
    assert_int_equal(st_constraint_grammar(text, &c), STINT_E_LIMIT);
}

// A random walk is never stuck, and ends when it chooses what closes.
static void walks_end(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct st_constraint *c = compile(cases[i].grammar);
        for (int round = 0; round < 20; round++) {
            struct st_constraint_state *s = NULL;
            assert_int_equal(st_constraint_begin(c, &s), STINT_OK);
            for (int step = 0; step < 400; step++) {
                char bytes[256];
                size_t n = 0;
                for (int b = 0; b < 256; b++)
                    if (st_constraint_step(s, 0, s->n_threads, (unsigned char)b, s->n_threads))
                        bytes[n++] = (char)b;
                if (n == 0) break;
                assert_true(st_constraint_push(s, &bytes[ts_random_below(n)], 1));
            }
            bool open = false;
            for (int b = 0; b < 256 && !open; b++)
                open = st_constraint_step(s, 0, s->n_threads, (unsigned char)b, s->n_threads) > 0;
            assert_true(open || st_constraint_complete(s));
            st_constraint_end(s);
        }
        st_constraint_free(c);
    }
}

// A thousand rules, each of which leads to the next within brackets.
static char *write_chain(void) {
    enum { RULES = 999, BRACKETS = 30, LINE = 120 };
    char *text = malloc(RULES * LINE), *at = text;
    assert_non_null(text);
    for (int i = 0; i < RULES; i++) {
        at += snprintf(at, LINE, i ? "r%d::=" : "root::=", i);
        for (int k = 0; k < BRACKETS; k++) *at++ = '(';
        at += snprintf(at, LINE, i + 1 < RULES ? "r%d" : "\"a\"", i + 1);
        for (int k = 0; k < BRACKETS; k++) *at++ = ')';
        *at++ = '\n';
    }
    *at = 0;
    return text;
}

static void *compile_text(void *text) {
    struct st_constraint *c = NULL;
    stint_status status = st_constraint_grammar(text, &c);
    st_constraint_free(c);
    return status == STINT_OK ? text : NULL;
}

// The way from rule to rule takes no stack.
static void long_chains_of_rules_are_checked(void **state) {
    (void)state;
    pthread_attr_t small;
    pthread_t thread;
    void *done = NULL;
    char *text = write_chain();
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, 512 << 10), 0);
    assert_int_equal(pthread_create(&thread, &small, compile_text, text), 0);
    assert_int_equal(pthread_join(thread, &done), 0);
    pthread_attr_destroy(&small);
    assert_ptr_equal(done, text);
    free(text);
}

static void failed_allocations_are_reported(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stint_status status = STINT_E_NOMEM;
        for (size_t n = 1; status != STINT_OK; n++) {
            struct st_constraint *c = NULL;
            ts_fail_allocation(n);
            status = st_constraint_grammar(cases[i].grammar, &c);
            bool failed = ts_allocation_failed();
            ts_fail_allocation(0);
            assert_int_equal(status, failed ? STINT_E_NOMEM : STINT_OK);
            st_constraint_free(c);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_follow_their_grammars),
        cmocka_unit_test(bad_grammars_are_refused),
        cmocka_unit_test(deep_grammars_are_refused),
        cmocka_unit_test(walks_end),
        cmocka_unit_test(long_chains_of_rules_are_checked),
        cmocka_unit_test(failed_allocations_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
