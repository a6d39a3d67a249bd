// SPDX-License-Identifier: Apache-2.0
// Calls a row of a table: assigns the arguments to the parameters and checks them.
#include "template/builtin.h"

#include <string.h>

const struct st_jinja_builtin *st_jinja_row(const struct st_jinja_builtin *table,
                                            struct st_jinja_text name) {
    for (; table->name; table++)
        if (st_jinja_same(name, (struct st_jinja_text){table->name, strlen(table->name)}))
            return table;
    return NULL;
}

// The position of the parameter with this name, from 1; 0 if there is none.
static size_t place_of(const char *params, struct st_jinja_text name) {
    for (size_t place = 1; *params; place++) {
        size_t n = strcspn(params, " ");
        if (st_jinja_same(name, (struct st_jinja_text){params, n})) return place;
        params += n + (params[n] == ' ');
    }
    return 0;
}

static size_t count_params(const char *params) {
    size_t n = *params != 0;
    for (; *params; params++) n += *params == ' ';
    return n;
}

stint_status st_jinja_apply(struct st_jinja_run *run, const struct st_jinja_builtin *builtin,
                            const struct st_jinja_value *subject, const struct st_jinja_args *args,
                            struct st_jinja_value *out) {
    struct st_jinja_value v[ST_JINJA_MAX_PARAMS] = {*subject}, result;
    ST_TRY(st_jinja_descend(run));
    if (builtin->params) {
        size_t n = count_params(builtin->params);
        if (args->n > n)
            return st_fail(STINT_E_ARG, "'%s' takes %zu arguments, not %zu", builtin->name, n,
                           args->n);
        for (size_t i = 0; i < args->n; i++) v[i + 1] = args->values[i];
        for (size_t i = 0; i < args->n_named; i++) {
            struct st_jinja_text name = args->named[i].name;
            size_t place = place_of(builtin->params, name);
            if (place == 0 || v[place].kind != ST_JINJA_ABSENT)
                return st_fail(STINT_E_ARG, "'%s' takes no '%.*s' there", builtin->name,
                               (int)name.n, name.data);
            v[place] = args->named[i].value;
        }
        for (size_t i = 1; i <= builtin->required; i++)
            if (v[i].kind == ST_JINJA_ABSENT)
                return st_fail(STINT_E_ARG, "'%s' needs its argument %zu", builtin->name, i);
    }
    ST_TRY(builtin->call(run, v, args, &result));
    *out = result;
    run->depth--;
    return STINT_OK;
}

stint_status st_jinja_want_text(const struct st_jinja_value *v, struct st_jinja_text *text) {
    if (v->kind != ST_JINJA_STRING)
        return st_fail(STINT_E_ARG, "expected a string, not %s", st_jinja_kind_name(v));
    *text = v->text;
    return STINT_OK;
}

stint_status st_jinja_want_integer(const struct st_jinja_value *v, int64_t *integer) {
    if (st_jinja_is_integer(v, integer)) return STINT_OK;
    return st_fail(STINT_E_ARG, "expected an integer, not %s", st_jinja_kind_name(v));
}

stint_status st_jinja_optional(const struct st_jinja_value *v, int64_t otherwise,
                               int64_t *integer) {
    if (v->kind != ST_JINJA_ABSENT && v->kind != ST_JINJA_NONE)
        return st_jinja_want_integer(v, integer);
    *integer = otherwise;
    return STINT_OK;
}
