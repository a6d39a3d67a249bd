// SPDX-License-Identifier: Apache-2.0
// Functions that a template can call without an object: Jinja2's range, dict and namespace, and
// those that Hugging Face adds.
#include "template/builtin.h"
#include "template/run.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static stint_status call_range(struct st_jinja_run *run, const struct st_jinja_value *v,
                               const struct st_jinja_args *args, struct st_jinja_value *out) {
    int64_t from = 0, to, step = 1;
    struct st_jinja_list *list;
    (void)v;
    if (args->n < 1 || args->n > 3 || args->n_named)
        return st_fail(STINT_E_ARG, "'range' takes one to three integers");
    ST_TRY(st_jinja_want_integer(&args->values[args->n > 1], &to));
    if (args->n > 1) ST_TRY(st_jinja_want_integer(&args->values[0], &from));
    if (args->n > 2) ST_TRY(st_jinja_want_integer(&args->values[2], &step));
    if (step == 0) return st_fail(STINT_E_ARG, "'range' with step 0");
    bool up = step > 0;
    uint64_t span = up ? (uint64_t)to - (uint64_t)from : (uint64_t)from - (uint64_t)to;
    uint64_t stride = up ? (uint64_t)step : 0 - (uint64_t)step;
    uint64_t n = (up ? from < to : from > to) ? (span - 1) / stride + 1 : 0;
    if (n > ST_JINJA_MAX_RANGE)
        return st_fail(STINT_E_LIMIT, "a range of more than %d", ST_JINJA_MAX_RANGE);
    ST_TRY(st_jinja_new_list(run, n, &list));
    for (size_t i = 0; i < n; i++) list->items[i] = st_jinja_integer(from + (int64_t)i * step);
    return st_jinja_close_list(list, ST_JINJA_LIST, out);
}

// dict(...) takes another dict, or pairs, and then keywords.
static stint_status call_dict(struct st_jinja_run *run, const struct st_jinja_value *v,
                              const struct st_jinja_args *args, struct st_jinja_value *out) {
    struct st_jinja_dict *dict;
    const struct st_jinja_dict *first = NULL;
    (void)v;
    if (args->n > 1 || (args->n == 1 && args->values[0].kind != ST_JINJA_DICT))
        return st_fail(STINT_E_ARG, "expected a dict or keyword arguments");
    if (args->n) first = args->values[0].dict;
    ST_TRY(st_jinja_new_dict(run, (first ? first->n : 0) + args->n_named, &dict));
    dict->n = 0;
    for (size_t i = 0; first && i < first->n; i++) dict->pairs[dict->n++] = first->pairs[i];
    for (size_t i = 0; i < args->n_named; i++) {
        struct st_jinja_text name = args->named[i].name;
        struct st_jinja_value key = st_jinja_string(name.data, name.n);
        size_t found;
        ST_TRY(st_jinja_find(run, dict, &key, &found));
        if (found == dict->n) dict->n++;
        dict->pairs[found] = (struct st_jinja_pair){key, args->named[i].value};
    }
    return st_jinja_close_dict(dict, out);
}

static stint_status call_namespace(struct st_jinja_run *run, const struct st_jinja_value *v,
                                   const struct st_jinja_args *args, struct st_jinja_value *out) {
    struct st_jinja_scope *space;
    struct st_jinja_value dict;
    ST_TRY(call_dict(run, v, args, &dict));
    ST_TRY(st_jinja_new_scope(run, NULL, &space));
    for (size_t i = 0; i < dict.dict->n; i++) {
        const struct st_jinja_pair *pair = &dict.dict->pairs[i];
        if (pair->key.kind != ST_JINJA_STRING)
            return st_fail(STINT_E_ARG, "a name in a namespace is not a string");
        ST_TRY(st_jinja_bind(run, space, pair->key.text, &pair->value));
    }
    *out = (struct st_jinja_value){.kind = ST_JINJA_NAMESPACE, .space = space};
    return STINT_OK;
}

static stint_status call_raise(struct st_jinja_run *run, const struct st_jinja_value *v,
                               const struct st_jinja_args *args, struct st_jinja_value *out) {
    struct st_jinja_value text;
    (void)args;
    (void)out;
    ST_TRY(st_jinja_str(run, &v[1], &text));
    return st_fail(STINT_E_ARG, "%.*s", text.text.n < 500 ? (int)text.text.n : 500, text.text.data);
}

static stint_status call_strftime(struct st_jinja_run *run, const struct st_jinja_value *v,
                                  const struct st_jinja_args *args, struct st_jinja_value *out) {
    struct st_jinja_text format;
    char copy[128], text[1024];
    time_t now = (time_t)run->now;
    struct tm tm;
    size_t mark = run->out.count;
    (void)args;
    ST_TRY(st_jinja_want_text(&v[1], &format));
    // A field width could ask for any number of characters.
    bool too_long = format.n + 2 > sizeof copy || memchr(format.data, 0, format.n);
    for (size_t i = 1; i < format.n && !too_long; i++)
        if (format.data[i - 1] == '%' && strchr("0123456789_^#+", format.data[i])) too_long = true;
    if (too_long || !localtime_r(&now, &tm))
        return st_fail(STINT_E_ARG, "'strftime_now' does not support this format");
    snprintf(copy, sizeof copy, "%.*s ", (int)format.n, format.n ? format.data : "");
    size_t n = strftime(text, sizeof text, copy,
                        &tm); // the blank distinguishes an empty result from a failure
    ST_TRY(st_jinja_put(run, text, n ? n - 1 : 0));
    return st_jinja_cut(run, mark, out);
}

static const struct st_jinja_builtin functions[] = {
    {"range", call_range, NULL, 0},
    {"dict", call_dict, NULL, 0},
    {"namespace", call_namespace, NULL, 0},
    {"raise_exception", call_raise, "message", 1},
    {"strftime_now", call_strftime, "format", 1},
    {0},
};

const struct st_jinja_builtin *st_jinja_function(struct st_jinja_text name) {
    return st_jinja_row(functions, name);
}
