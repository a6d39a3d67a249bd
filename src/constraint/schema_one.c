// SPDX-License-Identifier: Apache-2.0
// oneOf and not. Alternatives that cannot match the same value are written as they are; from one
// that overlaps with others the values of those are taken away.
#include "constraint/schema.h"

#include <stdio.h>
#include <string.h>

enum { REST_MAX = 64 };

const json_t *st_schema_resolve(struct st_schema *s, const json_t *schema,
                                const struct st_place *at) {
    for (int steps = 0; schema && json_object_get(schema, "$ref"); steps++) {
        const char *ref = json_string_value(json_object_get(schema, "$ref")), *key;
        json_t *value;
        if (!ref) st_schema_fail(s, STINT_E_ARG, at, "'$ref' is not a string");
        if (steps > ST_SCHEMA_DEPTH)
            st_schema_fail(s, STINT_E_ARG, at, "a '$ref' leads to itself without a value");
        if (s->code.status != STINT_OK) return NULL;
        json_object_foreach((json_t *)schema, key, value) {
            if (strcmp(key, "$ref") != 0 && !st_schema_describes(key)) return schema;
        }
        schema = st_schema_target(s, ref, at);
    }
    return schema;
}

const json_t *st_schema_closed(struct st_schema *s, const json_t *schema,
                               const struct st_place *at) {
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *required = json_object_get(schema, "required");
    if (!json_is_object(properties) || json_object_get(schema, "additionalProperties"))
        return schema;
    json_t *made = st_schema_keep(s, json_copy((json_t *)schema), at);
    json_t *names = st_schema_keep(s, json_copy((json_t *)properties), at);
    bool ok = made && names && json_object_size(made) == json_object_size(schema) &&
              json_object_size(names) == json_object_size(properties) &&
              json_object_set(made, "properties", names) == 0 &&
              json_object_set_new(made, "additionalProperties", json_false()) == 0;
    for (size_t i = 0; ok && i < json_array_size(required); i++) {
        const char *name = json_string_value(json_array_get(required, i));
        if (name && !json_object_get(names, name))
            ok = json_object_set_new(names, name, json_true()) == 0;
    }
    if (ok) return made;
    if (s->code.status == STINT_OK)
        s->code.status = st_fail(STINT_E_NOMEM, "no memory for a schema");
    return NULL;
}

static bool requires(const json_t *schema, const char *name) {
    const json_t *required = json_object_get(schema, "required");
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *other = json_string_value(json_array_get(required, i));
        if (other && strcmp(name, other) == 0) return true;
    }
    return false;
}

// True if `schema` has fixed values and none of them follows `other`.
static bool all_differ(struct st_schema *s, const json_t *schema, const json_t *other,
                       const struct st_place *at) {
    schema = st_schema_resolve(s, schema, at);
    const json_t *list = json_object_get(schema, "enum"), *one = json_object_get(schema, "const");
    if ((!list && !one) || json_array_size(list) > ST_SCHEMA_NAMES) return false;
    for (size_t i = 0; i < (one ? 1 : json_array_size(list)); i++)
        if (st_schema_matches(s, other, one ? one : json_array_get(list, i), at)) return false;
    return true;
}

static unsigned types_of(struct st_schema *s, const json_t *schema, const struct st_place *at) {
    if (!json_is_object(schema) || !json_object_get(schema, "type")) return ST_TYPE_ANY;
    unsigned types = st_schema_types(s, schema, at);
    return types & ST_TYPE_NUMBER ? types | ST_TYPE_INTEGER : types;
}

// True if it is plain that no value follows both: by their types, or by a member that tells them
// apart.
static bool are_apart(struct st_schema *s, const json_t *a, const json_t *b,
                      const struct st_place *at) {
    const char *name;
    json_t *schema;
    a = st_schema_resolve(s, a, at);
    b = st_schema_resolve(s, b, at);
    if (!(types_of(s, a, at) & types_of(s, b, at))) return true;
    if (!json_is_object(a) || !(types_of(s, a, at) == ST_TYPE_OBJECT)) return false;
    json_object_foreach(json_object_get(a, "properties"), name, schema) {
        const json_t *other = json_object_get(json_object_get(b, "properties"), name);
        if (other && requires(a, name) && all_differ(s, schema, other, at)) return true;
    }
    return false;
}

static bool append(struct st_schema *s, json_t *list, const json_t *item,
                   const struct st_place *at) {
    if (json_array_size(list) >= REST_MAX)
        st_schema_fail(s, STINT_E_LIMIT, at, "the alternatives overlap in more than %d ways",
                       REST_MAX);
    else if (json_array_append(list, (json_t *)item) != 0 && s->code.status == STINT_OK)
        s->code.status = st_fail(STINT_E_NOMEM, "no memory for a schema");
    return s->code.status == STINT_OK;
}

// Appends what `one` has beyond `schema` to `rest`.
static void take_away(struct st_schema *s, const json_t *one, const json_t *schema, json_t *rest,
                      const struct st_place *at) {
    size_t n_before = json_array_size(rest);
    if (are_apart(s, one, schema, at)) {
        append(s, rest, one, at);
        return;
    }
    const json_t *whole = st_schema_resolve(s, one, at);
    if (whole) whole = st_schema_closed(s, whole, at);
    if (!whole || s->code.status != STINT_OK) return;
    const json_t *parts = st_schema_not(s, schema, whole, at);
    for (size_t i = 0; parts && i < json_array_size(parts) && s->code.status == STINT_OK; i++) {
        const json_t *part = st_schema_both(s, whole, json_array_get(parts, i), at);
        if (!part || json_is_false(part)) continue;
        if (json_equal(part, whole)) { // all of it
            while (json_array_size(rest) > n_before)
                json_array_remove(rest, json_array_size(rest) - 1);
            append(s, rest, one, at);
            return;
        }
        append(s, rest, part, at);
    }
}

const json_t *st_schema_less(struct st_schema *s, const json_t *from, const json_t *schema,
                             const struct st_place *at) {
    bool apart = true;
    for (size_t i = 0; apart && i < json_array_size(from); i++)
        apart = are_apart(s, json_array_get(from, i), schema, at);
    if (apart) return s->code.status == STINT_OK ? from : NULL;
    json_t *rest = st_schema_keep(s, json_array(), at);
    for (size_t i = 0; rest && i < json_array_size(from) && s->code.status == STINT_OK; i++)
        take_away(s, json_array_get(from, i), schema, rest, at);
    return s->code.status == STINT_OK ? rest : NULL;
}

static uint32_t write_list(struct st_schema *s, const json_t *list, const struct st_place *at,
                           uint32_t next) {
    uint32_t place = 0;
    for (size_t i = 0; list && i < json_array_size(list) && s->code.status == STINT_OK; i++)
        place =
            st_code_split(&s->code, st_schema_value(s, json_array_get(list, i), at, next), place);
    return place;
}

static bool only_describes(const json_t *schema) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)schema, key, value) if (!st_schema_describes(key)) return false;
    return true;
}

// `not` beside other keywords.
static uint32_t write_not(struct st_schema *s, const json_t *schema, const struct st_place *at,
                          uint32_t next) {
    const json_t *others = st_schema_without(s, schema, "not");
    const json_t *list = others ? st_schema_keep(s, json_pack("[O]", others), at) : NULL;
    struct st_place inside = {at, "not"};
    if (list) list = st_schema_less(s, list, json_object_get(schema, "not"), &inside);
    return write_list(s, list, at, next);
}

uint32_t st_schema_one(struct st_schema *s, const json_t *schema, const struct st_place *at,
                       uint32_t next) {
    const json_t *list = json_object_get(schema, "oneOf");
    uint32_t place = 0;
    if (json_object_get(schema, "not")) return write_not(s, schema, at, next);
    const json_t *others = st_schema_without(s, schema, "oneOf");
    if (!json_array_size(list)) st_schema_fail(s, STINT_E_ARG, at, "'oneOf' is not a list");
    if (json_array_size(list) > ST_SCHEMA_WAYS)
        st_schema_fail(s, STINT_E_LIMIT, at, "more than %d alternatives", ST_SCHEMA_WAYS);
    for (size_t i = json_array_size(list); others && i-- > 0 && s->code.status == STINT_OK;) {
        char number[24];
        struct st_place of = {at, "oneOf"}, inside = {&of, number};
        snprintf(number, sizeof number, "%zu", i);
        const json_t *one = json_array_get(list, i);
        if (!json_is_boolean(one)) st_schema_check(s, one, &inside);
        if (s->code.status == STINT_OK && !only_describes(others))
            one = st_schema_both(s, others, one, &inside);
        const json_t *rest = one ? st_schema_keep(s, json_pack("[O]", one), at) : NULL;
        for (size_t k = 0; rest && k < json_array_size(list); k++)
            if (k != i) rest = st_schema_less(s, rest, json_array_get(list, k), &inside);
        place = st_code_split(&s->code, write_list(s, rest, &inside, next), place);
    }
    return place;
}
