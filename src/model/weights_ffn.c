// SPDX-License-Identifier: Apache-2.0
// Binds the feed-forward part of a layer: one block, or a router with its experts.
#include "base/size.h"
#include "kernels/dequantize.h"
#include "model/binder.h"
#include "model/preset.h"
#include "model/stored_experts.h"

#include <math.h>
#include <string.h>

// A linear that every expert has.
struct kind {
    enum st_role all, one, stored; // in one tensor; in one each; as model/stored_experts.h says
    uint32_t n_out, n_in;
    uint32_t first, step; // the first-th of `step` linears whose rows alternate
    size_t offset;        // in struct st_ffn_weight
};

enum { N_KINDS = 3 };

static void list_kinds(const struct st_config *c, struct kind kinds[N_KINDS]) {
    const struct kind all[N_KINDS] = {
        {ST_ROLE_EXPERTS_GATE, ST_ROLE_EXPERT_GATE, ST_ROLE_EXPERTS_GATE_UP, c->ffn, c->hidden, 0,
         2, offsetof(struct st_ffn_weight, gate)},
        {ST_ROLE_EXPERTS_UP, ST_ROLE_EXPERT_UP, ST_ROLE_EXPERTS_GATE_UP, c->ffn, c->hidden, 1, 2,
         offsetof(struct st_ffn_weight, up)},
        {ST_ROLE_EXPERTS_DOWN, ST_ROLE_EXPERT_DOWN, ST_ROLE_EXPERTS_DOWN, c->hidden, c->ffn, 0, 1,
         offsetof(struct st_ffn_weight, down)},
    };
    memcpy(kinds, all, sizeof all);
}

static struct st_linear_weight *linear_of(struct st_ffn_weight *ffn, const struct kind *kind) {
    return (struct st_linear_weight *)((char *)ffn + kind->offset);
}

// Biases [experts, step * n_out], of which every step-th from `first` on is this kind's.
static stint_status bind_biases(const struct st_binder *b, enum st_role role, const char *suffix,
                                uint32_t layer, const struct kind *kind, uint32_t first,
                                uint32_t step, struct st_ffn_weight *ffn) {
    uint64_t n_experts = b->config->n_experts, rows = (uint64_t)step * kind->n_out;
    struct st_tensor t;
    bool found;
    ST_TRY(st_bind_find(b, role, suffix, layer, 0, 2, (uint64_t[]){n_experts, rows}, true, &t,
                        &found));
    float *all = ST_TAKE(b->arena, float, n_experts *rows);
    float *own = ST_TAKE(b->arena, float, n_experts * kind->n_out);
    if (!all || !own || !ffn) return STINT_OK; // measuring
    st_dequantize_select(0)->fn[t.dtype](t.data, 0, n_experts * rows, all);
    for (size_t e = 0; e < n_experts; e++) {
        float *bias = own + e * kind->n_out;
        for (size_t r = 0; r < kind->n_out; r++) bias[r] = all[e * rows + first + step * r];
        linear_of(&ffn[e], kind)->bias = bias;
    }
    return STINT_OK;
}

// Of n_parts linears of each expert in one tensor, the one number `part`.
static void view_experts(const struct st_binder *b, const struct st_tensor *t,
                         const struct kind *kind, uint32_t part, uint32_t n_parts,
                         struct st_ffn_weight *ffn) {
    for (uint32_t e = 0; e < b->config->n_experts && ffn; e++)
        st_bind_rows(t, ((uint64_t)e * n_parts + part) * kind->n_out, kind->n_out, kind->n_in,
                     linear_of(&ffn[e], kind));
}

// All experts of one kind in one tensor [experts, n_out, n_in].
static stint_status bind_together(const struct st_binder *b, uint32_t layer,
                                  const struct kind *kind, struct st_ffn_weight *ffn, bool *found) {
    struct st_tensor t;
    uint64_t dims[] = {b->config->n_experts, kind->n_out, kind->n_in};
    ST_TRY(st_bind_find(b, kind->all, ".weight", layer, 0, 3, dims, false, &t, found));
    if (!*found) return STINT_OK;
    view_experts(b, &t, kind, 0, 1, ffn);
    if (!(b->config->flags & ST_ARCH_BIAS)) return STINT_OK;
    return bind_biases(b, kind->all, ".bias", layer, kind, 0, 1, ffn);
}

// All experts as folders have them: gates and ups of each follow each other, [experts, 2 n_out,
// n_in], and downs have a tensor of their own. So do GGUF files of Gemma 4.
static stint_status bind_halves(const struct st_binder *b, uint32_t layer, const struct kind *kind,
                                struct st_ffn_weight *ffn, bool *found) {
    struct st_tensor t;
    enum st_role role = kind->step == 1 ? kind->all : ST_ROLE_EXPERTS_HALVES;
    uint64_t dims[] = {b->config->n_experts, (uint64_t)kind->step * kind->n_out, kind->n_in};
    const char *suffix = b->source->gguf ? ".weight" : "";
    ST_TRY(st_bind_find(b, role, suffix, layer, 0, 3, dims, false, &t, found));
    if (*found) view_experts(b, &t, kind, kind->first, kind->step, ffn);
    return STINT_OK;
}

// Random ones, which are made as rows at once.
static stint_status bind_made(const struct st_binder *b, uint32_t layer, const struct kind *kind,
                              struct st_ffn_weight *ffn, bool *found) {
    const char *suffix = kind->first ? ST_MADE_BLOCKS "_1" : ST_MADE_BLOCKS;
    uint64_t dims[] = {b->config->n_experts, kind->n_out, kind->n_in};
    struct st_tensor t;
    ST_TRY(st_bind_find(b, kind->stored, suffix, layer, 0, 3, dims, true, &t, found));
    view_experts(b, &t, kind, 0, 1, ffn);
    return bind_biases(b, kind->stored, "_bias", layer, kind, kind->first, kind->step, ffn);
}

static stint_status bind_stored(const struct st_binder *b, uint32_t layer, const struct kind *kind,
                                struct st_ffn_weight *ffn, bool *found) {
    const struct st_config *c = b->config;
    char name[ST_BIND_NAME_BYTES];
    struct st_tensor t;
    if (b->source->make) return bind_made(b, layer, kind, ffn, found);
    st_bind_name(b, st_arch_role(c->arch, false, kind->stored), "", layer, 0, name);
    const struct st_stored_experts stored = {.name = name,
                                             .n_experts = c->n_experts,
                                             .n_out = kind->n_out,
                                             .n_in = kind->n_in,
                                             .first = kind->first,
                                             .step = kind->step};
    ST_TRY(st_stored_experts_rewrite(b->source->tensors, &stored, b->arena, &t, found));
    if (!*found) return STINT_OK;
    if (t.data) view_experts(b, &t, kind, 0, 1, ffn);
    return bind_biases(b, kind->stored, "_bias", layer, kind, kind->first, kind->step, ffn);
}

static stint_status bind_each(const struct st_binder *b, uint32_t layer, const struct kind *kind,
                              struct st_ffn_weight *ffn) {
    bool bias = (b->config->flags & ST_ARCH_BIAS) != 0;
    for (uint32_t e = 0; e < b->config->n_experts; e++) {
        struct st_linear_weight linear;
        ST_TRY(st_bind_linear_at(b, kind->one, layer, e, kind->n_out, kind->n_in, true, bias,
                                 &linear));
        if (ffn) *linear_of(&ffn[e], kind) = linear;
    }
    return STINT_OK;
}

static stint_status bind_mixture(const struct st_binder *b, uint32_t i, struct st_layer *layer) {
    const struct st_config *c = b->config;
    stint_status (*bind_all)(const struct st_binder *, uint32_t, const struct kind *,
                             struct st_ffn_weight *, bool *) = b->source->gguf ? bind_together
                                                               : c->flags & ST_ARCH_EXPERT_COLUMNS
                                                                   ? bind_stored
                                                                   : bind_halves;
    struct kind kinds[N_KINDS];
    ST_TRY(st_bind_linear(b, ST_ROLE_ROUTER, i, c->n_experts, c->hidden,
                          (c->flags & ST_ARCH_BIAS) != 0, &layer->router));
    list_kinds(c, kinds);
    for (size_t k = c->flags & ST_ARCH_GATED ? 0 : 1; k < N_KINDS; k++) {
        bool found = false;
        if (!st_bind_is_int8(b, kinds[k].one))
            ST_TRY(bind_all(b, i, &kinds[k], layer->ffn, &found));
        if (!found && b->source->gguf && !st_bind_is_int8(b, kinds[k].one))
            ST_TRY(bind_halves(b, i, &kinds[k], layer->ffn, &found));
        if (!found) ST_TRY(bind_each(b, i, &kinds[k], layer->ffn));
    }
    return STINT_OK;
}

// A plain block of its own roles: gate, up, down, and gate and up as one.
static stint_status bind_block(const struct st_binder *b, uint32_t i, const enum st_role roles[4],
                               uint32_t width, struct st_ffn_weight *ffn) {
    const struct st_config *c = b->config;
    bool bias = (c->flags & ST_ARCH_BIAS) != 0, fused = false;
    struct st_linear_weight *const parts[] = {&ffn->gate, &ffn->up};
    const uint32_t n_out[] = {width, width};
    memset(ffn, 0, sizeof *ffn);
    if (c->flags & ST_ARCH_GATED) {
        ST_TRY(st_bind_fused(b, roles[3], i, bias, parts, n_out, 2, c->hidden, &fused));
        if (!fused) ST_TRY(st_bind_linear(b, roles[0], i, width, c->hidden, bias, &ffn->gate));
    }
    if (!fused) ST_TRY(st_bind_linear(b, roles[1], i, width, c->hidden, bias, &ffn->up));
    return st_bind_linear(b, roles[2], i, c->hidden, width, bias, &ffn->down);
}

// [1, hidden], or [hidden] in GGUF.
static stint_status bind_shared_gate(const struct st_binder *b, uint32_t i,
                                     struct st_linear_weight *gate) {
    const struct st_config *c = b->config;
    const char *pattern = st_arch_role(c->arch, b->source->gguf, ST_ROLE_SHARED_INPUT_GATE);
    char name[ST_BIND_NAME_BYTES];
    struct st_tensor t;
    bool found;
    memset(gate, 0, sizeof *gate);
    if (!pattern) return STINT_OK;
    st_bind_name(b, pattern, ".weight", i, 0, name);
    const struct st_tensor *stored = st_tensors_find(b->source->tensors, name);
    bool flat = stored && stored->n_dims == 1;
    // A GGUF has no gate where the family has none.
    ST_TRY(st_bind_find(b, ST_ROLE_SHARED_INPUT_GATE, ".weight", i, 0, flat ? 1 : 2,
                        (uint64_t[]){flat ? c->hidden : 1, c->hidden}, !b->source->gguf, &t,
                        &found));
    if (found) st_bind_rows(&t, 0, 1, c->hidden, gate);
    return STINT_OK;
}

// [n_experts], in ERNIE's folders [1, n_experts].
static stint_status bind_router_bias(const struct st_binder *b, uint32_t i, const float **bias) {
    const struct st_config *c = b->config;
    const char *suffix = b->source->gguf ? ".bias" : "";
    char name[ST_BIND_NAME_BYTES];
    struct st_tensor t;
    bool found;
    st_bind_name(b, st_arch_role(c->arch, b->source->gguf, ST_ROLE_ROUTER_BIAS), suffix, i, 0,
                 name);
    const struct st_tensor *stored = st_tensors_find(b->source->tensors, name);
    bool flat = !stored || stored->n_dims == 1;
    ST_TRY(st_bind_find(b, ST_ROLE_ROUTER_BIAS, suffix, i, 0, flat ? 1 : 2,
                        (uint64_t[]){flat ? c->n_experts : 1, c->n_experts}, true, &t, &found));
    float *copy = ST_TAKE(b->arena, float, c->n_experts);
    *bias = copy;
    if (copy) st_dequantize_select(0)->fn[t.dtype](t.data, 0, c->n_experts, copy);
    return STINT_OK;
}

// The norm that the layer has got becomes factors of the shared block's input: what all of them
// meet is normed without.
static stint_status bind_norms(const struct st_binder *b, uint32_t i, struct st_layer *layer) {
    const struct st_config *c = b->config;
    struct st_mixture_norms *m = &layer->mixture;
    const char *suffix = b->source->gguf ? ".scale" : "";
    const float *scale = NULL;
    if (!st_bind_has_role(b, ST_ROLE_EXPERT_NORM)) return STINT_OK;
    ST_TRY(st_bind_vector(b, ST_ROLE_EXPERT_NORM, ".weight", i, 0, c->hidden, true, 0.0f,
                          &m->experts));
    ST_TRY(st_bind_vector(b, ST_ROLE_EXPERT_OUT_NORM, ".weight", i, 0, c->hidden, true, 0.0f,
                          &m->experts_out));
    ST_TRY(st_bind_vector(b, ST_ROLE_SHARED_OUT_NORM, ".weight", i, 0, c->hidden, true, 0.0f,
                          &m->shared_out));
    ST_TRY(
        st_bind_vector(b, ST_ROLE_EXPERT_SCALE, suffix, i, 0, c->n_experts, true, 0.0f, &m->scale));
    ST_TRY(st_bind_vector(b, ST_ROLE_ROUTER_SCALE, suffix, i, 0, c->hidden, true, 0.0f, &scale));
    float *router = ST_TAKE(b->arena, float, c->hidden);
    float *ones = ST_TAKE(b->arena, float, c->hidden);
    m->router = router;
    m->shared = layer->ffn_norm.weight;
    layer->ffn_norm.weight = ones;
    for (uint32_t k = 0; k < c->hidden && router && ones && scale; k++) {
        router[k] = scale[k] * (float)(1.0 / sqrt(c->hidden));
        ones[k] = 1.0f;
    }
    return STINT_OK;
}

stint_status st_bind_ffn(const struct st_binder *b, uint32_t i, struct st_layer *layer) {
    static const enum st_role plain[] = {ST_ROLE_GATE, ST_ROLE_UP, ST_ROLE_DOWN, ST_ROLE_GATE_UP};
    static const enum st_role shared[] = {ST_ROLE_SHARED_GATE, ST_ROLE_SHARED_UP,
                                          ST_ROLE_SHARED_DOWN, ST_ROLE_SHARED_GATE_UP};
    const struct st_config *c = b->config;
    struct st_ffn_weight block;
    layer->ffn = ST_TAKE(b->arena, struct st_ffn_weight, st_config_blocks(c, i));
    if (!st_config_is_routed(c, i, 0)) {
        uint32_t width = st_config_ffn(c, i, 0);
        ST_TRY(bind_block(b, i, plain, width, &block));
        if (st_bind_has_role(b, ST_ROLE_DOWN_NORM))
            ST_TRY(st_bind_vector(b, ST_ROLE_DOWN_NORM, ".weight", i, 0, width, true,
                                  c->norm_offset, &block.norm));
        if (layer->ffn) *layer->ffn = block;
        return STINT_OK;
    }
    ST_TRY(bind_mixture(b, i, layer));
    ST_TRY(bind_norms(b, i, layer));
    if (c->router.biased) ST_TRY(bind_router_bias(b, i, &layer->router_bias));
    if (!c->shared_ffn) return STINT_OK;
    ST_TRY(bind_block(b, i, shared, c->shared_ffn, &block));
    if (layer->ffn) layer->ffn[c->n_experts] = block;
    return bind_shared_gate(b, i, &layer->shared_gate);
}
