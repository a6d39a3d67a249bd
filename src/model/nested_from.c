// SPDX-License-Identifier: Apache-2.0
#include "model/nested_from.h"

#include "base/size.h"

#include <string.h>

struct lending {
    struct stint_model *to;
    const struct stint_model *from;
};

static stint_status other_model(void) {
    return st_fail(STINT_E_FORMAT,
                   "was not made from this checkpoint: 'stint prepare CHECKPOINT -o OUT.stint' "
                   "makes one that was");
}

static stint_status lend(void *context, struct st_linear_id id) {
    const struct lending *l = context;
    const struct st_linear_weight *to[ST_LINEAR_OP_PARTS], *from[ST_LINEAR_OP_PARTS];
    size_t n = st_linear_parts(&l->to->weights, id, to);
    if (st_linear_parts(&l->from->weights, id, from) != n) return other_model();
    for (size_t i = 0; i < n; i++) {
        if (!to[i]->n_out) continue;
        const struct st_nested_weight *nested = from[i]->nested;
        if (!nested || nested->n_out != to[i]->n_out || nested->n_in != to[i]->n_in)
            return other_model();
        // The model is this function's own until it is open.
        ((struct st_linear_weight *)(uintptr_t)to[i])->nested = nested;
    }
    return STINT_OK;
}

static bool same_norm(const struct st_norm_weight *a, const struct st_norm_weight *b) {
    if (!a->weight || !b->weight) return a->weight == b->weight;
    return a->n == b->n && memcmp(a->weight, b->weight, a->n * sizeof *a->weight) == 0;
}

// Two models of one shape differ in their norms, which a package has as they are.
static bool same_norms(const struct stint_model *a, const struct stint_model *b) {
    if (!same_norm(&a->weights.final_norm, &b->weights.final_norm)) return false;
    for (uint32_t i = 0; i < a->config.n_layers; i++) {
        const struct st_layer *x = &a->weights.layers[i], *y = &b->weights.layers[i];
        if (!same_norm(&x->attn_norm, &y->attn_norm) || !same_norm(&x->ffn_norm, &y->ffn_norm))
            return false;
    }
    return true;
}

static stint_status lend_all(const struct stint_model *from, struct stint_model *to) {
    const struct st_config *a = &to->config, *b = &from->config;
    struct lending l = {to, from};
    if (!from->nested.high)
        return st_fail(STINT_E_FORMAT, "has no nested weights: make it with 'stint prepare' and "
                                       "--bits, e.g. --bits 2..4");
    if (from->neurons.layers)
        return st_fail(STINT_E_UNSUPPORTED, "stores neurons, which have no nested weights");
    if (a->n_layers != b->n_layers || a->hidden != b->hidden || a->vocab != b->vocab ||
        a->n_experts != b->n_experts || !same_norms(to, from))
        return other_model();
    ST_TRY(st_linears_each(a, (uint32_t)st_max(1, a->n_experts), lend, &l));
    to->nested = from->nested;
    return STINT_OK;
}

stint_status st_nested_from_open(const char *package, struct stint_model *model) {
    stint_model_options options = {.size = sizeof options, .no_tokenizer = true};
    if (model->checkpoint.package)
        return st_fail(STINT_E_ARG, "a package has nested weights of its own: leave out --nested, "
                                    "or give the checkpoint that it was made from");
    if (model->checkpoint.lazy)
        return st_fail(STINT_E_UNSUPPORTED, "--nested keeps both models in memory: leave out "
                                            "--memory, or run the package alone");
    ST_TRY(stint_model_open(package, &options, &model->nested_from));
    stint_status status = lend_all(model->nested_from, model);
    return status == STINT_OK ? status : st_fail_prefix("%s: ", package);
}

void st_nested_from_close(struct stint_model *model) {
    stint_model_close(model->nested_from);
    model->nested_from = NULL;
}
