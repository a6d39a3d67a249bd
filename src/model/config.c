// SPDX-License-Identifier: Apache-2.0
#include "model/config.h"

#include "base/size.h"

#include <math.h>

static const char *const scaling_names[ST_N_ROPE_SCALINGS] = {
#define X(id, name) name,
    ST_ROPE_SCALING_LIST(X)
#undef X
};

const char *st_rope_scaling_name(enum st_rope_scaling scaling) {
    return scaling_names[scaling];
}

stint_status st_config_read(const struct st_checkpoint *checkpoint, struct st_config *config) {
    if (checkpoint->source == ST_SOURCE_GGUF) return st_config_from_gguf(checkpoint, config);
    return st_config_from_hf(checkpoint, config);
}

void st_config_windows(struct st_config *config, uint32_t pattern) {
    for (uint32_t i = 0; i < config->n_layers && i < ST_MAX_LAYERS; i++) {
        bool sliding = false;
        switch (config->arch->window) {
        case ST_WINDOW_NONE:
            break;
        case ST_WINDOW_ALL:
            sliding = true;
            break;
        case ST_WINDOW_FROM:
            sliding = i >= pattern;
            break;
        case ST_WINDOW_ALTERNATE:
            sliding = i % 2 == 0;
            break;
        case ST_WINDOW_PATTERN:
            sliding = pattern != 0 && (i + 1) % pattern != 0;
            break;
        }
        config->sliding[i] = sliding && config->window != 0;
    }
}

void st_config_unrotated(struct st_config *config, uint32_t pattern) {
    for (uint32_t i = 0; i < config->n_layers && i < ST_MAX_LAYERS; i++)
        config->unrotated[i] = pattern != 0 && (i + 1) % pattern == 0;
}

void st_config_attention_every(struct st_config *config, uint32_t interval) {
    for (uint32_t i = 0; i < config->n_layers && i < ST_MAX_LAYERS; i++)
        config->form[i] = interval == 0 || (i + 1) % interval == 0 ? ST_FORM_ATTENTION
                                                                   : (uint8_t)config->arch->form;
}

void st_config_rank(struct st_config *config) {
    for (int form = 0; form < ST_N_FORMS; form++) config->n_form[form] = 0;
    for (uint32_t i = 0; i < config->n_layers && i < ST_MAX_LAYERS; i++) {
        config->rank[i] = (uint16_t)config->n_form[config->form[i]]++;
        if (!(config->flags & (ST_ARCH_HALVES | ST_ARCH_JOINT)))
            config->mixer_at[i] = config->ffn_at[i] = (uint16_t)i;
    }
    if (config->n_form[ST_FORM_DELTA] + config->n_form[ST_FORM_MAMBA] == 0)
        config->state = (struct st_state_shape){0};
}

struct st_mixer_widths st_config_widest_mixer(const struct st_config *c) {
    struct st_mixer_widths widest = {0};
    for (uint32_t i = 0; i < c->n_layers; i++) {
        struct st_mixer_widths w = st_config_mixer(c, i);
        widest.q = (uint32_t)st_max(widest.q, w.q);
        widest.k = (uint32_t)st_max(widest.k, w.k);
        widest.v = (uint32_t)st_max(widest.v, w.v);
        widest.out = (uint32_t)st_max(widest.out, w.out);
    }
    return widest;
}

struct st_heads st_config_widest_heads(const struct st_config *c) {
    struct st_heads widest = {0};
    for (uint32_t i = 0; i < c->n_layers; i++) {
        struct st_heads heads = st_config_heads(c, i);
        widest.n_kv = (uint32_t)st_max(widest.n_kv, heads.n_kv);
        widest.dim = (uint32_t)st_max(widest.dim, heads.dim);
        widest.rope_dims = (uint32_t)st_max(widest.rope_dims, heads.rope_dims);
    }
    return widest;
}

uint32_t st_config_widest_block(const struct st_config *c, uint32_t block) {
    uint32_t widest = 0;
    for (uint32_t i = 0; i < c->n_layers; i++)
        if (block < st_config_blocks(c, i))
            widest = (uint32_t)st_max(widest, st_config_ffn(c, i, block));
    return widest;
}

uint32_t st_config_widest_ffn(const struct st_config *c) {
    uint32_t widest = 0;
    for (uint32_t i = 0; i < st_config_max_blocks(c); i++)
        widest = (uint32_t)st_max(widest, st_config_widest_block(c, i));
    return widest;
}

void st_config_add_stop(struct st_config *config, int64_t id) {
    if (id < 0 || id > INT32_MAX || config->n_stop_ids == ST_MAX_STOP_IDS) return;
    for (uint32_t i = 0; i < config->n_stop_ids; i++)
        if (config->stop_ids[i] == id) return;
    config->stop_ids[config->n_stop_ids++] = (int32_t)id;
}

struct range {
    const char *name;
    uint32_t value, min, max;
};

static stint_status check_ranges(const struct range *ranges, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (ranges[i].value < ranges[i].min || ranges[i].value > ranges[i].max)
            return st_fail(STINT_E_FORMAT, "%s: %u is not in %u..%u", ranges[i].name,
                           ranges[i].value, ranges[i].min, ranges[i].max);
    return STINT_OK;
}

static stint_status check_rope(const struct st_heads *heads, const struct st_rope *rope) {
    if (heads->rope_dims == 0) return STINT_OK;
    if (heads->rope_dims % 2 != 0 || heads->rope_dims > heads->dim)
        return st_fail(STINT_E_FORMAT, "rotary size %u: expected an even number of at most %u",
                       heads->rope_dims, heads->dim);
    if (!(rope->theta > 1.0))
        return st_fail(STINT_E_FORMAT, "rope_theta %g: expected more than 1", rope->theta);
    if (rope->scaling != ST_ROPE_NONE && !(rope->factor > 0.0))
        return st_fail(STINT_E_FORMAT, "rope scaling factor %g: expected more than 0",
                       rope->factor);
    if ((rope->scaling > ST_ROPE_LINEAR || rope->query_growth > 0.0) &&
        !(rope->original_context >= 1.0))
        return st_fail(STINT_E_FORMAT, "rope scaling: the original context is %g tokens",
                       rope->original_context);
    if (rope->scaling == ST_ROPE_LLAMA3 &&
        !(rope->low_factor > 0.0 && rope->high_factor > rope->low_factor))
        return st_fail(STINT_E_FORMAT, "rope scaling: low_freq_factor %g, high_freq_factor %g",
                       rope->low_factor, rope->high_factor);
    if (rope->scaling == ST_ROPE_YARN && !(rope->beta_slow > 0.0 && rope->beta_fast > 0.0))
        return st_fail(STINT_E_FORMAT, "rope scaling: beta_fast %g, beta_slow %g", rope->beta_fast,
                       rope->beta_slow);
    return STINT_OK;
}

static stint_status check_state(const struct st_config *c) {
    const struct st_state_shape *s = &c->state;
    const struct range ranges[] = {
        {"heads of a state", s->n_heads, 1, 1u << 12},
        {"groups of a state", s->n_groups, 1, s->n_heads},
        {"key size of a state", s->n_keys, 1, ST_MAX_STATE_DIM},
        {"value size of a state", s->n_values, 1, ST_MAX_STATE_DIM},
    };
    if (c->n_form[ST_FORM_CONV] == st_config_n_recurrent(c)) return STINT_OK;
    ST_TRY(check_ranges(ranges, sizeof ranges / sizeof *ranges));
    if (s->n_heads % s->n_groups != 0)
        return st_fail(STINT_E_FORMAT, "%u heads of a state do not divide by %u groups", s->n_heads,
                       s->n_groups);
    return STINT_OK;
}

static stint_status check_forms(const struct st_config *c) {
    if (st_config_n_recurrent(c) == 0) return STINT_OK;
    if (c->conv_length < 2 || c->conv_length > ST_MAX_CONV_LENGTH)
        return st_fail(STINT_E_UNSUPPORTED, "convolutions over %u tokens: expected 2..%d",
                       c->conv_length, ST_MAX_CONV_LENGTH);
    if (c->n_form[ST_FORM_ATTENTION] == 0)
        return st_fail(STINT_E_UNSUPPORTED, "no layer has attention");
    if (!st_block_norms_input(c->block) || c->block == ST_BLOCK_PARALLEL)
        return st_fail(STINT_E_UNSUPPORTED, "recurrent state in layers of this block form");
    return check_state(c);
}

static stint_status check_heads(const struct st_config *c, const struct st_heads *heads) {
    const struct range ranges[] = {
        {"key-value heads", heads->n_kv, 1, 1u << 14},
        {"head size", heads->dim, 1, ST_MAX_HEAD_DIM},
    };
    ST_TRY(check_ranges(ranges, sizeof ranges / sizeof *ranges));
    if (c->n_heads % heads->n_kv != 0)
        return st_fail(STINT_E_FORMAT, "%u heads do not divide by %u key-value heads", c->n_heads,
                       heads->n_kv);
    if ((uint64_t)c->n_heads * heads->dim > 1u << 20)
        return st_fail(STINT_E_FORMAT, "%u heads of %u are beyond any limit", c->n_heads,
                       heads->dim);
    return STINT_OK;
}

// What differs between layers.
static stint_status check_layers(const struct st_config *c) {
    const struct range ranges[] = {
        {"width of layers' inputs", c->layer_input, 0, 1u << 16},
        {"all layers' inputs", c->layer_input * c->n_layers, 0, 1u << 22},
        {"hidden states", c->n_streams, 0, ST_MAX_STREAMS},
        {"rank of a residual sum", c->laurel, c->n_streams ? 1 : 0, 1u << 20},
        {"vocabulary of layers' inputs", c->layer_vocab, c->layer_input ? 1 : 0, 1u << 24},
    };
    ST_TRY(check_ranges(ranges, sizeof ranges / sizeof *ranges));
    if (c->n_streams == 1) return st_fail(STINT_E_UNSUPPORTED, "one hidden state of several");
    for (uint32_t i = 0; i < c->n_layers; i++)
        if (c->ffn_at_layer[i] > 1u << 22)
            return st_fail(STINT_E_FORMAT, "feed-forward size %u in layer %u", c->ffn_at_layer[i],
                           i);
    if (c->n_experts && st_config_any_cut(c))
        return st_fail(STINT_E_UNSUPPORTED, "experts whose gates have a cutoff");
    const struct st_heads heads = {c->n_kv_heads, c->head_dim, c->rope_dims};
    ST_TRY(check_heads(c, &heads));
    ST_TRY(check_rope(&heads, &c->rope));
    if (c->local.dim == 0) return check_rope(&heads, &c->rope_local);
    ST_TRY(check_heads(c, &c->local));
    return check_rope(&c->local, &c->rope_local);
}

static stint_status check_latent(const struct st_config *c) {
    const struct st_latent *l = &c->latent;
    if (l->rank == 0) return STINT_OK;
    if (l->plain == 0 || l->plain > ST_MAX_HEAD_DIM || l->value == 0 ||
        l->value > ST_MAX_HEAD_DIM || l->query_rank > 1u << 20 || c->rope_dims == 0 ||
        c->rope_dims >= c->head_dim || c->n_kv_heads != 1)
        return st_fail(STINT_E_FORMAT, "latent attention: heads of %u and %u with values of %u",
                       l->plain, c->rope_dims, l->value);
    return STINT_OK;
}

static stint_status check_experts(const struct st_config *c) {
    const struct st_router *r = &c->router;
    if (c->n_experts == 0) return STINT_OK;
    if (c->n_experts_used == 0 || c->n_experts_used > c->n_experts)
        return st_fail(STINT_E_FORMAT, "%u of %u experts per token: expected 1..%u",
                       c->n_experts_used, c->n_experts, c->n_experts);
    if (!isfinite(r->scale) || r->scale <= 0.0)
        return st_fail(STINT_E_FORMAT, "experts' weights times %g make no sense", r->scale);
    uint32_t groups = (uint32_t)st_max(1, r->n_groups), used = r->n_groups_used;
    if (groups > 1 &&
        (c->n_experts % groups != 0 || used == 0 || used > groups || c->n_experts / groups < 2 ||
         c->n_experts_used > c->n_experts / groups * used))
        return st_fail(STINT_E_FORMAT, "%u of %u experts in %u of %u groups", c->n_experts_used,
                       c->n_experts, used, groups);
    return STINT_OK;
}

stint_status st_config_check(const struct st_config *c) {
    const struct range ranges[] = {
        {"layers", c->n_layers, 1, ST_MAX_LAYERS},
        {"hidden size", c->hidden, 1, 1u << 20},
        {"embedding size", c->embed, 1, 1u << 20},
        {"heads", c->n_heads, 1, 1u << 14},
        {"feed-forward size", c->ffn, 1, 1u << 22},
        {"vocabulary", c->vocab, 1, 1u << 24},
        {"context", c->context, 1, 1u << 28},
        {"experts", c->n_experts, 0, ST_MAX_EXPERTS},
        {"width of layers without experts", c->dense_ffn, 0, 1u << 22},
        {"width of the shared expert", c->shared_ffn, 0, 1u << 22},
    };
    ST_TRY(check_ranges(ranges, sizeof ranges / sizeof *ranges));
    ST_TRY(check_layers(c));
    if (!(c->norm_epsilon >= 0.0f && c->norm_epsilon < 1.0f))
        return st_fail(STINT_E_FORMAT, "norm epsilon %g: expected 0..1", (double)c->norm_epsilon);
    const float scales[] = {c->embed_scale, c->attn_scale, c->residual_scale, c->logit_scale};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        if (!isfinite(scales[i]) || scales[i] <= 0.0f)
            return st_fail(STINT_E_FORMAT, "a scale of %g makes no sense", (double)scales[i]);
    if (!(c->attn_softcap >= 0.0f && c->final_softcap >= 0.0f) || !isfinite(c->attn_softcap) ||
        !isfinite(c->final_softcap))
        return st_fail(STINT_E_FORMAT, "a softcap of %g, %g makes no sense",
                       (double)c->attn_softcap, (double)c->final_softcap);
    ST_TRY(check_experts(c));
    ST_TRY(check_latent(c));
    return check_forms(c);
}
