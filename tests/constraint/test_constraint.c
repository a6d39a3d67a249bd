// SPDX-License-Identifier: Apache-2.0
// Which texts schemas allow, which schemas are refused, and laws of the state.
#include "constraint/constraint.h"
#include "constraint/run.h"
#include "support/constraint_cases.h"
#include "support/support.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct st_constraint *compile(const char *schema) {
    struct st_constraint *c = NULL;
    json_t *json = json_loads(schema, JSON_DECODE_ANY, NULL);
    if (!json) fail_msg("not JSON: %s", schema);
    if (st_constraint_schema(json, &c) != STINT_OK) fail_msg("%s: %s", schema, st_error_text());
    json_decref(json);
    return c;
}

enum verdict { REFUSED, PART, WHOLE };

static enum verdict judge(const struct st_constraint *c, const char *text) {
    struct st_constraint_state *s = NULL;
    assert_int_equal(st_constraint_begin(c, &s), STINT_OK);
    enum verdict verdict = REFUSED;
    if (st_constraint_push(s, text, strlen(text)))
        verdict = st_constraint_complete(s) ? WHOLE : PART;
    st_constraint_end(s);
    return verdict;
}

static void texts_are_told_apart(void **state) {
    (void)state;
    size_t n_wrong = 0;
    static const char marks[] = {[REFUSED] = '-', [PART] = '~', [WHOLE] = '+'};
    for (size_t i = 0; i < N_CONSTRAINT_CASES; i++) {
        struct st_constraint *c = compile(constraint_cases[i].schema);
        for (const char *const *t = constraint_cases[i].texts; *t; t++) {
            char mark = marks[judge(c, *t + 1)];
            if (mark == **t) continue;
            print_error("%s: %s is %c\n", constraint_cases[i].schema, *t, mark);
            n_wrong++;
        }
        st_constraint_free(c);
    }
    assert_int_equal(n_wrong, 0);
}

// How a schema is refused: the status and what its text names.
static const struct {
    const char *schema;
    stint_status status;
    const char *named;
} refused[] = {
    {"1", STINT_E_ARG, "#: "},
    {"false", STINT_E_ARG, "no JSON text"},
    {"{\"contains\":2}", STINT_E_UNSUPPORTED, "#: the keyword 'contains'"},
    {"{\"properties\":{\"a\":{\"items\":{\"then\":{}}}}}", STINT_E_UNSUPPORTED,
     "#/properties/a/items: the keyword 'then'"},
    {"{\"multipleOf\":0}", STINT_E_ARG, "'multipleOf'"},
    {"{\"multipleOf\":\"1\"}", STINT_E_ARG, "'multipleOf'"},
    {"{\"multipleOf\":10007}", STINT_E_LIMIT, "remainders"},
    {"{\"multipleOf\":1e-300}", STINT_E_LIMIT, "too fine"},
    {"{\"type\":\"integer\",\"multipleOf\":5,\"minimum\":1,\"maximum\":4}", STINT_E_ARG,
     "no JSON text"},
    {"{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"string\"}]}", STINT_E_ARG, "no JSON text"},
    {"{\"oneOf\":[{\"type\":\"string\"},{\"pattern\":\"a\"}]}", STINT_E_UNSUPPORTED,
     "#/oneOf/0: values without 'pattern'"},
    {"{\"not\":true}", STINT_E_ARG, "no JSON text"},
    {"{\"not\":{\"uniqueItems\":true}}", STINT_E_UNSUPPORTED, "#/not: values without"},
    {"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[1,2]},\"minItems\":3}",
     STINT_E_ARG, "no JSON text"},
    {"{\"properties\":{\"a\":{\"anyOf\":[true,{\"if\":true}]}}}", STINT_E_UNSUPPORTED,
     "#/properties/a/anyOf/1: the keyword 'if'"},
    {"{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"items\":{\"uniqueItems\":true}}}}",
     STINT_E_UNSUPPORTED, "#/$defs/a/items: 'uniqueItems'"},
    {"{\"type\":\"text\"}", STINT_E_ARG, "'text'"},
    {"{\"type\":[]}", STINT_E_ARG, "'type'"},
    {"{\"type\":1}", STINT_E_ARG, "type"},
    {"{\"$ref\":\"#\"}", STINT_E_ARG, "$ref"},
    {"{\"$ref\":1}", STINT_E_ARG, "$ref"},
    {"{\"$ref\":\"#/a\"}", STINT_E_ARG, "does not exist"},
    {"{\"$ref\":\"#/%zz\"}", STINT_E_ARG, "does not exist"},
    {"{\"$ref\":\"#/~\"}", STINT_E_ARG, "does not exist"},
    {"{\"$ref\":\"#x\"}", STINT_E_ARG, "does not exist"},
    {"{\"$ref\":\"#/allOf/x\",\"allOf\":[1]}", STINT_E_ARG, "does not exist"},
    {"{\"$ref\":\"other.json\"}", STINT_E_UNSUPPORTED, "other.json"},
    {"{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":\"null\"}]}", STINT_E_ARG, "leads to itself"},
    {"{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"anyOf\":[{"
     "\"$ref\":\"#/$defs/a\"}]}}}",
     STINT_E_ARG, "leads to itself"},
    {"{\"allOf\":[{\"$ref\":\"#\"}]}", STINT_E_LIMIT, "itself"},
    {"{\"$ref\":\"#\",\"minLength\":1}", STINT_E_LIMIT, "itself"},
    {"{\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}", STINT_E_ARG, "no JSON text"},
    {"{\"type\":\"array\",\"items\":{\"$ref\":\"#\"},\"minItems\":1}", STINT_E_ARG, "no JSON text"},
    {"{\"allOf\":[]}", STINT_E_ARG, "'allOf'"},
    {"{\"anyOf\":{}}", STINT_E_ARG, "'anyOf'"},
    {"{\"enum\":[]}", STINT_E_ARG, "'enum'"},
    {"{\"enum\":1}", STINT_E_ARG, "'enum'"},
    {"{\"enum\":[\"a\"],\"pattern\":\"a\"}", STINT_E_UNSUPPORTED, "'pattern'"},
    {"{\"enum\":[1],\"minimum\":2}", STINT_E_ARG, "no JSON text"},
    {"{\"type\":\"null\",\"const\":1}", STINT_E_ARG, "no JSON text"},
    {"{\"properties\":[]}", STINT_E_ARG, "'properties'"},
    {"{\"required\":\"a\"}", STINT_E_ARG, "'required'"},
    {"{\"required\":[1]}", STINT_E_ARG, "'required'"},
    {"{\"required\":[\"a\"],\"additionalProperties\":false}", STINT_E_ARG, "no JSON text"},
    {"{\"additionalProperties\":1}", STINT_E_ARG, "#/additionalProperties"},
    {"{\"type\":\"array\",\"items\":[]}", STINT_E_ARG, "#/items"},
    {"{\"prefixItems\":{}}", STINT_E_ARG, "'prefixItems'"},
    {"{\"minItems\":-1}", STINT_E_ARG, "'minItems'"},
    {"{\"minItems\":1e300}", STINT_E_ARG, "'minItems'"},
    {"{\"minItems\":3,\"maxItems\":2}", STINT_E_ARG, "no JSON text"},
    {"{\"minLength\":1.5}", STINT_E_ARG, "'minLength'"},
    {"{\"minLength\":2,\"maxLength\":1}", STINT_E_ARG, "no JSON text"},
    {"{\"type\":\"integer\",\"minimum\":2,\"maximum\":1}", STINT_E_ARG, "no JSON text"},
    {"{\"type\":\"integer\",\"minimum\":0.1,\"maximum\":0.9}", STINT_E_ARG, "no JSON text"},
    {"{\"type\":\"number\",\"minimum\":1e19}", STINT_E_ARG, "no JSON text"},
    {"{\"minimum\":1e-300}", STINT_E_UNSUPPORTED, "digits"},
    {"{\"type\":\"number\",\"minimum\":0.5,\"exclusiveMaximum\":0.5}", STINT_E_ARG, "no JSON text"},
    {"{\"minimum\":\"0\"}", STINT_E_ARG, "'minimum'"},
    {"{\"pattern\":1}", STINT_E_ARG, "'pattern'"},
    {"{\"pattern\":\"(\"}", STINT_E_ARG, "at 1: ')'"},
    {"{\"pattern\":\")\"}", STINT_E_ARG, "at 0: ')'"},
    {"{\"pattern\":\"[a\"}", STINT_E_ARG, "']'"},
    {"{\"pattern\":\"[z-a]\"}", STINT_E_ARG, "backwards"},
    {"{\"pattern\":\"a{2,1}\"}", STINT_E_ARG, "backwards"},
    {"{\"pattern\":\"a{2\"}", STINT_E_ARG, "'}'"},
    {"{\"pattern\":\"a{x}\"}", STINT_E_UNSUPPORTED, "number"},
    {"{\"pattern\":\"a{9999}\"}", STINT_E_LIMIT, "1000"},
    {"{\"pattern\":\"*\"}", STINT_E_ARG, "at 0"},
    {"{\"pattern\":\"a^b\"}", STINT_E_UNSUPPORTED, "at 1"},
    {"{\"pattern\":\"(?=a)\"}", STINT_E_UNSUPPORTED, "(?:"},
    {"{\"pattern\":\"\\\\bword\"}", STINT_E_UNSUPPORTED, "escape"},
    {"{\"pattern\":\"(a)\\\\1\"}", STINT_E_UNSUPPORTED, "escape"},
    {"{\"pattern\":\"\\\\\"}", STINT_E_ARG, "escape"},
    {"{\"pattern\":\"\\\\u12\"}", STINT_E_ARG, "hexadecimal"},
    {"{\"pattern\":\"\\\\ud83d\"}", STINT_E_UNSUPPORTED, "surrogate"},
    {"{\"pattern\":\"^abc$\",\"maxLength\":2}", STINT_E_ARG, "no JSON text"},
    {"{\"pattern\":\"^((a{1000}){1000}){1000}$\"}", STINT_E_LIMIT, "steps"},
    {"{\"pattern\":\"^(((){1000}){1000}){1000}$\"}", STINT_E_LIMIT, "repeats"},
    {"{\"pattern\":\"a\",\"maxLength\":100000}", STINT_E_LIMIT, "beside a pattern"},
    {"{\"allOf\":[{\"pattern\":\"a\"},{\"pattern\":\"b\"}]}", STINT_E_UNSUPPORTED, "'pattern'"},
    {"{\"allOf\":[{\"properties\":{\"a\":{}},\"additionalProperties\":false},{\"required\":["
     "\"b\"]}]}",
     STINT_E_ARG, "no JSON text"},
    {"{\"allOf\":[{\"type\":\"null\"},{\"type\":\"string\"}]}", STINT_E_ARG, "no JSON text"},
};

static void refused_schemas_name_place_and_keyword(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct st_constraint *c = NULL;
        json_t *json = json_loads(refused[i].schema, JSON_DECODE_ANY, NULL);
        assert_non_null(json);
        stint_status status = st_constraint_schema(json, &c);
        if (status != refused[i].status || c || !strstr(st_error_text(), refused[i].named))
            fail_msg("%s: %d, %s", refused[i].schema, status, st_error_text());
        json_decref(json);
    }
}

// Not enforced; and where in a schema they would count.
static const char *const keywords[] = {
    "\"contains\":{}",
    "\"minContains\":1",
    "\"maxContains\":1",
    "\"unevaluatedItems\":false",
    "\"additionalItems\":false",
    "\"patternProperties\":{\"^a\":{}}",
    "\"propertyNames\":{}",
    "\"minProperties\":1",
    "\"maxProperties\":1",
    "\"unevaluatedProperties\":false",
    "\"dependentRequired\":{}",
    "\"dependentSchemas\":{}",
    "\"dependencies\":{}",
    "\"if\":true",
    "\"then\":true",
    "\"else\":true",
    "\"contentSchema\":{}",
    "\"$dynamicRef\":\"#\"",
    "\"$recursiveRef\":\"#\"",
    "\"nullable\":true",
    "\"madeUp\":1",
};

static const char *const places[] = {
    "{%s}",
    "{\"type\":[\"null\",\"string\",\"array\",\"object\",\"integer\"],%s}",
    "{\"properties\":{\"a\":{%s}}}",
    "{\"additionalProperties\":{%s}}",
    "{\"properties\":{\"a\":true},\"additionalProperties\":{%s}}",
    "{\"items\":{%s}}",
    "{\"prefixItems\":[true,{%s}],\"items\":false}",
    "{\"anyOf\":[{\"type\":\"null\"},{%s}]}",
    "{\"anyOf\":[{\"type\":\"null\"},true],%s}",
    "{\"oneOf\":[{%s}]}",
    "{\"allOf\":[{\"type\":\"object\"},{%s}]}",
    "{\"allOf\":[true],%s}",
    "{\"enum\":[1,2],%s}",
    "{\"const\":1,%s}",
    "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{%s}}}",
    "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"type\":\"null\"}},%s}",
    "{\"properties\":{\"a\":{\"items\":{\"anyOf\":[{\"properties\":{\"b\":{%s}}}]}}}}",
};

// Never left out in silence.
static void unknown_keywords_are_refused_everywhere(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
            char text[512], name[64];
            struct st_constraint *c = NULL;
            const char *at = strstr(places[k], "%s");
            snprintf(text, sizeof text, "%.*s%s%s", (int)(at - places[k]), places[k], keywords[i],
                     at + 2);
            snprintf(name, sizeof name, "'%.*s'", (int)strcspn(keywords[i] + 1, "\""),
                     keywords[i] + 1);
            json_t *json = json_loads(text, 0, NULL);
            assert_non_null(json);
            if (st_constraint_schema(json, &c) != STINT_E_UNSUPPORTED ||
                strstr(st_error_text(), name) == NULL)
                fail_msg("%s: %s", text, st_error_text());
            json_decref(json);
        }
}

static stint_status try_schema(json_t *schema) {
    struct st_constraint *c = NULL;
    stint_status status = st_constraint_schema(schema, &c);
    st_constraint_free(c);
    json_decref(schema);
    return status;
}

// Deep, wide and exploding schemas end in a status.
static void hostile_schemas_end(void **state) {
    (void)state;
    json_t *deep = json_object(), *any = json_object(), *wide = json_object(), *list = json_array();
    for (int i = 0; i < 5000; i++) deep = json_pack("{s:s,s:o}", "type", "array", "items", deep);
    assert_int_equal(try_schema(deep), STINT_E_LIMIT);
    for (int i = 0; i < 5000; i++) any = json_pack("{s:[o]}", "anyOf", any);
    assert_int_equal(try_schema(any), STINT_E_LIMIT);
    for (int i = 0; i < 100000; i++) json_array_append_new(list, json_integer(i));
    assert_int_equal(try_schema(json_pack("{s:o}", "enum", list)), STINT_E_LIMIT);
    for (int i = 0; i < 1001; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        json_object_set_new(wide, name, json_true());
    }
    assert_int_equal(try_schema(json_pack("{s:o}", "properties", wide)), STINT_E_LIMIT);
    json_t *ways = json_array();
    for (int i = 0; i < 501; i++) json_array_append(ways, json_true());
    assert_int_equal(try_schema(json_pack("{s:o}", "oneOf", ways)), STINT_E_LIMIT);
    // Each is a prefix of the next.
    json_t *stairs = json_array();
    char text[701];
    for (size_t i = 0; i < 700; i++) {
        text[i] = 'a';
        text[i + 1] = 0;
        json_array_append_new(stairs, json_string(text));
    }
    assert_int_equal(try_schema(json_pack("{s:o}", "enum", stairs)), STINT_OK);
    // Merging these makes new ones to merge, without end.
    const char *growing =
        "{\"allOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/b\"}],\"$defs\":"
        "{\"a\":{\"properties\":{\"x\":{\"$ref\":\"#/$defs/a\"}}},\"b\":{"
        "\"properties\":{\"x\":{\"$ref\":\"#/$defs/b\"}}}}}";
    assert_int_equal(try_schema(json_loads(growing, 0, NULL)), STINT_E_LIMIT);
}

static void nesting_is_bounded_and_can_always_end(void **state) {
    (void)state;
    struct st_constraint *c = compile("{\"type\":\"array\",\"items\":{\"anyOf\":[{\"$ref\":\"#\"},"
                                      "{\"type\":\"array\",\"minItems\":1,\"items\":{\"type\":"
                                      "\"object\"}}]}}");
    struct st_constraint_state *s = NULL;
    assert_int_equal(st_constraint_begin(c, &s), STINT_OK);
    for (int i = 0; i < ST_NEST_MAX; i++) assert_true(st_constraint_push(s, "[", 1));
    assert_false(st_constraint_push(s, "[", 1));
    assert_false(st_constraint_push(s, "{", 1)); // there is no room for that
    for (int i = 0; i < ST_NEST_MAX; i++) {
        assert_false(st_constraint_complete(s));
        assert_true(st_constraint_push(s, "]", 1));
    }
    assert_true(st_constraint_complete(s));
    st_constraint_end(s);
    st_constraint_free(c);
}

// The bytes that may come next.
static size_t next_bytes(struct st_constraint_state *s, unsigned char bytes[256]) {
    size_t n = 0;
    for (int b = 0; b < 256; b++)
        if (st_constraint_step(s, 0, s->n_threads, (unsigned char)b, s->n_threads))
            bytes[n++] = (unsigned char)b;
    return n;
}

// A random one; when the text has got long, one that leads to its end: also in a pattern's b and d.
static unsigned char choose(const unsigned char *bytes, size_t n, size_t length) {
    static const char closing[] = "\"\"}],bd";
    char c = closing[ts_random_below(sizeof closing - 1)];
    return length > 150 && memchr(bytes, c, n) ? (unsigned char)c : bytes[ts_random_below(n)];
}

enum { TEXT_MAX = 20000 };

static size_t random_text(const struct st_constraint *c, char *text) {
    struct st_constraint_state *s = NULL;
    unsigned char bytes[256];
    size_t length = 0;
    assert_int_equal(st_constraint_begin(c, &s), STINT_OK);
    while (!st_constraint_complete(s) || ts_random_below(4)) {
        size_t n = next_bytes(s, bytes);
        if (n == 0 && st_constraint_complete(s)) break;
        if (n == 0 || length == TEXT_MAX) fail_msg("stuck behind %.*s", (int)length, text);
        text[length] = (char)choose(bytes, n, length);
        assert_true(st_constraint_push(s, text + length, 1));
        length++;
        if (ts_random_below(50)) continue;
        char wrong[] = {text[length - 1], (char)ts_random_below(256), '\x01'};
        struct st_thread *before = malloc(s->n_threads * sizeof *before);
        size_t n_threads = s->n_threads, n_frames = s->n_frames;
        memcpy(before, s->threads, n_threads * sizeof *before);
        assert_false(st_constraint_push(s, wrong, 3)); // no control character stands anywhere
        assert_int_equal(s->n_threads, n_threads);
        assert_int_equal(s->n_frames, n_frames);
        assert_memory_equal(s->threads, before, n_threads * sizeof *before);
        free(before);
    }
    st_constraint_end(s);
    text[length] = 0;
    return length;
}

// Every random walk ends in JSON that is allowed at once too. With STINT_CONSTRAINT_SAMPLES the
// texts go to that file, for test_constraint_walks.py.
static void random_walks_end_in_json(void **state) {
    (void)state;
    const char *path = getenv("STINT_CONSTRAINT_SAMPLES");
    FILE *file = path ? fopen(path, "w") : NULL;
    char *text = malloc(TEXT_MAX + 1);
    assert_true(!path || file);
    for (size_t i = 0; i < N_CONSTRAINT_CASES; i++) {
        struct st_constraint *c = compile(constraint_cases[i].schema);
        for (int round = 0; round < 40; round++) {
            size_t n = random_text(c, text);
            json_t *json = json_loadb(text, n, JSON_DECODE_ANY, NULL);
            if (!json) fail_msg("%s gives %s", constraint_cases[i].schema, text);
            if (judge(c, text) != WHOLE) fail_msg("not again: %s", text);
            char *line = json_dumps(json, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
            if (file) fprintf(file, "%s\n%s\n", constraint_cases[i].schema, line);
            free(line);
            json_decref(json);
        }
        st_constraint_free(c);
    }
    free(text);
    if (file) assert_int_equal(fclose(file), 0);
}

static void any_object_is_json_mode(void **state) {
    (void)state;
    struct st_constraint *c = NULL;
    assert_int_equal(st_constraint_json(&c), STINT_OK);
    assert_int_equal(judge(c, "{\"a\":[1,{}]}"), WHOLE);
    assert_int_equal(judge(c, "\n{"), PART);
    assert_int_equal(judge(c, "["), REFUSED);
    st_constraint_free(c);
    assert_int_equal(st_constraint_schema(NULL, &c), STINT_OK);
    assert_int_equal(judge(c, "[null]"), WHOLE);
    st_constraint_free(c);
    st_constraint_free(NULL);
    st_constraint_end(NULL);
}

static void compact_json_has_no_blanks(void **state) {
    (void)state;
    struct st_constraint *c = NULL;
    json_t *schema = json_loads("{\"properties\":{\"a\":{\"items\":{}},\"b\":{}}}", 0, NULL);
    assert_int_equal(st_constraint_compact(schema, &c), STINT_OK);
    assert_int_equal(judge(c, "{\"a\":[1,{\"x y\":[]}],\"b\":\" \"}"), WHOLE);
    assert_int_equal(judge(c, "{ "), REFUSED);
    assert_int_equal(judge(c, " {"), REFUSED);
    assert_int_equal(judge(c, "{\"a\": "), REFUSED);
    assert_int_equal(judge(c, "{\"a\":[1, "), REFUSED);
    assert_int_equal(judge(c, "{\"a\":[1,{\"x\": "), REFUSED);
    st_constraint_free(c);
    json_decref(schema);
}

// More frames than there is room for come and go within one call.
static void long_texts_are_pushed_at_once(void **state) {
    (void)state;
    enum { N = 200000 };
    struct st_constraint *c = compile("{\"type\":\"array\",\"items\":{\"type\":\"array\"}}");
    struct st_constraint_state *s = NULL;
    char *text = malloc(3 * N + 2);
    text[0] = '[';
    for (size_t i = 0; i < N; i++) memcpy(text + 1 + 3 * i, "[],", 3);
    memcpy(text + 3 * N, "]\x01", 2);
    assert_int_equal(st_constraint_begin(c, &s), STINT_OK);
    assert_false(st_constraint_push(s, text, 3 * N + 2));
    assert_true(st_constraint_push(s, "", 0));
    assert_true(st_constraint_push(s, text, 3 * N + 1));
    assert_true(st_constraint_complete(s));
    st_constraint_end(s);
    st_constraint_free(c);
    free(text);
}

static void failed_allocations_are_reported(void **state) {
    (void)state;
    for (size_t i = 0; i < N_CONSTRAINT_CASES; i++) {
        json_t *json = json_loads(constraint_cases[i].schema, JSON_DECODE_ANY, NULL);
        stint_status status = STINT_E_NOMEM;
        for (size_t n = 1; status != STINT_OK; n++) {
            struct st_constraint *c = NULL;
            struct st_constraint_state *s = NULL;
            ts_fail_allocation(n);
            status = st_constraint_schema(json, &c);
            if (status == STINT_OK) status = st_constraint_begin(c, &s);
            bool failed = ts_allocation_failed();
            ts_fail_allocation(0);
            assert_int_equal(status, failed ? STINT_E_NOMEM : STINT_OK);
            st_constraint_end(s);
            st_constraint_free(c);
        }
        json_decref(json);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_told_apart),
        cmocka_unit_test(refused_schemas_name_place_and_keyword),
        cmocka_unit_test(unknown_keywords_are_refused_everywhere),
        cmocka_unit_test(hostile_schemas_end),
        cmocka_unit_test(nesting_is_bounded_and_can_always_end),
        cmocka_unit_test(random_walks_end_in_json),
        cmocka_unit_test(any_object_is_json_mode),
        cmocka_unit_test(compact_json_has_no_blanks),
        cmocka_unit_test(long_texts_are_pushed_at_once),
        cmocka_unit_test(failed_allocations_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
