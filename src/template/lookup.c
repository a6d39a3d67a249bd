// SPDX-License-Identifier: Apache-2.0
// Attributes and items. As in Jinja2, a.b looks for the method first and a["b"] for the item.
#include "template/builtin.h"

#include <string.h>

static stint_status fail_undefined(const struct st_jinja_value *v) {
    int n = v->text.n < 60 ? (int)v->text.n : 60;
    return st_fail(STINT_E_ARG, "'%.*s' is undefined", n, v->text.data);
}

// ---- loop.index and the other loop attributes

static stint_status call_cycle(struct st_jinja_run *run, const struct st_jinja_value *v,
                               const struct st_jinja_args *args, struct st_jinja_value *out) {
    (void)run;
    if (args->n == 0) return st_fail(STINT_E_ARG, "'cycle' needs arguments");
    *out = args->values[v[0].loop->i % args->n];
    return STINT_OK;
}

static stint_status call_changed(struct st_jinja_run *run, const struct st_jinja_value *v,
                                 const struct st_jinja_args *args, struct st_jinja_value *out) {
    struct st_jinja_list *seen;
    struct st_jinja_value now;
    bool same = false;
    ST_TRY(st_jinja_new_list(run, args->n, &seen));
    for (size_t i = 0; i < args->n; i++) seen->items[i] = args->values[i];
    ST_TRY(st_jinja_close_list(seen, ST_JINJA_TUPLE, &now));
    if (v[0].loop->changed.kind == ST_JINJA_TUPLE)
        ST_TRY(st_jinja_equal(run, &v[0].loop->changed, &now, &same));
    v[0].loop->changed = now;
    *out = st_jinja_truth(!same);
    return STINT_OK;
}

static const struct st_jinja_builtin loop_methods[] = {
    {"cycle", call_cycle, NULL, 0}, {"changed", call_changed, NULL, 0}, {0}};

static bool named(struct st_jinja_text name, const char *word) {
    return st_jinja_same(name, (struct st_jinja_text){word, strlen(word)});
}

// False if there is no such attribute.
static bool loop_attribute(const struct st_jinja_loop *loop, struct st_jinja_text name,
                           struct st_jinja_value *out) {
    size_t i = loop->i, n = loop->items->n;
    const struct {
        const char *name;
        size_t value;
    } numbers[] = {{"index", i + 1},         {"index0", i}, {"length", n}, {"revindex", n - i},
                   {"revindex0", n - i - 1}, {"depth", 1},  {"depth0", 0}};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        if (named(name, numbers[k].name)) {
            *out = st_jinja_integer((int64_t)numbers[k].value);
            return true;
        }
    if (named(name, "first"))
        *out = st_jinja_truth(i == 0);
    else if (named(name, "last"))
        *out = st_jinja_truth(i + 1 == n);
    else if (named(name, "previtem"))
        *out = i > 0 ? loop->items->items[i - 1] : st_jinja_undefined(name);
    else if (named(name, "nextitem"))
        *out = i + 1 < n ? loop->items->items[i + 1] : st_jinja_undefined(name);
    else
        return false;
    return true;
}

// ---- attributes

static stint_status find_method(struct st_jinja_run *run, const struct st_jinja_value *self,
                                struct st_jinja_text name, struct st_jinja_value *out) {
    const struct st_jinja_builtin *row = self->kind == ST_JINJA_LOOP
                                             ? st_jinja_row(loop_methods, name)
                                             : st_jinja_method_of(self, name);
    void *taken;
    *out = st_jinja_undefined(name);
    if (!row) return STINT_OK;
    ST_TRY(st_jinja_take(&run->pool, sizeof(struct st_jinja_method), &taken));
    struct st_jinja_method *method = taken;
    *method = (struct st_jinja_method){row, *self};
    *out = (struct st_jinja_value){.kind = ST_JINJA_METHOD, .method = method};
    return STINT_OK;
}

static stint_status find_key(struct st_jinja_run *run, const struct st_jinja_value *dict,
                             const struct st_jinja_value *key, struct st_jinja_value *out) {
    size_t found;
    ST_TRY(st_jinja_find(run, dict->dict, key, &found));
    if (found < dict->dict->n) *out = dict->dict->pairs[found].value;
    return STINT_OK;
}

stint_status st_jinja_attribute(struct st_jinja_run *run, const struct st_jinja_value *subject,
                                struct st_jinja_text name, struct st_jinja_value *out) {
    struct st_jinja_value key = st_jinja_string(name.data, name.n);
    if (subject->kind == ST_JINJA_UNDEFINED) return fail_undefined(subject);
    if (subject->kind == ST_JINJA_LOOP && loop_attribute(subject->loop, name, out)) return STINT_OK;
    if (subject->kind == ST_JINJA_NAMESPACE) {
        struct st_jinja_binding *found;
        ST_TRY(st_jinja_binding(run, subject->space, name, &found));
        *out = found ? found->value : st_jinja_undefined(name);
        return STINT_OK;
    }
    ST_TRY(find_method(run, subject, name, out));
    if (subject->kind == ST_JINJA_DICT && out->kind == ST_JINJA_UNDEFINED)
        return find_key(run, subject, &key, out);
    return STINT_OK;
}

stint_status st_jinja_item(struct st_jinja_run *run, const struct st_jinja_value *subject,
                           const struct st_jinja_value *key, struct st_jinja_value *out) {
    int64_t i;
    bool is_list = subject->kind == ST_JINJA_LIST || subject->kind == ST_JINJA_TUPLE;
    if (subject->kind == ST_JINJA_UNDEFINED) return fail_undefined(subject);
    *out = st_jinja_undefined((struct st_jinja_text){"the item", 8});
    if (subject->kind == ST_JINJA_DICT) {
        if (key->kind == ST_JINJA_LIST || key->kind == ST_JINJA_DICT) return STINT_OK;
        ST_TRY(find_key(run, subject, key, out));
        if (out->kind != ST_JINJA_UNDEFINED) return STINT_OK;
    } else if ((is_list || subject->kind == ST_JINJA_STRING) && st_jinja_is_integer(key, &i)) {
        size_t n = is_list ? subject->list->n : st_jinja_characters(subject->text);
        if (i < 0 && i >= -(int64_t)n) i += (int64_t)n;
        if (i < 0 || (uint64_t)i >= n) return STINT_OK;
        if (is_list) {
            *out = subject->list->items[i];
            return STINT_OK;
        }
        struct st_jinja_value from = st_jinja_integer(i), to = st_jinja_integer(i + 1);
        return st_jinja_slice(run, subject, (struct st_jinja_value[3]){from, to, {0}}, out);
    }
    if (key->kind == ST_JINJA_STRING) return st_jinja_attribute(run, subject, key->text, out);
    return STINT_OK;
}

stint_status st_jinja_path(struct st_jinja_run *run, const struct st_jinja_value *subject,
                           const struct st_jinja_value *path, struct st_jinja_value *out) {
    struct st_jinja_value v = *subject, next;
    if (path->kind == ST_JINJA_INT) return st_jinja_item(run, subject, path, out);
    struct st_jinja_text rest;
    ST_TRY(st_jinja_want_text(path, &rest));
    for (bool more = true; more;) {
        const char *dot = rest.n ? memchr(rest.data, '.', rest.n) : NULL;
        size_t n = dot ? (size_t)(dot - rest.data) : rest.n;
        struct st_jinja_value key = st_jinja_string(rest.data, n);
        int64_t index = 0;
        size_t n_digits = 0;
        while (n_digits < n && n_digits < 10 && rest.data[n_digits] >= '0' &&
               rest.data[n_digits] <= '9')
            index = index * 10 + rest.data[n_digits++] - '0';
        if (n > 0 && n_digits == n) key = st_jinja_integer(index);
        ST_TRY(st_jinja_item(run, &v, &key, &next));
        v = next;
        more = dot != NULL;
        if (more) rest = (struct st_jinja_text){dot + 1, rest.n - n - 1};
    }
    *out = v;
    return STINT_OK;
}
