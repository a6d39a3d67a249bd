// SPDX-License-Identifier: Apache-2.0
// The hyper-parameters of a model, whichever file they came from: checked, with every default
// filled in.
#ifndef ST_MODEL_CONFIG_H
#define ST_MODEL_CONFIG_H

#include "format/checkpoint.h"
#include "model/arch.h"

enum {
    ST_MAX_LAYERS = 1024,
    ST_MAX_EXPERTS = 512,
    ST_MAX_HEAD_DIM = 1024,
    ST_MAX_STOP_IDS = 16,
    ST_MAX_CONV_LENGTH = 5, // a chunk of a prompt is at least as long
    ST_MAX_STATE_DIM = 256, // of a head's keys and values
    ST_NO_FFN = 2,          // of st_config.dense: the layer has no feed-forward block
    ST_MAX_STREAMS = 8,     // hidden states of a token
    ST_N_MIXED = 5,         // parts of what Mamba-2's first linear gives, in the order of the file
};

#define ST_ROPE_SCALING_LIST(X)                                                                    \
    X(NONE, "none")                                                                                \
    X(LINEAR, "linear")                                                                            \
    X(DYNAMIC, "dynamic")                                                                          \
    X(LLAMA3, "llama3")                                                                            \
    X(YARN, "yarn")                                                                                \
    X(LONGROPE, "longrope")                                                                        \
    X(PROPORTIONAL, "proportional")

enum st_rope_scaling {
#define X(id, name) ST_ROPE_##id,
    ST_ROPE_SCALING_LIST(X)
#undef X
        ST_N_ROPE_SCALINGS
};

// How files store linears whose weights are -1, 0 and 1 times a scale (model/ternary.h).
enum st_ternary {
    ST_TERNARY_NONE,
    ST_TERNARY_SCALED,  // packed, times the scale beside them
    ST_TERNARY_DIVIDED, // packed, over that scale
    ST_TERNARY_ROUNDED, // in float, to be rounded
    ST_TERNARY_I2_S,    // GGUF: blocks of I2_S (format/tensors.h)
};

// Latent attention: queries and rows of the cache are [rope_dims, rank], and n_kv_heads is 1.
struct st_latent {
    uint32_t rank;       // of what all heads' keys and values come from; 0: no latent attention
    uint32_t query_rank; // of queries; 0: they come from one linear
    uint32_t plain;      // elements of a head's query without a rotation
    uint32_t value;      // of a head's value
};

// How a router's scores become the weights of the experts that a token uses.
struct st_router {
    bool sigmoid;    // scores are sigmoids of the logits, each by itself; otherwise their softmax
    bool biased;     // a bias is added to the scores that experts are selected by, not to weights
    bool group_sums; // a group counts as the sum of its two best; otherwise as its best
    bool shares;     // weights are scores as they are; otherwise over the sum of the selected
    uint32_t n_groups, n_groups_used; // experts come from the best groups alone; at most 1: any
    double scale;                     // of the weights
};

// One kind of rotation; layers with a sliding window may use another than the rest.
struct st_rope {
    enum st_rope_scaling scaling;
    double theta;
    double factor;
    double original_context;        // tokens, before scaling
    double low_factor, high_factor; // llama3
    double beta_fast, beta_slow;    // yarn
    bool whole;                     // yarn: the borders between pairs are not rounded
    double attention_factor;        // cosine and sine are multiplied with it; 0: from the formula
    double mscale, mscale_all_dim;  // yarn; 0: absent
    double query_growth; // queries times 1 + it * ln(1 + floor(position / original_context)); 0: no
    uint32_t n_turned;   // proportional: pairs that are turned, the first ones of the head
    const float *factors[2]; // [n_dims / 2] divisors of the frequencies: short, long; or NULL
};

// Attention's heads in a layer. All layers have as many queries.
struct st_heads {
    uint32_t n_kv, dim, rope_dims;
};

// Of layers whose state is a matrix: each of its heads has one, [n_keys, n_values]. Heads of a
// group share queries and keys.
struct st_state_shape {
    uint32_t n_heads, n_groups, n_keys, n_values;
    bool tiled; // head h is of group h modulo n_groups; not: of h / (n_heads / n_groups)
};

static inline size_t st_state_group(const struct st_state_shape *shape, size_t head) {
    return shape->tiled ? head % shape->n_groups : head / (shape->n_heads / shape->n_groups);
}

struct st_config {
    const struct st_arch *arch;
    uint32_t n_layers, hidden, n_heads, n_kv_heads, head_dim, ffn, vocab, context;
    uint32_t embed; // width of the embedding rows; hidden unless projected
    uint32_t n_experts, n_experts_used;
    struct st_latent latent;
    struct st_router router;
    uint32_t dense_ffn;           // width of a mixture's layers without experts
    uint32_t shared_ffn;          // of the block that all tokens of a mixture pass through; 0: none
    uint8_t dense[ST_MAX_LAYERS]; // 1: a layer of a mixture without experts; or ST_NO_FFN
    uint16_t mixer_at[ST_MAX_LAYERS], ffn_at[ST_MAX_LAYERS]; // the halves' layers in the file
    uint8_t joined[ST_MAX_LAYERS];  // 1: the layer's mixer has the normed input of the one before
    uint32_t window;                // tokens; 0: none
    uint8_t sliding[ST_MAX_LAYERS]; // 1: the layer attends to the window only
    struct st_heads local;          // of layers with sliding[i]; dim 0: as of the others
    uint16_t cache_back[ST_MAX_LAYERS]; // the layer has no keys and values, but those of the layer
                                        // so many before it; 0: it has its own
    uint8_t keys_as_values[ST_MAX_LAYERS]; // 1: values come from the linear of the keys
    uint32_t ffn_at_layer[ST_MAX_LAYERS];  // width of the layer's block; 0: ffn
    uint32_t
        layer_input; // width of the token's input of each layer (session/layer_input.c); 0: none
    uint8_t cut[ST_MAX_LAYERS];  // 1: gates below the cutoff, in standard deviations from their
    float cutoff[ST_MAX_LAYERS]; // mean, are 0, the others less by it
    uint32_t n_streams;          // hidden states of a token (session/streams.c); 0: one
    uint32_t laurel; // rank of the residual sum beside attention, where there are several
    bool stream_unscaled;
    uint32_t layer_vocab;             // tokens that have one; others get the first one's
    uint8_t unrotated[ST_MAX_LAYERS]; // 1: the layer's q and k are not rotated
    uint8_t form[ST_MAX_LAYERS];      // enum st_form
    uint16_t rank[ST_MAX_LAYERS];     // layers of the same form before this one
    uint32_t n_form[ST_N_FORMS];      // layers of each form
    uint32_t conv_length;             // taps of a convolution
    struct st_state_shape state;
    bool fused_mix;      // a delta net's first linear is q, k, v and output gate, per key head
    bool conv_bias;      // it has a bias; a short convolution's linears too
    bool mix_bias;       // so have the linears of other forms
    bool state_unnormed; // what a state gives has no norm
    float linear_scale[ST_N_ROLES]; // outputs of a role's linears are times it; 0: as they are
    float mixed_scale[ST_N_MIXED];  // of gates, values, keys, queries, steps; 0 in all: no
    enum st_norm norm;
    enum st_block block;
    enum st_act act;
    unsigned flags;    // ST_ARCH_*, after what the config says
    bool qk_layernorm; // LayerNorm instead of RMSNorm where q and k are normalised
    enum st_ternary ternary;
    bool tied;           // the output head is the embedding
    bool tied_if_absent; // decided by whether the file holds a head
    bool final_norm;
    bool rope_interleaved;
    uint32_t rope_dims;                       // rotated elements of a head; 0: none
    struct st_rope rope, rope_local;          // local: for layers with sliding[i]
    float rope_store[2][ST_MAX_HEAD_DIM / 2]; // what rope.factors point to, if anything
    float norm_epsilon;
    float norm_offset;                                          // added to stored norm weights
    float embed_scale, attn_scale, attn_softcap, final_softcap; // softcaps: 0 is off
    float residual_scale;                                       // of what a layer's halves add
    float logit_scale;
    int32_t stop_ids[ST_MAX_STOP_IDS];
    uint32_t n_stop_ids;
    int32_t bos_id;    // -1: unknown
    unsigned left_out; // parts of a multimodal checkpoint that are not run: enum st_left_out
};

enum st_left_out { ST_LEFT_OUT_VISION = 1, ST_LEFT_OUT_AUDIO = 2 };

// Reads and checks; borrows arch alone. *config may not be copied: rope.factors point into it.
// STINT_E_FORMAT, E_UNSUPPORTED; texts name the key.
stint_status st_config_read(const struct st_checkpoint *checkpoint, struct st_config *config);
// The two readers behind it.
stint_status st_config_from_hf(const struct st_checkpoint *checkpoint, struct st_config *config);
stint_status st_config_from_gguf(const struct st_checkpoint *checkpoint, struct st_config *config);
// A size of config.json; keeps what *out holds where it is absent.
stint_status st_config_json_size(const json_t *json, const char *key, uint32_t *out);
// router, dense, shared_ffn of a mixture whose sizes are read (config_experts.c).
stint_status st_config_read_mixture(const json_t *json, struct st_config *config);
// How linears are stored, where "quantization_config" says that they are BitNet's
// (config_ternary.c). STINT_E_UNSUPPORTED.
stint_status st_config_read_ternary(const json_t *json, struct st_config *config);
// Which layers have no attention, and what they have.
stint_status st_config_read_forms(const json_t *json, struct st_config *config);
// Fills the layers from what those of the file are: 'M' the architecture's form, '*' attention, '-'
// a feed-forward block, 'E' a mixture. Each of the last two must follow one of the first two.
// STINT_E_UNSUPPORTED.
stint_status st_config_halves(const char *kinds, size_t n, struct st_config *config);
// The same from config.json, for architectures that have ST_ARCH_HALVES.
stint_status st_config_read_halves(const json_t *json, struct st_config *config);
// Makes two layers of each, where both mixers of a layer have one input.
stint_status st_config_join(struct st_config *config);
// The same from config.json, with what such files say of it, for architectures that have
// ST_ARCH_JOINT (config_joint.c).
stint_status st_config_read_joint(const json_t *json, struct st_config *config);
// Heads, caches, widths and inputs that differ between layers, from config.json (config_layers.c).
stint_status st_config_read_layers(const json_t *json, struct st_config *config);
// Takes the widths of the layers' blocks apart, where there is a list in place of one width.
stint_status st_config_split_widths(json_t *json, const struct st_arch *arch);
// The standard normal distribution's quantile of a share between 0 and 1.
double st_config_deviations(double share);
// The last n layers use the cache of the last one of their kind before them. STINT_E_UNSUPPORTED.
stint_status st_config_share_caches(struct st_config *config, uint32_t n);
// The checks they share: every size in its range, products that fit, heads that divide.
stint_status st_config_check(const struct st_config *config);
// Fills sliding[] from the architecture's rule. `pattern`: ST_WINDOW_PATTERN's period or
// ST_WINDOW_FROM's first layer.
void st_config_windows(struct st_config *config, uint32_t pattern);
// Fills unrotated[]: every `pattern`-th layer; 0: none.
void st_config_unrotated(struct st_config *config, uint32_t pattern);
// Fills form[]: every `interval`-th layer has attention; 0: all of them.
void st_config_attention_every(struct st_config *config, uint32_t interval);
void st_config_add_stop(struct st_config *config, int64_t id);
// Fills rank[] and n_form[], and the layers of halves, once form[] is known, and forgets a state
// that no layer has.
void st_config_rank(struct st_config *config);

// The heads of a layer's attention; and the largest of each in any layer.
static inline struct st_heads st_config_heads(const struct st_config *c, uint32_t layer) {
    if (c->sliding[layer] && c->local.dim) return c->local;
    return (struct st_heads){c->n_kv_heads, c->head_dim, c->rope_dims};
}
struct st_heads st_config_widest_heads(const struct st_config *config);
// The layer whose keys and values a layer attends to.
static inline uint32_t st_config_cache_of(const struct st_config *c, uint32_t layer) {
    return layer - c->cache_back[layer];
}
// Whether a layer has a cache of its own.
static inline bool st_config_has_cache(const struct st_config *c, uint32_t layer) {
    return c->form[layer] == ST_FORM_ATTENTION && c->cache_back[layer] == 0;
}

// What a convolution ahead of a state passes: queries, keys and values of a token.
static inline uint32_t st_config_conv_width(const struct st_config *c) {
    if (c->arch->form == ST_FORM_CONV) return c->hidden;
    return 2 * c->state.n_groups * c->state.n_keys + c->state.n_heads * c->state.n_values;
}
// Whether what the first linear gives is kept as it is, since something is between it and q.
static inline bool st_config_keeps_raw(const struct st_config *c, uint32_t layer) {
    if (c->form[layer] == ST_FORM_DELTA) return !c->fused_mix;
    if (c->form[layer] == ST_FORM_MAMBA) return true;
    return c->form[layer] == ST_FORM_ATTENTION && c->flags & ST_ARCH_GATED_ATTENTION;
}

// Outputs of the three linears at a layer's beginning (q, k, v, or what stands for them), and
// inputs of the one at the end of its first half. The last two of the three may have none.
struct st_mixer_widths {
    uint32_t q, k, v, out;
};
static inline struct st_mixer_widths st_config_mixer(const struct st_config *c, uint32_t layer) {
    struct st_heads heads = st_config_heads(c, layer);
    uint32_t n_q = c->n_heads * heads.dim, n_kv = heads.n_kv * heads.dim, n = c->hidden;
    const struct st_latent *l = &c->latent;
    uint32_t n_state = c->state.n_heads * c->state.n_values, n_conv = st_config_conv_width(c);
    if (c->form[layer] == ST_FORM_CONV) return (struct st_mixer_widths){n, n, n, n};
    if (c->form[layer] == ST_FORM_DELTA && c->fused_mix)
        return (struct st_mixer_widths){n_conv + n_state, 0, 0, n_state};
    if (c->form[layer] == ST_FORM_DELTA)
        return (struct st_mixer_widths){n_conv, n_state, 0, n_state};
    if (c->form[layer] == ST_FORM_MAMBA)
        return (struct st_mixer_widths){n_conv, n_state, c->state.n_heads, n_state};
    if (l->rank)
        return (struct st_mixer_widths){l->query_rank ? l->query_rank
                                                      : c->n_heads * (l->plain + c->rope_dims),
                                        c->head_dim, 0, c->n_heads * l->value};
    uint32_t gated = c->flags & ST_ARCH_GATED_ATTENTION ? 2 : 1;
    if (c->cache_back[layer]) return (struct st_mixer_widths){gated * n_q, 0, 0, n_q};
    return (struct st_mixer_widths){gated * n_q, n_kv, c->keys_as_values[layer] ? 0 : n_kv, n_q};
}
// Whether these linears, those at the beginning or the one at the end, have biases.
static inline bool st_config_mixer_bias(const struct st_config *c, uint32_t layer, bool first) {
    if (c->form[layer] == ST_FORM_CONV) return c->conv_bias;
    if (c->form[layer] != ST_FORM_ATTENTION) return c->mix_bias;
    return (c->flags & (ST_ARCH_BIAS | (first ? ST_ARCH_QKV_BIAS : 0))) != 0;
}
// Layers without attention: all of the architecture's other form.
static inline uint32_t st_config_n_recurrent(const struct st_config *c) {
    uint32_t n = 0;
    for (int form = ST_FORM_ATTENTION + 1; form < ST_N_FORMS; form++) n += c->n_form[form];
    return n;
}
// Feed-forward blocks of a layer: none, one, or its experts and then the shared one.
static inline uint32_t st_config_blocks(const struct st_config *c, uint32_t layer) {
    if (c->dense[layer] == ST_NO_FFN) return 0;
    if (c->n_experts == 0 || c->dense[layer]) return 1;
    return c->n_experts + (c->shared_ffn != 0);
}
static inline uint32_t st_config_max_blocks(const struct st_config *c) {
    return c->n_experts ? c->n_experts + (c->shared_ffn != 0) : 1;
}
// Whether a block is one of the experts of a router.
static inline bool st_config_is_routed(const struct st_config *c, uint32_t layer, uint32_t block) {
    return block < c->n_experts && !c->dense[layer];
}
// The width of a block.
static inline uint32_t st_config_ffn(const struct st_config *c, uint32_t layer, uint32_t block) {
    if (c->ffn_at_layer[layer]) return c->ffn_at_layer[layer];
    if (c->n_experts == 0 || st_config_is_routed(c, layer, block)) return c->ffn;
    return c->dense[layer] ? c->dense_ffn : c->shared_ffn;
}
// The largest width that this block has in any layer; and any block in any layer.
uint32_t st_config_widest_block(const struct st_config *config, uint32_t block);
uint32_t st_config_widest_ffn(const struct st_config *config);
// Whether the gates of the layer's block have a cutoff.
static inline bool st_config_is_cut(const struct st_config *c, uint32_t layer) {
    return c->cut[layer] && c->flags & ST_ARCH_GATED;
}
static inline bool st_config_any_cut(const struct st_config *c) {
    bool cut = false;
    for (uint32_t i = 0; i < c->n_layers; i++) cut |= st_config_is_cut(c, i);
    return cut;
}
// Elements that a score is a sum over, which its scale follows from.
static inline uint32_t st_config_query_dim(const struct st_config *c) {
    return c->latent.rank ? c->latent.plain + c->rope_dims : c->head_dim;
}
// The last layer with attention.
static inline uint32_t st_config_last_attention(const struct st_config *c) {
    uint32_t i = c->n_layers - 1;
    while (i > 0 && c->form[i] != ST_FORM_ATTENTION) i--;
    return i;
}
// The largest of each in any layer.
struct st_mixer_widths st_config_widest_mixer(const struct st_config *config);

const char *st_rope_scaling_name(enum st_rope_scaling scaling);

#endif
