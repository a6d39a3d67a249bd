// SPDX-License-Identifier: Apache-2.0
// Objects and arrays. Members are written from the last to the first. Each has two entries: for the
// first member of the object, and after another member.
#include "constraint/schema.h"

#include "base/size.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct member {
    const char *name;
    const json_t *schema;
    bool required;
};

struct object {
    struct st_schema *s;
    const struct st_place *at;
    struct member *members; // [n]
    size_t n;
    const json_t *more; // the schema of undeclared members
};

static struct st_code *code_of(const struct object *o) {
    return &o->s->code;
}

static bool is_required(const json_t *required, const char *name) {
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *text = json_string_value(json_array_get(required, i));
        if (text && strcmp(text, name) == 0) return true;
    }
    return false;
}

static bool is_member(const struct object *o, const char *name) {
    for (size_t i = 0; i < o->n; i++)
        if (strcmp(o->members[i].name, name) == 0) return true;
    return false;
}

// Required names without their own schema come after the declared members and match the schema of
// undeclared ones.
static void add_required(struct object *o, const json_t *required, bool said) {
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *name = json_string_value(json_array_get(required, i));
        if (!name)
            st_schema_fail(o->s, STINT_E_ARG, o->at,
                           "'required' contains an item that is not a string");
        else if (!is_member(o, name))
            o->members[o->n++] = (struct member){name, said ? o->more : json_true(), true};
    }
}

static void read_members(struct object *o, const json_t *schema) {
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *required = json_object_get(schema, "required");
    size_t max = json_object_size(properties) + json_array_size(required);
    const char *key;
    json_t *value;
    o->more = json_object_get(schema, "additionalProperties");
    bool said = o->more != NULL;
    if (!said) o->more = properties ? json_false() : json_true();
    if (properties && !json_is_object(properties))
        st_schema_fail(o->s, STINT_E_ARG, o->at, "'properties' is not an object");
    if (required && !json_is_array(required))
        st_schema_fail(o->s, STINT_E_ARG, o->at, "'required' is not a list");
    if (max > ST_SCHEMA_NAMES)
        st_schema_fail(o->s, STINT_E_LIMIT, o->at, "more than %d properties", ST_SCHEMA_NAMES);
    if (o->s->code.status != STINT_OK) return;
    o->members = calloc(max + 1, sizeof *o->members);
    if (!o->members) {
        o->s->code.status = st_fail(STINT_E_NOMEM, "no memory for a schema");
        return;
    }
    json_object_foreach((json_t *)properties, key, value) {
        o->members[o->n++] = (struct member){key, value, is_required(required, key)};
    }
    add_required(o, required, said);
}

// The code after a name.
static uint32_t write_member_value(struct object *o, const json_t *schema, const char *name,
                                   uint32_t next) {
    struct st_code *code = code_of(o);
    struct st_place of = {o->at, "properties"}, inside = {&of, name};
    struct st_place more = {o->at, "additionalProperties"};
    uint32_t value = st_schema_value(o->s, schema, name ? &inside : &more, next);
    value = st_code_byte(code, ':', ':', st_code_space(code, value));
    return st_code_space(code, value);
}

static uint32_t write_member(struct object *o, const struct member *m, uint32_t next) {
    json_t *name = json_string(m->name);
    char *text = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
    if (!text && code_of(o)->status == STINT_OK)
        code_of(o)->status = st_fail(STINT_E_NOMEM, "no memory for a schema");
    uint32_t place = write_member_value(o, m->schema, m->name, next);
    if (text) place = st_code_text(code_of(o), text, strlen(text), place);
    free(text);
    json_decref(name);
    return place;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct member *)a)->name, ((const struct member *)b)->name);
}

static uint32_t char_at(const char *text, size_t *bytes) {
    size_t n = strnlen(text, 4);
    *bytes = st_utf8_length(text, n);
    return *bytes ? st_utf8_decode(text, *bytes) : 0;
}

// Adds the characters of [low, high] that a string can contain unescaped.
static size_t add_plain(struct st_range *ranges, size_t n, uint32_t low, uint32_t high) {
    static const struct st_range plain[] = {
        {0x20, 0x21}, {0x23, 0x5b}, {0x5d, 0xd7ff}, {0xe000, 0x10ffff}};
    for (size_t i = 0; i < 4; i++) {
        uint32_t from = (uint32_t)st_max(low, plain[i].low);
        uint32_t to = (uint32_t)st_min(high, plain[i].high);
        if (from <= to) ranges[n++] = (struct st_range){from, to};
    }
    return n;
}

// Writes the rest of a name that differs from the names of all members. Those are sorted and share
// the first `from` bytes, which the name has so far. Once the name differs from all of them, its
// rest is free. Until then it has no escapes, so no escape can spell one of them.
static uint32_t
write_other_name(struct object *o, const struct member *m, size_t n, size_t from,
                 const uint32_t ways[2]) { // free text; the code after the closing quote
    struct st_range *ranges = calloc(n + 8, sizeof *ranges);
    size_t n_ranges = 0, bytes = 0, i = 0;
    uint32_t place = 0, at = 0x20;
    if (!ranges) code_of(o)->status = st_fail(STINT_E_NOMEM, "no memory for a schema");
    if (n && !m[0].name[from])
        i = 1; // it may not end here: that would be a member's name
    else
        place = st_code_byte(code_of(o), '"', '"', ways[1]);
    while (i < n && code_of(o)->status == STINT_OK) {
        size_t first = i;
        uint32_t c = char_at(m[i].name + from, &bytes);
        while (i < n && char_at(m[i].name + from, &bytes) == c) i++;
        const char *text = m[first].name + from;
        char_at(text, &bytes);
        if (c < 0x20) continue;
        if (c > at) n_ranges = add_plain(ranges, n_ranges, at, c - 1);
        at = c + 1;
        if (c == '"' || c == '\\') continue;
        uint32_t longer = write_other_name(o, m + first, i - first, from + bytes, ways);
        place = st_code_split(code_of(o), st_code_text(code_of(o), text, bytes, longer), place);
    }
    if (ranges) n_ranges = add_plain(ranges, n_ranges, at, 0x10ffff);
    uint32_t others = st_code_chars(code_of(o), ranges, n_ranges, ways[0]);
    free(ranges);
    return st_code_split(code_of(o), others, place);
}

// Writes an undeclared member.
static uint32_t write_more(struct object *o, uint32_t next) {
    uint32_t value = write_member_value(o, o->more, NULL, next);
    for (size_t i = 0; i < o->n; i++)
        if (strlen(o->members[i].name) > ST_SCHEMA_NAME_CHARS)
            st_schema_fail(o->s, STINT_E_LIMIT, o->at,
                           "a name of more than %d bytes beside undeclared ones",
                           ST_SCHEMA_NAME_CHARS);
    struct member *sorted = calloc(o->n + 1, sizeof *sorted);
    if (!sorted && code_of(o)->status == STINT_OK)
        code_of(o)->status = st_fail(STINT_E_NOMEM, "no memory for a schema");
    if (!value || code_of(o)->status != STINT_OK) {
        free(sorted);
        return 0;
    }
    memcpy(sorted, o->members, o->n * sizeof *sorted);
    qsort(sorted, o->n, sizeof *sorted, by_name);
    uint32_t tail = st_code_string_tail(code_of(o), 0, ST_ENDLESS, value);
    uint32_t place = o->n ? write_other_name(o, sorted, o->n, 0, (uint32_t[2]){tail, value}) : tail;
    free(sorted);
    return st_code_byte(code_of(o), '"', '"', place);
}

uint32_t st_schema_other_texts(struct st_schema *s, const json_t *texts, const struct st_place *at,
                               uint32_t next) {
    struct object o = {.s = s, .at = at, .n = json_array_size(texts)};
    struct st_code *code = &s->code;
    if (code->status == STINT_OK) o.members = calloc(o.n + 1, sizeof *o.members);
    if (!o.members && code->status == STINT_OK)
        code->status = st_fail(STINT_E_NOMEM, "no memory for a schema");
    for (size_t i = 0; o.members && i < o.n; i++) {
        o.members[i].name = json_string_value(json_array_get(texts, i));
        if (strlen(o.members[i].name) > ST_SCHEMA_NAME_CHARS)
            st_schema_fail(s, STINT_E_LIMIT, at,
                           "a fixed text of more than %d bytes to differ from",
                           ST_SCHEMA_NAME_CHARS);
    }
    uint32_t place = 0;
    if (code->status == STINT_OK && next) {
        qsort(o.members, o.n, sizeof *o.members, by_name);
        uint32_t tail = st_code_string_tail(code, 0, ST_ENDLESS, next);
        place = write_other_name(&o, o.members, o.n, 0, (uint32_t[2]){tail, next});
        place = st_code_byte(code, '"', '"', place);
    }
    free(o.members);
    return place;
}

uint32_t st_schema_object(struct st_schema *s, const json_t *schema, const struct st_place *at) {
    struct object o = {.s = s, .at = at};
    struct st_code *code = &s->code;
    read_members(&o, schema);
    if (code->status != STINT_OK) {
        free(o.members);
        return 0;
    }
    uint32_t close = st_code_byte(code, '}', '}', st_code_return(code)), ahead = 0;
    bool may_close = true, more = !json_is_false(o.more);
    if (more) ahead = st_code_ahead(code);
    // Writes the members from the i-th on, and the code after the member before it.
    uint32_t coming = more ? write_more(&o, st_code_space(code, ahead)) : 0, behind = close;
    if (more) {
        behind = st_code_byte(code, ',', ',', st_code_space(code, coming));
        st_code_set(code, ahead, st_code_split(code, behind, close));
        behind = ahead;
    }
    for (size_t i = o.n; i-- > 0 && code->status == STINT_OK;) {
        uint32_t member = write_member(&o, &o.members[i], st_code_space(code, behind));
        may_close = may_close && !o.members[i].required;
        coming = o.members[i].required ? member : st_code_split(code, member, coming);
        behind = st_code_byte(code, ',', ',', st_code_space(code, coming));
        if (may_close) behind = st_code_split(code, behind, close);
    }
    uint32_t first = may_close ? st_code_split(code, coming, close) : coming;
    free(o.members);
    return st_code_byte(code, '{', '{', st_code_space(code, first));
}

struct array {
    struct st_schema *s;
    const struct st_place *at;
    const json_t *prefix, *items;
    uint32_t min, max, close;
};

static uint32_t write_item(struct array *a, size_t i, uint32_t next) {
    char number[24];
    bool ahead = i < json_array_size(a->prefix);
    struct st_place of = {a->at, ahead ? "prefixItems" : "items"}, inside = {&of, number};
    snprintf(number, sizeof number, "%zu", i);
    const json_t *schema = ahead ? json_array_get(a->prefix, i) : a->items;
    return st_schema_value(a->s, schema, ahead ? &inside : &of, st_code_space(&a->s->code, next));
}

// All items from the n-th on match the same schema. Returns the code after n items; *first begins a
// further one.
static uint32_t write_rest(struct array *a, uint32_t n, uint32_t *first) {
    struct st_code *code = &a->s->code;
    *first = 0;
    if (a->max <= n || json_is_false(a->items)) return a->min <= n ? a->close : 0;
    uint32_t min = a->min > n ? a->min - n - 1 : 0;
    uint32_t max = a->max == ST_ENDLESS ? ST_ENDLESS : a->max - n - 1;
    uint32_t loop = st_code_instr(
        code, (struct st_instr){.op = ST_OP_LOOP, .min = min, .max = max, .b = a->close});
    *first = write_item(a, n, loop);
    uint32_t comma = st_code_byte(code, ',', ',', st_code_space(code, *first));
    st_code_set(code, loop, comma);
    return a->min <= n ? st_code_split(code, comma, a->close) : comma;
}

uint32_t st_schema_array(struct st_schema *s, const json_t *schema, const struct st_place *at) {
    struct st_code *code = &s->code;
    struct array a = {.s = s, .at = at, .items = json_object_get(schema, "items")};
    a.prefix = json_object_get(schema, "prefixItems");
    a.min = st_schema_count(s, schema, "minItems", 0, at);
    a.max = st_schema_count(s, schema, "maxItems", ST_ENDLESS, at);
    if (a.prefix && !json_is_array(a.prefix))
        st_schema_fail(s, STINT_E_ARG, at, "'prefixItems' is not a list");
    if (json_array_size(a.prefix) > ST_SCHEMA_NAMES)
        st_schema_fail(s, STINT_E_LIMIT, at, "more than %d items", ST_SCHEMA_NAMES);
    if (!a.items) a.items = json_true();
    if (a.min > a.max) return 0;
    if (json_is_true(json_object_get(schema, "uniqueItems")) && a.max > 1)
        return st_schema_unique(s, schema, at);
    a.close = st_code_byte(code, ']', ']', st_code_return(code));
    size_t n = st_min(json_array_size(a.prefix), a.max);
    // As with members: an item, and the code after the item before it.
    uint32_t coming = 0, behind = write_rest(&a, (uint32_t)n, &coming);
    for (size_t i = n; i-- > 0 && code->status == STINT_OK;) {
        coming = write_item(&a, i, behind);
        behind = st_code_byte(code, ',', ',', st_code_space(code, coming));
        if (a.min <= i) behind = st_code_split(code, behind, a.close);
    }
    uint32_t first = a.min == 0 ? st_code_split(code, coming, a.close) : coming;
    return st_code_byte(code, '[', '[', st_code_space(code, first));
}
