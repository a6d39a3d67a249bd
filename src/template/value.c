// SPDX-License-Identifier: Apache-2.0
// Makes values. Every list and dict stores its depth, so code that walks through one needs no bound
// of its own.
#include "template/value.h"

#include "base/size.h"
#include "base/utf8.h"

#include <string.h>

stint_status st_jinja_spend(struct st_jinja_run *run, uint64_t steps) {
    run->steps += steps;
    if (run->steps <= ST_JINJA_MAX_STEPS) return STINT_OK;
    return st_fail(STINT_E_LIMIT, "more than %d steps", ST_JINJA_MAX_STEPS);
}

stint_status st_jinja_descend(struct st_jinja_run *run) {
    ST_TRY(st_jinja_spend(run, 1));
    if (run->depth >= ST_JINJA_MAX_DEPTH)
        return st_fail(STINT_E_LIMIT, "nested deeper than %d", ST_JINJA_MAX_DEPTH);
    run->depth++;
    return STINT_OK;
}

struct st_jinja_value st_jinja_string(const char *data, size_t n) {
    return (struct st_jinja_value){.kind = ST_JINJA_STRING, .text = {data, n}};
}

struct st_jinja_value st_jinja_literal(const char *text) {
    return st_jinja_string(text, strlen(text));
}

struct st_jinja_value st_jinja_integer(int64_t integer) {
    return (struct st_jinja_value){.kind = ST_JINJA_INT, .integer = integer};
}

struct st_jinja_value st_jinja_real(double real) {
    return (struct st_jinja_value){.kind = ST_JINJA_FLOAT, .real = real};
}

struct st_jinja_value st_jinja_truth(bool truth) {
    return (struct st_jinja_value){.kind = ST_JINJA_BOOL, .truth = truth};
}

struct st_jinja_value st_jinja_none(void) {
    return (struct st_jinja_value){.kind = ST_JINJA_NONE};
}

struct st_jinja_value st_jinja_undefined(struct st_jinja_text name) {
    return (struct st_jinja_value){.kind = ST_JINJA_UNDEFINED, .text = name};
}

// Allocates a head and n items.
static stint_status take_items(struct st_jinja_run *run, size_t head, size_t n, size_t item,
                               void **out) {
    size_t bytes;
    if (!st_size_mul(n, item, &bytes) || !st_size_add(bytes, head, &bytes))
        return st_fail(STINT_E_LIMIT, "a list of %zu items is too long", n);
    ST_TRY(st_jinja_spend(run, n / 4 + 1));
    return st_jinja_take(&run->pool, bytes, out);
}

stint_status st_jinja_new_list(struct st_jinja_run *run, size_t n, struct st_jinja_list **list) {
    void *taken;
    ST_TRY(take_items(run, sizeof **list, n, sizeof(struct st_jinja_value), &taken));
    *list = taken;
    (*list)->n = n;
    return STINT_OK;
}

stint_status st_jinja_new_dict(struct st_jinja_run *run, size_t n, struct st_jinja_dict **dict) {
    void *taken;
    ST_TRY(take_items(run, sizeof **dict, n, sizeof(struct st_jinja_pair), &taken));
    *dict = taken;
    (*dict)->n = n;
    return STINT_OK;
}

static uint32_t depth_of(const struct st_jinja_value *v) {
    if (v->kind == ST_JINJA_LIST || v->kind == ST_JINJA_TUPLE) return v->list->depth;
    return v->kind == ST_JINJA_DICT ? v->dict->depth : 0;
}

static stint_status check_depth(uint32_t depth) {
    if (depth <= ST_JINJA_MAX_NESTING) return STINT_OK;
    return st_fail(STINT_E_LIMIT, "lists or objects nested deeper than %d", ST_JINJA_MAX_NESTING);
}

stint_status st_jinja_close_list(struct st_jinja_list *list, enum st_jinja_kind kind,
                                 struct st_jinja_value *out) {
    uint32_t depth = 0;
    for (size_t i = 0; i < list->n; i++)
        if (depth_of(&list->items[i]) > depth) depth = depth_of(&list->items[i]);
    ST_TRY(check_depth(list->depth = depth + 1));
    *out = (struct st_jinja_value){.kind = (uint8_t)kind, .list = list};
    return STINT_OK;
}

stint_status st_jinja_close_dict(struct st_jinja_dict *dict, struct st_jinja_value *out) {
    uint32_t depth = 0;
    for (size_t i = 0; i < dict->n; i++) {
        const struct st_jinja_pair *pair = &dict->pairs[i];
        if (depth_of(&pair->key) > depth) depth = depth_of(&pair->key);
        if (depth_of(&pair->value) > depth) depth = depth_of(&pair->value);
    }
    ST_TRY(check_depth(dict->depth = depth + 1));
    *out = (struct st_jinja_value){.kind = ST_JINJA_DICT, .dict = dict};
    return STINT_OK;
}

stint_status st_jinja_pair(struct st_jinja_run *run, struct st_jinja_value a,
                           struct st_jinja_value b, struct st_jinja_value *out) {
    struct st_jinja_list *pair;
    ST_TRY(st_jinja_new_list(run, 2, &pair));
    pair->items[0] = a;
    pair->items[1] = b;
    return st_jinja_close_list(pair, ST_JINJA_TUPLE, out);
}

static stint_status from_array(struct st_jinja_run *run, const json_t *json,
                               struct st_jinja_value *out) {
    struct st_jinja_list *list;
    size_t i;
    json_t *item;
    ST_TRY(st_jinja_new_list(run, json_array_size(json), &list));
    json_array_foreach(json, i, item) ST_TRY(st_jinja_from_json(run, item, &list->items[i]));
    return st_jinja_close_list(list, ST_JINJA_LIST, out);
}

static stint_status from_object(struct st_jinja_run *run, const json_t *json,
                                struct st_jinja_value *out) {
    struct st_jinja_dict *dict;
    size_t n = 0;
    ST_TRY(st_jinja_new_dict(run, json_object_size(json), &dict));
    // jansson's iterators take a non-const object; nothing changes it here.
    json_t *object = (json_t *)json;
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        const char *key = json_object_iter_key(i);
        dict->pairs[n].key = st_jinja_string(key, strlen(key));
        ST_TRY(st_jinja_from_json(run, json_object_iter_value(i), &dict->pairs[n++].value));
    }
    dict->n = n;
    return st_jinja_close_dict(dict, out);
}

static stint_status from_container(struct st_jinja_run *run, const json_t *json,
                                   struct st_jinja_value *out) {
    ST_TRY(st_jinja_descend(run));
    ST_TRY(check_depth(run->depth));
    stint_status status =
        json_is_array(json) ? from_array(run, json, out) : from_object(run, json, out);
    run->depth--;
    return status;
}

stint_status st_jinja_from_json(struct st_jinja_run *run, const json_t *json,
                                struct st_jinja_value *out) {
    switch (json ? json_typeof(json) : JSON_NULL) {
    case JSON_STRING:
        *out = st_jinja_string(json_string_value(json), json_string_length(json));
        return STINT_OK;
    case JSON_INTEGER:
        *out = st_jinja_integer(json_integer_value(json));
        return STINT_OK;
    case JSON_REAL:
        *out = st_jinja_real(json_real_value(json));
        return STINT_OK;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = st_jinja_truth(json_is_true(json));
        return STINT_OK;
    case JSON_ARRAY:
    case JSON_OBJECT:
        return from_container(run, json, out);
    default:
        *out = st_jinja_none();
        return STINT_OK;
    }
}

// ---- iteration

static stint_status iterate_text(struct st_jinja_run *run, struct st_jinja_text text,
                                 struct st_jinja_list **list) {
    ST_TRY(st_jinja_new_list(run, st_jinja_characters(text), list));
    size_t at = 0;
    for (size_t i = 0; i < (*list)->n; i++) {
        size_t n = st_utf8_length(text.data + at, text.n - at);
        (*list)->items[i] = st_jinja_string(text.data + at, n);
        at += n;
    }
    return STINT_OK;
}

static stint_status iterate_keys(struct st_jinja_run *run, const struct st_jinja_dict *dict,
                                 struct st_jinja_list **list) {
    ST_TRY(st_jinja_new_list(run, dict->n, list));
    for (size_t i = 0; i < dict->n; i++) (*list)->items[i] = dict->pairs[i].key;
    return STINT_OK;
}

stint_status st_jinja_iterate(struct st_jinja_run *run, const struct st_jinja_value *v,
                              const struct st_jinja_list **list) {
    struct st_jinja_list *made = NULL;
    stint_status status = STINT_OK;
    if (v->kind == ST_JINJA_LIST || v->kind == ST_JINJA_TUPLE)
        made = v->list;
    else if (v->kind == ST_JINJA_STRING)
        status = iterate_text(run, v->text, &made);
    else if (v->kind == ST_JINJA_DICT)
        status = iterate_keys(run, v->dict, &made);
    else if (v->kind == ST_JINJA_UNDEFINED)
        status = st_jinja_new_list(run, 0, &made);
    else
        status = st_fail(STINT_E_ARG, "%s is not iterable", st_jinja_kind_name(v));
    if (status == STINT_OK) *list = made;
    return status;
}

// ---- scopes

stint_status st_jinja_binding(struct st_jinja_run *run, const struct st_jinja_scope *scope,
                              struct st_jinja_text name, struct st_jinja_binding **found) {
    struct st_jinja_binding *binding = scope->first;
    ST_TRY(st_jinja_spend(run, scope->n / 16 + 1));
    while (binding && !st_jinja_same(binding->name, name)) binding = binding->next;
    *found = binding;
    return STINT_OK;
}

stint_status st_jinja_bind(struct st_jinja_run *run, struct st_jinja_scope *scope,
                           struct st_jinja_text name, const struct st_jinja_value *value) {
    struct st_jinja_binding *found;
    ST_TRY(st_jinja_binding(run, scope, name, &found));
    if (!found) {
        void *taken;
        ST_TRY(st_jinja_take(&run->pool, sizeof *found, &taken));
        found = taken;
        *found = (struct st_jinja_binding){.next = scope->first, .name = name};
        scope->first = found;
        scope->n++;
    }
    found->value = *value;
    return STINT_OK;
}
