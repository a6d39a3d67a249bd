// SPDX-License-Identifier: Apache-2.0
// The opposite of a schema as a list of schemas: each says how one keyword is not followed. What
// no list can say is refused; some of that never concerns the values that are asked about.
#include "constraint/schema.h"

#include <stdlib.h>
#include <string.h>

enum { PARTS_MAX = 64, EXACT_MAX = 1 << 30 };

struct opposite {
    struct st_schema *s;
    const struct st_place *at;
    const json_t *schema;
    const json_t *with; // only values that follow it matter
    json_t *parts;
};

typedef void not_fn(struct opposite *o, const json_t *rule);

static void no_memory(struct opposite *o) {
    if (o->s->code.status == STINT_OK)
        o->s->code.status = st_fail(STINT_E_NOMEM, "no memory for a schema");
}

// Takes over `part`; NULL means that there is no memory.
static void add(struct opposite *o, json_t *part) {
    if (json_array_size(o->parts) >= PARTS_MAX)
        st_schema_fail(o->s, STINT_E_LIMIT, o->at, "more than %d ways not to follow it", PARTS_MAX);
    if (!part || json_array_append_new(o->parts, part) != 0) no_memory(o);
}

static bool ok(const struct opposite *o) {
    return o->s->code.status == STINT_OK;
}

// The types that values of `with` may have.
static unsigned types_of(struct opposite *o) {
    const json_t *with = json_is_object(o->with) ? o->with : NULL;
    static const char *const inside[] = {"$ref", "allOf", "anyOf", "oneOf", "enum", "const"};
    if (!json_object_get(with, "type"))
        for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
            if (json_object_get(with, inside[i])) return ST_TYPE_ANY;
    return with ? st_schema_types(o->s, with, o->at) : ST_TYPE_ANY;
}

static void refuse(struct opposite *o, const char *keyword) {
    st_schema_fail(o->s, STINT_E_UNSUPPORTED, o->at,
                   "values without '%s' cannot be enforced, as 'not' or overlapping alternatives "
                   "of 'oneOf' ask",
                   keyword);
}

static void extend(struct opposite *o, const json_t *more) {
    for (size_t i = 0; more && i < json_array_size(more) && ok(o); i++)
        add(o, json_incref(json_array_get(more, i)));
}

static const json_t *opposite_of(struct opposite *o, const json_t *schema, const json_t *with) {
    return st_schema_not(o->s, schema, with, o->at);
}

static void not_ref(struct opposite *o, const json_t *rule) {
    const char *ref = json_string_value(rule);
    const json_t *target = ref ? st_schema_target(o->s, ref, o->at) : NULL;
    if (!ref) st_schema_fail(o->s, STINT_E_ARG, o->at, "'$ref' is not a string");
    if (target) extend(o, opposite_of(o, target, o->with));
}

static void not_all(struct opposite *o, const json_t *rule) {
    for (size_t i = 0; i < json_array_size(rule) && ok(o); i++)
        extend(o, opposite_of(o, json_array_get(rule, i), o->with));
}

static void not_any(struct opposite *o, const json_t *rule) {
    const json_t *with = o->with ? o->with : json_true();
    const json_t *rest = st_schema_keep(o->s, json_pack("[O]", with), o->at);
    for (size_t i = 0; rest && i < json_array_size(rule); i++)
        rest = st_schema_less(o->s, rest, json_array_get(rule, i), o->at);
    extend(o, rest);
}

static void not_one(struct opposite *o, const json_t *rule) {
    if (json_array_size(rule) == 1)
        not_any(o, rule);
    else
        refuse(o, "oneOf");
}

static void not_not(struct opposite *o, const json_t *rule) {
    add(o, json_incref((json_t *)rule));
}

static void not_type(struct opposite *o, const json_t *rule) {
    static const char *const names[] = {"null",   "boolean", "integer", "number",
                                        "string", "array",   "object"}; // as ST_TYPE_*
    unsigned types = st_schema_types(o->s, o->schema, o->at), others = ST_TYPE_ANY & ~types;
    json_t *list = json_array();
    (void)rule;
    if (types & ST_TYPE_NUMBER) others &= ~(unsigned)ST_TYPE_INTEGER;
    if (types & ST_TYPE_INTEGER) others &= ~(unsigned)ST_TYPE_NUMBER;
    if (others & ST_TYPE_NUMBER) others &= ~(unsigned)ST_TYPE_INTEGER;
    for (size_t i = 0; list && i < sizeof names / sizeof *names; i++)
        if (others >> i & 1 && json_array_append_new(list, json_string(names[i])) != 0)
            no_memory(o);
    if (!list) no_memory(o);
    if (json_array_size(list) > 0)
        add(o, json_pack("{s:o}", "type", list));
    else
        json_decref(list);
    if (!(types & ST_TYPE_INTEGER) || types & ST_TYPE_NUMBER) return;
    json_t *part = json_pack("{s:s}", "type", "number");
    if (part && json_object_set_new_nocheck(part, ST_SCHEMA_NOT_MULTIPLES, json_pack("[i]", 1)))
        no_memory(o);
    add(o, part);
}

static int by_number(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void add_between(struct opposite *o, const double *low, const double *high) {
    json_t *part = json_pack("{s:s}", "type", "number");
    if (low && json_object_set_new(part, "exclusiveMinimum", json_real(*low)) != 0) no_memory(o);
    if (high && json_object_set_new(part, "exclusiveMaximum", json_real(*high)) != 0) no_memory(o);
    add(o, part);
}

static void not_numbers(struct opposite *o, const json_t *values) {
    double *numbers = calloc(json_array_size(values) + 1, sizeof *numbers);
    size_t n = 0;
    if (!numbers) {
        no_memory(o);
        return;
    }
    for (size_t i = 0; i < json_array_size(values); i++)
        if (json_is_number(json_array_get(values, i)))
            numbers[n++] = json_number_value(json_array_get(values, i));
    qsort(numbers, n, sizeof *numbers, by_number);
    for (size_t i = 0; i <= n && ok(o); i++)
        if (i == 0 || i == n || numbers[i] > numbers[i - 1])
            add_between(o, i > 0 ? &numbers[i - 1] : NULL, i < n ? &numbers[i] : NULL);
    if (n > 0 && (numbers[0] < -EXACT_MAX || numbers[n - 1] > EXACT_MAX))
        refuse(o, "enum"); // doubles do not tell such numbers apart
    free(numbers);
}

static void not_texts(struct opposite *o, const json_t *values) {
    json_t *texts = json_array(), *part = json_pack("{s:s}", "type", "string");
    bool fine = texts && part;
    for (size_t i = 0; i < json_array_size(values); i++)
        if (json_is_string(json_array_get(values, i)))
            fine = fine && json_array_append(texts, json_array_get(values, i)) == 0;
    if (json_array_size(texts) > 0)
        fine = fine && json_object_set_nocheck(part, ST_SCHEMA_NOT_TEXTS, texts) == 0;
    json_decref(texts);
    if (!fine) no_memory(o);
    add(o, part);
}

static void not_values(struct opposite *o, const json_t *values) {
    bool is_null = false, is_true = false, is_false = false, nests = false;
    for (size_t i = 0; i < json_array_size(values); i++) {
        const json_t *value = json_array_get(values, i);
        is_null = is_null || json_is_null(value);
        is_true = is_true || json_is_true(value);
        is_false = is_false || json_is_false(value);
        nests = nests || json_is_array(value) || json_is_object(value);
    }
    if (nests && types_of(o) & (ST_TYPE_ARRAY | ST_TYPE_OBJECT)) refuse(o, "enum");
    add(o, json_pack("{s:[s,s]}", "type", "array", "object"));
    if (!is_null) add(o, json_pack("{s:n}", "const"));
    if (!is_true) add(o, json_pack("{s:b}", "const", 1));
    if (!is_false) add(o, json_pack("{s:b}", "const", 0));
    not_texts(o, values);
    not_numbers(o, values);
}

static void not_const(struct opposite *o, const json_t *rule) {
    const json_t *list = st_schema_keep(o->s, json_pack("[O]", rule), o->at);
    if (list) not_values(o, list);
}

// A number of the opposite keyword.
static void add_bound(struct opposite *o, const char *type, const char *keyword, json_t *value) {
    add(o, json_pack("{s:s, s:o}", "type", type, keyword, value));
}

static const struct bound {
    const char *keyword, *type, *opposite;
    int step; // for counts
} bounds[] = {
    {"minimum", "number", "exclusiveMaximum", 0}, {"maximum", "number", "exclusiveMinimum", 0},
    {"exclusiveMinimum", "number", "maximum", 0}, {"exclusiveMaximum", "number", "minimum", 0},
    {"minLength", "string", "maxLength", -1},     {"maxLength", "string", "minLength", 1},
    {"minItems", "array", "maxItems", -1},        {"maxItems", "array", "minItems", 1},
};

static void not_bound(struct opposite *o, const struct bound *bound, const json_t *rule) {
    if (!bound->step) {
        if (!json_is_number(rule))
            st_schema_fail(o->s, STINT_E_ARG, o->at, "'%s' is not a number", bound->keyword);
        add_bound(o, bound->type, bound->opposite, json_incref((json_t *)rule));
        return;
    }
    int64_t count = st_schema_count(o->s, o->schema, bound->keyword, 0, o->at);
    if (count + bound->step >= 0)
        add_bound(o, bound->type, bound->opposite, json_integer(count + bound->step));
}

static void not_multiple(struct opposite *o, const json_t *rule) {
    json_t *part = json_pack("{s:s}", "type", "number"), *list = json_pack("[O]", rule);
    if (!part || !list || json_object_set_nocheck(part, ST_SCHEMA_NOT_MULTIPLES, list) != 0)
        no_memory(o);
    json_decref(list);
    add(o, part);
}

// An item that does not follow its schema; the others are free.
static void add_items(struct opposite *o, size_t i, const json_t *schema, const json_t *with) {
    const json_t *parts = opposite_of(o, schema, with);
    for (size_t k = 0; parts && k < json_array_size(parts) && ok(o); k++) {
        json_t *prefix = json_array();
        for (size_t n = 0; n < i; n++)
            if (json_array_append_new(prefix, json_true()) != 0) no_memory(o);
        if (json_array_append(prefix, json_array_get(parts, k)) != 0) no_memory(o);
        add(o, json_pack("{s:s, s:I, s:o}", "type", "array", "minItems", (json_int_t)i + 1,
                         "prefixItems", prefix));
    }
}

static void not_prefix(struct opposite *o, const json_t *rule) {
    for (size_t i = 0; i < json_array_size(rule) && i < PARTS_MAX && ok(o); i++)
        add_items(o, i, json_array_get(rule, i), NULL);
    if (json_array_size(rule) > PARTS_MAX) refuse(o, "prefixItems");
}

static void not_items(struct opposite *o, const json_t *rule) {
    size_t from = json_array_size(json_object_get(o->schema, "prefixItems"));
    bool object = json_is_object(o->with);
    size_t to = object ? st_schema_count(o->s, o->with, "maxItems", ST_ENDLESS, o->at) : ST_ENDLESS;
    if (!(types_of(o) & ST_TYPE_ARRAY) || json_is_true(rule)) return;
    if (json_is_false(rule)) {
        add_bound(o, "array", "minItems", json_integer((json_int_t)from + 1));
        return;
    }
    if (to > PARTS_MAX) refuse(o, "items");
    for (size_t i = from; i < to && ok(o); i++) add_items(o, i, rule, NULL);
}

static void not_unique(struct opposite *o, const json_t *rule) {
    if (json_is_true(rule) && types_of(o) & ST_TYPE_ARRAY) refuse(o, "uniqueItems");
}

static void not_pattern(struct opposite *o, const json_t *rule) {
    (void)rule;
    if (types_of(o) & ST_TYPE_STRING) refuse(o, "pattern");
}

static void not_format(struct opposite *o, const json_t *rule) {
    (void)rule;
    if (types_of(o) & ST_TYPE_STRING) refuse(o, "format");
}

// Objects that have the member, with a value that does not follow its schema.
static void add_member(struct opposite *o, const char *name, const json_t *schema) {
    const json_t *with = json_object_get(json_object_get(o->with, "properties"), name);
    const json_t *parts = opposite_of(o, schema, with);
    for (size_t i = 0; parts && i < json_array_size(parts) && ok(o); i++)
        add(o, json_pack("{s:s, s:[s], s:{s:O}, s:b}", "type", "object", "required", name,
                         "properties", name, json_array_get(parts, i), "additionalProperties", 1));
}

static void not_properties(struct opposite *o, const json_t *rule) {
    const char *name;
    json_t *schema;
    if (!(types_of(o) & ST_TYPE_OBJECT)) return;
    json_object_foreach((json_t *)rule, name, schema) if (ok(o)) add_member(o, name, schema);
}

static void not_required(struct opposite *o, const json_t *rule) {
    for (size_t i = 0; i < json_array_size(rule) && ok(o); i++) {
        const char *name = json_string_value(json_array_get(rule, i));
        if (!name) continue; // said where objects are written
        add(o, json_pack("{s:s, s:{s:b}, s:b}", "type", "object", "properties", name, 0,
                         "additionalProperties", 1));
    }
}

// One of the undeclared members; `with` must be closed, so that they have names.
static void not_more(struct opposite *o, const json_t *rule) {
    const json_t *declared = json_object_get(o->schema, "properties");
    const char *name;
    json_t *schema;
    if (json_is_true(rule) || !(types_of(o) & ST_TYPE_OBJECT)) return;
    if (!json_is_false(json_object_get(o->with, "additionalProperties")))
        refuse(o, "additionalProperties");
    json_object_foreach(json_object_get(o->with, "properties"), name, schema) {
        if (ok(o) && !json_object_get(declared, name)) add_member(o, name, rule);
    }
}

static const struct {
    const char *keyword;
    not_fn *run;
} rules[] = {
    {"$ref", not_ref},
    {"allOf", not_all},
    {"anyOf", not_any},
    {"oneOf", not_one},
    {"not", not_not},
    {"type", not_type},
    {"enum", not_values},
    {"const", not_const},
    {"multipleOf", not_multiple},
    {"pattern", not_pattern},
    {"format", not_format},
    {"prefixItems", not_prefix},
    {"items", not_items},
    {"uniqueItems", not_unique},
    {"properties", not_properties},
    {"required", not_required},
    {"additionalProperties", not_more},
};

const json_t *st_schema_not(struct st_schema *s, const json_t *schema, const json_t *with,
                            const struct st_place *at) {
    struct opposite o = {s, at, schema, with, st_schema_keep(s, json_array(), at)};
    if (!o.parts || json_is_false(schema)) {
        if (o.parts) add(&o, json_true());
        return ok(&o) ? o.parts : NULL;
    }
    if (json_is_true(schema)) return o.parts;
    if (s->depth >= ST_SCHEMA_DEPTH)
        st_schema_fail(s, STINT_E_LIMIT, at, "more than %d nested schemas", ST_SCHEMA_DEPTH);
    st_schema_check(s, schema, at);
    s->depth++;
    for (size_t i = 0; i < sizeof rules / sizeof *rules && ok(&o); i++) {
        const json_t *rule = json_object_get(schema, rules[i].keyword);
        if (rule) rules[i].run(&o, rule);
    }
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds && ok(&o); i++) {
        const json_t *rule = json_object_get(schema, bounds[i].keyword);
        if (rule) not_bound(&o, &bounds[i], rule);
    }
    s->depth--;
    return ok(&o) ? o.parts : NULL;
}
