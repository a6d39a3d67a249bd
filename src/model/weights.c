// SPDX-License-Identifier: Apache-2.0
#include "model/weights.h"

#include "base/size.h"
#include "kernels/dequantize.h"
#include "model/binder.h"
#include "model/ternary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct st_name_prefix prefixes[] = {
    {"", false}, {"language_model.", false}, {"model.language_model.", true}, {"", true}};

void st_bind_name(const struct st_binder *b, const char *pattern, const char *suffix, uint32_t i,
                  uint32_t j, char *name) {
    char base[ST_BIND_NAME_BYTES];
    if (b->at) i = b->at[i];
// The patterns are ours (arch.c), with at most two %u.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
    snprintf(base, sizeof base, pattern, i, j);
#pragma GCC diagnostic pop
    bool model = strncmp(base, "model.", 6) == 0, replace = b->prefix->replaces_model;
    snprintf(name, ST_BIND_NAME_BYTES, "%s%s%s", replace && !model ? "" : b->prefix->text,
             base + (replace && model ? 6 : 0), suffix);
}

stint_status st_bind_find(const struct st_binder *b, enum st_role role, const char *suffix,
                          uint32_t i, uint32_t j, uint32_t n_dims, const uint64_t *dims,
                          bool required, struct st_tensor *tensor, bool *found) {
    const char *pattern = st_arch_role(b->config->arch, b->source->gguf, role);
    *found = false;
    if (!pattern) {
        if (!required) return STINT_OK;
        return st_fail(STINT_E_UNSUPPORTED, "this layout has no tensor for role %d", (int)role);
    }
    char name[ST_BIND_NAME_BYTES], wanted[96] = "", got[96] = "";
    st_bind_name(b, pattern, suffix, i, j, name);
    const struct st_tensor *t = st_tensors_find(b->source->tensors, name);
    if (!t && b->source->make && required) {
        ST_TRY(b->source->make(b->source->context, name, n_dims, dims, tensor));
        *found = true;
        return STINT_OK;
    }
    if (!t) {
        if (!required) return STINT_OK;
        return st_tensors_missing(b->source->tensors, name);
    }
    bool same = t->n_dims == n_dims;
    for (uint32_t d = 0; d < n_dims; d++) {
        same = same && t->dims[d] == dims[d];
        size_t used = strlen(wanted);
        snprintf(wanted + used, sizeof wanted - used, "%s%llu", d ? ", " : "",
                 (unsigned long long)dims[d]);
    }
    for (uint32_t d = 0; d < t->n_dims && d < ST_MAX_DIMS; d++) {
        size_t used = strlen(got);
        snprintf(got + used, sizeof got - used, "%s%llu", d ? ", " : "",
                 (unsigned long long)t->dims[d]);
    }
    if (!same)
        return st_fail(STINT_E_FORMAT, "tensor '%s' is [%s], the config says [%s]", name, got,
                       wanted);
    if (b->source->seen) b->source->seen(b->source->context, t);
    *tensor = *t;
    *found = true;
    return STINT_OK;
}

stint_status st_bind_vector(const struct st_binder *b, enum st_role role, const char *suffix,
                            uint32_t i, uint32_t j, uint64_t n, bool required, float offset,
                            const float **out) {
    struct st_tensor t;
    bool found;
    ST_TRY(st_bind_find(b, role, suffix, i, j, 1, &n, required, &t, &found));
    *out = NULL;
    if (!found) return STINT_OK;
    float *copy = ST_TAKE(b->arena, float, n);
    if (!copy) return STINT_OK; // measuring
    st_dequantize_select(0)->fn[t.dtype](t.data, 0, n, copy);
    for (uint64_t e = 0; e < n; e++) copy[e] += offset;
    *out = copy;
    return STINT_OK;
}

void st_bind_rows(const struct st_tensor *t, uint64_t row0, uint32_t n_out, uint32_t n_in,
                  struct st_linear_weight *linear) {
    linear->row_bytes = st_dtype_row_bytes(t->dtype, n_in);
    linear->data = (const unsigned char *)t->data + row0 * linear->row_bytes;
    linear->dtype = t->dtype;
    linear->n_out = n_out;
    linear->n_in = n_in;
    linear->bias = NULL;
}

bool st_bind_is_int8(const struct st_binder *b, enum st_role role) {
    static const bool covered[ST_N_ROLES] = {
        [ST_ROLE_HEAD] = true,        [ST_ROLE_Q] = true,
        [ST_ROLE_K] = true,           [ST_ROLE_V] = true,
        [ST_ROLE_QKV] = true,         [ST_ROLE_O] = true,
        [ST_ROLE_GATE] = true,        [ST_ROLE_UP] = true,
        [ST_ROLE_GATE_UP] = true,     [ST_ROLE_DOWN] = true,
        [ST_ROLE_EXPERT_GATE] = true, [ST_ROLE_EXPERT_UP] = true,
        [ST_ROLE_EXPERT_DOWN] = true, [ST_ROLE_EXPERTS_GATE] = true,
        [ST_ROLE_EXPERTS_UP] = true,  [ST_ROLE_EXPERTS_DOWN] = true,
        [ST_ROLE_CONV_IN] = true,     [ST_ROLE_CONV_OUT] = true,
        [ST_ROLE_SHARED_GATE] = true, [ST_ROLE_SHARED_UP] = true,
        [ST_ROLE_SHARED_DOWN] = true, [ST_ROLE_SHARED_GATE_UP] = true,
        [ST_ROLE_STATE_GATE] = true,  [ST_ROLE_Q_A] = true,
        [ST_ROLE_KV_A] = true,
    };
    return b->source->int8 && covered[role];
}

// Linears of the layers that are stored in another form than they are used in.
static stint_status rewrite_linear(const struct st_binder *b, enum st_role role, uint32_t i,
                                   uint32_t j, uint32_t n_out, uint32_t n_in, struct st_tensor *t,
                                   bool *found) {
    const char *pattern = st_arch_role(b->config->arch, b->source->gguf, role);
    enum st_ternary form = b->source->gguf ? ST_TERNARY_I2_S : b->config->ternary;
    char name[ST_BIND_NAME_BYTES];
    *found = false;
    if (form == ST_TERNARY_NONE || role < ST_ROLE_ATTN_NORM || !pattern) return STINT_OK;
    st_bind_name(b, pattern, ".weight", i, j, name);
    return st_ternary_rewrite(b->source->tensors, form, name, n_out, n_in, b->arena, t, found);
}

stint_status st_bind_linear_at(const struct st_binder *b, enum st_role role, uint32_t i, uint32_t j,
                               uint32_t n_out, uint32_t n_in, bool required, bool bias,
                               struct st_linear_weight *linear) {
    struct st_tensor t;
    bool found;
    uint64_t dims[] = {n_out, n_in};
    memset(linear, 0, sizeof *linear);
    linear->n_out = n_out;
    linear->n_in = n_in;
    if (st_bind_is_int8(b, role) || (role == ST_ROLE_EMBED && b->source->no_embedding))
        return STINT_OK;
    ST_TRY(rewrite_linear(b, role, i, j, n_out, n_in, &t, &found));
    if (!found) ST_TRY(st_bind_find(b, role, ".weight", i, j, 2, dims, required, &t, &found));
    if (!found) return STINT_OK;
    st_bind_rows(&t, 0, n_out, n_in, linear);
    linear->scale = b->config->linear_scale[role];
    return st_bind_vector(b, role, ".bias", i, j, n_out, bias, 0.0f, &linear->bias);
}

stint_status st_bind_linear(const struct st_binder *b, enum st_role role, uint32_t layer,
                            uint32_t n_out, uint32_t n_in, bool bias,
                            struct st_linear_weight *linear) {
    return st_bind_linear_at(b, role, layer, 0, n_out, n_in, true, bias, linear);
}

stint_status st_bind_fused(const struct st_binder *b, enum st_role role, uint32_t layer, bool bias,
                           struct st_linear_weight *const *parts, const uint32_t *n_out,
                           size_t n_parts, uint32_t n_in, bool *found) {
    uint64_t dims[] = {0, n_in};
    for (size_t p = 0; p < n_parts; p++) dims[0] += n_out[p];
    const char *pattern = st_arch_role(b->config->arch, b->source->gguf, role);
    *found = false;
    if (!pattern || st_bind_is_int8(b, role)) return STINT_OK;
    char name[ST_BIND_NAME_BYTES];
    st_bind_name(b, pattern, ".weight", layer, 0, name);
    const struct st_tensor *t = st_tensors_find(b->source->tensors, name);
    if (!t || (role == ST_ROLE_GATE_UP && t->dims[0] != dims[0])) return STINT_OK;
    struct st_linear_weight whole;
    ST_TRY(st_bind_linear_at(b, role, layer, 0, (uint32_t)dims[0], n_in, true, bias, &whole));
    uint64_t row = 0;
    for (size_t p = 0; p < n_parts; p++) {
        st_bind_rows(t, row, n_out[p], n_in, parts[p]);
        parts[p]->bias = whole.bias ? whole.bias + row : NULL;
        row += n_out[p];
    }
    *found = true;
    return STINT_OK;
}

// GGUF files of Falcon-H1 leave it out in one place.
static const char *norm_ending(const struct st_binder *b, enum st_role role, uint32_t i) {
    const char *pattern = st_arch_role(b->config->arch, b->source->gguf, role);
    char name[ST_BIND_NAME_BYTES];
    if (!pattern) return ".weight";
    st_bind_name(b, pattern, "", i, 0, name);
    return st_tensors_find(b->source->tensors, name) ? "" : ".weight";
}

stint_status st_bind_norm(const struct st_binder *b, enum st_role role, uint32_t i, uint32_t n,
                          bool required, struct st_norm_weight *norm) {
    bool layer_norm = b->config->norm == ST_NORM_LAYER;
    *norm = (struct st_norm_weight){.n = n};
    ST_TRY(st_bind_vector(b, role, norm_ending(b, role, i), i, 0, n, required,
                          b->config->norm_offset, &norm->weight));
    return st_bind_vector(b, role, ".bias", i, 0, n, required && layer_norm, 0.0f, &norm->bias);
}

// q and k norms: one norm of all heads together, one weight for all heads, one per head in one
// tensor, or one tensor per head.
static stint_status bind_head_norm(const struct st_binder *b, enum st_role role, uint32_t layer,
                                   uint32_t n_heads, struct st_norm_weight *norm) {
    const struct st_config *c = b->config;
    uint32_t dim = st_config_heads(c, layer).dim;
    const char *pattern = st_arch_role(c->arch, b->source->gguf, role);
    memset(norm, 0, sizeof *norm);
    if (!pattern) return st_fail(STINT_E_UNSUPPORTED, "%s has no norms of q and k", c->arch->name);
    if (c->flags & ST_ARCH_QK_NORM_WHOLE) {
        norm->whole = true;
        return st_bind_vector(b, role, ".weight", layer, 0, (uint64_t)n_heads * dim, true,
                              c->norm_offset, &norm->weight);
    }
    uint64_t dims[] = {n_heads, dim};
    char name[ST_BIND_NAME_BYTES];
    st_bind_name(b, pattern, ".weight", layer, 0, name);
    const struct st_tensor *t = st_tensors_find(b->source->tensors, name);
    bool per_tensor = strstr(pattern, "norms.%u") != NULL, one = t && t->n_dims == 2;
    if (!per_tensor && !one) {
        ST_TRY(
            st_bind_vector(b, role, ".weight", layer, 0, dim, true, c->norm_offset, &norm->weight));
        return st_bind_vector(b, role, ".bias", layer, 0, dim, false, 0.0f, &norm->bias);
    }
    norm->per_head = true;
    float *all = ST_TAKE(b->arena, float, dims[0] * dims[1]);
    norm->weight = all;
    if (one && b->source->seen) b->source->seen(b->source->context, t);
    if (one && !all) return STINT_OK;
    if (one) {
        if (t->dims[0] != dims[0] || t->dims[1] != dims[1] || t->dtype != ST_DTYPE_F32)
            return st_fail(STINT_E_FORMAT, "tensor '%s': expected float32 [%u, %u]", name, n_heads,
                           dim);
        memcpy(all, t->data, t->bytes);
        return STINT_OK;
    }
    for (uint32_t h = 0; h < n_heads; h++) {
        const float *head;
        ST_TRY(st_bind_vector(b, role, ".weight", layer, h, dim, true, 0.0f, &head));
        if (all && head) memcpy(all + (size_t)h * dim, head, dim * sizeof(float));
    }
    return STINT_OK;
}

// Norms of heads; keys and values have them where the layer has a cache.
static stint_status bind_head_norms(const struct st_binder *b, uint32_t i, struct st_layer *layer) {
    const struct st_config *c = b->config;
    struct st_heads heads = st_config_heads(c, i);
    if (c->flags & (ST_ARCH_QK_NORM | ST_ARCH_QK_NORM_WHOLE)) {
        ST_TRY(bind_head_norm(b, ST_ROLE_Q_NORM, i, c->n_heads, &layer->q_norm));
        if (st_config_has_cache(c, i))
            ST_TRY(bind_head_norm(b, ST_ROLE_K_NORM, i, heads.n_kv, &layer->k_norm));
    }
    if (!(c->flags & ST_ARCH_VALUE_NORM) || !st_config_has_cache(c, i)) return STINT_OK;
    float *ones = ST_TAKE(b->arena, float, heads.dim);
    for (uint32_t d = 0; d < heads.dim && ones; d++) ones[d] = 1.0f;
    layer->v_norm = (struct st_norm_weight){.weight = ones, .n = heads.dim};
    return STINT_OK;
}

static stint_status bind_attention(const struct st_binder *b, uint32_t i, struct st_layer *layer) {
    const struct st_config *c = b->config;
    struct st_mixer_widths w = st_config_mixer(c, i);
    bool bias = (c->flags & (ST_ARCH_BIAS | ST_ARCH_QKV_BIAS)) != 0;
    struct st_linear_weight *const parts[] = {&layer->q, &layer->k, &layer->v};
    const uint32_t n_out[] = {w.q, w.k, w.v};
    bool fused;
    ST_TRY(st_bind_fused(b, ST_ROLE_QKV, i, bias, parts, n_out, 3, c->hidden, &fused));
    if (!fused) {
        ST_TRY(st_bind_linear(b, ST_ROLE_Q, i, w.q, c->hidden, bias, &layer->q));
        if (w.k) ST_TRY(st_bind_linear(b, ST_ROLE_K, i, w.k, c->hidden, bias, &layer->k));
        if (w.v) ST_TRY(st_bind_linear(b, ST_ROLE_V, i, w.v, c->hidden, bias, &layer->v));
    }
    bias = (c->flags & ST_ARCH_BIAS) != 0;
    ST_TRY(st_bind_linear(b, ST_ROLE_O, i, c->hidden, w.out, bias, &layer->o));
    if (c->flags & ST_ARCH_SINKS)
        ST_TRY(st_bind_vector(b, ST_ROLE_SINKS, b->source->gguf ? ".weight" : "", i, 0, c->n_heads,
                              true, 0.0f, &layer->sinks));
    return bind_head_norms(b, i, layer);
}

bool st_bind_has_role(const struct st_binder *b, enum st_role role) {
    return st_arch_role(b->config->arch, b->source->gguf, role) != NULL;
}

static stint_status bind_mixer(const struct st_binder *b, uint32_t i, struct st_layer *layer) {
    static stint_status (*const binders[ST_N_FORMS])(const struct st_binder *, uint32_t,
                                                     struct st_layer *) = {
        [ST_FORM_ATTENTION] = bind_attention,
        [ST_FORM_CONV] = st_bind_conv,
        [ST_FORM_DELTA] = st_bind_delta,
        [ST_FORM_MAMBA] = st_bind_mamba,
    };
    *layer = (struct st_layer){0};
    if (b->config->block != ST_BLOCK_BRANCH && !b->config->joined[i])
        ST_TRY(st_bind_norm(b, ST_ROLE_ATTN_NORM, i, b->config->hidden, true, &layer->attn_norm));
    if (st_bind_has_role(b, ST_ROLE_O_NORM))
        ST_TRY(st_bind_norm(b, ST_ROLE_O_NORM, i, st_config_mixer(b->config, i).out, true,
                            &layer->mixed_norm));
    if (b->config->latent.rank) return st_bind_latent(b, i, layer);
    return binders[b->config->form[i]](b, i, layer);
}

// A block of linears that do not exist.
static stint_status bind_no_ffn(const struct st_binder *b, struct st_layer *layer) {
    layer->ffn = ST_TAKE(b->arena, struct st_ffn_weight, 1);
    if (layer->ffn) *layer->ffn = (struct st_ffn_weight){0};
    return STINT_OK;
}

stint_status st_bind_layer(const struct st_binder *b, uint32_t i, struct st_layer *layer) {
    const struct st_config *c = b->config;
    bool branch = c->block == ST_BLOCK_BRANCH;
    struct st_binder mixer = *b, ffn = *b;
    mixer.at = c->mixer_at;
    ffn.at = c->ffn_at;
    ST_TRY(bind_mixer(&mixer, i, layer));
    ST_TRY(st_bind_layer_input(b, i, layer));
    if (st_config_blocks(c, i) == 0) return bind_no_ffn(b, layer);
    if (!branch)
        ST_TRY(st_bind_norm(&ffn, ST_ROLE_FFN_NORM, i, c->hidden, c->block != ST_BLOCK_PARALLEL,
                            &layer->ffn_norm));
    if (branch || c->block == ST_BLOCK_SANDWICH) {
        ST_TRY(st_bind_norm(&mixer, ST_ROLE_POST_ATTN_NORM, i, c->hidden, true,
                            &layer->post_attn_norm));
        ST_TRY(
            st_bind_norm(&ffn, ST_ROLE_POST_FFN_NORM, i, c->hidden, true, &layer->post_ffn_norm));
    }
    return st_bind_ffn(&ffn, i, layer);
}

static stint_status bind_head(const struct st_binder *b, struct st_weights *w) {
    struct st_config *c = b->config;
    if (c->tied_if_absent) {
        char name[ST_BIND_NAME_BYTES];
        st_bind_name(b, st_arch_role(c->arch, b->source->gguf, ST_ROLE_HEAD), ".weight", 0, 0,
                     name);
        c->tied = !st_tensors_find(b->source->tensors, name);
        c->tied_if_absent = false;
    }
    if (c->tied) {
        w->head = w->embed;
        return STINT_OK;
    }
    return st_bind_linear(b, ST_ROLE_HEAD, 0, c->vocab, c->embed,
                          (c->flags & ST_ARCH_HEAD_BIAS) != 0, &w->head);
}

static stint_status bind_ends(const struct st_binder *b, struct st_weights *w) {
    const struct st_config *c = b->config;
    ST_TRY(st_bind_linear(b, ST_ROLE_EMBED, 0, c->vocab, c->embed, false, &w->embed));
    if (c->flags & ST_ARCH_POSITIONS)
        ST_TRY(st_bind_linear(b, ST_ROLE_POSITIONS, 0, c->context + 2, c->hidden, false,
                              &w->positions));
    if (c->embed != c->hidden) {
        ST_TRY(
            st_bind_linear(b, ST_ROLE_PROJECT_IN, 0, c->hidden, c->embed, false, &w->project_in));
        ST_TRY(
            st_bind_linear(b, ST_ROLE_PROJECT_OUT, 0, c->embed, c->hidden, false, &w->project_out));
    }
    ST_TRY(st_bind_layer_inputs(b, w));
    ST_TRY(st_bind_norm(b, ST_ROLE_FINAL_NORM, 0, c->hidden, c->final_norm, &w->final_norm));
    return bind_head(b, w);
}

// The prefix under which the embedding is found; the plain one where none fits.
// A package of a model with tied embeddings has no such tensor (model/embedding.h), but a norm.
static const struct st_name_prefix *find_prefix(struct st_binder b) {
    static const enum st_role roles[] = {ST_ROLE_EMBED, ST_ROLE_FINAL_NORM};
    char name[ST_BIND_NAME_BYTES];
    for (size_t r = 0; r < 2; r++) {
        const char *pattern = st_arch_role(b.config->arch, b.source->gguf, roles[r]);
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes && pattern && !b.source->gguf;
             i++) {
            b.prefix = &prefixes[i];
            st_bind_name(&b, pattern, ".weight", 0, 0, name);
            if (st_tensors_find(b.source->tensors, name)) return b.prefix;
        }
    }
    return prefixes;
}

stint_status st_weights_bind(const struct st_tensor_source *source, struct st_config *config,
                             struct st_arena *arena, struct st_weights *weights) {
    struct st_binder b = {source, config, arena, prefixes, NULL};
    b.prefix = find_prefix(b);
    struct st_layer unused;
    bool ahead = st_bind_has_ahead(&b);
    struct st_weights w = {.layers = ST_TAKE(arena, struct st_layer, config->n_layers + ahead)};
    ST_TRY(bind_ends(&b, &w));
    for (uint32_t i = 0; i < config->n_layers; i++)
        ST_TRY(st_bind_layer(&b, i, w.layers ? &w.layers[i] : &unused));
    if (ahead)
        ST_TRY(st_bind_ahead(&b, w.layers ? &w.layers[config->n_layers] : &unused, &w.ahead));
    *weights = w;
    return STINT_OK;
}
