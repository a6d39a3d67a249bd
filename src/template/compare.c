// SPDX-License-Identifier: Apache-2.0
// Truth, equality and order as in Python.
#include "template/value.h"

#include <string.h>

bool st_jinja_same(struct st_jinja_text a, struct st_jinja_text b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.data, b.data, a.n) == 0);
}

bool st_jinja_is_true(const struct st_jinja_value *v) {
    switch (v->kind) {
    case ST_JINJA_BOOL:
        return v->truth;
    case ST_JINJA_INT:
        return v->integer != 0;
    case ST_JINJA_FLOAT:
        return v->real != 0;
    case ST_JINJA_STRING:
        return v->text.n > 0;
    case ST_JINJA_LIST:
    case ST_JINJA_TUPLE:
        return v->list->n > 0;
    case ST_JINJA_DICT:
        return v->dict->n > 0;
    default:
        return v->kind >= ST_JINJA_NAMESPACE;
    }
}

bool st_jinja_is(const struct st_jinja_value *v, const char *text) {
    return v->kind == ST_JINJA_STRING &&
           st_jinja_same(v->text, (struct st_jinja_text){text, strlen(text)});
}

const char *st_jinja_kind_name(const struct st_jinja_value *v) {
    static const char *const names[] = {
        [ST_JINJA_ABSENT] = "nothing",
        [ST_JINJA_UNDEFINED] = "something undefined",
        [ST_JINJA_NONE] = "none",
        [ST_JINJA_BOOL] = "a bool",
        [ST_JINJA_INT] = "an integer",
        [ST_JINJA_FLOAT] = "a float",
        [ST_JINJA_STRING] = "a string",
        [ST_JINJA_LIST] = "a list",
        [ST_JINJA_TUPLE] = "a tuple",
        [ST_JINJA_DICT] = "a dict",
        [ST_JINJA_NAMESPACE] = "a namespace",
        [ST_JINJA_LOOP] = "a loop",
        [ST_JINJA_MACRO] = "a macro",
        [ST_JINJA_FUNCTION] = "a function",
        [ST_JINJA_METHOD] = "a method",
    };
    return names[v->kind];
}

bool st_jinja_is_integer(const struct st_jinja_value *v, int64_t *integer) {
    if (v->kind == ST_JINJA_INT)
        *integer = v->integer;
    else if (v->kind == ST_JINJA_BOOL)
        *integer = v->truth;
    else
        return false;
    return true;
}

bool st_jinja_is_number(const struct st_jinja_value *v, double *real) {
    int64_t integer;
    if (v->kind == ST_JINJA_FLOAT)
        *real = v->real;
    else if (st_jinja_is_integer(v, &integer))
        *real = (double)integer;
    else
        return false;
    return true;
}

static int sign(bool below, bool above) {
    return above - below;
}

// An integer against a float, where the integer may have more digits than the float. False for NaN.
static bool order_mixed(int64_t a, double b, int *order) {
    const double limit = 9223372036854775808.0; // 2^63
    if (b != b) return false;
    if (b >= limit || b < -limit) {
        *order = b > 0 ? -1 : 1;
    } else {
        int64_t whole = (int64_t)b;
        *order = a != whole ? sign(a<whole, a> whole) : sign((double)whole<b, (double)whole> b);
    }
    return true;
}

// False if one is not a number or is NaN; then they have no order.
static bool order_numbers(const struct st_jinja_value *a, const struct st_jinja_value *b,
                          int *order) {
    int64_t i, k;
    bool a_integer = st_jinja_is_integer(a, &i), b_integer = st_jinja_is_integer(b, &k);
    if (a_integer && b_integer) {
        *order = sign(i<k, i> k);
        return true;
    }
    if (a_integer && b->kind == ST_JINJA_FLOAT) return order_mixed(i, b->real, order);
    if (b_integer && a->kind == ST_JINJA_FLOAT) {
        bool ordered = order_mixed(k, a->real, order);
        if (ordered) *order = -*order;
        return ordered;
    }
    if (a->kind != ST_JINJA_FLOAT || b->kind != ST_JINJA_FLOAT) return false;
    *order = sign(a->real<b->real, a->real> b->real);
    return a->real == a->real && b->real == b->real;
}

static stint_status equal_lists(struct st_jinja_run *run, const struct st_jinja_list *a,
                                const struct st_jinja_list *b, bool *equal) {
    bool same = a->n == b->n;
    for (size_t i = 0; i < a->n && same; i++)
        ST_TRY(st_jinja_equal(run, &a->items[i], &b->items[i], &same));
    *equal = same;
    return STINT_OK;
}

static stint_status equal_dicts(struct st_jinja_run *run, const struct st_jinja_dict *a,
                                const struct st_jinja_dict *b, bool *equal) {
    bool same = a->n == b->n;
    for (size_t i = 0; i < a->n && same; i++) {
        size_t found;
        ST_TRY(st_jinja_find(run, b, &a->pairs[i].key, &found));
        same = found < b->n;
        if (same) ST_TRY(st_jinja_equal(run, &a->pairs[i].value, &b->pairs[found].value, &same));
    }
    *equal = same;
    return STINT_OK;
}

stint_status st_jinja_equal(struct st_jinja_run *run, const struct st_jinja_value *a,
                            const struct st_jinja_value *b, bool *equal) {
    int order;
    ST_TRY(st_jinja_spend(run, 1));
    if (a->kind != b->kind || a->kind < ST_JINJA_STRING) {
        *equal = order_numbers(a, b, &order) ? order == 0
                                             : a->kind == b->kind && a->kind <= ST_JINJA_NONE;
        return STINT_OK;
    }
    switch (a->kind) {
    case ST_JINJA_STRING:
        ST_TRY(st_jinja_spend(run, a->text.n / 64));
        *equal = st_jinja_same(a->text, b->text);
        return STINT_OK;
    case ST_JINJA_LIST:
    case ST_JINJA_TUPLE:
        return equal_lists(run, a->list, b->list, equal);
    case ST_JINJA_DICT:
        return equal_dicts(run, a->dict, b->dict, equal);
    default: // values that are equal only to themselves
        *equal = (const void *)a->space == (const void *)b->space;
        return STINT_OK;
    }
}

static stint_status compare_lists(struct st_jinja_run *run, const struct st_jinja_list *a,
                                  const struct st_jinja_list *b, int *order) {
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        bool equal;
        ST_TRY(st_jinja_equal(run, &a->items[i], &b->items[i], &equal));
        if (!equal) return st_jinja_compare(run, &a->items[i], &b->items[i], order);
    }
    *order = sign(a->n<b->n, a->n> b->n);
    return STINT_OK;
}

stint_status st_jinja_compare(struct st_jinja_run *run, const struct st_jinja_value *a,
                              const struct st_jinja_value *b, int *order) {
    double x, y;
    ST_TRY(st_jinja_spend(run, 1));
    if (st_jinja_is_number(a, &x) && st_jinja_is_number(b, &y)) {
        if (!order_numbers(a, b, order)) return st_fail(STINT_E_ARG, "NaN has no order");
        return STINT_OK;
    }
    if (a->kind == b->kind && a->kind == ST_JINJA_STRING) {
        size_t n = a->text.n < b->text.n ? a->text.n : b->text.n;
        ST_TRY(st_jinja_spend(run, n / 64));
        int first = n ? memcmp(a->text.data, b->text.data, n) : 0;
        *order = first ? first : sign(a->text.n<b->text.n, a->text.n> b->text.n);
        return STINT_OK;
    }
    if (a->kind == b->kind && (a->kind == ST_JINJA_LIST || a->kind == ST_JINJA_TUPLE))
        return compare_lists(run, a->list, b->list, order);
    return st_fail(STINT_E_ARG, "%s and %s have no order", st_jinja_kind_name(a),
                   st_jinja_kind_name(b));
}

stint_status st_jinja_find(struct st_jinja_run *run, const struct st_jinja_dict *dict,
                           const struct st_jinja_value *key, size_t *found) {
    ST_TRY(st_jinja_spend(run, dict->n / 16 + 1));
    size_t i = 0;
    bool equal = false;
    for (; i < dict->n; i++) {
        const struct st_jinja_value *k = &dict->pairs[i].key;
        if (key->kind == ST_JINJA_STRING && k->kind == ST_JINJA_STRING)
            equal = st_jinja_same(key->text, k->text);
        else
            ST_TRY(st_jinja_equal(run, key, k, &equal));
        if (equal) break;
    }
    *found = i;
    return STINT_OK;
}

stint_status st_jinja_contains(struct st_jinja_run *run, const struct st_jinja_value *container,
                               const struct st_jinja_value *item, bool *contains) {
    const struct st_jinja_list *list;
    if (container->kind == ST_JINJA_STRING) {
        if (item->kind != ST_JINJA_STRING)
            return st_fail(STINT_E_ARG, "%s cannot be in a string", st_jinja_kind_name(item));
        ST_TRY(st_jinja_spend(run, container->text.n / 64));
        *contains = item->text.n == 0 ||
                    (container->text.n && memmem(container->text.data, container->text.n,
                                                 item->text.data, item->text.n));
        return STINT_OK;
    }
    if (container->kind == ST_JINJA_DICT) {
        size_t found;
        if (item->kind == ST_JINJA_LIST || item->kind == ST_JINJA_DICT)
            return st_fail(STINT_E_ARG, "%s cannot be a key", st_jinja_kind_name(item));
        ST_TRY(st_jinja_find(run, container->dict, item, &found));
        *contains = found < container->dict->n;
        return STINT_OK;
    }
    ST_TRY(st_jinja_iterate(run, container, &list));
    bool equal = false;
    for (size_t i = 0; i < list->n && !equal; i++)
        ST_TRY(st_jinja_equal(run, &list->items[i], item, &equal));
    *contains = equal;
    return STINT_OK;
}
