// SPDX-License-Identifier: Apache-2.0
// config.json and generation_config.json, as the Hugging Face configuration classes define their
// keys.
#include "model/config.h"

#include "base/size.h"
#include "model/rope.h"

#include <math.h>
#include <string.h>

// Spellings of an activation in config.json.
static const struct {
    const char *name;
    enum st_act act;
} act_names[] = {
    {"silu", ST_ACT_SILU},           {"swish", ST_ACT_SILU},
    {"gelu", ST_ACT_GELU_ERF},       {"gelu_python", ST_ACT_GELU_ERF},
    {"gelu_new", ST_ACT_GELU_TANH},  {"gelu_pytorch_tanh", ST_ACT_GELU_TANH},
    {"gelu_fast", ST_ACT_GELU_TANH}, {"relu", ST_ACT_RELU},
    {"relu2", ST_ACT_RELU2},         {"relu_squared", ST_ACT_RELU2},
    {"drelu", ST_ACT_DRELU},
};

static stint_status find_act(const char *name, enum st_act *act) {
    for (size_t i = 0; i < sizeof act_names / sizeof *act_names; i++)
        if (strcmp(act_names[i].name, name) == 0) {
            *act = act_names[i].act;
            return STINT_OK;
        }
    return st_fail(STINT_E_UNSUPPORTED,
                   "hidden_act '%.40s' is not known; known are: silu, gelu, gelu_new, "
                   "gelu_pytorch_tanh, relu, relu2, drelu",
                   name);
}

static stint_status read_act(const json_t *json, struct st_config *c) {
    const char *name = NULL, *explicit_name = NULL;
    ST_TRY(st_json_string(json, "hidden_act", &name));
    ST_TRY(st_json_string(json, "activation_function", &name));
    ST_TRY(st_json_string(json, "mlp_hidden_act", &name));
    ST_TRY(st_json_string(json, "hidden_activation", &explicit_name));
    if (!explicit_name && name && strcmp(name, "gelu") == 0 && (c->flags & ST_ARCH_GELU_IS_TANH))
        explicit_name = "gelu_pytorch_tanh";
    if (explicit_name) name = explicit_name;
    if (!name) name = (c->flags & ST_ARCH_GELU_IS_TANH) ? "gelu_pytorch_tanh" : "silu";
    ST_TRY(find_act(name, &c->act));
    if (c->act == ST_ACT_RELU && (c->flags & ST_ARCH_DUAL_ACT)) c->act = ST_ACT_DRELU;
    if (c->act != ST_ACT_SILU || !(c->flags & ST_ARCH_CLAMPED)) return STINT_OK;
    double alpha = 1.702, limit = 7.0;
    ST_TRY(st_json_number(json, "swiglu_alpha", 0.0, 1e6, &alpha));
    ST_TRY(st_json_number(json, "swiglu_limit", 0.0, 1e6, &limit));
    c->act = ST_ACT_SWIGLU_CLAMPED;
    if (fabs(alpha - 1.702) < 1e-6 && fabs(limit - 7.0) < 1e-6) return STINT_OK;
    return st_fail(STINT_E_UNSUPPORTED,
                   "'swiglu_alpha' %g and 'swiglu_limit' %g: expected 1.702 "
                   "and 7",
                   alpha, limit);
}

struct size_key {
    const char *key;
    uint32_t *out;
};

stint_status st_config_json_size(const json_t *json, const char *key, uint32_t *out) {
    int64_t value = *out;
    ST_TRY(st_json_int(json, key, 0, INT32_MAX, &value));
    *out = (uint32_t)value;
    return STINT_OK;
}

// `required` ones must be given; the others keep what they hold.
static stint_status read_sizes(const json_t *json, struct st_config *c) {
    const struct size_key keys[] = {
        {"num_hidden_layers", &c->n_layers},
        {"hidden_size", &c->hidden},
        {"num_attention_heads", &c->n_heads},
        {"vocab_size", &c->vocab},
        {"num_key_value_heads", &c->n_kv_heads},
        {"attention_head_dim", &c->head_dim},
        {"head_dim", &c->head_dim},
        {"intermediate_size", &c->ffn},
        {"intermediate_size", &c->dense_ffn},
        {"ffn_dim", &c->ffn},
        {"max_position_embeddings", &c->context},
        {"num_local_experts", &c->n_experts},
        {"num_experts", &c->n_experts},
        {"n_routed_experts", &c->n_experts},
        {"moe_num_experts", &c->n_experts},
        {"moe_intermediate_size", &c->ffn},
        {"num_experts_per_tok", &c->n_experts_used},
        {"moe_k", &c->n_experts_used},
        {"word_embed_proj_dim", &c->embed},
    };
    for (size_t i = 0; i < 4; i++)
        if (json_is_null(json_object_get(json, keys[i].key)) || !json_object_get(json, keys[i].key))
            return st_fail(STINT_E_FORMAT, "'%s' is missing", keys[i].key);
    c->context = 2048;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        ST_TRY(st_config_json_size(json, keys[i].key, keys[i].out));
    if (c->n_heads == 0) return st_fail(STINT_E_FORMAT, "'num_attention_heads' is 0");
    if (c->n_kv_heads == 0) c->n_kv_heads = c->n_heads;
    const char *dense[] = {"intermediate_size", "shared_intermediate_size"};
    for (size_t i = 0; i < 2 && c->n_experts == 0; i++)
        ST_TRY(st_config_json_size(json, dense[i], &c->ffn));
    if (c->head_dim == 0) c->head_dim = c->hidden / c->n_heads;
    if (c->embed == 0) c->embed = c->hidden;
    if (c->n_experts != 0 && c->n_experts_used == 0) c->n_experts_used = 2;
    return STINT_OK;
}

// Latent attention, where the file has a rank for it.
static stint_status read_latent(const json_t *json, struct st_config *c) {
    struct st_latent *l = &c->latent;
    uint32_t rotated = 0;
    bool bias = false, interleaved = true;
    ST_TRY(st_config_json_size(json, "kv_lora_rank", &l->rank));
    if (l->rank == 0) return STINT_OK;
    ST_TRY(st_config_json_size(json, "q_lora_rank", &l->query_rank));
    ST_TRY(st_config_json_size(json, "qk_nope_head_dim", &l->plain));
    ST_TRY(st_config_json_size(json, "qk_rope_head_dim", &rotated));
    ST_TRY(st_config_json_size(json, "v_head_dim", &l->value));
    ST_TRY(st_json_bool(json, "attention_bias", &bias));
    ST_TRY(st_json_bool(json, "rope_interleave", &interleaved));
    if (bias) return st_fail(STINT_E_UNSUPPORTED, "latent attention with biases");
    c->rope_interleaved = c->rope_interleaved && interleaved;
    c->n_kv_heads = 1;
    c->rope_dims = rotated;
    c->head_dim = (uint32_t)st_min((uint64_t)l->rank + rotated, UINT32_MAX);
    return STINT_OK;
}

static stint_status find_scaling(const char *name, enum st_rope_scaling *scaling) {
    if (strcmp(name, "default") == 0) name = "none";
    if (strcmp(name, "su") == 0) name = "longrope"; // what early Phi-3 files called it
    for (int i = 0; i < ST_N_ROPE_SCALINGS; i++)
        if (strcmp(st_rope_scaling_name((enum st_rope_scaling)i), name) == 0) {
            *scaling = (enum st_rope_scaling)i;
            return STINT_OK;
        }
    return st_fail(STINT_E_UNSUPPORTED,
                   "rope scaling type '%.40s' is not known; known are: linear, dynamic, llama3, "
                   "yarn, longrope, proportional",
                   name);
}

static stint_status read_rope_factors(const json_t *json, const char *key, uint32_t n,
                                      const float **factors, float *store) {
    json_t *array = json_object_get(json, key);
    if (!json_is_array(array) || json_array_size(array) != n)
        return st_fail(STINT_E_FORMAT, "rope scaling: '%s' must hold %u numbers", key, n);
    for (uint32_t i = 0; i < n; i++) {
        json_t *item = json_array_get(array, i);
        double value = json_is_number(item) ? json_number_value(item) : 0.0;
        if (!(value > 0.0) || !isfinite(value))
            return st_fail(STINT_E_FORMAT, "rope scaling: '%s'[%u] must be a positive number", key,
                           i);
        store[i] = (float)value;
    }
    *factors = store;
    return STINT_OK;
}

static stint_status read_numbers(const json_t *json, struct st_rope *rope) {
    const struct {
        const char *key;
        double *out;
    } keys[] = {
        {"rope_theta", &rope->theta},
        {"factor", &rope->factor},
        {"low_freq_factor", &rope->low_factor},
        {"high_freq_factor", &rope->high_factor},
        {"beta_fast", &rope->beta_fast},
        {"beta_slow", &rope->beta_slow},
        {"attention_factor", &rope->attention_factor},
        {"mscale", &rope->mscale},
        {"mscale_all_dim", &rope->mscale_all_dim},
        {"original_max_position_embeddings", &rope->original_context},
        {"llama_4_scaling_beta", &rope->query_growth},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        ST_TRY(st_json_number(json, keys[i].key, 0.0, 1e12, keys[i].out));
    return STINT_OK;
}

// The share of a head that turns, where a rotation covers all of it.
static stint_status read_turned(const json_t *scaling, uint32_t head_dim, struct st_rope *rope) {
    double share = 1.0;
    if (rope->scaling != ST_ROPE_PROPORTIONAL) return STINT_OK;
    ST_TRY(st_json_number(scaling, "partial_rotary_factor", 0.0, 1.0, &share));
    rope->n_turned = (uint32_t)(share * head_dim / 2.0);
    if (rope->factor <= 0.0) rope->factor = 1.0;
    return STINT_OK;
}

// One rotation's parameters from `scaling` (rope_scaling, or one of rope_parameters).
static stint_status read_rope_scaling(const json_t *json, const json_t *scaling,
                                      struct st_config *c, struct st_rope *rope) {
    const char *name = NULL;
    ST_TRY(st_json_string(scaling, "type", &name));
    ST_TRY(st_json_string(scaling, "rope_type", &name));
    if (!name) name = "default";
    ST_TRY(find_scaling(name, &rope->scaling));
    rope->low_factor = 1.0;
    rope->high_factor = 4.0;
    rope->beta_fast = 32.0;
    rope->beta_slow = 1.0;
    rope->original_context = c->context;
    ST_TRY(
        st_json_number(json, "original_max_position_embeddings", 1, 1e12, &rope->original_context));
    ST_TRY(read_numbers(scaling, rope));
    bool truncate = true;
    ST_TRY(st_json_bool(scaling, "truncate", &truncate));
    rope->whole = !truncate;
    if (rope->scaling != ST_ROPE_LONGROPE) return STINT_OK;
    if (rope->original_context >= 1.0 && json_object_get(json, "original_max_position_embeddings"))
        rope->factor = c->context / rope->original_context;
    if (rope->factor == 0.0) rope->factor = 1.0;
    uint32_t n = c->rope_dims / 2;
    if (n > ST_MAX_HEAD_DIM / 2) return st_fail(STINT_E_FORMAT, "rotary size %u", c->rope_dims);
    ST_TRY(read_rope_factors(scaling, "short_factor", n, &rope->factors[0], c->rope_store[0]));
    return read_rope_factors(scaling, "long_factor", n, &rope->factors[1], c->rope_store[1]);
}

static stint_status read_rope(const json_t *json, struct st_config *c) {
    if (c->flags & ST_ARCH_POSITIONS) return STINT_OK;
    double share = 1.0;
    const json_t *scaling = json_object_get(json, "rope_scaling");
    const json_t *parameters = json_object_get(json, "rope_parameters"); // newer files
    if (!json_is_object(scaling)) scaling = parameters;
    const json_t *full = json_object_get(scaling, "full_attention");
    const json_t *local = json_object_get(scaling, "sliding_attention");
    if (json_is_object(full)) scaling = full;
    ST_TRY(st_json_number(json, "partial_rotary_factor", 0.0, 1.0, &share));
    ST_TRY(st_json_number(json, "rope_pct", 0.0, 1.0, &share));
    ST_TRY(st_json_number(scaling, "partial_rotary_factor", 0.0, 1.0, &share));
    if (c->latent.rank == 0) c->rope_dims = (uint32_t)(share * c->head_dim);
    const char *kind = NULL;
    if (c->flags & ST_ARCH_MAY_ROTATE)
        ST_TRY(st_json_string(json, "position_embedding_type", &kind));
    if (c->flags & ST_ARCH_MAY_ROTATE && (!kind || strcmp(kind, "rope"))) c->rope_dims = 0;
    c->rope.theta = 10000.0;
    ST_TRY(st_json_number(json, "rope_theta", 0.0, 1e12, &c->rope.theta));
    c->rope_local = c->rope;
    if (json_is_object(scaling)) ST_TRY(read_rope_scaling(json, scaling, c, &c->rope));
    if (c->rope.scaling == ST_ROPE_PROPORTIONAL) c->rope_dims = c->head_dim;
    ST_TRY(read_turned(scaling, c->head_dim, &c->rope));
    if (c->arch->window != ST_WINDOW_PATTERN) {
        c->rope_local = c->rope;
        return STINT_OK;
    }
    // Only the global layers are scaled.
    c->rope_local.theta = c->rope.theta;
    ST_TRY(st_json_number(json, "rope_local_base_freq", 0.0, 1e12, &c->rope_local.theta));
    if (json_is_object(local)) ST_TRY(read_rope_scaling(json, local, c, &c->rope_local));
    return read_turned(local, c->local.dim ? c->local.dim : c->head_dim, &c->rope_local);
}

static stint_status read_unrotated(const json_t *json, struct st_config *c) {
    uint32_t pattern = c->arch->unrotated_pattern;
    const json_t *rotated = json_object_get(json, "no_rope_layers"); // 1 where there is a rotation
    if (pattern == 0) return STINT_OK;
    ST_TRY(st_config_json_size(json, "no_rope_layer_interval", &pattern));
    st_config_unrotated(c, pattern);
    if (!json_is_array(rotated)) return STINT_OK;
    if (json_array_size(rotated) < c->n_layers)
        return st_fail(STINT_E_FORMAT, "'no_rope_layers' has %zu entries for %u layers",
                       json_array_size(rotated), c->n_layers);
    for (uint32_t i = 0; i < c->n_layers && i < ST_MAX_LAYERS; i++)
        c->unrotated[i] = json_integer_value(json_array_get(rotated, i)) == 0;
    return STINT_OK;
}

// "layer_types", where a newer file spells out what the rule would give.
static stint_status read_layer_types(const json_t *json, struct st_config *c) {
    const json_t *types = json_object_get(json, "layer_types");
    if (!json_is_array(types)) return STINT_OK;
    if (json_array_size(types) != c->n_layers || c->n_layers > ST_MAX_LAYERS)
        return st_fail(STINT_E_FORMAT, "'layer_types' has %zu entries for %u layers",
                       json_array_size(types), c->n_layers);
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const char *type = json_string_value(json_array_get(types, i));
        if (!type || (strcmp(type, "full_attention") && strcmp(type, "sliding_attention")))
            return st_fail(STINT_E_UNSUPPORTED, "'layer_types'[%u] is '%.40s'", i,
                           type ? type : "no text");
        c->sliding[i] = type[0] == 's' && c->window != 0;
    }
    return STINT_OK;
}

// LFM2 gives the width that its feed-forward blocks would have without a gate; theirs follows.
static stint_status read_block_ffn(const json_t *json, struct st_config *c) {
    bool adjust = true, scaled = !json_is_null(json_object_get(json, "block_ffn_dim_multiplier"));
    double factor = 1.0;
    int64_t multiple = 256;
    if (c->arch->form != ST_FORM_CONV) return STINT_OK;
    ST_TRY(st_config_json_size(json, "block_ff_dim", &c->ffn));
    ST_TRY(st_json_bool(json, "block_auto_adjust_ff_dim", &adjust));
    ST_TRY(st_json_number(json, "block_ffn_dim_multiplier", 0.0, 1e3, &factor));
    ST_TRY(st_json_int(json, "block_multiple_of", 1, 1 << 20, &multiple));
    if (!adjust) return STINT_OK;
    c->ffn = (uint32_t)(2 * (uint64_t)c->ffn / 3);
    if (scaled)
        c->ffn = (uint32_t)st_min(st_round_up((uint64_t)(factor * c->ffn), (uint64_t)multiple),
                                  INT32_MAX);
    return STINT_OK;
}

static stint_status read_windows(const json_t *json, struct st_config *c) {
    if (c->arch->window == ST_WINDOW_NONE) return STINT_OK;
    bool used = c->arch->window != ST_WINDOW_FROM;
    ST_TRY(st_json_bool(json, "use_sliding_window", &used));
    ST_TRY(st_config_json_size(json, "sliding_window", &c->window));
    if (!used) c->window = 0;
    bool periodic = c->arch->window == ST_WINDOW_PATTERN;
    uint32_t pattern = periodic ? c->arch->window_pattern : c->n_layers;
    if (periodic) {
        ST_TRY(st_config_json_size(json, "sliding_window_pattern", &pattern));
        ST_TRY(st_config_json_size(json, "_sliding_window_pattern", &pattern));
    } else {
        ST_TRY(st_config_json_size(json, "max_window_layers", &pattern));
    }
    st_config_windows(c, pattern);
    return read_layer_types(json, c);
}

static stint_status read_bool_flag(const json_t *json, const char *key, unsigned flag,
                                   struct st_config *c) {
    bool set = (c->flags & flag) != 0;
    ST_TRY(st_json_bool(json, key, &set));
    c->flags = set ? c->flags | flag : c->flags & ~flag;
    return STINT_OK;
}

static stint_status read_block(const json_t *json, struct st_config *c) {
    bool parallel = c->block == ST_BLOCK_PARALLEL, norm_first = true, no_final = false;
    bool affine = true;
    ST_TRY(st_json_bool(json, "use_parallel_residual", &parallel));
    ST_TRY(st_json_bool(json, "do_layer_norm_before", &norm_first));
    ST_TRY(st_json_bool(json, "_remove_final_layer_norm", &no_final));
    ST_TRY(st_json_bool(json, "layer_norm_elementwise_affine", &affine));
    if (!affine) return st_fail(STINT_E_UNSUPPORTED, "'layer_norm_elementwise_affine' is false");
    if (parallel) c->block = ST_BLOCK_PARALLEL;
    if (!norm_first) c->block = ST_BLOCK_POST;
    c->final_norm = norm_first && !no_final;
    ST_TRY(read_bool_flag(json, "use_qkv_bias", ST_ARCH_QKV_BIAS, c));
    if (c->arch->flags & ST_ARCH_ROUTE_SIGMOID) {
        ST_TRY(read_bool_flag(json, "attention_bias", ST_ARCH_QKV_BIAS, c));
        ST_TRY(read_bool_flag(json, "use_qk_norm", ST_ARCH_QK_NORM, c));
    }
    ST_TRY(read_bool_flag(json, "enable_bias", ST_ARCH_BIAS, c));
    bool qk = false;
    ST_TRY(st_json_bool(json, "qk_layernorm", &qk));
    if (qk) {
        c->flags |= ST_ARCH_QK_NORM;
        c->qk_layernorm = true;
    }
    return STINT_OK;
}

// Granite's, two of which Falcon-H1 has too.
static stint_status read_multipliers(const json_t *json, struct st_config *c) {
    double embed = (double)c->embed_scale, attn = (double)c->attn_scale, residual = 1.0, logits = 1;
    double head = 1.0;
    ST_TRY(st_json_number(json, "embedding_multiplier", 0.0, 1e6, &embed));
    ST_TRY(st_json_number(json, "attention_multiplier", 0.0, 1e6, &attn));
    ST_TRY(st_json_number(json, "residual_multiplier", 0.0, 1e6, &residual));
    ST_TRY(st_json_number(json, "logits_scaling", 0.0, 1e6, &logits));
    ST_TRY(st_json_number(json, "lm_head_multiplier", 0.0, 1e6, &head));
    c->embed_scale = (float)embed;
    c->attn_scale = (float)attn;
    c->residual_scale = (float)residual;
    c->logit_scale = (float)(head / logits);
    return STINT_OK;
}

static stint_status read_scales(const json_t *json, struct st_config *c) {
    double epsilon = 1e-5, attn = 0.0, final = 0.0, query = st_config_query_dim(c);
    ST_TRY(st_json_number(json, "rms_norm_eps", 0.0, 1.0, &epsilon));
    ST_TRY(st_json_number(json, "layer_norm_eps", 0.0, 1.0, &epsilon));
    ST_TRY(st_json_number(json, "layer_norm_epsilon", 0.0, 1.0, &epsilon));
    ST_TRY(st_json_number(json, "norm_eps", 0.0, 1.0, &epsilon));
    ST_TRY(st_json_number(json, "attn_logit_softcapping", 0.0, 1e6, &attn));
    ST_TRY(st_json_number(json, "final_logit_softcapping", 0.0, 1e6, &final));
    ST_TRY(st_json_number(json, "query_pre_attn_scalar", 0.0, 1e9, &query));
    c->norm_epsilon = (float)epsilon;
    c->attn_softcap = (float)attn;
    c->final_softcap = (float) final;
    c->attn_scale = (float)(st_rope_latent_scale(c) / sqrt(query));
    c->embed_scale = c->flags & ST_ARCH_EMBED_SCALE ? (float)sqrt(c->hidden) : 1.0f;
    ST_TRY(read_multipliers(json, c));
    c->norm_offset = c->flags & ST_ARCH_NORM_PLUS_ONE ? 1.0f : 0.0f;
    return STINT_OK;
}

static stint_status read_stops(const json_t *json, struct st_config *c) {
    const json_t *eos = json_object_get(json, "eos_token_id");
    if (json_is_integer(eos)) st_config_add_stop(c, json_integer_value(eos));
    size_t i;
    json_t *item;
    json_array_foreach(eos, i, item) if (json_is_integer(item))
        st_config_add_stop(c, json_integer_value(item));
    int64_t bos = c->bos_id;
    ST_TRY(st_json_int(json, "bos_token_id", INT32_MIN, INT32_MAX, &bos));
    c->bos_id = (int32_t)bos;
    return STINT_OK;
}

static stint_status read_tie(const json_t *json, struct st_config *c) {
    const json_t *tie = json_object_get(json, "tie_word_embeddings");
    c->tied_if_absent = !json_is_boolean(tie);
    ST_TRY(st_json_bool(json, "tie_word_embeddings", &c->tied));
    return st_json_bool(json, "tie_embedding", &c->tied); // LFM2's older files
}

static stint_status read_all(const json_t *json, const json_t *generation, struct st_config *c) {
    ST_TRY(read_sizes(json, c));
    ST_TRY(st_config_read_halves(json, c));
    ST_TRY(read_act(json, c));
    ST_TRY(read_latent(json, c));
    ST_TRY(read_unrotated(json, c));
    ST_TRY(read_windows(json, c));
    ST_TRY(st_config_read_layers(json, c));
    ST_TRY(read_rope(json, c));
    ST_TRY(st_config_read_forms(json, c));
    ST_TRY(read_block_ffn(json, c));
    st_config_rank(c);
    if (c->n_experts != 0) ST_TRY(st_config_read_mixture(json, c));
    ST_TRY(read_block(json, c));
    ST_TRY(read_scales(json, c));
    ST_TRY(read_tie(json, c));
    ST_TRY(st_config_read_ternary(json, c));
    ST_TRY(read_stops(json, c));
    if (generation) ST_TRY(read_stops(generation, c));
    return st_config_check(c);
}

static unsigned parts_left_out(const json_t *config) {
    bool text = json_is_object(json_object_get(config, "text_config"));
    bool vision = text && json_is_object(json_object_get(config, "vision_config"));
    bool audio = text && json_is_object(json_object_get(config, "audio_config"));
    return (vision ? ST_LEFT_OUT_VISION : 0u) | (audio ? ST_LEFT_OUT_AUDIO : 0u);
}

// The text model's own object, with the family's defaults for what it leaves out. New reference.
static stint_status with_defaults(const json_t *config, const struct st_arch *arch, json_t **out) {
    const json_t *text = json_object_get(config, "text_config");
    json_t *merged = json_deep_copy(json_is_object(text) ? text : config);
    if (!merged) return st_fail(STINT_E_NOMEM, "config.json: no memory");
    if (arch->defaults) {
        json_t *defaults = json_loads(arch->defaults, 0, NULL);
        int failed = !defaults || json_object_update_missing(merged, defaults);
        json_decref(defaults);
        if (failed) {
            json_decref(merged);
            return st_fail(STINT_E_NOMEM, "config.json: no memory");
        }
    }
    *out = merged;
    return STINT_OK;
}

stint_status st_config_from_hf(const struct st_checkpoint *checkpoint, struct st_config *config) {
    const char *model_type = NULL;
    const struct st_arch *arch;
    if (!json_is_object(checkpoint->config))
        return st_fail(STINT_E_FORMAT, "config.json: expected an object");
    stint_status status = st_json_string(checkpoint->config, "model_type", &model_type);
    if (status == STINT_OK && !model_type)
        status = st_fail(STINT_E_FORMAT, "'model_type' is missing");
    if (status == STINT_OK) status = st_arch_find_hf(model_type, &arch);
    if (status != STINT_OK) return st_fail_prefix("config.json: ");

    struct st_config c = {.arch = arch,
                          .norm = arch->norm,
                          .block = arch->block,
                          .flags = arch->flags,
                          .bos_id = -1,
                          .final_norm = true,
                          .left_out = parts_left_out(checkpoint->config),
                          .rope_interleaved = (arch->flags & ST_ARCH_INTERLEAVED) != 0};
    json_t *json = NULL;
    ST_TRY(with_defaults(checkpoint->config, arch, &json));
    status = st_config_split_widths(json, arch);
    if (status == STINT_OK) status = read_all(json, checkpoint->generation_config, &c);
    json_decref(json);
    if (status != STINT_OK) return st_fail_prefix("config.json: ");
    *config = c;
    for (int i = 0; i < 2; i++) // the factors lie inside the struct that was copied
        if (config->rope.factors[i])
            config->rope.factors[i] = config->rope_local.factors[i] = config->rope_store[i];
    return STINT_OK;
}
