// SPDX-License-Identifier: Apache-2.0
// References within a schema, and the merging of schemas that must all match.
#include "constraint/schema.h"

#include "base/size.h"

#include <math.h>
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

json_t *st_schema_keep(struct st_schema *s, json_t *made, const struct st_place *at) {
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
    json_t *copy = st_schema_keep(s, copy_of(schema), &nowhere);
    if (copy) json_object_del(copy, keyword);
    return copy;
}

typedef json_t *join_fn(const json_t *a, const json_t *b); // a new reference; NULL: no memory

// A schema that requires both.
static json_t *join_all(const json_t *a, const json_t *b) {
    if (json_is_true(a) || json_is_false(b) || json_equal(a, b)) return json_incref((json_t *)b);
    if (json_is_true(b) || json_is_false(a)) return json_incref((json_t *)a);
    return json_pack("{s:[O,O]}", "allOf", a, b);
}

static json_t *join_any(const json_t *a, const json_t *b) {
    return json_pack("{s:[O,O]}", "anyOf", a, b);
}

// true if one of them is.
static json_t *join_flags(const json_t *a, const json_t *b) {
    return json_incref((json_t *)(json_is_true(a) ? a : b));
}

static bool has(const json_t *list, const json_t *item) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), item)) return true;
    return false;
}

static json_t *join_lists(const json_t *a, const json_t *b) {
    json_t *list = copy_of(a);
    for (size_t i = 0; list && i < json_array_size(b); i++) {
        if (has(a, json_array_get(b, i)) || !json_array_append(list, json_array_get(b, i)))
            continue;
        json_decref(list);
        list = NULL;
    }
    return list;
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
    if (json_array_size(list) != 1) return list;
    json_t *one = json_incref(json_array_get(list, 0));
    json_decref(list);
    return one;
}

static json_t *join_larger(const json_t *a, const json_t *b) {
    return json_incref((json_t *)(json_number_value(a) > json_number_value(b) ? a : b));
}

static json_t *join_smaller(const json_t *a, const json_t *b) {
    return json_incref((json_t *)(json_number_value(a) < json_number_value(b) ? a : b));
}

// The smallest number that is a multiple of both.
static json_t *join_multiples(const json_t *a, const json_t *b) {
    double x = json_number_value(a), y = json_number_value(b), power = 1;
    for (int places = 0; places <= 9; places++, power *= 10) {
        double left = nearbyint(x * power), right = nearbyint(y * power), one = left, other = right;
        if (left / power != x || right / power != y || left < 1 || right < 1) continue;
        while (other > 0) {
            double rest = fmod(one, other);
            one = other;
            other = rest;
        }
        return json_real(left / one * right / power);
    }
    return json_integer(INT32_MAX); // refused as too large
}

static const struct join {
    const char *keyword;
    join_fn *join;
} joins[] = {
    {"required", join_lists},
    {"allOf", join_lists},
    {"type", join_types},
    {"enum", join_values},
    {"additionalProperties", join_all},
    {"not", join_any},
    {"uniqueItems", join_flags},
    {"multipleOf", join_multiples},
    {ST_SCHEMA_NOT_MULTIPLES, join_lists},
    {ST_SCHEMA_NOT_TEXTS, join_lists},
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

static const json_t *or_true(const json_t *schema) {
    return schema ? schema : json_true();
}

// Each schema's additionalProperties hold for the names that only the other one declares. Names
// that are excluded so are left out.
static json_t *join_properties(const json_t *a, const json_t *b) {
    const json_t *sides[2] = {a, b}, *names[2];
    json_t *joined = json_object(), *value;
    const char *key;
    bool ok = joined != NULL;
    for (int i = 0; i < 2; i++) names[i] = json_object_get(sides[i], "properties");
    for (int i = 0; i < 2; i++) {
        const json_t *more = or_true(json_object_get(sides[1 - i], "additionalProperties"));
        json_object_foreach((json_t *)names[i], key, value) {
            const json_t *other = json_object_get(names[1 - i], key);
            if ((i == 1 && other) || (!other && json_is_false(more))) continue;
            ok = ok && json_object_set_new(joined, key, join_all(value, other ? other : more)) == 0;
        }
    }
    if (ok) return joined;
    json_decref(joined);
    return NULL;
}

// The items of one schema hold behind its own prefix.
static json_t *join_prefix(const json_t *a, const json_t *b) {
    const json_t *lists[2] = {json_object_get(a, "prefixItems"), json_object_get(b, "prefixItems")};
    const json_t *rest[2] = {or_true(json_object_get(a, "items")),
                             or_true(json_object_get(b, "items"))};
    json_t *joined = json_array();
    size_t n = st_max(json_array_size(lists[0]), json_array_size(lists[1]));
    bool ok = joined != NULL;
    for (size_t i = 0; i < n; i++) {
        const json_t *left = json_array_get(lists[0], i), *right = json_array_get(lists[1], i);
        ok = ok && json_array_append_new(
                       joined, join_all(left ? left : rest[0], right ? right : rest[1])) == 0;
    }
    if (ok) return joined;
    json_decref(joined);
    return NULL;
}

// What two schemas say together that no keyword says alone.
static bool merge_parts(struct st_schema *s, const json_t *a, const json_t *b, json_t *merged) {
    static const struct {
        const char *keyword;
        join_fn *join;
    } parts[] = {{"properties", join_properties}, {"prefixItems", join_prefix}};
    for (size_t i = 0; i < 2; i++) {
        const char *keyword = parts[i].keyword;
        if (!json_object_get(a, keyword) && !json_object_get(b, keyword)) continue;
        if (json_object_set_new(merged, keyword, parts[i].join(a, b)) == 0) continue;
        if (s->code.status == STINT_OK)
            s->code.status = st_fail(STINT_E_NOMEM, "no memory for a schema");
        return false;
    }
    const json_t *left = json_object_get(a, "items"), *right = json_object_get(b, "items");
    if (!left || !right || json_object_set_new(merged, "items", join_all(left, right)) == 0)
        return true;
    if (s->code.status == STINT_OK)
        s->code.status = st_fail(STINT_E_NOMEM, "no memory for a schema");
    return false;
}

// True if it is plain that no value follows it.
static bool is_impossible(const json_t *schema) {
    const json_t *type = json_object_get(schema, "type");
    const json_t *required = json_object_get(schema, "required");
    const json_t *names = json_object_get(schema, "properties");
    if (json_is_array(type) && json_array_size(type) == 0) return true;
    bool closed = json_is_false(json_object_get(schema, "additionalProperties"));
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *name = json_string_value(json_array_get(required, i));
        const json_t *member = name ? json_object_get(names, name) : NULL;
        if (json_is_false(member) || (name && !member && closed)) return true;
    }
    return false;
}

// merge_parts() joins them.
static bool is_joined_apart(const char *keyword) {
    return strcmp(keyword, "properties") == 0 || strcmp(keyword, "prefixItems") == 0 ||
           strcmp(keyword, "items") == 0;
}

static const json_t *merge(struct st_schema *s, const json_t *a, const json_t *b,
                           const struct st_place *at) {
    json_t *merged = st_schema_keep(s, copy_of(a), at), *value;
    const json_t *fixed[2] = {json_object_get(a, "const"), json_object_get(b, "const")};
    const char *key;
    if (!merged) return NULL;
    if (fixed[0] && fixed[1] && !json_equal(fixed[0], fixed[1])) return json_false();
    json_object_foreach((json_t *)b, key, value) {
        const json_t *old = json_object_get(a, key);
        join_fn *join = find_join(key);
        if (s->code.status != STINT_OK) return NULL;
        if (old && (is_joined_apart(key) || json_equal(old, value) || st_schema_describes(key)))
            continue;
        if (old && (!join || json_is_array(old) != json_is_array(value))) {
            if (strcmp(key, "type") != 0) {
                st_schema_fail(s, STINT_E_UNSUPPORTED, at, "two different '%.64s' are merged", key);
                return NULL;
            }
        }
        // Our own keywords are not UTF-8.
        json_t *joined = old ? join(old, value) : json_incref(value);
        if (joined && json_object_set_new_nocheck(merged, key, joined) == 0) continue;
        s->code.status = st_fail(STINT_E_NOMEM, "no memory for a schema");
    }
    if (s->code.status != STINT_OK || !merge_parts(s, a, b, merged)) return NULL;
    return is_impossible(merged) ? json_false() : merged;
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
