// SPDX-License-Identifier: Apache-2.0
// Filters of lists and dicts. Where Jinja2 returns a generator, these return a list.
#include "template/builtin.h"

#include <string.h>

#define FILTER(name)                                                                               \
    static stint_status name(struct st_jinja_run *run, const struct st_jinja_value *v,             \
                             const struct st_jinja_args *args, struct st_jinja_value *out)

#define UNUSED(x) (void)(x)

FILTER(filter_length) {
    size_t n = 0;
    UNUSED(args);
    if (v[0].kind == ST_JINJA_STRING)
        n = st_jinja_characters(v[0].text);
    else if (v[0].kind == ST_JINJA_LIST || v[0].kind == ST_JINJA_TUPLE)
        n = v[0].list->n;
    else if (v[0].kind == ST_JINJA_DICT)
        n = v[0].dict->n;
    else if (v[0].kind != ST_JINJA_UNDEFINED)
        return st_fail(STINT_E_ARG, "%s has no length", st_jinja_kind_name(&v[0]));
    *out = st_jinja_integer((int64_t)n);
    return st_jinja_spend(run, v[0].kind == ST_JINJA_STRING ? v[0].text.n / 16 : 0);
}

// Makes a new list.
static stint_status copy(struct st_jinja_run *run, const struct st_jinja_value *v,
                         struct st_jinja_list **list) {
    const struct st_jinja_list *items;
    ST_TRY(st_jinja_iterate(run, v, &items));
    ST_TRY(st_jinja_new_list(run, items->n, list));
    for (size_t i = 0; i < items->n; i++) (*list)->items[i] = items->items[i];
    return STINT_OK;
}

FILTER(filter_list) {
    struct st_jinja_list *list;
    UNUSED(args);
    ST_TRY(copy(run, &v[0], &list));
    return st_jinja_close_list(list, ST_JINJA_LIST, out);
}

static stint_status end_of(struct st_jinja_run *run, const struct st_jinja_value *v, bool last,
                           struct st_jinja_value *out) {
    const struct st_jinja_list *items;
    ST_TRY(st_jinja_iterate(run, v, &items));
    *out = items->n ? items->items[last ? items->n - 1 : 0]
                    : st_jinja_undefined((struct st_jinja_text){"an item of an empty list", 24});
    return STINT_OK;
}

FILTER(filter_first) {
    UNUSED(args);
    return end_of(run, &v[0], false, out);
}

FILTER(filter_last) {
    UNUSED(args);
    return end_of(run, &v[0], true, out);
}

FILTER(filter_reverse) {
    struct st_jinja_value bounds[3] = {{0}, {0}, st_jinja_integer(-1)}, list;
    if (v[0].kind == ST_JINJA_STRING) return st_jinja_slice(run, &v[0], bounds, out);
    ST_TRY(filter_list(run, v, args, &list));
    return st_jinja_slice(run, &list, bounds, out);
}

// join(d='', attribute=None)
FILTER(filter_join) {
    struct st_jinja_value between = v[1].kind == ST_JINJA_ABSENT ? st_jinja_string("", 0) : v[1];
    const struct st_jinja_list *items;
    struct st_jinja_list *parts;
    UNUSED(args);
    ST_TRY(st_jinja_iterate(run, &v[0], &items));
    ST_TRY(st_jinja_new_list(run, items->n ? 2 * items->n - 1 : 0, &parts));
    for (size_t i = 0; i < items->n; i++) {
        struct st_jinja_value *part = &parts->items[2 * i];
        if (i) parts->items[2 * i - 1] = between;
        *part = items->items[i];
        if (v[2].kind != ST_JINJA_ABSENT && v[2].kind != ST_JINJA_NONE)
            ST_TRY(st_jinja_path(run, &items->items[i], &v[2], part));
    }
    return st_jinja_join(run, parts->items, parts->n, out);
}

FILTER(filter_items) {
    struct st_jinja_list *list;
    struct st_jinja_text name = {"items", 5};
    const struct st_jinja_builtin *items = st_jinja_method_of(&v[0], name);
    if (v[0].kind == ST_JINJA_UNDEFINED) {
        ST_TRY(st_jinja_new_list(run, 0, &list));
        return st_jinja_close_list(list, ST_JINJA_LIST, out);
    }
    if (v[0].kind != ST_JINJA_DICT || !items)
        return st_fail(STINT_E_ARG, "'items' of %s", st_jinja_kind_name(&v[0]));
    return items->call(run, v, args, out);
}

// ---- sorting

// sort(reverse=False, case_sensitive=False, attribute=None): by several, "a,b", one after the
// other.
FILTER(filter_sort) {
    const struct st_jinja_list *items;
    struct st_jinja_list *sorted;
    struct st_jinja_value path = v[3], comma = st_jinja_string(",", 1);
    UNUSED(args);
    ST_TRY(st_jinja_iterate(run, &v[0], &items));
    if (path.kind == ST_JINJA_STRING)
        ST_TRY(st_jinja_split(run, path.text, &comma, -1, false, &path));
    ST_TRY(st_jinja_sort(run, items, &path, st_jinja_is_true(&v[2]), st_jinja_is_true(&v[1]),
                         &sorted));
    return st_jinja_close_list(sorted, ST_JINJA_LIST, out);
}

// dictsort(case_sensitive=False, by='key', reverse=False)
FILTER(filter_dictsort) {
    struct st_jinja_value pairs;
    struct st_jinja_value path = st_jinja_integer(st_jinja_is(&v[2], "value"));
    struct st_jinja_list *sorted;
    if (v[2].kind != ST_JINJA_ABSENT && !st_jinja_is(&v[2], "key") && !st_jinja_is(&v[2], "value"))
        return st_fail(STINT_E_ARG, "'dictsort' sorts by key or value");
    if (v[0].kind != ST_JINJA_DICT)
        return st_fail(STINT_E_ARG, "'dictsort' of %s", st_jinja_kind_name(&v[0]));
    ST_TRY(filter_items(run, v, args, &pairs));
    ST_TRY(st_jinja_sort(run, pairs.list, &path, st_jinja_is_true(&v[1]), st_jinja_is_true(&v[3]),
                         &sorted));
    return st_jinja_close_list(sorted, ST_JINJA_LIST, out);
}

static stint_status extreme(struct st_jinja_run *run, const struct st_jinja_value *v, bool max,
                            struct st_jinja_value *out) {
    const struct st_jinja_list *items;
    struct st_jinja_list *sorted;
    ST_TRY(st_jinja_iterate(run, &v[0], &items));
    ST_TRY(st_jinja_sort(run, items, &v[2], st_jinja_is_true(&v[1]), max, &sorted));
    struct st_jinja_value list = {.kind = ST_JINJA_LIST, .list = sorted};
    return end_of(run, &list, false, out);
}

FILTER(filter_min) {
    UNUSED(args);
    return extreme(run, v, false, out);
}

FILTER(filter_max) {
    UNUSED(args);
    return extreme(run, v, true, out);
}

// unique(case_sensitive=False, attribute=None): keeps the first of equal items.
FILTER(filter_unique) {
    struct st_jinja_list *list, *keys;
    size_t n = 0;
    UNUSED(args);
    ST_TRY(copy(run, &v[0], &list));
    ST_TRY(st_jinja_new_list(run, list->n, &keys));
    for (size_t i = 0; i < list->n; i++) {
        struct st_jinja_value key = list->items[i], text;
        bool seen = false;
        if (v[2].kind != ST_JINJA_ABSENT && v[2].kind != ST_JINJA_NONE)
            ST_TRY(st_jinja_path(run, &list->items[i], &v[2], &key));
        if (key.kind == ST_JINJA_LIST || key.kind == ST_JINJA_DICT)
            return st_fail(STINT_E_ARG, "'unique' of %s", st_jinja_kind_name(&key));
        text = key;
        if (key.kind == ST_JINJA_STRING && !st_jinja_is_true(&v[1]))
            ST_TRY(st_jinja_recase(run, text.text, ST_JINJA_LOWER, &key));
        for (size_t k = 0; k < n && !seen; k++)
            ST_TRY(st_jinja_equal(run, &keys->items[k], &key, &seen));
        if (seen) continue;
        keys->items[n] = key;
        list->items[n++] = list->items[i];
    }
    list->n = n;
    return st_jinja_close_list(list, ST_JINJA_LIST, out);
}

// sum(attribute=None, start=0)
FILTER(filter_sum) {
    const struct st_jinja_list *items;
    struct st_jinja_value sum = v[2].kind == ST_JINJA_ABSENT ? st_jinja_integer(0) : v[2];
    UNUSED(args);
    ST_TRY(st_jinja_iterate(run, &v[0], &items));
    if (sum.kind == ST_JINJA_STRING) return st_fail(STINT_E_ARG, "'sum' adds no strings");
    for (size_t i = 0; i < items->n; i++) {
        struct st_jinja_value item = items->items[i], before = sum;
        if (v[1].kind != ST_JINJA_ABSENT && v[1].kind != ST_JINJA_NONE)
            ST_TRY(st_jinja_path(run, &items->items[i], &v[1], &item));
        ST_TRY(st_jinja_operate(run, '+', &before, &item, &sum));
    }
    *out = sum;
    return STINT_OK;
}

// ---- with another filter or test

static const struct st_jinja_named *find_named(const struct st_jinja_args *args, const char *name) {
    for (size_t i = 0; i < args->n_named; i++)
        if (st_jinja_same(args->named[i].name, (struct st_jinja_text){name, strlen(name)}))
            return &args->named[i];
    return NULL;
}

// A false value of any type counts as an empty list.
static stint_status copy_true(struct st_jinja_run *run, const struct st_jinja_value *v,
                              struct st_jinja_list **list) {
    return st_jinja_is_true(v) ? copy(run, v, list) : st_jinja_new_list(run, 0, list);
}

// map('filter', its arguments) or map(attribute=path, default=value)
FILTER(filter_map) {
    const struct st_jinja_named *path = find_named(args, "attribute");
    const struct st_jinja_named *otherwise = find_named(args, "default");
    const struct st_jinja_builtin *filter = NULL;
    struct st_jinja_args rest = *args;
    struct st_jinja_list *list;
    struct st_jinja_text name;
    ST_TRY(copy_true(run, &v[0], &list));
    if (!path || args->n) {
        if (args->n == 0) return st_fail(STINT_E_ARG, "'map' needs a filter or an attribute");
        ST_TRY(st_jinja_want_text(&args->values[0], &name));
        filter = st_jinja_filter(name);
        if (!filter) return st_fail(STINT_E_ARG, "'map' names an unknown filter");
        rest.values++;
        rest.n--;
    }
    for (size_t i = 0; i < list->n; i++) {
        struct st_jinja_value item = list->items[i];
        ST_TRY(filter ? st_jinja_apply(run, filter, &item, &rest, &list->items[i])
                      : st_jinja_path(run, &item, &path->value, &list->items[i]));
        if (!filter && otherwise && list->items[i].kind == ST_JINJA_UNDEFINED)
            list->items[i] = otherwise->value;
    }
    return st_jinja_close_list(list, ST_JINJA_LIST, out);
}

// Selects the items whose value or attribute passes the test (without a test: is true), or those
// that fail it.
static stint_status select_items(struct st_jinja_run *run, const struct st_jinja_value *subject,
                                 const struct st_jinja_args *args, bool by_attribute, bool wanted,
                                 struct st_jinja_value *out) {
    const struct st_jinja_builtin *test = NULL;
    struct st_jinja_args rest = *args;
    struct st_jinja_list *list;
    size_t n = 0, n_path = by_attribute ? 1 : 0;
    struct st_jinja_text name;
    if (args->n < n_path) return st_fail(STINT_E_ARG, "an attribute is missing");
    if (args->n > n_path) {
        ST_TRY(st_jinja_want_text(&args->values[n_path], &name));
        test = st_jinja_test(name);
        if (!test) return st_fail(STINT_E_ARG, "there is no such test");
        rest.values += n_path + 1;
        rest.n -= n_path + 1;
    }
    ST_TRY(copy_true(run, subject, &list));
    for (size_t i = 0; i < list->n; i++) {
        struct st_jinja_value v = list->items[i], holds;
        if (by_attribute) ST_TRY(st_jinja_path(run, &list->items[i], &args->values[0], &v));
        holds = v;
        if (test) ST_TRY(st_jinja_apply(run, test, &v, &rest, &holds));
        if (st_jinja_is_true(&holds) == wanted) list->items[n++] = list->items[i];
    }
    list->n = n;
    return st_jinja_close_list(list, ST_JINJA_LIST, out);
}

FILTER(filter_select) {
    return select_items(run, &v[0], args, false, true, out);
}

FILTER(filter_reject) {
    return select_items(run, &v[0], args, false, false, out);
}

FILTER(filter_selectattr) {
    return select_items(run, &v[0], args, true, true, out);
}

FILTER(filter_rejectattr) {
    return select_items(run, &v[0], args, true, false, out);
}

const struct st_jinja_builtin st_jinja_list_filters[] = {
    {"length", filter_length, "", 0},
    {"count", filter_length, "", 0},
    {"list", filter_list, "", 0},
    {"first", filter_first, "", 0},
    {"last", filter_last, "", 0},
    {"reverse", filter_reverse, "", 0},
    {"join", filter_join, "d attribute", 0},
    {"items", filter_items, "", 0},
    {"sort", filter_sort, "reverse case_sensitive attribute", 0},
    {"dictsort", filter_dictsort, "case_sensitive by reverse", 0},
    {"min", filter_min, "case_sensitive attribute", 0},
    {"max", filter_max, "case_sensitive attribute", 0},
    {"unique", filter_unique, "case_sensitive attribute", 0},
    {"sum", filter_sum, "attribute start", 0},
    {"map", filter_map, NULL, 0},
    {"select", filter_select, NULL, 0},
    {"reject", filter_reject, NULL, 0},
    {"selectattr", filter_selectattr, NULL, 0},
    {"rejectattr", filter_rejectattr, NULL, 0},
    {0},
};
