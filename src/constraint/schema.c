// SPDX-License-Identifier: Apache-2.0
#include "constraint/schema.h"

#include "base/buffer.h"
#include "base/size.h"
#include "constraint/constraint.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACE_BYTES = 256 };

// A long place is cut at its end.
static void write_place(const struct st_place *at, char out[PLACE_BYTES]) {
    size_t n = 0;
    out[0] = 0;
    if (at->up) {
        write_place(at->up, out);
        n = strlen(out);
    }
    snprintf(out + n, PLACE_BYTES - n, "%s%s", at->up ? "/" : "", at->name);
}

void st_schema_fail(struct st_schema *s, stint_status status, const struct st_place *at,
                    const char *format, ...) {
    char text[256], place[PLACE_BYTES];
    va_list arguments;
    if (s->code.status != STINT_OK) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    write_place(at, place);
    s->code.status = st_fail(status, "schema: %s: %s", place, text);
}

uint32_t st_schema_rule(struct st_schema *s, const json_t *schema, st_rule_fn *write,
                        const struct st_place *at) {
    char name[PLACE_BYTES];
    for (size_t i = 0; i < s->n_rules; i++)
        if (s->rules[i].schema == schema && s->rules[i].write == write) return s->rules[i].start;
    if (s->n_rules >= ST_SCHEMA_RULES)
        st_schema_fail(s, STINT_E_LIMIT, at, "more than %d arrays, objects and references",
                       ST_SCHEMA_RULES);
    if (s->code.status == STINT_OK)
        s->code.status =
            st_grow((void **)&s->rules, &s->rule_capacity, s->n_rules, 1, sizeof *s->rules);
    if (s->code.status != STINT_OK) return 0;
    write_place(at, name);
    struct st_rule rule = {schema, write, strdup(name), st_code_ahead(&s->code)};
    if (!rule.name) s->code.status = st_fail(STINT_E_NOMEM, "no memory for a schema");
    s->rules[s->n_rules++] = rule;
    return rule.start;
}

static uint32_t write_referred(struct st_schema *s, const json_t *schema,
                               const struct st_place *at) {
    return st_schema_value(s, schema, at, st_code_return(&s->code));
}

// A chain of rules that begin with other rules must end.
static void add_lead(struct st_schema *s, uint32_t to) {
    if (s->referring == SIZE_MAX || s->code.status != STINT_OK) return;
    s->code.status =
        st_grow((void **)&s->leads, &s->lead_capacity, s->n_leads, 1, sizeof *s->leads);
    if (s->code.status != STINT_OK) return;
    s->leads[s->n_leads][0] = s->rules[s->referring].start;
    s->leads[s->n_leads++][1] = to;
}

static uint32_t write_ref(struct st_schema *s, const json_t *schema, const struct st_place *at,
                          uint32_t next) {
    const char *ref = json_string_value(json_object_get(schema, "$ref"));
    struct st_place place = {NULL, ref};
    if (!ref) {
        st_schema_fail(s, STINT_E_ARG, at, "'$ref' is not a string");
        return 0;
    }
    const json_t *target = st_schema_target(s, ref, at);
    const json_t *others = target ? st_schema_without(s, schema, "$ref") : NULL;
    if (!others) return 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)others, key, value) {
        if (st_schema_describes(key)) continue;
        const json_t *both = st_schema_both(s, others, target, at);
        return both ? st_schema_value(s, both, at, next) : 0;
    }
    uint32_t rule = st_schema_rule(s, target, write_referred, &place);
    if (rule) add_lead(s, rule);
    return st_code_call(&s->code, rule, false, next);
}

static uint32_t write_all(struct st_schema *s, const json_t *schema, const struct st_place *at,
                          uint32_t next) {
    const json_t *list = json_object_get(schema, "allOf");
    const json_t *both = st_schema_without(s, schema, "allOf");
    if (!json_array_size(list)) st_schema_fail(s, STINT_E_ARG, at, "'allOf' is not a list");
    for (size_t i = 0; both && i < json_array_size(list); i++)
        both = st_schema_both(s, both, json_array_get(list, i), at);
    return both ? st_schema_value(s, both, at, next) : 0;
}

static uint32_t write_any(struct st_schema *s, const json_t *schema, const struct st_place *at,
                          uint32_t next) {
    const json_t *list = json_object_get(schema, "anyOf");
    const json_t *others = st_schema_without(s, schema, "anyOf");
    bool alone = true;
    uint32_t place = 0;
    const char *key;
    json_t *value;
    if (!json_array_size(list)) st_schema_fail(s, STINT_E_ARG, at, "'anyOf' is not a list");
    if (json_array_size(list) > ST_SCHEMA_WAYS)
        st_schema_fail(s, STINT_E_LIMIT, at, "more than %d alternatives", ST_SCHEMA_WAYS);
    if (!others || s->code.status != STINT_OK) return 0;
    json_object_foreach((json_t *)others, key, value) alone = alone && st_schema_describes(key);
    for (size_t i = json_array_size(list); i-- > 0 && s->code.status == STINT_OK;) {
        char number[24];
        struct st_place of = {at, "anyOf"}, inside = {&of, number};
        snprintf(number, sizeof number, "%zu", i);
        const json_t *one = json_array_get(list, i);
        if (!alone) one = st_schema_both(s, others, one, &inside);
        if (one) place = st_code_split(&s->code, st_schema_value(s, one, &inside, next), place);
    }
    return place;
}

bool st_schema_is_of(const json_t *value, unsigned types) {
    double number = json_number_value(value);
    switch (json_typeof(value)) {
    case JSON_NULL:
        return types & ST_TYPE_NULL;
    case JSON_TRUE:
    case JSON_FALSE:
        return types & ST_TYPE_BOOLEAN;
    case JSON_STRING:
        return types & ST_TYPE_STRING;
    case JSON_ARRAY:
        return types & ST_TYPE_ARRAY;
    case JSON_OBJECT:
        return types & ST_TYPE_OBJECT;
    case JSON_INTEGER:
        return types & (ST_TYPE_INTEGER | ST_TYPE_NUMBER);
    default:
        return types & ST_TYPE_NUMBER || (types & ST_TYPE_INTEGER && floor(number) == number);
    }
}

// With the fewest digits that read as the same numbers: 0.1, not 0.10000000000000001. NULL: no
// memory.
static char *shortest_text(const json_t *value) {
    for (size_t digits = 15;; digits++) {
        char *text =
            json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(digits));
        if (!text || digits == 17) return text;
        json_t *again = json_loads(text, JSON_DECODE_ANY, NULL);
        bool same = again && json_equal(again, value), failed = !again;
        json_decref(again);
        if (same) return text;
        free(text);
        if (failed) return NULL;
    }
}

// enum and const: the values that follow the other keywords too, as jansson writes them.
static uint32_t write_fixed(struct st_schema *s, const json_t *schema, const struct st_place *at,
                            uint32_t next) {
    const json_t *list = json_object_get(schema, "enum"), *one = json_object_get(schema, "const");
    size_t n = list ? json_array_size(list) : 1, n_literals = 0;
    if (!n || (list && !json_is_array(list)))
        st_schema_fail(s, STINT_E_ARG, at, "'enum' is not a list of values");
    const json_t *others = st_schema_without(s, schema, list ? "enum" : "const");
    struct st_literal *literals = calloc(n + 1, sizeof *literals);
    if (!literals && s->code.status == STINT_OK)
        s->code.status = st_fail(STINT_E_NOMEM, "no memory for a schema");
    for (size_t i = 0; i < n && s->code.status == STINT_OK; i++) {
        const json_t *item = list ? json_array_get(list, i) : one;
        if (!st_schema_matches(s, others, item, at) || s->code.status != STINT_OK) continue;
        char *text = shortest_text(item);
        if (!text) s->code.status = st_fail(STINT_E_NOMEM, "no memory for a schema");
        if (text) literals[n_literals++] = (struct st_literal){text, strlen(text), next};
    }
    uint32_t place = st_code_literals(&s->code, literals, n_literals);
    for (size_t i = 0; i < n_literals; i++) free(literals[i].bytes);
    free(literals);
    return place;
}

static uint32_t write_types(struct st_schema *s, const json_t *schema, const struct st_place *at,
                            uint32_t next) {
    struct st_code *code = &s->code;
    unsigned types = st_schema_types(s, schema, at);
    uint32_t place = 0;
    bool number = types & ST_TYPE_NUMBER;
    if (types == ST_TYPE_ANY && !json_object_get(schema, "type")) return st_code_value(code, next);
    if (types & ST_TYPE_NULL) place = st_code_text(code, "null", 4, next);
    if (types & ST_TYPE_BOOLEAN) {
        place = st_code_split(code, st_code_text(code, "false", 5, next), place);
        place = st_code_split(code, st_code_text(code, "true", 4, next), place);
    }
    if (types & (ST_TYPE_NUMBER | ST_TYPE_INTEGER))
        place = st_code_split(code, st_schema_number(s, schema, !number, at, next), place);
    if (types & ST_TYPE_STRING)
        place = st_code_split(code, st_schema_string(s, schema, at, next), place);
    if (types & ST_TYPE_ARRAY) {
        uint32_t rule = st_schema_rule(s, schema, st_schema_array, at);
        place = st_code_split(code, st_code_call(code, rule, true, next), place);
    }
    if (types & ST_TYPE_OBJECT) {
        uint32_t rule = st_schema_rule(s, schema, st_schema_object, at);
        place = st_code_split(code, st_code_call(code, rule, true, next), place);
    }
    return place;
}

uint32_t st_schema_value(struct st_schema *s, const json_t *schema, const struct st_place *at,
                         uint32_t next) {
    uint32_t place = 0;
    if (s->depth >= ST_SCHEMA_DEPTH)
        st_schema_fail(s, STINT_E_LIMIT, at, "more than %d nested schemas", ST_SCHEMA_DEPTH);
    if (json_is_true(schema)) return st_code_value(&s->code, next);
    if (json_is_false(schema)) return 0;
    st_schema_check(s, schema, at);
    if (s->code.status != STINT_OK) return 0;
    s->depth++;
    if (json_object_get(schema, "$ref"))
        place = write_ref(s, schema, at, next);
    else if (json_object_get(schema, "allOf"))
        place = write_all(s, schema, at, next);
    else if (json_object_get(schema, "anyOf"))
        place = write_any(s, schema, at, next);
    else if (json_object_get(schema, "oneOf") || json_object_get(schema, "not"))
        place = st_schema_one(s, schema, at, next);
    else if (json_object_get(schema, "enum") || json_object_get(schema, "const"))
        place = write_fixed(s, schema, at, next);
    else
        place = write_types(s, schema, at, next);
    s->depth--;
    return place;
}

// The ranks of rules along `leads` grow without end if they form a cycle.
static stint_status check_leads(const struct st_schema *s) {
    uint32_t *rank = calloc(s->code.out->n, sizeof *rank);
    stint_status status = STINT_OK;
    if (!rank) return st_fail(STINT_E_NOMEM, "no memory for a schema");
    for (bool changed = true; changed && status == STINT_OK;) {
        changed = false;
        for (size_t i = 0; i < s->n_leads; i++) {
            uint32_t from = s->leads[i][0], to = s->leads[i][1];
            if (rank[to] > rank[from]) continue;
            rank[to] = rank[from] + 1;
            changed = true;
            if (rank[to] > s->n_rules)
                status = st_fail(STINT_E_ARG, "schema: a '$ref' leads to itself without a value");
        }
    }
    free(rank);
    return status;
}

static stint_status compile(const json_t *schema, bool compact, struct st_constraint **constraint) {
    static const struct st_place top = {NULL, "#"};
    struct st_schema s = {.root = schema ? schema : json_true(), .merged = json_array()};
    st_code_open(&s.code);
    s.code.compact = compact;
    if (!s.merged && s.code.status == STINT_OK)
        s.code.status = st_fail(STINT_E_NOMEM, "no memory for a schema");
    uint32_t start = st_schema_rule(&s, s.root, write_referred, &top);
    start = st_code_space(&s.code, st_code_call(&s.code, start, false, s.code.end));
    for (size_t i = 0; i < s.n_rules && s.code.status == STINT_OK; i++) {
        struct st_rule rule = s.rules[i];
        struct st_place at = {NULL, rule.name};
        s.referring = rule.write == write_referred ? i : SIZE_MAX;
        st_code_set(&s.code, rule.start, rule.write(&s, rule.schema, &at));
    }
    if (s.code.status == STINT_OK) s.code.status = check_leads(&s);
    stint_status status = st_code_close(&s.code, start, constraint);
    for (size_t i = 0; i < s.n_rules; i++) free(s.rules[i].name);
    free(s.rules);
    free(s.leads);
    json_decref(s.merged);
    return status;
}

stint_status st_constraint_schema(const json_t *schema, struct st_constraint **constraint) {
    return compile(schema, false, constraint);
}

stint_status st_constraint_compact(const json_t *schema, struct st_constraint **constraint) {
    return compile(schema, true, constraint);
}
