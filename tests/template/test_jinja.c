// SPDX-License-Identifier: Apache-2.0
// Templates against what Jinja2 renders with Hugging Face's settings (recorded from it), the errors
// they end with, and the bounds they run into.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/support.h"
#include "template/jinja.h"
#include "template/value.h"

#include <stdlib.h>
#include <string.h>

static const char variables[] =
    "{\"a\": 1, \"b\": 2.5, \"s\": \"hello World\", \"u\": \"Gr\xc3\xbc\xc3\x9f"
    "e \xe6\x97\xa5 'x\\\" \\n\", \"l\": [3, 1, 2], \"m\": [{\"name\": \"B\", \"v\": 2},"
    " {\"name\": \"a\", \"v\": 1}], \"d\": {\"k\": \"v\", \"items\": 5, \"z\": [1, null]},"
    " \"t\": true, \"n\": null, \"e\": \"\", \"stint_now\": 1722038400}";

static stint_status render(const char *template, size_t n, char **text, size_t *n_text) {
    struct st_jinja *jinja = NULL;
    json_t *context = json_loads(variables, 0, NULL);
    assert_non_null(context);
    stint_status status = st_jinja_compile(template, n, &jinja);
    if (status == STINT_OK) status = st_jinja_render(jinja, context, text, n_text);
    st_jinja_free(jinja);
    json_decref(context);
    return status;
}

static void expect(const char *template, const char *expected) {
    char *text = NULL;
    size_t n;
    if (render(template, strlen(template), &text, &n) != STINT_OK)
        fail_msg("%s: %s", template, st_error_text());
    assert_string_equal(text, expected);
    assert_int_equal(n, strlen(expected));
    free(text);
}

static void expect_error(const char *template, stint_status expected, const char *part) {
    char *text = NULL;
    size_t n = 77;
    assert_int_equal(render(template, strlen(template), &text, &n), expected);
    assert_null(text);
    assert_int_equal(n, 77);
    if (!strstr(st_error_text(), part)) fail_msg("%s: %s", template, st_error_text());
}

struct render_case {
    const char *template, *text;
};

static const struct render_case cases[] = {
    // white space around tags
    {"  {% if t %}\n a\n  {% else %}\n b\n  {% endif %}\nend\n\n", " a\nend\n"},
    {"   {{ a }}   \n  {{- a }}  {{ a -}}\n z", "   11  1z"},
    {"\r\na\r{# c #}\r\n  {#- d +#}\nb\n", "\na\n\nb"},
    {"   {%+ if t %}x{% endif +%}\ny", "   x\ny"},
    {"{% raw %}\n {{ a }}\n {% endraw %}\nx", "\n {{ a }}\nx"},
    {"{{ '}}' }}{{ {'a':{'b':1}}}}", "}}{'a': {'b': 1}}"},
    // operators
    {"{{ 7//2 }} {{ -7//2 }} {{ -7%3 }} {{ 7/2 }} {{ 2**10 }} {{ 2**-1 }} {{ 10-2-3 }}",
     "3 -4 2 3.5 1024 0.5 5"},
    {"{{ 1e16 }} {{ 1e-5 }} {{ 0.1+0.2 }} {{ 1.0 }} {{ 123456789.123 }}",
     "1e+16 1e-05 0.30000000000000004 1.0 123456789.123"},
    {"{{ 1 < 2 > 5 }} {{ 1 == 1.0 }} {{ [1,2] < [1,3] }} {{ 'a' == 1 }} {{ 3 not in l }}",
     "False True True False False"},
    {"{{ n or 'x' }}{{ a and s }}{{ 'y' if n }}{{ 'a' ~ 1 ~ none }}{{ 'ab' * 2 }}",
     "xhello Worlda1Noneabab"},
    {"{{ l[::-1] }}{{ l[1:] }}{{ s[::-2] }}{{ u[2:4] }}{{ l[5] }}{{ l[-1] }}",
     "[2, 1, 3][1, 2]drWolh\xc3\xbc\xc3\x9f"
     "2"},
    {"{{ \"q\\\"\\t\\x41\\u00e9\\q\" 'b' }}", "q\"\tA\xc3\xa9\\qb"},
    // values as text
    {"{{ [u, true, none, 1.5] }}{{ (1,) }}{{ d }}",
     "['Gr\xc3\xbc\xc3\x9f"
     "e \xe6\x97\xa5 \\'x\" \\n', True, None, 1.5](1,){'k': 'v', 'items': 5, 'z': [1, None]}"},
    {"{{ d|tojson }}{{ u|tojson }}{{ '\xc3\xa9'|tojson(true) }}{{ l|tojson(indent=1) }}",
     "{\"k\": \"v\", \"items\": 5, \"z\": [1, null]}\"Gr\xc3\xbc\xc3\x9f"
     "e \xe6\x97\xa5 'x\\\" \\n\"\"\\u00e9\"[\n 3,\n 1,\n 2\n]"},
    // statements
    {"{% for x in l if x > 1 %}{{ loop.index }}{{ x }}{{ loop.last }}{% else %}no{% endfor %}",
     "13False22True"},
    {"{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "k=v;items=5;z=[1, None];"},
    {"{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% break %}{% endfor %}", "3"},
    {"{% if n %}{{ a|frob }}{{ a is frob }}{% endif %}x", "x"},
    {"{% for x in l %}{% break %}{% else %}left{% endfor %}", "left"},
    {"{% set c = namespace(x=1) %}{% for i in l %}{% set c.x = c.x + i %}{% set y = i %}{% endfor "
     "%}"
     "{{ c.x }}{{ y is defined }}",
     "7False"},
    {"{% set q | upper %}ab {{ a }}{% endset %}{{ q }}{% filter trim %} x {% endfilter %}",
     "AB 1x"},
    {"{% macro f(x, y=2, z=x) %}[{{ x }},{{ y }},{{ z }}]{% endmacro %}{{ f(1) }}{{ f(1, z=9) }}",
     "[1,2,1][1,2,9]"},
    {"{% generation %}x{{ a }}{% endgeneration %}", "x1"},
    {"{{ strftime_now('%d %b %Y') }}", "27 Jul 2024"},
    // filters, tests, methods
    {"{{ m|map(attribute='name')|join('-') }}{{ m|selectattr('v', 'gt', 1)|list|length }}", "B-a1"},
    {"{{ l|sort }}{{ m|sort(attribute='name')|map(attribute='v')|list }}{{ d|dictsort|first }}",
     "[1, 2, 3][1, 2]('items', 5)"},
    {"{{ zz|default('D') }}{{ zz|length }}{{ zz is defined }}{{ zz ~ 'x' }}{{ e|d('E', true) }}",
     "D0FalsexE"},
    {"{{ s is string and a is number and d is mapping and n is none and t is not integer }}",
     "True"},
    {"{{ s.split('o', 1) }}{{ ' x '.strip() }}{{ s.title() }}{{ d.get('q', 7) }}{{ d['items'] }}",
     "['hell', ' World']xHello World75"},
    {"{{ '12'|int + '3.7'|int }}{{ 2.5|round }}{{ 'x'|float }}{{ -3|abs }}{{ '<'|e }}", // signs
                                                                                        // first
     "152.00.03&lt;"},
    {"{{ 'a\\nb\\n\\nc'|indent(2) }}", "a\n  b\n\n  c"},
};

static void jinja_renders_as_jinja2(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect(cases[i].template, cases[i].text);
}

static void jinja_names_line_and_construct(void **state) {
    (void)state;
    expect_error("a\n{{ 1 + }}", STINT_E_FORMAT, "line 2: expected an expression, found '}}'");
    expect_error("{{ (1 }}", STINT_E_FORMAT, "line 1");
    expect_error("{% if a %}", STINT_E_FORMAT, "endif");
    expect_error("{% endif %}", STINT_E_UNSUPPORTED, "endif");
    expect_error("{# x", STINT_E_FORMAT, "comment does not end");
    expect_error("{{ 'x }}", STINT_E_FORMAT, "string does not end");
    expect_error("{% break %}", STINT_E_FORMAT, "outside a loop");
    expect_error("{% set 1 = 2 %}", STINT_E_FORMAT, "name to assign to");
    expect_error("\n\n{% include 'x' %}", STINT_E_UNSUPPORTED, "line 3: the statement 'include'");
    expect_error("{{ a|frob }}", STINT_E_UNSUPPORTED, "no filter 'frob'");
    expect_error("{% if a %}{{ a|frob }}{% endif %}", STINT_E_UNSUPPORTED, "no filter 'frob'");
    expect_error("{% if a|frob %}{% endif %}", STINT_E_UNSUPPORTED, "no filter 'frob'");
    expect_error("{{ a is frob }}", STINT_E_UNSUPPORTED, "no test 'frob'");
    expect_error("{{ f(*l) }}", STINT_E_UNSUPPORTED, "'*'");
    expect_error("\xff", STINT_E_FORMAT, "byte 0 is not UTF-8");
}

static void jinja_ends_where_python_would(void **state) {
    (void)state;
    expect_error("\n{{ raise_exception('No ' + s) }}", STINT_E_ARG, "line 2: No hello World");
    expect_error("{{ zz.y }}", STINT_E_ARG, "'zz' is undefined");
    expect_error("{{ zz + 1 }}", STINT_E_ARG, "'zz' is undefined");
    expect_error("{{ d.missing.more }}", STINT_E_ARG, "'missing' is undefined");
    expect_error("{{ none + 'x' }}", STINT_E_ARG, "'+'");
    expect_error("{{ 'x' + 1 }}", STINT_E_ARG, "'+'");
    expect_error("{{ 1 // 0 }}", STINT_E_ARG, "zero");
    expect_error("{{ 1 < 'a' }}", STINT_E_ARG, "order");
    expect_error("{% for x in 5 %}{% endfor %}", STINT_E_ARG, "not iterable");
    expect_error("{% for x, y in [(1,2,3)] %}{% endfor %}", STINT_E_ARG, "3 values for 2 names");
    expect_error("{{ s() }}", STINT_E_ARG, "called");
    expect_error("{{ range(1, 2, 0) }}", STINT_E_ARG, "step 0");
    expect_error("{% macro f(x) %}{% endmacro %}{{ f(1, 2) }}", STINT_E_ARG, "'f'");
}

static void jinja_is_a_sandbox(void **state) {
    (void)state;
    expect_error("{{ l.append(1) }}", STINT_E_ARG, "may not change");
    expect_error("{{ d.update({}) }}", STINT_E_ARG, "may not change");
    expect_error("{% set d.k = 1 %}", STINT_E_ARG, "namespace");
    expect_error("{{ s.__class__.__mro__ }}", STINT_E_ARG, "undefined");
    expect_error("{{ ''['__class__']['x'] }}", STINT_E_ARG, "undefined");
    expect_error("{{ open('/etc/passwd') }}", STINT_E_ARG, "undefined");
    expect_error("{{ '{0.__class__}'.format(a) }}", STINT_E_UNSUPPORTED, "'{0.__class__}'");
    expect_error("{{ '{:>3}'.format(a) }}", STINT_E_UNSUPPORTED, "'{:>3}'");
    expect_error("{{ '{}{}'.format(a) }}", STINT_E_ARG, "no argument for '{}'");
    expect_error("{{ '{x}'.format(y=a) }}", STINT_E_ARG, "no argument for '{x}'");
    expect_error("{{ '{}{0}'.format(a) }}", STINT_E_ARG, "mixes");
    expect_error("{{ '{'.format(a) }}", STINT_E_ARG, "a brace");
    expect_error("{{ 'a}'.format(a) }}", STINT_E_ARG, "a brace");
}

static void jinja_is_bounded(void **state) {
    (void)state;
    expect_error("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
                 STINT_E_LIMIT, "");
    expect_error("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", STINT_E_LIMIT, "deeper");
    expect_error("{{ 'x' * 99999999999 }}", STINT_E_LIMIT, "repetition");
    expect_error("{% for i in range(99999) %}{{ 'x' * 99999 }}{% endfor %}", STINT_E_LIMIT, "");
    expect_error("{% set c = namespace(x=[]) %}{% for i in range(999) %}{% set c.x = [c.x] %}"
                 "{% endfor %}",
                 STINT_E_LIMIT, "nested deeper");
    expect_error("{% set c = namespace(x=[1]) %}{% for i in range(60) %}{% set c.x = [c.x, c.x] %}"
                 "{% endfor %}{{ c.x }}",
                 STINT_E_LIMIT, "");
    expect_error("{% set c = namespace(x=[1]) %}{% for i in range(60) %}{% set c.x = [c.x, c.x] %}"
                 "{% endfor %}{{ c.x == c.x[:] }}",
                 STINT_E_LIMIT, "steps");
    expect_error("{{ range(100001) }}", STINT_E_LIMIT, "range");
    expect_error("{{ 9223372036854775807 }}", STINT_E_UNSUPPORTED, "too long");
    expect_error("{{ 999999999999999999 * 999 }}", STINT_E_LIMIT, "64 bits");
    expect_error("{{ 2 ** 64 }}", STINT_E_LIMIT, "64 bits");
}

// n times `part` between two ends.
static void expect_repeated(const char *begin, const char *part, size_t n, const char *end,
                            stint_status expected) {
    size_t n_begin = strlen(begin), n_part = strlen(part), n_text, at = n_begin;
    char *template = malloc(n_begin + n * n_part + strlen(end) + 1), *text = NULL;
    assert_non_null(template);
    memcpy(template, begin, n_begin);
    for (size_t i = 0; i < n; i++, at += n_part) memcpy(template + at, part, n_part);
    memcpy(template + at, end, strlen(end) + 1);
    assert_int_equal(render(template, strlen(template), &text, &n_text), expected);
    free(text);
    free(template);
}

static void jinja_takes_no_depth_that_the_stack_does_not(void **state) {
    (void)state;
    expect_repeated("{{ ", "(", 100000, "", STINT_E_LIMIT);
    expect_repeated("{{ ", "not ", 100000, "1 }}", STINT_E_LIMIT);
    expect_repeated("{{ ", "- ", 100000, "1 }}", STINT_E_LIMIT);
    expect_repeated("", "{% if a %}", 100000, "", STINT_E_LIMIT);
    expect_repeated("{{ 1", " + 1", 100000, " }}", STINT_E_LIMIT);
    expect_repeated("{{ s", "|upper", 100000, " }}", STINT_E_LIMIT);
    expect_repeated("{{ 1", " + 1", 200, " }}", STINT_OK);
    expect_repeated("{{ 1", " ~ 1", 20000, " }}", STINT_OK);
    expect_repeated("{% if n %}", "{% elif n %}", 20000, "{% endif %}", STINT_OK);
    expect_repeated("", "\n", ST_JINJA_MAX_SOURCE + 1, "", STINT_E_LIMIT);
}

static void jinja_takes_no_context_nested_too_deep(void **state) {
    (void)state;
    struct st_jinja *jinja = NULL;
    json_t *deep = json_array(), *context = json_object();
    char *text = NULL;
    size_t n;
    for (int i = 0; i < 1000; i++) {
        json_t *outer = json_array();
        json_array_append_new(outer, deep);
        deep = outer;
    }
    json_object_set_new(context, "x", deep);
    assert_int_equal(st_jinja_compile("{{ x }}", 7, &jinja), STINT_OK);
    assert_int_equal(st_jinja_render(jinja, context, &text, &n), STINT_E_LIMIT);
    assert_null(text);
    st_jinja_free(jinja);
    json_decref(context);
}

static void jinja_keeps_nul_in_text(void **state) {
    (void)state;
    struct st_jinja *jinja = NULL;
    json_t *context = json_pack("{s:s%}", "x", "a\0b", (size_t)3);
    char *text = NULL;
    size_t n;
    assert_int_equal(st_jinja_compile("{{ x|upper }}{{ x|tojson }}", 27, &jinja), STINT_OK);
    assert_int_equal(st_jinja_render(jinja, context, &text, &n), STINT_OK);
    assert_int_equal(n, 13);
    assert_memory_equal(text, "A\0B\"a\\u0000b\"", 14);
    free(text);
    st_jinja_free(jinja);
    json_decref(context);
}

static void jinja_survives_failing_allocations(void **state) {
    (void)state;
    static const char template[] =
        "{% macro f(x) %}{{ x|tojson }}{% endmacro %}{% for i in l %}{{ f(m) }}"
        "{{ s.split() }}{{ 'a\\n' + u }}{% endfor %}";
    json_t *context = json_loads(variables, 0, NULL);
    bool failed = true;
    for (size_t nth = 1; failed; nth++) {
        struct st_jinja *jinja = NULL;
        char *text = NULL;
        size_t n;
        ts_fail_allocation(nth);
        stint_status status = st_jinja_compile(template, sizeof template - 1, &jinja);
        if (status == STINT_OK) status = st_jinja_render(jinja, context, &text, &n);
        failed = ts_allocation_failed();
        ts_fail_allocation(0);
        assert_int_equal(status, failed ? STINT_E_NOMEM : STINT_OK);
        st_jinja_free(jinja);
        free(text);
    }
    json_decref(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jinja_renders_as_jinja2),
        cmocka_unit_test(jinja_names_line_and_construct),
        cmocka_unit_test(jinja_ends_where_python_would),
        cmocka_unit_test(jinja_is_a_sandbox),
        cmocka_unit_test(jinja_is_bounded),
        cmocka_unit_test(jinja_takes_no_depth_that_the_stack_does_not),
        cmocka_unit_test(jinja_takes_no_context_nested_too_deep),
        cmocka_unit_test(jinja_keeps_nul_in_text),
        cmocka_unit_test(jinja_survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
