// SPDX-License-Identifier: Apache-2.0
// Runs statements. Each iteration of a loop has its own scope, so a variable that is set in one is
// gone in the next. Branches have no scope.
#include "template/run.h"

#include "template/jinja.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

stint_status st_jinja_new_scope(struct st_jinja_run *run, const struct st_jinja_scope *parent,
                                struct st_jinja_scope **scope) {
    void *taken;
    ST_TRY(st_jinja_take(&run->pool, sizeof **scope, &taken));
    *scope = taken;
    (*scope)->parent = parent;
    return STINT_OK;
}

// ---- set

static stint_status assign_field(struct st_jinja_run *run, struct st_jinja_scope *scope,
                                 const struct st_jinja_node *target,
                                 const struct st_jinja_value *value) {
    struct st_jinja_value space;
    ST_TRY(st_jinja_eval(run, scope, target->a, &space));
    if (space.kind != ST_JINJA_NAMESPACE)
        return st_fail(STINT_E_ARG, "only a namespace's attributes can be set, not those of %s",
                       st_jinja_kind_name(&space));
    return st_jinja_bind(run, space.space, target->name, value);
}

static stint_status assign(struct st_jinja_run *run, struct st_jinja_scope *scope,
                           const struct st_jinja_node *target, const struct st_jinja_value *value) {
    const struct st_jinja_list *parts;
    if (target->kind == ST_JINJA_N_NAME) return st_jinja_bind(run, scope, target->name, value);
    if (target->kind == ST_JINJA_N_ATTRIBUTE) return assign_field(run, scope, target, value);
    ST_TRY(st_jinja_iterate(run, value, &parts));
    size_t i = 0;
    for (const struct st_jinja_node *item = target->items; item; item = item->next, i++)
        if (i < parts->n) ST_TRY(assign(run, scope, item, &parts->items[i]));
    if (i == parts->n) return STINT_OK;
    return st_fail(STINT_E_ARG, "%zu values for %zu names", parts->n, i);
}

// Renders a body and applies the filters.
static stint_status capture(struct st_jinja_run *run, struct st_jinja_scope *scope,
                            const struct st_jinja_node *node, struct st_jinja_value *out) {
    struct st_jinja_scope *inner;
    size_t mark = run->out.count;
    ST_TRY(st_jinja_new_scope(run, scope, &inner));
    ST_TRY(st_jinja_exec(run, inner, node->d));
    ST_TRY(st_jinja_cut(run, mark, out));
    if (!node->b) return STINT_OK;
    run->captured = *out;
    return st_jinja_eval(run, scope, node->b, out);
}

static stint_status exec_set(struct st_jinja_run *run, struct st_jinja_scope *scope,
                             const struct st_jinja_node *node) {
    struct st_jinja_value value;
    ST_TRY(node->kind == ST_JINJA_N_SET ? st_jinja_eval(run, scope, node->b, &value)
                                        : capture(run, scope, node, &value));
    return assign(run, scope, node->a, &value);
}

static stint_status exec_filtered(struct st_jinja_run *run, struct st_jinja_scope *scope,
                                  const struct st_jinja_node *node) {
    struct st_jinja_value value;
    ST_TRY(capture(run, scope, node, &value));
    return st_jinja_put_str(run, &value);
}

// ---- if, for

static stint_status exec_if(struct st_jinja_run *run, struct st_jinja_scope *scope,
                            const struct st_jinja_node *node) {
    for (const struct st_jinja_node *branch = node->items; branch; branch = branch->next) {
        struct st_jinja_value condition = st_jinja_truth(true);
        run->line = branch->line;
        if (branch->a) ST_TRY(st_jinja_eval(run, scope, branch->a, &condition));
        if (st_jinja_is_true(&condition)) return st_jinja_exec(run, scope, branch->b);
    }
    return STINT_OK;
}

// Selects the items for which the loop's condition holds.
static stint_status select_items(struct st_jinja_run *run, struct st_jinja_scope *scope,
                                 const struct st_jinja_node *node,
                                 const struct st_jinja_list **items) {
    const struct st_jinja_list *all = *items;
    struct st_jinja_list *selected;
    size_t n = 0;
    ST_TRY(st_jinja_new_list(run, all->n, &selected));
    for (size_t i = 0; i < all->n; i++) {
        struct st_jinja_scope *inner;
        struct st_jinja_value holds;
        ST_TRY(st_jinja_new_scope(run, scope, &inner));
        ST_TRY(assign(run, inner, node->a, &all->items[i]));
        ST_TRY(st_jinja_eval(run, inner, node->c, &holds));
        if (st_jinja_is_true(&holds)) selected->items[n++] = all->items[i];
    }
    selected->n = n;
    *items = selected;
    return STINT_OK;
}

static stint_status exec_step(struct st_jinja_run *run, struct st_jinja_scope *scope,
                              const struct st_jinja_node *node, struct st_jinja_loop *loop) {
    static const struct st_jinja_text name = {"loop", 4};
    struct st_jinja_value value = {.kind = ST_JINJA_LOOP, .loop = loop};
    struct st_jinja_scope *inner;
    ST_TRY(st_jinja_spend(run, 1));
    ST_TRY(st_jinja_new_scope(run, scope, &inner));
    ST_TRY(assign(run, inner, node->a, &loop->items->items[loop->i]));
    ST_TRY(st_jinja_bind(run, inner, name, &value));
    return st_jinja_exec(run, inner, node->d);
}

static stint_status exec_for(struct st_jinja_run *run, struct st_jinja_scope *scope,
                             const struct st_jinja_node *node) {
    struct st_jinja_value over;
    const struct st_jinja_list *items;
    void *taken;
    ST_TRY(st_jinja_eval(run, scope, node->b, &over));
    ST_TRY(st_jinja_iterate(run, &over, &items));
    if (node->c) ST_TRY(select_items(run, scope, node, &items));
    ST_TRY(st_jinja_take(&run->pool, sizeof(struct st_jinja_loop), &taken));
    struct st_jinja_loop *loop = taken;
    loop->items = items;
    bool ended =
        false; // an iteration ran to its end; as in Jinja2, one left by break does not count
    for (; loop->i < items->n && run->flow != ST_JINJA_BREAKS; loop->i++) {
        run->flow = ST_JINJA_GOES_ON;
        ST_TRY(exec_step(run, scope, node, loop));
        if (run->flow == ST_JINJA_GOES_ON) ended = true;
    }
    run->flow = ST_JINJA_GOES_ON;
    if (ended || !node->e) return STINT_OK;
    struct st_jinja_scope *inner;
    ST_TRY(st_jinja_new_scope(run, scope, &inner));
    return st_jinja_exec(run, inner, node->e);
}

// ---- macros

static stint_status exec_macro(struct st_jinja_run *run, struct st_jinja_scope *scope,
                               const struct st_jinja_node *node) {
    void *taken;
    ST_TRY(st_jinja_take(&run->pool, sizeof(struct st_jinja_macro), &taken));
    struct st_jinja_macro *macro = taken;
    *macro = (struct st_jinja_macro){.node = node, .scope = scope};
    struct st_jinja_value value = {.kind = ST_JINJA_MACRO, .macro = macro};
    return st_jinja_bind(run, scope, node->name, &value);
}

// The argument of a parameter: by position, by name, its default, or undefined.
static stint_status bind_param(struct st_jinja_run *run, struct st_jinja_scope *scope,
                               const struct st_jinja_node *param, size_t place,
                               const struct st_jinja_args *args, size_t *n_used) {
    struct st_jinja_value value = st_jinja_undefined(param->name);
    const struct st_jinja_named *named = NULL;
    ST_TRY(st_jinja_spend(run, args->n_named / 16));
    for (size_t i = 0; i < args->n_named && !named; i++)
        if (st_jinja_same(args->named[i].name, param->name)) named = &args->named[i];
    if (place < args->n && named)
        return st_fail(STINT_E_ARG, "two values for '%.*s'", (int)param->name.n, param->name.data);
    if (place < args->n)
        value = args->values[place];
    else if (named)
        value = named->value;
    else if (param->a)
        ST_TRY(st_jinja_eval(run, scope, param->a, &value));
    *n_used += place < args->n || named;
    return st_jinja_bind(run, scope, param->name, &value);
}

stint_status st_jinja_call_macro(struct st_jinja_run *run, const struct st_jinja_macro *macro,
                                 const struct st_jinja_args *args, struct st_jinja_value *out) {
    struct st_jinja_scope *scope;
    size_t place = 0, n_used = 0, mark;
    ST_TRY(st_jinja_new_scope(run, macro->scope, &scope));
    for (const struct st_jinja_node *p = macro->node->items; p; p = p->next)
        ST_TRY(bind_param(run, scope, p, place++, args, &n_used));
    if (n_used < args->n + args->n_named)
        return st_fail(STINT_E_ARG, "the macro '%.*s' takes other arguments",
                       (int)macro->node->name.n, macro->node->name.data);
    mark = run->out.count;
    ST_TRY(st_jinja_exec(run, scope, macro->node->d));
    return st_jinja_cut(run, mark, out);
}

// ---- dispatch

static stint_status exec_one(struct st_jinja_run *run, struct st_jinja_scope *scope,
                             const struct st_jinja_node *node) {
    struct st_jinja_value value;
    run->line = node->line;
    switch (node->kind) {
    case ST_JINJA_N_TEXT:
        return st_jinja_put(run, node->value.text.data, node->value.text.n);
    case ST_JINJA_N_PRINT:
        ST_TRY(st_jinja_eval(run, scope, node->a, &value));
        return st_jinja_put_str(run, &value);
    case ST_JINJA_N_IF:
        return exec_if(run, scope, node);
    case ST_JINJA_N_FOR:
        return exec_for(run, scope, node);
    case ST_JINJA_N_FILTERED:
        return exec_filtered(run, scope, node);
    case ST_JINJA_N_MACRO:
        return exec_macro(run, scope, node);
    case ST_JINJA_N_BREAK:
    case ST_JINJA_N_CONTINUE:
        run->flow = node->kind == ST_JINJA_N_BREAK ? ST_JINJA_BREAKS : ST_JINJA_CONTINUES;
        return STINT_OK;
    default:
        return exec_set(run, scope, node);
    }
}

stint_status st_jinja_exec(struct st_jinja_run *run, struct st_jinja_scope *scope,
                           const struct st_jinja_node *node) {
    ST_TRY(st_jinja_descend(run));
    for (; node && run->flow == ST_JINJA_GOES_ON; node = node->next) {
        ST_TRY(st_jinja_spend(run, 1));
        ST_TRY(exec_one(run, scope, node));
    }
    run->depth--;
    return STINT_OK;
}

// ---- whole renderings

static stint_status render(struct st_jinja_run *run, const struct st_jinja *jinja,
                           const json_t *context) {
    const json_t *now = json_object_get(context, "stint_now");
    json_t *members =
        (json_t *)context; // jansson's iterators take a non-const object; nothing changes it here
    ST_TRY(st_jinja_new_scope(run, NULL, &run->globals));
    run->now = json_is_integer(now) ? json_integer_value(now) : (int64_t)time(NULL);
    for (void *i = json_object_iter(members); i; i = json_object_iter_next(members, i)) {
        const char *key = json_object_iter_key(i);
        struct st_jinja_value value;
        ST_TRY(st_jinja_from_json(run, json_object_iter_value(i), &value));
        ST_TRY(st_jinja_bind(run, run->globals, (struct st_jinja_text){key, strlen(key)}, &value));
    }
    ST_TRY(st_jinja_exec(run, run->globals, jinja->body));
    return st_bytes_append(&run->out, "", 1);
}

stint_status st_jinja_render(const struct st_jinja *jinja, const json_t *context, char **text,
                             size_t *n_bytes) {
    struct st_jinja_run run = {.pool.limit = ST_JINJA_MAX_MEMORY};
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain) return st_fail(STINT_E_NOMEM, "not enough memory for a conversation");
    locale_t before = uselocale(plain); // for the decimal point and English month names
    stint_status status = render(&run, jinja, context);
    uselocale(before);
    freelocale(plain);
    st_jinja_pool_free(&run.pool);
    if (status != STINT_OK) {
        st_bytes_free(&run.out);
        return run.line ? st_fail_prefix("chat template: line %u: ", run.line) : status;
    }
    *text = run.out.data;
    *n_bytes = run.out.count - 1;
    return STINT_OK;
}
