// SPDX-License-Identifier: Apache-2.0
// A stable merge sort whose comparisons may fail. It merges runs of 1, 2, 4 ... items.
#include "template/builtin.h"

// The sort key of an item: the item, or the value that the path finds in it; in lower case unless
// case_sensitive.
static stint_status one_key(struct st_jinja_run *run, const struct st_jinja_value *item,
                            const struct st_jinja_value *path, bool by_case,
                            struct st_jinja_value *key) {
    *key = *item;
    if (path->kind != ST_JINJA_ABSENT && path->kind != ST_JINJA_NONE)
        ST_TRY(st_jinja_path(run, item, path, key));
    if (by_case || key->kind != ST_JINJA_STRING) return STINT_OK;
    struct st_jinja_value text = *key;
    return st_jinja_recase(run, text.text, ST_JINJA_LOWER, key);
}

// Of several paths, a list of a key each.
static stint_status key_of(struct st_jinja_run *run, const struct st_jinja_value *item,
                           const struct st_jinja_value *path, bool by_case,
                           struct st_jinja_value *key) {
    struct st_jinja_list *keys;
    if (path->kind != ST_JINJA_LIST) return one_key(run, item, path, by_case, key);
    ST_TRY(st_jinja_new_list(run, path->list->n, &keys));
    for (size_t i = 0; i < keys->n; i++)
        ST_TRY(one_key(run, item, &path->list->items[i], by_case, &keys->items[i]));
    return st_jinja_close_list(keys, ST_JINJA_LIST, key);
}

// Merges two runs of `from` into one of `to`. Items come in pairs: key, value.
static stint_status merge(struct st_jinja_run *run, const struct st_jinja_pair *from,
                          struct st_jinja_pair *to, size_t n_left, size_t n, bool reverse) {
    size_t left = 0, right = n_left;
    for (size_t i = 0; i < n; i++) {
        int order = right == n ? -1 : 1;
        if (left < n_left && right < n) {
            bool equal; // equal values, which may have no order
            ST_TRY(st_jinja_equal(run, &from[left].key, &from[right].key, &equal));
            order = 0;
            if (!equal) ST_TRY(st_jinja_compare(run, &from[left].key, &from[right].key, &order));
            if (reverse) order = -order;
        }
        to[i] = left < n_left && order <= 0 ? from[left++] : from[right++];
    }
    return STINT_OK;
}

stint_status st_jinja_sort(struct st_jinja_run *run, const struct st_jinja_list *list,
                           const struct st_jinja_value *path, bool by_case, bool reverse,
                           struct st_jinja_list **sorted) {
    struct st_jinja_dict *from, *to;
    size_t n = list->n;
    ST_TRY(st_jinja_new_dict(run, n, &from));
    ST_TRY(st_jinja_new_dict(run, n, &to));
    ST_TRY(st_jinja_new_list(run, n, sorted));
    for (size_t i = 0; i < n; i++) {
        from->pairs[i].value = list->items[i];
        ST_TRY(key_of(run, &list->items[i], path, by_case, &from->pairs[i].key));
    }
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t i = 0; i < n; i += 2 * width) {
            size_t rest = n - i, n_left = rest < width ? rest : width;
            size_t n_both = rest < 2 * width ? rest : 2 * width;
            ST_TRY(merge(run, from->pairs + i, to->pairs + i, n_left, n_both, reverse));
        }
        struct st_jinja_dict *swapped = from;
        from = to;
        to = swapped;
    }
    for (size_t i = 0; i < n; i++) (*sorted)->items[i] = from->pairs[i].value;
    return STINT_OK;
}
