// SPDX-License-Identifier: Apache-2.0
// References within a schema, and the merging of schemas that must all match.
#include "constraint/schema.h"

#include "base/size.h"

#include <stdlib.h>
#include <string.h>

enum { STEP_BYTES = 256 };

static int digit(char c) {
    const char *digits = "0123456789abcdef", *found = c ? strchr(digits, c | 0x20) : NULL;
    if (c >= '0' && c <= '9') return c - '0';
    return found ? (int)(found - digits) : -1;
}

// Decodes a step of a JSON pointer in a URI fragment: %2F, then ~0 and ~1. False if it is
// malformed.
static bool decode_step(const char *step, size_t n, char *out) {
    size_t written = 0;
    for (size_t i = 0; i < n; i++) {
        char c = step[i];
        if (c == '%') {
            int high = i + 2 < n ? digit(step[i + 1]) : -1;
            int low = high < 0 ? -1 : digit(step[i + 2]);
            if (low < 0) return false;
            c = (char)(high << 4 | low);
            i += 2;
        }
        out[written++] = c;
    }
    size_t to = 0;
    for (size_t i = 0; i < written; i++) {
        char c = out[i];
        if (c == '~') {
            if (i + 1 >= written || (out[i + 1] != '0' && out[i + 1] != '1')) return false;
            c = out[++i] == '0' ? '~' : '/';
        }
        out[to++] = c;
    }
    out[to] = 0;
    return true;
}

const json_t *st_schema_target(struct st_schema *s, const char *ref, const struct st_place *at) {
    const json_t *target = s->root;
    const char *step = ref + 1;
    if (*ref != '#') {
        st_schema_fail(s, STINT_E_UNSUPPORTED, at, "'$ref' points outside the schema: '%.64s'",
                       ref);
        return NULL;
    }
    while (target && *step) {
        size_t n = *step == '/' ? strcspn(step + 1, "/") : 0;
        char name[STEP_BYTES];
        if (*step != '/' || n >= sizeof name || !decode_step(step + 1, n, name)) {
            target = NULL;
            break;
        }
        char *end;
        unsigned long index = strtoul(name, &end, 10);
        if (json_is_array(target))
            target = *name && !*end ? json_array_get(target, index) : NULL;
        else
            target = json_object_get(target, name);
        step += 1 + n;
    }
    if (!target)
        st_schema_fail(s, STINT_E_ARG, at, "the target of '$ref' does not exist: '%.64s'", ref);
    return target;
}

// Takes over `made`; NULL means that there is no memory.
static json_t *keep(struct st_schema *s, json_t *made, const struct st_place *at) {
    if (json_array_size(s->merged) >= 4 * ST_SCHEMA_RULES) {
        json_decref(made);
        st_schema_fail(s, STINT_E_LIMIT, at, "more than %d merged schemas", 4 * ST_SCHEMA_RULES);
        return NULL;
    }
    if (made && json_array_append_new(s->merged, made) == 0) return made;
    if (s->code.status == STINT_OK)
        s->code.status = st_fail(STINT_E_NOMEM, "no memory for a schema");
    return NULL;
}

// jansson's copy drops members when memory runs out.
static json_t *copy_of(const json_t *json) {
    json_t *copy = json_copy((json_t *)json);
    if (json_object_size(copy) == json_object_size(json) &&
        json_array_size(copy) == json_array_size(json))
        return copy;
    json_decref(copy);
    return NULL;
}

const json_t *st_schema_without(struct st_schema *s, const json_t *schema, const char *keyword) {
    static const struct st_place nowhere = {NULL, "#"};
    json_t *copy = keep(s, copy_of(schema), &nowhere);
    if (copy) json_object_del(copy, keyword);
    return copy;
}

typedef json_t *join_fn(const json_t *a, const json_t *b); // a new reference; NULL: no memory

// A schema that requires both.
static json_t *join_all(const json_t *a, const json_t *b) {
    return json_pack("{s:[O,O]}", "allOf", a, b);
}

static bool has(const json_t *list, const json_t *item) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), item)) return true;
    return false;
}

static json_t *join_lists(const json_t *a, const json_t *b) {
    json_t *list = copy_of(a);
    if (list && json_array_extend(list, (json_t *)b) == 0) return list;
    json_decref(list);
    return NULL;
}

static json_t *join_values(const json_t *a, const json_t *b) {
    json_t *list = json_array();
    for (size_t i = 0; list && i < json_array_size(a); i++) {
        if (!has(b, json_array_get(a, i)) || !json_array_append(list, json_array_get(a, i)))
            continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

// Names of types, one or a list; "number" includes "integer".
static json_t *join_types(const json_t *a, const json_t *b) {
    json_t *left = json_is_array(a) ? json_incref((json_t *)a) : json_pack("[O]", a);
    json_t *right = json_is_array(b) ? json_incref((json_t *)b) : json_pack("[O]", b);
    json_t *integer = json_string("integer"), *number = json_string("number");
    json_t *list = left && right && integer && number ? join_values(left, right) : NULL;
    if (list && !has(list, integer) &&
        ((has(left, integer) && has(right, number)) ||
         (has(left, number) && has(right, integer))) &&
        json_array_append(list, integer) != 0) {
        json_decref(list);
        list = NULL;
    }
    json_decref(left);
    json_decref(right);
    json_decref(integer);
    json_decref(number);
    return list;
}

static json_t *join_properties(const json_t *a, const json_t *b) {
    json_t *joined = copy_of(a), *value;
    const char *key;
    bool ok = joined != NULL;
    json_object_foreach((json_t *)b, key, value) {
        json_t *old = json_object_get(a, key);
        if (old && json_equal(old, value)) continue;
        ok = ok &&
             json_object_set_new(joined, key, old ? join_all(old, value) : json_incref(value)) == 0;
    }
    if (ok) return joined;
    json_decref(joined);
    return NULL;
}

static json_t *join_larger(const json_t *a, const json_t *b) {
    return json_incref((json_t *)(json_number_value(a) > json_number_value(b) ? a : b));
}

static json_t *join_smaller(const json_t *a, const json_t *b) {
    return json_incref((json_t *)(json_number_value(a) < json_number_value(b) ? a : b));
}

static json_t *join_additional(const json_t *a, const json_t *b) {
    if (json_is_true(a) || json_is_false(b)) return json_incref((json_t *)b);
    if (json_is_true(b) || json_is_false(a)) return json_incref((json_t *)a);
    return join_all(a, b);
}

static const struct join {
    const char *keyword;
    join_fn *join;
} joins[] = {
    {"required", join_lists},
    {"allOf", join_lists},
    {"properties", join_properties},
    {"type", join_types},
    {"enum", join_values},
    {"items", join_all},
    {"additionalProperties", join_additional},
    {"minLength", join_larger},
    {"minItems", join_larger},
    {"minimum", join_larger},
    {"exclusiveMinimum", join_larger},
    {"maxLength", join_smaller},
    {"maxItems", join_smaller},
    {"maximum", join_smaller},
    {"exclusiveMaximum", join_smaller},
};

static join_fn *find_join(const char *keyword) {
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++)
        if (strcmp(joins[i].keyword, keyword) == 0) return joins[i].join;
    return NULL;
}

// additionalProperties applies only to the names beside it, so it ignores those of the other
// schema.
static void check_closed(struct st_schema *s, const json_t *closed, const json_t *other,
                         const struct st_place *at) {
    const json_t *more = json_object_get(closed, "additionalProperties");
    const json_t *names = json_object_get(closed, "properties");
    const char *key;
    json_t *value;
    if (!more || json_is_true(more)) return;
    json_object_foreach(json_object_get(other, "properties"), key, value) {
        if (json_object_get(names, key)) continue;
        st_schema_fail(s, STINT_E_UNSUPPORTED, at,
                       "'additionalProperties' is merged with a schema that has '%.64s' more", key);
    }
}

static const json_t *merge(struct st_schema *s, const json_t *a, const json_t *b,
                           const struct st_place *at) {
    json_t *merged = keep(s, copy_of(a), at), *value;
    const char *key;
    check_closed(s, a, b, at);
    check_closed(s, b, a, at);
    json_object_foreach((json_t *)b, key, value) {
        const json_t *old = json_object_get(a, key);
        join_fn *join = find_join(key);
        if (s->code.status != STINT_OK) return NULL;
        if (old && (json_equal(old, value) || st_schema_describes(key))) continue;
        if (old && (!join || json_is_array(old) != json_is_array(value))) {
            if (strcmp(key, "type") != 0) {
                st_schema_fail(s, STINT_E_UNSUPPORTED, at, "two different '%.64s' are merged", key);
                return NULL;
            }
        }
        if (json_object_set_new(merged, key, old ? join(old, value) : json_incref(value)) == 0)
            continue;
        s->code.status = st_fail(STINT_E_NOMEM, "no memory for a schema");
    }
    return s->code.status == STINT_OK ? merged : NULL;
}

const json_t *st_schema_both(struct st_schema *s, const json_t *a, const json_t *b,
                             const struct st_place *at) {
    if (json_is_true(b) || json_is_false(a)) return a;
    if (json_is_true(a) || json_is_false(b)) return b;
    st_schema_check(s, a, at);
    st_schema_check(s, b, at);
    if (s->depth >= ST_SCHEMA_DEPTH)
        st_schema_fail(s, STINT_E_LIMIT, at, "more than %d schemas are merged, or one with itself",
                       ST_SCHEMA_DEPTH);
    const char *ref = json_string_value(json_object_get(b, "$ref"));
    if (s->code.status != STINT_OK || !ref)
        return s->code.status == STINT_OK ? merge(s, a, b, at) : NULL;
    s->depth++;
    const json_t *target = st_schema_target(s, ref, at);
    const json_t *others = target ? st_schema_without(s, b, "$ref") : NULL;
    const json_t *whole = others ? st_schema_both(s, others, target, at) : NULL;
    const json_t *both = whole ? st_schema_both(s, a, whole, at) : NULL;
    s->depth--;
    return both;
}
