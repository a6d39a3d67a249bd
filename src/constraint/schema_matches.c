// SPDX-License-Identifier: Apache-2.0
// Whether a fixed value follows a schema: for enum and const beside other keywords, and for
// alternatives that exclude each other.
#include "constraint/schema.h"

#include <math.h>
#include <string.h>

struct value {
    struct st_schema *s;
    const struct st_place *at;
    const json_t *schema, *json;
};

typedef bool match_fn(const struct value *v, const json_t *rule);

static bool matches(const struct value *v, const json_t *schema, const json_t *json) {
    return st_schema_matches(v->s, schema, json, v->at);
}

// 1 equals 1.0.
static bool equal(const json_t *a, const json_t *b) {
    if (json_is_number(a) && json_is_number(b)) return json_number_value(a) == json_number_value(b);
    return json_equal(a, b);
}

static size_t count_matches(const struct value *v, const json_t *list) {
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        n += matches(v, json_array_get(list, i), v->json);
    return n;
}

static bool match_ref(const struct value *v, const json_t *rule) {
    const char *ref = json_string_value(rule);
    const json_t *target = ref ? st_schema_target(v->s, ref, v->at) : NULL;
    return target && matches(v, target, v->json);
}

static bool match_all(const struct value *v, const json_t *rule) {
    return count_matches(v, rule) == json_array_size(rule);
}

static bool match_any(const struct value *v, const json_t *rule) {
    return count_matches(v, rule) > 0;
}

static bool match_one(const struct value *v, const json_t *rule) {
    return count_matches(v, rule) == 1;
}

static bool match_not(const struct value *v, const json_t *rule) {
    return !matches(v, rule, v->json);
}

static bool match_enum(const struct value *v, const json_t *rule) {
    if (json_array_size(rule) > ST_SCHEMA_NAMES)
        st_schema_fail(v->s, STINT_E_LIMIT, v->at, "more than %d fixed values are compared",
                       ST_SCHEMA_NAMES);
    if (v->s->code.status != STINT_OK) return false;
    for (size_t i = 0; i < json_array_size(rule); i++)
        if (equal(json_array_get(rule, i), v->json)) return true;
    return false;
}

static bool match_const(const struct value *v, const json_t *rule) {
    return equal(rule, v->json);
}

static bool match_type(const struct value *v, const json_t *rule) {
    (void)rule;
    return st_schema_is_of(v->json, st_schema_types(v->s, v->schema, v->at));
}

static bool match_minimum(const struct value *v, const json_t *rule) {
    return json_number_value(v->json) >= json_number_value(rule);
}

static bool match_maximum(const struct value *v, const json_t *rule) {
    return json_number_value(v->json) <= json_number_value(rule);
}

static bool match_above(const struct value *v, const json_t *rule) {
    return json_number_value(v->json) > json_number_value(rule);
}

static bool match_below(const struct value *v, const json_t *rule) {
    return json_number_value(v->json) < json_number_value(rule);
}

// In decimal, as far as doubles can tell.
static bool is_multiple(const json_t *value, const json_t *of) {
    double ratio = json_number_value(value) / json_number_value(of);
    return fabs(ratio - nearbyint(ratio)) <= 1e-9 * fmax(1, fabs(ratio));
}

static bool match_multiple(const struct value *v, const json_t *rule) {
    return is_multiple(v->json, rule);
}

static bool match_not_multiples(const struct value *v, const json_t *rule) {
    for (size_t i = 0; i < json_array_size(rule); i++)
        if (is_multiple(v->json, json_array_get(rule, i))) return false;
    return true;
}

static size_t count_chars(const json_t *text) {
    const char *bytes = json_string_value(text);
    size_t n = 0;
    for (size_t i = 0; i < json_string_length(text); i++) n += (bytes[i] & 0xc0) != 0x80;
    return n;
}

static bool match_min_length(const struct value *v, const json_t *rule) {
    return (double)count_chars(v->json) >= json_number_value(rule);
}

static bool match_max_length(const struct value *v, const json_t *rule) {
    return (double)count_chars(v->json) <= json_number_value(rule);
}

static bool match_pattern(const struct value *v, const json_t *rule) {
    (void)rule;
    st_schema_fail(v->s, STINT_E_UNSUPPORTED, v->at, "'pattern' or 'format' beside fixed values");
    return false;
}

static bool match_not_texts(const struct value *v, const json_t *rule) {
    return !match_enum(v, rule);
}

static bool match_min_items(const struct value *v, const json_t *rule) {
    return (double)json_array_size(v->json) >= json_number_value(rule);
}

static bool match_max_items(const struct value *v, const json_t *rule) {
    return (double)json_array_size(v->json) <= json_number_value(rule);
}

static bool match_prefix(const struct value *v, const json_t *rule) {
    for (size_t i = 0; i < json_array_size(rule) && i < json_array_size(v->json); i++)
        if (!matches(v, json_array_get(rule, i), json_array_get(v->json, i))) return false;
    return true;
}

static bool match_items(const struct value *v, const json_t *rule) {
    for (size_t i = json_array_size(json_object_get(v->schema, "prefixItems"));
         i < json_array_size(v->json); i++)
        if (!matches(v, rule, json_array_get(v->json, i))) return false;
    return true;
}

static bool match_unique(const struct value *v, const json_t *rule) {
    for (size_t i = 0; json_is_true(rule) && i < json_array_size(v->json); i++)
        for (size_t k = 0; k < i; k++)
            if (equal(json_array_get(v->json, i), json_array_get(v->json, k))) return false;
    return true;
}

static bool match_properties(const struct value *v, const json_t *rule) {
    const char *key;
    json_t *schema;
    json_object_foreach((json_t *)rule, key, schema) {
        const json_t *member = json_object_get(v->json, key);
        if (member && !matches(v, schema, member)) return false;
    }
    return true;
}

static bool match_required(const struct value *v, const json_t *rule) {
    for (size_t i = 0; i < json_array_size(rule); i++) {
        const char *name = json_string_value(json_array_get(rule, i));
        if (name && !json_object_get(v->json, name)) return false;
    }
    return true;
}

static bool match_more(const struct value *v, const json_t *rule) {
    const json_t *declared = json_object_get(v->schema, "properties");
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)v->json, key, member) {
        if (!json_object_get(declared, key) && !matches(v, rule, member)) return false;
    }
    return true;
}

static const struct {
    const char *keyword;
    unsigned types; // of the values that it concerns
    match_fn *match;
} rules[] = {
    {"$ref", ST_TYPE_ANY, match_ref},
    {"allOf", ST_TYPE_ANY, match_all},
    {"anyOf", ST_TYPE_ANY, match_any},
    {"oneOf", ST_TYPE_ANY, match_one},
    {"not", ST_TYPE_ANY, match_not},
    {"enum", ST_TYPE_ANY, match_enum},
    {"const", ST_TYPE_ANY, match_const},
    {"type", ST_TYPE_ANY, match_type},
    {"minimum", ST_TYPE_NUMBER, match_minimum},
    {"maximum", ST_TYPE_NUMBER, match_maximum},
    {"exclusiveMinimum", ST_TYPE_NUMBER, match_above},
    {"exclusiveMaximum", ST_TYPE_NUMBER, match_below},
    {"multipleOf", ST_TYPE_NUMBER, match_multiple},
    {ST_SCHEMA_NOT_MULTIPLES, ST_TYPE_NUMBER, match_not_multiples},
    {"minLength", ST_TYPE_STRING, match_min_length},
    {"maxLength", ST_TYPE_STRING, match_max_length},
    {"pattern", ST_TYPE_STRING, match_pattern},
    {"format", ST_TYPE_STRING, match_pattern},
    {ST_SCHEMA_NOT_TEXTS, ST_TYPE_STRING, match_not_texts},
    {"minItems", ST_TYPE_ARRAY, match_min_items},
    {"maxItems", ST_TYPE_ARRAY, match_max_items},
    {"prefixItems", ST_TYPE_ARRAY, match_prefix},
    {"items", ST_TYPE_ARRAY, match_items},
    {"uniqueItems", ST_TYPE_ARRAY, match_unique},
    {"properties", ST_TYPE_OBJECT, match_properties},
    {"required", ST_TYPE_OBJECT, match_required},
    {"additionalProperties", ST_TYPE_OBJECT, match_more},
};

bool st_schema_matches(struct st_schema *s, const json_t *schema, const json_t *value,
                       const struct st_place *at) {
    struct value v = {s, at, schema, value};
    bool ok = true;
    if (json_is_boolean(schema)) return json_is_true(schema);
    if (s->depth >= ST_SCHEMA_DEPTH)
        st_schema_fail(s, STINT_E_LIMIT, at, "more than %d nested schemas", ST_SCHEMA_DEPTH);
    if (s->code.status != STINT_OK) return false;
    s->depth++;
    st_schema_check(s, schema, at);
    for (size_t i = 0; i < sizeof rules / sizeof *rules && ok; i++) {
        const json_t *rule = json_object_get(schema, rules[i].keyword);
        if (rule && st_schema_is_of(value, rules[i].types)) ok = rules[i].match(&v, rule);
    }
    s->depth--;
    return ok && s->code.status == STINT_OK;
}
