// SPDX-License-Identifier: Apache-2.0
// GGUF metadata, by the key names of the GGUF specification ("<architecture>.<key>").
#include "model/config.h"

#include "base/half.h"
#include "base/size.h"
#include "model/gguf_reader.h"
#include "model/rope.h"
#include "model/weights_int8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Some writers store one value per layer; all must be equal for us.
static stint_status read_size_or_equal(const struct st_gguf_reader *r, const char *key,
                                       uint32_t *out) {
    struct st_reader_key k = st_reader_key(r, key);
    struct st_gguf_array array = {.type = ST_GGUF_N_TYPES};
    if (st_gguf_array(r->gguf, k.text, ST_GGUF_I32, &array) != STINT_OK &&
        st_gguf_array(r->gguf, k.text, ST_GGUF_U32, &array) != STINT_OK)
        return st_reader_size(r, key, out);
    if (array.type == ST_GGUF_N_TYPES || array.count == 0) return STINT_OK;
    uint64_t first = st_gguf_array_u64(&array, 0);
    for (uint64_t i = 1; i < array.count; i++)
        if (st_gguf_array_u64(&array, i) != first)
            return st_fail(STINT_E_UNSUPPORTED, "'%s' differs between layers", k.text);
    if (first > INT32_MAX) return st_fail(STINT_E_FORMAT, "'%s' is out of range", k.text);
    *out = (uint32_t)first;
    return STINT_OK;
}

// A state's heads and sizes; its values' size follows from that of all of them.
static stint_status read_state(const struct st_gguf_reader *r, struct st_config *c) {
    uint32_t inner = 0;
    struct st_state_shape *s = &c->state;
    ST_TRY(st_reader_size(r, "shortconv.l_cache", &c->conv_length));
    ST_TRY(st_reader_size(r, "ssm.conv_kernel", &c->conv_length));
    ST_TRY(st_reader_size(r, "ssm.state_size", &s->n_keys));
    ST_TRY(st_reader_size(r, "ssm.group_count", &s->n_groups));
    ST_TRY(st_reader_size(r, "ssm.time_step_rank", &s->n_heads));
    ST_TRY(st_reader_size(r, "ssm.inner_size", &inner));
    s->n_values = s->n_heads ? inner / s->n_heads : 0;
    c->conv_bias = c->arch->form == ST_FORM_MAMBA;
    s->tiled = (c->flags & ST_ARCH_GGUF_TILED_HEADS) != 0;
    if (s->n_heads && inner % s->n_heads)
        return st_fail(STINT_E_FORMAT, "'%s.ssm.inner_size' %u does not divide by %u heads",
                       r->prefix, inner, s->n_heads);
    return STINT_OK;
}

// Layers without key-value heads have another form than attention; the others must be equal.
static stint_status read_kv_heads(const struct st_reader_key *k, const struct st_gguf_array *array,
                                  struct st_config *c) {
    if (array->count != c->n_layers || c->n_layers > ST_MAX_LAYERS)
        return st_fail(STINT_E_FORMAT, "'%s' has %llu entries for %u layers", k->text,
                       (unsigned long long)array->count, c->n_layers);
    uint64_t heads = 0;
    for (uint32_t i = 0; i < c->n_layers; i++) {
        uint64_t n = st_gguf_array_u64(array, i);
        c->form[i] = n ? ST_FORM_ATTENTION : (uint8_t)c->arch->form;
        if (n > INT32_MAX || (n && heads && n != heads))
            return st_fail(STINT_E_UNSUPPORTED, "'%s' differs between layers", k->text);
        if (n) heads = n;
    }
    if (heads == 0) return st_fail(STINT_E_UNSUPPORTED, "'%s': no layer has attention", k->text);
    c->n_kv_heads = (uint32_t)heads;
    return STINT_OK;
}

// Blocks of the file are halves: attention has key-value heads, a feed-forward block a width.
static stint_status read_halves(const struct st_gguf_reader *r, struct st_config *c) {
    struct st_gguf_array arrays[2];
    const char *const keys[] = {"attention.head_count_kv", "feed_forward_length"};
    uint32_t largest[2] = {0};
    char kinds[ST_MAX_LAYERS];
    if (c->n_layers > ST_MAX_LAYERS) return st_fail(STINT_E_FORMAT, "%u blocks", c->n_layers);
    memset(kinds, 'M', c->n_layers);
    for (size_t k = 0; k < 2; k++) {
        struct st_reader_key key = st_reader_key(r, keys[k]);
        arrays[k] = (struct st_gguf_array){.type = ST_GGUF_N_TYPES};
        if (st_gguf_array(r->gguf, key.text, ST_GGUF_I32, &arrays[k]) != STINT_OK)
            ST_TRY(st_gguf_array(r->gguf, key.text, ST_GGUF_U32, &arrays[k]));
        if (arrays[k].type == ST_GGUF_N_TYPES || arrays[k].count != c->n_layers)
            return st_fail(STINT_E_FORMAT, "'%s': expected %u numbers", key.text, c->n_layers);
        for (uint32_t i = 0; i < c->n_layers; i++) {
            uint64_t value = st_gguf_array_u64(&arrays[k], i);
            if (value > INT32_MAX || (value && largest[k] && value != largest[k]))
                return st_fail(STINT_E_UNSUPPORTED, "'%s' differs between layers", key.text);
            if (value == 0) continue;
            largest[k] = (uint32_t)value;
            kinds[i] = k == 0 ? '*' : c->n_experts ? 'E' : '-';
        }
    }
    c->n_kv_heads = largest[0];
    if (c->n_experts == 0) c->ffn = largest[1];
    return st_config_halves(kinds, c->n_layers, c);
}

// Whether a state's norm is there is up to the size of the model; factors are in the weights.
static stint_status read_joint(const struct st_gguf_reader *r,
                               const struct st_checkpoint *checkpoint, struct st_config *c) {
    c->state_unnormed = !st_tensors_find(checkpoint->tensors, "blk.0.ssm_norm.weight");
    ST_TRY(read_size_or_equal(r, "attention.head_count_kv", &c->n_kv_heads));
    return st_config_join(c);
}

// Hybrids: which layers have no attention, by an interval or by their numbers of heads.
static stint_status read_forms(const struct st_gguf_reader *r,
                               const struct st_checkpoint *checkpoint, struct st_config *c) {
    struct st_reader_key k = st_reader_key(r, "attention.head_count_kv");
    struct st_gguf_array array = {.type = ST_GGUF_N_TYPES};
    uint32_t interval = c->arch->form == ST_FORM_DELTA ? 4 : 0;
    ST_TRY(read_state(r, c));
    if (c->flags & ST_ARCH_HALVES) return read_halves(r, c);
    if (c->flags & ST_ARCH_JOINT) return read_joint(r, checkpoint, c);
    ST_TRY(st_reader_size(r, "full_attention_interval", &interval));
    st_config_attention_every(c, interval);
    if (st_gguf_array(r->gguf, k.text, ST_GGUF_I32, &array) != STINT_OK &&
        st_gguf_array(r->gguf, k.text, ST_GGUF_U32, &array) != STINT_OK)
        return st_reader_size(r, "attention.head_count_kv", &c->n_kv_heads);
    return array.type == ST_GGUF_N_TYPES ? STINT_OK : read_kv_heads(&k, &array, c);
}

// Blocks that only predict further tokens are not layers of the model.
static stint_status read_layers(const struct st_gguf_reader *r, struct st_config *c) {
    uint32_t predicting = 0;
    ST_TRY(st_reader_size(r, "block_count", &c->n_layers));
    ST_TRY(st_reader_size(r, "nextn_predict_layers", &predicting));
    if (predicting >= c->n_layers && predicting)
        return st_fail(STINT_E_FORMAT, "'%s.nextn_predict_layers' is %u of %u blocks", r->prefix,
                       predicting, c->n_layers);
    c->n_layers -= predicting;
    return STINT_OK;
}

// The vocabulary of a package whose embedding is its head.
static stint_status read_shape(const struct st_section *shape, struct st_config *c) {
    const int32_t *n = shape->data;
    if (shape->type != ST_SECTION_I32 || shape->n_dims != 1 || shape->dims[0] != 2 || n[0] < 1 ||
        (uint32_t)n[1] != c->hidden)
        return st_fail(STINT_E_FORMAT, "section '%s' does not fit this model", shape->name);
    c->vocab = (uint32_t)n[0];
    return STINT_OK;
}

static stint_status read_router(const struct st_gguf_reader *r, struct st_router *router,
                                unsigned flags) {
    enum { SOFTMAX = 1, SIGMOID = 2 };
    bool normalised = !(flags & ST_ARCH_ROUTE_ALL);
    uint32_t function = flags & ST_ARCH_ROUTE_SIGMOID ? SIGMOID : SOFTMAX;
    router->scale = 1.0;
    router->biased = (flags & ST_ARCH_ROUTE_BIAS) != 0;
    ST_TRY(st_reader_size(r, "expert_gating_func", &function));
    ST_TRY(st_gguf_bool(r->gguf, st_reader_key(r, "expert_weights_norm").text, &normalised));
    ST_TRY(st_reader_number(r, "expert_weights_scale", &router->scale));
    ST_TRY(st_reader_size(r, "expert_group_count", &router->n_groups));
    ST_TRY(st_reader_size(r, "expert_group_used_count", &router->n_groups_used));
    if (router->scale <= 0.0) router->scale = 1.0; // what converters write for none
    router->sigmoid = router->group_sums = function == SIGMOID;
    router->shares = !normalised;
    if (function == SOFTMAX || function == SIGMOID) return STINT_OK;
    return st_fail(STINT_E_UNSUPPORTED, "'%s.expert_gating_func' is %u", r->prefix, function);
}

static stint_status read_mixture(const struct st_gguf_reader *r, struct st_config *c) {
    uint32_t n_dense = 0, n_shared = 0, step = 1;
    ST_TRY(read_router(r, &c->router, c->arch->flags));
    ST_TRY(st_reader_size(r, "leading_dense_block_count", &n_dense));
    ST_TRY(st_reader_size(r, "interleave_moe_layer_step", &step));
    ST_TRY(st_reader_size(r, "expert_shared_count", &n_shared));
    for (uint32_t i = 0; i < c->n_layers && i < ST_MAX_LAYERS; i++)
        c->dense[i] = i < n_dense || step == 0 || (i + 1) % step != 0;
    if (n_shared > ST_MAX_EXPERTS) return st_fail(STINT_E_FORMAT, "%u shared experts", n_shared);
    c->shared_ffn = (uint32_t)st_min((uint64_t)n_shared * c->ffn, UINT32_MAX);
    // ERNIE's files give both, and the length is not that of the tensors.
    bool counted = n_shared && !(c->flags & ST_ARCH_HALVES);
    return counted ? STINT_OK
                   : st_reader_size(r, "expert_shared_feed_forward_length", &c->shared_ffn);
}

// Latent attention. key_length is that of the cache's rows, the lengths of heads have other keys.
static stint_status read_latent(const struct st_gguf_reader *r, struct st_config *c) {
    struct st_latent *l = &c->latent;
    uint32_t key = 0, rotated = 0;
    ST_TRY(st_reader_size(r, "attention.kv_lora_rank", &l->rank));
    if (l->rank == 0) return STINT_OK;
    ST_TRY(st_reader_size(r, "attention.q_lora_rank", &l->query_rank));
    ST_TRY(st_reader_size(r, "attention.key_length_mla", &key));
    ST_TRY(st_reader_size(r, "attention.value_length_mla", &l->value));
    ST_TRY(st_reader_size(r, "rope.dimension_count", &rotated));
    if (key <= rotated)
        return st_fail(STINT_E_UNSUPPORTED,
                       "'%s.attention.key_length_mla' is %u: files from before that key must be "
                       "converted again",
                       r->prefix, key);
    l->plain = key - rotated;
    c->n_kv_heads = 1;
    c->head_dim = (uint32_t)st_min((uint64_t)l->rank + rotated, UINT32_MAX);
    return STINT_OK;
}

static stint_status read_sizes(const struct st_gguf_reader *r,
                               const struct st_checkpoint *checkpoint, struct st_config *c) {
    c->context = 2048;
    ST_TRY(read_layers(r, c));
    ST_TRY(st_reader_size(r, "embedding_length", &c->hidden));
    ST_TRY(st_reader_size(r, "context_length", &c->context));
    if (!(c->flags & (ST_ARCH_HALVES | ST_ARCH_LAYERS)))
        ST_TRY(read_size_or_equal(r, "feed_forward_length", &c->ffn));
    c->dense_ffn = c->ffn;
    ST_TRY(st_reader_size(r, "expert_count", &c->n_experts));
    ST_TRY(st_reader_size(r, "expert_used_count", &c->n_experts_used));
    ST_TRY(read_size_or_equal(r, "attention.head_count", &c->n_heads));
    if (c->n_experts != 0) {
        ST_TRY(st_reader_size(r, "expert_feed_forward_length", &c->ffn));
        ST_TRY(read_mixture(r, c));
    }
    if (c->n_experts == 0) ST_TRY(st_reader_size(r, "expert_shared_feed_forward_length", &c->ffn));
    c->n_kv_heads = c->n_heads;
    if (c->arch->form != ST_FORM_ATTENTION)
        ST_TRY(read_forms(r, checkpoint, c));
    else if (!(c->flags & ST_ARCH_LAYERS))
        ST_TRY(read_size_or_equal(r, "attention.head_count_kv", &c->n_kv_heads));
    if (c->n_layers == 0) return st_fail(STINT_E_FORMAT, "'%s.block_count' is missing", r->prefix);
    if (c->n_layers > ST_MAX_LAYERS) return st_fail(STINT_E_FORMAT, "%u blocks", c->n_layers);
    if (c->n_heads == 0)
        return st_fail(STINT_E_FORMAT, "'%s.attention.head_count' is missing or 0", r->prefix);
    if (c->n_kv_heads == 0)
        return st_fail(STINT_E_UNSUPPORTED, "'%s.attention.head_count_kv' is 0", r->prefix);
    c->head_dim = c->hidden / c->n_heads;
    ST_TRY(st_reader_size(r, "attention.key_length", &c->head_dim));
    uint32_t value_dim = c->head_dim;
    ST_TRY(st_reader_size(r, "attention.value_length", &value_dim));
    ST_TRY(read_latent(r, c));
    if (c->latent.rank) value_dim = c->head_dim;
    if (value_dim != c->head_dim)
        return st_fail(STINT_E_UNSUPPORTED, "key length %u, value length %u: they must be equal",
                       c->head_dim, value_dim);
    c->embed = c->hidden;
    const struct st_section *shape =
        checkpoint->package ? st_package_find(checkpoint->package, ST_EMBEDDING_IN_HEAD) : NULL;
    if (shape) return read_shape(shape, c);
    const struct st_tensor *embed = st_tensors_find(checkpoint->tensors, "token_embd.weight");
    if (!embed)
        return st_fail(STINT_E_FORMAT, "tensor 'token_embd.weight' is missing; a file with a "
                                       "vocabulary alone can only be used by `stint tokenize`");
    c->vocab = embed->dims[0] <= INT32_MAX ? (uint32_t)embed->dims[0] : 0;
    return STINT_OK;
}

// A [n] F32 tensor of divisors, copied because the file does not promise alignment.
static stint_status read_factors(const struct st_checkpoint *checkpoint, struct st_config *c,
                                 enum st_role role, float *store, const float **out) {
    char name[64];
    snprintf(name, sizeof name, "%s.weight", st_arch_role(c->arch, true, role));
    const struct st_tensor *t = st_tensors_find(checkpoint->tensors, name);
    if (!t) return STINT_OK;
    if (t->dtype != ST_DTYPE_F32 || t->n_dims != 1 || t->dims[0] != c->rope_dims / 2)
        return st_fail(STINT_E_FORMAT, "tensor '%s': expected %u float32 values", name,
                       c->rope_dims / 2);
    memcpy(store, t->data, t->dims[0] * sizeof(float));
    for (uint64_t i = 0; i < t->dims[0]; i++)
        if (!(store[i] > 0.0f) || !isfinite(store[i]))
            return st_fail(STINT_E_FORMAT, "tensor '%s'[%llu] must be a positive number", name,
                           (unsigned long long)i);
    *out = store;
    return STINT_OK;
}

static stint_status read_rope_scaling(const struct st_gguf_reader *r, struct st_config *c) {
    struct st_gguf_string type = {"", 0};
    struct st_rope *rope = &c->rope;
    struct st_reader_key key = st_reader_key(r, "rope.scaling.type");
    ST_TRY(st_gguf_str(r->gguf, key.text, &type));
    rope->factor = 1.0;
    rope->beta_fast = 32.0;
    rope->beta_slow = 1.0;
    rope->whole = (c->flags & ST_ARCH_WHOLE_YARN) != 0;
    rope->original_context = c->context;
    ST_TRY(st_reader_number(r, "rope.scaling.factor", &rope->factor));
    ST_TRY(st_reader_number(r, "rope.scaling.attn_factor", &rope->attention_factor));
    ST_TRY(st_reader_number(r, "rope.scaling.yarn_beta_fast", &rope->beta_fast));
    ST_TRY(st_reader_number(r, "rope.scaling.yarn_beta_slow", &rope->beta_slow));
    ST_TRY(st_reader_number(r, "rope.scaling.yarn_log_multiplier", &rope->mscale_all_dim));
    if (c->latent.rank) rope->mscale_all_dim *= 10.0; // DeepSeek's converter writes a tenth
    if (rope->mscale_all_dim > 0.0) rope->mscale = c->latent.rank ? rope->mscale_all_dim : 1.0;
    ST_TRY(st_reader_number(r, "attention.temperature_scale", &rope->query_growth));
    uint32_t original = c->context;
    ST_TRY(st_reader_size(r, "rope.scaling.original_context_length", &original));
    rope->original_context = original;
    if (type.bytes == 0 || (type.bytes == 4 && memcmp(type.data, "none", 4) == 0)) return STINT_OK;
    for (int i = 0; i < ST_N_ROPE_SCALINGS; i++) {
        const char *name = st_rope_scaling_name((enum st_rope_scaling)i);
        if (strlen(name) == type.bytes && memcmp(name, type.data, type.bytes) == 0) {
            rope->scaling = (enum st_rope_scaling)i;
            // GGUF's factor comes on top of YaRN's own formula, config.json's replaces it.
            if (rope->scaling == ST_ROPE_YARN && rope->attention_factor > 0.0 && rope->factor > 1.0)
                rope->attention_factor *= 1.0 + 0.1 * log(rope->factor);
            // This one is config.json's attention_factor, as converters copy it.
            return st_reader_number(r, "rope.scaling.yarn_attn_factor", &rope->attention_factor);
        }
    }
    return st_fail(STINT_E_UNSUPPORTED, "'%s' is '%.*s'", key.text, (int)st_min(type.bytes, 40),
                   type.data);
}

static stint_status read_rope(const struct st_gguf_reader *r,
                              const struct st_checkpoint *checkpoint, struct st_config *c) {
    c->rope_dims = c->head_dim;
    c->rope.theta = 10000.0;
    ST_TRY(st_reader_size(r, "rope.dimension_count", &c->rope_dims));
    ST_TRY(st_reader_number(r, "rope.freq_base", &c->rope.theta));
    bool rotates = (c->flags & ST_ARCH_MAY_ROTATE) == 0;
    ST_TRY(st_gguf_bool(r->gguf, st_reader_key(r, "rope.scaling.finetuned").text, &rotates));
    if (!rotates && c->flags & ST_ARCH_MAY_ROTATE) c->rope_dims = 0;
    c->rope_interleaved = (c->flags & (ST_ARCH_GGUF_INTERLEAVED | ST_ARCH_INTERLEAVED)) != 0;
    c->rope_local = c->rope;
    ST_TRY(read_rope_scaling(r, c));
    if (c->rope_dims % 2 != 0 || c->rope_dims > c->head_dim || c->head_dim > ST_MAX_HEAD_DIM)
        return st_fail(STINT_E_FORMAT, "'%s.rope.dimension_count' is %u for heads of %u", r->prefix,
                       c->rope_dims, c->head_dim);
    struct st_rope *rope = &c->rope;
    float(*store)[ST_MAX_HEAD_DIM / 2] = c->rope_store;
    ST_TRY(read_factors(checkpoint, c, ST_ROLE_ROPE_FACTORS, store[0], &rope->factors[0]));
    rope->factors[1] = rope->factors[0];
    if (!rope->factors[0]) {
        ST_TRY(read_factors(checkpoint, c, ST_ROLE_ROPE_SHORT, store[0], &rope->factors[0]));
        ST_TRY(read_factors(checkpoint, c, ST_ROLE_ROPE_LONG, store[1], &rope->factors[1]));
        if (!rope->factors[0] != !rope->factors[1])
            return st_fail(STINT_E_FORMAT, "one of the rope factor tensors is missing");
        if (rope->factors[0]) {
            rope->scaling = ST_ROPE_LONGROPE;
            rope->factor = c->context / rope->original_context;
        }
    }
    if (rope->scaling == ST_ROPE_LONGROPE && !rope->factors[0])
        return st_fail(STINT_E_FORMAT, "longrope without tensors rope_factors_short and _long");
    if (c->arch->window == ST_WINDOW_PATTERN) {
        if (c->arch->gguf_local_theta > 0.0) c->rope_local.theta = c->arch->gguf_local_theta;
        return st_reader_number(r, "rope.freq_base_swa", &c->rope_local.theta);
    }
    c->rope_local = c->rope;
    return STINT_OK;
}

static stint_status read_scales(const struct st_gguf_reader *r, struct st_config *c) {
    double epsilon = 1e-5, attn = c->arch->gguf_softcaps[0], final = c->arch->gguf_softcaps[1];
    ST_TRY(st_reader_number(r, "attention.layer_norm_rms_epsilon", &epsilon));
    ST_TRY(st_reader_number(r, "attention.layer_norm_epsilon", &epsilon));
    ST_TRY(st_reader_number(r, "attn_logit_softcapping", &attn));
    ST_TRY(st_reader_number(r, "final_logit_softcapping", &final));
    bool wide = c->arch->gguf_wide_scale_layers == c->n_layers;
    double width = wide ? (double)c->hidden / c->n_heads : (double)st_config_query_dim(c);
    double scale = c->flags & ST_ARCH_UNSCALED ? 1.0 : st_rope_latent_scale(c) / sqrt(width);
    ST_TRY(st_reader_number(r, "attention.scale", &scale));
    c->norm_epsilon = (float)epsilon;
    c->attn_softcap = (float)attn;
    c->final_softcap = (float) final;
    c->attn_scale = (float)scale;
    double embed = c->flags & ST_ARCH_EMBED_SCALE ? sqrt(c->hidden) : 1.0, residual = 1.0;
    double logits = 1.0; // what they are divided by
    ST_TRY(st_reader_number(r, "embedding_scale", &embed));
    ST_TRY(st_reader_number(r, "residual_scale", &residual));
    ST_TRY(st_reader_number(r, "logit_scale", &logits));
    c->embed_scale = (float)embed;
    c->residual_scale = (float)residual;
    c->logit_scale = (float)(1.0 / logits);
    return STINT_OK;
}

// One flag for each layer, where the file has them.
static stint_status read_sliding(const struct st_gguf_reader *r, struct st_config *c) {
    struct st_reader_key k = st_reader_key(r, "attention.sliding_window_pattern");
    struct st_gguf_array array = {.type = ST_GGUF_N_TYPES};
    if (st_gguf_array(r->gguf, k.text, ST_GGUF_BOOL, &array) != STINT_OK ||
        array.type == ST_GGUF_N_TYPES)
        return STINT_OK;
    if (array.count != c->n_layers)
        return st_fail(STINT_E_FORMAT, "'%s' has %llu entries for %u layers", k.text,
                       (unsigned long long)array.count, c->n_layers);
    for (uint32_t i = 0; i < c->n_layers && i < ST_MAX_LAYERS; i++)
        c->sliding[i] = st_gguf_array_u64(&array, i) != 0 && c->window != 0;
    return STINT_OK;
}

// What some sizes of a family have and others have not.
static void see_tensors(const struct st_checkpoint *checkpoint, struct st_config *c) {
    if (st_tensors_find(checkpoint->tensors, "blk.0.attn_q_norm.weight") &&
        !(c->flags & ST_ARCH_QK_NORM_WHOLE))
        c->flags |= ST_ARCH_QK_NORM;
    for (uint32_t i = 0; i < c->n_layers && !c->router.biased; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%u.exp_probs_b.bias", i);
        c->router.biased = st_tensors_find(checkpoint->tensors, name) != NULL;
    }
    // Files of DeepSeek's kind that do not say: those with a bias have sigmoids.
    if (c->latent.rank && c->router.biased &&
        !st_gguf_has(checkpoint->gguf, "deepseek2.expert_gating_func"))
        c->router.sigmoid = c->router.group_sums = true;
}

static stint_status read_rest(const struct st_gguf_reader *r, struct st_config *c) {
    bool parallel = c->block == ST_BLOCK_PARALLEL;
    ST_TRY(st_gguf_bool(r->gguf, st_reader_key(r, "use_parallel_residual").text, &parallel));
    if (parallel) c->block = ST_BLOCK_PARALLEL;
    st_config_unrotated(c, c->arch->unrotated_pattern);
    if (c->arch->window != ST_WINDOW_NONE) {
        c->window = c->arch->gguf_window;
        ST_TRY(st_reader_size(r, "attention.sliding_window", &c->window));
        st_config_windows(c, c->arch->window_pattern);
        ST_TRY(read_sliding(r, c));
    }
    c->act = c->flags & ST_ARCH_GATED ? ST_ACT_SILU : ST_ACT_GELU_TANH;
    if (c->flags & ST_ARCH_GELU_IS_TANH) c->act = ST_ACT_GELU_TANH;
    if (c->flags & ST_ARCH_DUAL_ACT) c->act = ST_ACT_DRELU;
    if (c->flags & ST_ARCH_CLAMPED) c->act = ST_ACT_SWIGLU_CLAMPED;
    if (c->flags & ST_ARCH_SQUARED_RELU) c->act = ST_ACT_RELU2;
    static const char *const stops[] = {"tokenizer.ggml.eos_token_id",
                                        "tokenizer.ggml.eot_token_id",
                                        "tokenizer.ggml.eom_token_id"};
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
        if (st_gguf_has(r->gguf, stops[i])) {
            uint64_t id = 0;
            ST_TRY(st_gguf_u64(r->gguf, stops[i], UINT32_MAX, &id));
            st_config_add_stop(c, (int64_t)id);
        }
    uint64_t bos = UINT32_MAX;
    ST_TRY(st_gguf_u64(r->gguf, "tokenizer.ggml.bos_token_id", UINT32_MAX, &bos));
    if (bos <= INT32_MAX) c->bos_id = (int32_t)bos;
    return STINT_OK;
}

static stint_status read_all(const struct st_gguf_reader *r, const struct st_checkpoint *checkpoint,
                             struct st_config *c) {
    ST_TRY(read_sizes(r, checkpoint, c));
    ST_TRY(read_rope(r, checkpoint, c));
    ST_TRY(read_scales(r, c));
    ST_TRY(read_rest(r, c));
    ST_TRY(st_config_read_gguf_layers(r, checkpoint, c));
    if (c->n_experts != 0) see_tensors(checkpoint, c);
    st_config_rank(c);
    return st_config_check(c);
}

stint_status st_config_from_gguf(const struct st_checkpoint *checkpoint, struct st_config *config) {
    struct st_gguf_string name = {NULL, 0};
    const struct st_arch *arch;
    ST_TRY(st_gguf_str(checkpoint->gguf, "general.architecture", &name));
    if (!name.data) return st_fail(STINT_E_FORMAT, "'general.architecture' is missing");
    ST_TRY(st_arch_find_gguf(name.data, name.bytes, &arch));
    struct st_gguf_reader reader = {.gguf = checkpoint->gguf};
    snprintf(reader.prefix, sizeof reader.prefix, "%s", arch->gguf);

    struct st_config c = {.arch = arch,
                          .norm = arch->norm,
                          .block = arch->block,
                          .flags = arch->flags,
                          .bos_id = -1,
                          .final_norm = true,
                          .tied_if_absent = true};
    ST_TRY(read_all(&reader, checkpoint, &c));
    *config = c;
    for (int i = 0; i < 2; i++) { // the factors lie inside the struct that was copied
        if (!c.rope.factors[i]) continue;
        config->rope.factors[i] = config->rope_store[c.rope.factors[i] == c.rope_store[1]];
        if (arch->window != ST_WINDOW_PATTERN)
            config->rope_local.factors[i] = config->rope.factors[i];
    }
    return STINT_OK;
}
