// SPDX-License-Identifier: Apache-2.0
// Arrays whose items differ, where the items have fixed values: there is a piece of code for each
// set of values that have been written.
#include "constraint/schema.h"

#include <stdlib.h>
#include <string.h>

enum { VALUES_MAX = 10 };

struct unique {
    struct st_schema *s;
    const struct st_place *at;
    char *texts[VALUES_MAX];
    size_t n;
    uint32_t min, max, close;
    uint32_t *after; // [1 << n] the code behind an item, by the values so far
};

static void refuse(struct unique *u) {
    st_schema_fail(u->s, STINT_E_UNSUPPORTED, u->at,
                   "'uniqueItems' is only supported for items of up to %d fixed values (enum, "
                   "const, boolean, null)",
                   VALUES_MAX);
}

// Takes over `value`.
static void add_value(struct unique *u, json_t *value) {
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    if (!text && u->s->code.status == STINT_OK)
        u->s->code.status = st_fail(STINT_E_NOMEM, "no memory for a schema");
    json_decref(value);
    for (size_t i = 0; text && i < u->n; i++) {
        if (strcmp(text, u->texts[i]) != 0) continue;
        free(text);
        return;
    }
    if (text && u->n == VALUES_MAX) {
        refuse(u);
        free(text);
    } else if (text) {
        u->texts[u->n++] = text;
    }
}

// Numbers other than integers may be spelled in several ways.
static bool is_plain(const json_t *value) {
    return !json_is_real(value) && !json_is_array(value) && !json_is_object(value);
}

static void add_values(struct unique *u, const json_t *items) {
    items = st_schema_resolve(u->s, items, u->at);
    const json_t *list = json_object_get(items, "enum"), *one = json_object_get(items, "const");
    unsigned types = json_is_object(items) ? st_schema_types(u->s, items, u->at) : ST_TYPE_ANY;
    if (u->s->code.status != STINT_OK) return;
    if (list || one) {
        for (size_t i = 0; i < (one ? 1 : json_array_size(list)); i++) {
            json_t *value = one ? (json_t *)one : json_array_get(list, i);
            if (!is_plain(value)) refuse(u);
            if (st_schema_matches(u->s, items, value, u->at)) add_value(u, json_incref(value));
        }
        return;
    }
    if (types & ~(unsigned)(ST_TYPE_NULL | ST_TYPE_BOOLEAN) || !json_object_get(items, "type")) {
        refuse(u);
        return;
    }
    if (types & ST_TYPE_NULL) add_value(u, json_null());
    if (types & ST_TYPE_BOOLEAN) add_value(u, json_true());
    if (types & ST_TYPE_BOOLEAN) add_value(u, json_false());
}

static uint32_t count(uint32_t set) {
    uint32_t n = 0;
    for (; set; set &= set - 1) n++;
    return n;
}

// One of the values that are not in `set`.
static uint32_t write_item(struct unique *u, uint32_t set) {
    struct st_literal literals[VALUES_MAX];
    size_t n = 0;
    for (size_t i = 0; i < u->n; i++) {
        uint32_t next = u->after[set | 1u << i];
        if (!(set >> i & 1) && next)
            literals[n++] = (struct st_literal){u->texts[i], strlen(u->texts[i]),
                                                st_code_space(&u->s->code, next)};
    }
    return st_code_literals(&u->s->code, literals, n);
}

static uint32_t write_all(struct unique *u) {
    struct st_code *code = &u->s->code;
    uint32_t first = 0;
    u->close = st_code_byte(code, ']', ']', st_code_return(code));
    for (uint32_t set = 1u << u->n; set-- > 0 && code->status == STINT_OK;) {
        uint32_t n = count(set), close = n >= u->min ? u->close : 0;
        uint32_t item = n < u->max ? write_item(u, set) : 0;
        first = st_code_split(code, item, close);
        u->after[set] = st_code_split(
            code, st_code_byte(code, ',', ',', item ? st_code_space(code, item) : 0), close);
    }
    return st_code_byte(code, '[', '[', first ? st_code_space(code, first) : 0);
}

uint32_t st_schema_unique(struct st_schema *s, const json_t *schema, const struct st_place *at) {
    struct unique u = {.s = s, .at = at};
    uint32_t place = 0;
    u.min = st_schema_count(s, schema, "minItems", 0, at);
    u.max = st_schema_count(s, schema, "maxItems", ST_ENDLESS, at);
    const json_t *items = json_object_get(schema, "items");
    if (json_object_get(schema, "prefixItems") || !items)
        refuse(&u);
    else
        add_values(&u, items);
    u.after = calloc((size_t)1 << u.n, sizeof *u.after);
    if (!u.after && s->code.status == STINT_OK)
        s->code.status = st_fail(STINT_E_NOMEM, "no memory for a schema");
    if (s->code.status == STINT_OK) place = write_all(&u);
    for (size_t i = 0; i < u.n; i++) free(u.texts[i]);
    free(u.after);
    return place;
}
