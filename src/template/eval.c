// SPDX-License-Identifier: Apache-2.0
// Evaluates expressions. A left chain (a + b + c ...) is as deep in the tree as it is long, so the
// bound on depth also bounds its length.
#include "template/run.h"

#include <string.h>

typedef stint_status eval_fn(struct st_jinja_run *run, const struct st_jinja_scope *scope,
                             const struct st_jinja_node *node, struct st_jinja_value *out);

static stint_status eval_name(struct st_jinja_run *run, const struct st_jinja_scope *scope,
                              const struct st_jinja_node *node, struct st_jinja_value *out) {
    for (; scope; scope = scope->parent) {
        struct st_jinja_binding *found;
        ST_TRY(st_jinja_binding(run, scope, node->name, &found));
        if (!found) continue;
        *out = found->value;
        return STINT_OK;
    }
    const struct st_jinja_builtin *function = st_jinja_function(node->name);
    *out = function ? (struct st_jinja_value){.kind = ST_JINJA_FUNCTION, .function = function}
                    : st_jinja_undefined(node->name);
    return STINT_OK;
}

static size_t count(const struct st_jinja_node *items) {
    size_t n = 0;
    for (; items; items = items->next) n++;
    return n;
}

static stint_status eval_items(struct st_jinja_run *run, const struct st_jinja_scope *scope,
                               const struct st_jinja_node *node, struct st_jinja_value *out) {
    struct st_jinja_list *list;
    size_t i = 0;
    ST_TRY(st_jinja_new_list(run, count(node->items), &list));
    for (const struct st_jinja_node *item = node->items; item; item = item->next)
        ST_TRY(st_jinja_eval(run, scope, item, &list->items[i++]));
    if (node->kind == ST_JINJA_N_CONCAT) return st_jinja_join(run, list->items, list->n, out);
    return st_jinja_close_list(list, node->kind == ST_JINJA_N_LIST ? ST_JINJA_LIST : ST_JINJA_TUPLE,
                               out);
}

// A repeated key replaces the value and keeps its position.
static stint_status eval_dict(struct st_jinja_run *run, const struct st_jinja_scope *scope,
                              const struct st_jinja_node *node, struct st_jinja_value *out) {
    struct st_jinja_dict *dict;
    ST_TRY(st_jinja_new_dict(run, count(node->items), &dict));
    dict->n = 0;
    for (const struct st_jinja_node *item = node->items; item; item = item->next) {
        struct st_jinja_value key;
        size_t found;
        ST_TRY(st_jinja_eval(run, scope, item->a, &key));
        if (key.kind == ST_JINJA_LIST || key.kind == ST_JINJA_DICT)
            return st_fail(STINT_E_ARG, "%s cannot be a key", st_jinja_kind_name(&key));
        ST_TRY(st_jinja_find(run, dict, &key, &found));
        if (found == dict->n) dict->pairs[dict->n++].key = key;
        ST_TRY(st_jinja_eval(run, scope, item->b, &dict->pairs[found].value));
    }
    return st_jinja_close_dict(dict, out);
}

static stint_status eval_sign(struct st_jinja_run *run, const struct st_jinja_scope *scope,
                              const struct st_jinja_node *node, struct st_jinja_value *out) {
    struct st_jinja_value zero = st_jinja_integer(0), v;
    ST_TRY(st_jinja_eval(run, scope, node->a, &v));
    if (v.kind == ST_JINJA_FLOAT) {
        *out = st_jinja_real(node->kind == ST_JINJA_N_NEGATIVE ? -v.real : v.real);
        return STINT_OK;
    }
    return st_jinja_operate(run, node->kind == ST_JINJA_N_NEGATIVE ? '-' : '+', &zero, &v, out);
}

static stint_status eval_logic(struct st_jinja_run *run, const struct st_jinja_scope *scope,
                               const struct st_jinja_node *node, struct st_jinja_value *out) {
    struct st_jinja_value v;
    ST_TRY(st_jinja_eval(run, scope, node->a, &v));
    bool truth = st_jinja_is_true(&v);
    if (node->kind == ST_JINJA_N_NOT) {
        *out = st_jinja_truth(!truth);
        return STINT_OK;
    }
    if (truth == (node->kind == ST_JINJA_N_AND)) return st_jinja_eval(run, scope, node->b, out);
    *out = v;
    return STINT_OK;
}

static stint_status eval_choice(struct st_jinja_run *run, const struct st_jinja_scope *scope,
                                const struct st_jinja_node *node, struct st_jinja_value *out) {
    struct st_jinja_value condition;
    ST_TRY(st_jinja_eval(run, scope, node->a, &condition));
    if (st_jinja_is_true(&condition)) return st_jinja_eval(run, scope, node->b, out);
    if (node->c) return st_jinja_eval(run, scope, node->c, out);
    *out = st_jinja_undefined((struct st_jinja_text){"the missing 'else'", 18});
    return STINT_OK;
}

static stint_status eval_binary(struct st_jinja_run *run, const struct st_jinja_scope *scope,
                                const struct st_jinja_node *node, struct st_jinja_value *out) {
    struct st_jinja_value a, b;
    ST_TRY(st_jinja_eval(run, scope, node->a, &a));
    ST_TRY(st_jinja_eval(run, scope, node->b, &b));
    return st_jinja_operate(run, node->op, &a, &b, out);
}

// a < b < c is true if every pair is.
static stint_status eval_compare(struct st_jinja_run *run, const struct st_jinja_scope *scope,
                                 const struct st_jinja_node *node, struct st_jinja_value *out) {
    struct st_jinja_value left, right, holds = st_jinja_truth(true);
    ST_TRY(st_jinja_eval(run, scope, node->a, &left));
    for (const struct st_jinja_node *o = node->items; o && holds.truth; o = o->next) {
        ST_TRY(st_jinja_eval(run, scope, o->a, &right));
        ST_TRY(st_jinja_operate(run, o->op, &left, &right, &holds));
        left = right;
    }
    *out = holds;
    return STINT_OK;
}

static stint_status eval_lookup(struct st_jinja_run *run, const struct st_jinja_scope *scope,
                                const struct st_jinja_node *node, struct st_jinja_value *out) {
    struct st_jinja_value subject, key;
    ST_TRY(st_jinja_eval(run, scope, node->a, &subject));
    if (node->kind == ST_JINJA_N_ATTRIBUTE)
        return st_jinja_attribute(run, &subject, node->name, out);
    ST_TRY(st_jinja_eval(run, scope, node->b, &key));
    return st_jinja_item(run, &subject, &key, out);
}

static stint_status eval_slice(struct st_jinja_run *run, const struct st_jinja_scope *scope,
                               const struct st_jinja_node *node, struct st_jinja_value *out) {
    const struct st_jinja_node *const parts[] = {node->b, node->c, node->d};
    struct st_jinja_value subject, bounds[3] = {{0}};
    ST_TRY(st_jinja_eval(run, scope, node->a, &subject));
    for (size_t i = 0; i < 3; i++)
        if (parts[i]) ST_TRY(st_jinja_eval(run, scope, parts[i], &bounds[i]));
    return st_jinja_slice(run, &subject, bounds, out);
}

static stint_status eval_args(struct st_jinja_run *run, const struct st_jinja_scope *scope,
                              const struct st_jinja_node *items, struct st_jinja_args *args) {
    struct st_jinja_list *list;
    void *taken;
    size_t n = count(items);
    *args = (struct st_jinja_args){0};
    if (n == 0) return STINT_OK;
    ST_TRY(st_jinja_new_list(run, n, &list));
    ST_TRY(st_jinja_take(&run->pool, n * sizeof(struct st_jinja_named), &taken));
    struct st_jinja_named *named = taken;
    for (; items; items = items->next) {
        bool keyword = items->kind == ST_JINJA_N_KEYWORD;
        struct st_jinja_value *place =
            keyword ? &named[args->n_named].value : &list->items[args->n];
        ST_TRY(st_jinja_eval(run, scope, keyword ? items->a : items, place));
        if (keyword)
            named[args->n_named++].name = items->name;
        else
            args->n++;
    }
    args->values = list->items;
    args->named = named;
    return STINT_OK;
}

static stint_status eval_apply(struct st_jinja_run *run, const struct st_jinja_scope *scope,
                               const struct st_jinja_node *node, struct st_jinja_value *out) {
    struct st_jinja_value subject = run->captured;
    struct st_jinja_args args;
    if (node->a) ST_TRY(st_jinja_eval(run, scope, node->a, &subject));
    ST_TRY(eval_args(run, scope, node->items, &args));
    if (node->kind != ST_JINJA_N_CALL && !node->builtin) return st_jinja_no_builtin(node);
    if (node->kind == ST_JINJA_N_CALL) return st_jinja_call(run, &subject, &args, out);
    return st_jinja_apply(run, node->builtin, &subject, &args, out);
}

stint_status st_jinja_call(struct st_jinja_run *run, const struct st_jinja_value *callee,
                           const struct st_jinja_args *args, struct st_jinja_value *out) {
    struct st_jinja_value none = {.kind = ST_JINJA_ABSENT};
    switch (callee->kind) {
    case ST_JINJA_FUNCTION:
        return st_jinja_apply(run, callee->function, &none, args, out);
    case ST_JINJA_METHOD:
        return st_jinja_apply(run, callee->method->row, &callee->method->self, args, out);
    case ST_JINJA_MACRO:
        return st_jinja_call_macro(run, callee->macro, args, out);
    case ST_JINJA_UNDEFINED:
        return st_fail(STINT_E_ARG, "'%.*s' is undefined, or cannot be called here",
                       callee->text.n < 60 ? (int)callee->text.n : 60, callee->text.data);
    default:
        return st_fail(STINT_E_ARG, "%s cannot be called", st_jinja_kind_name(callee));
    }
}

stint_status st_jinja_eval(struct st_jinja_run *run, const struct st_jinja_scope *scope,
                           const struct st_jinja_node *node, struct st_jinja_value *out) {
    static eval_fn *const evals[] = {
        [ST_JINJA_N_NAME] = eval_name,     [ST_JINJA_N_LIST] = eval_items,
        [ST_JINJA_N_TUPLE] = eval_items,   [ST_JINJA_N_CONCAT] = eval_items,
        [ST_JINJA_N_DICT] = eval_dict,     [ST_JINJA_N_NEGATIVE] = eval_sign,
        [ST_JINJA_N_POSITIVE] = eval_sign, [ST_JINJA_N_NOT] = eval_logic,
        [ST_JINJA_N_AND] = eval_logic,     [ST_JINJA_N_OR] = eval_logic,
        [ST_JINJA_N_BINARY] = eval_binary, [ST_JINJA_N_COMPARE] = eval_compare,
        [ST_JINJA_N_CHOICE] = eval_choice, [ST_JINJA_N_ATTRIBUTE] = eval_lookup,
        [ST_JINJA_N_ITEM] = eval_lookup,   [ST_JINJA_N_SLICE] = eval_slice,
        [ST_JINJA_N_CALL] = eval_apply,    [ST_JINJA_N_FILTER] = eval_apply,
        [ST_JINJA_N_TEST] = eval_apply,
    };
    if (node->kind == ST_JINJA_N_CONST) {
        *out = node->value;
        return st_jinja_spend(run, 1);
    }
    ST_TRY(st_jinja_descend(run));
    stint_status status = evals[node->kind](run, scope, node, out);
    run->depth--;
    return status;
}
