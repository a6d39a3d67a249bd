// SPDX-License-Identifier: Apache-2.0
// The known architectures, one table row each: what a family's name implies beyond the numbers in
// its config. A new architecture is a new row (and, where its tensors are called otherwise, a row
// of names).
#ifndef ST_MODEL_ARCH_H
#define ST_MODEL_ARCH_H

#include "base/status.h"
#include "kernels/elementwise.h"

// How the rows of a layer learn of those before them.
enum st_form {
    ST_FORM_ATTENTION,
    ST_FORM_CONV,  // a gated short convolution: c * conv(b * x), where b, c and x stand for q, k, v
    ST_FORM_DELTA, // a gated delta net: a convolution, then a matrix of what keys stand for
    ST_FORM_MAMBA, // Mamba-2: a convolution, then a matrix that fades
    ST_N_FORMS
};

enum st_norm { ST_NORM_RMS, ST_NORM_LAYER };

// Where norms and residual sums stand in a layer.
enum st_block {
    ST_BLOCK_PRE,      // x += attn(norm(x)); x += ffn(norm(x))
    ST_BLOCK_PARALLEL, // n = norm(x); x += attn(n) + ffn(n)
    ST_BLOCK_SANDWICH, // x += norm(attn(norm(x))); x += norm(ffn(norm(x)))
    ST_BLOCK_POST,     // x = norm(x + attn(x)); x = norm(x + ffn(x))
    ST_BLOCK_BRANCH,   // x += norm(attn(x)); x += norm(ffn(x))
};

// Whether attention and feed-forward part have a norm before them.
static inline bool st_block_norms_input(enum st_block block) {
    return block != ST_BLOCK_POST && block != ST_BLOCK_BRANCH;
}

// Which layers attend to a sliding window only.
enum st_window_rule {
    ST_WINDOW_NONE,
    ST_WINDOW_ALL,       // all, where the config gives a window
    ST_WINDOW_FROM,      // those from max_window_layers on, if use_sliding_window
    ST_WINDOW_ALTERNATE, // even ones
    ST_WINDOW_PATTERN,   // all but every sliding_window_pattern-th; these have a rotation apart
};

enum {
    ST_ARCH_GATED = 1,                 // down(act(gate x) * up x)
    ST_ARCH_NORM_PLUS_ONE = 2,         // stored norm weights are w - 1 (Hugging Face layout)
    ST_ARCH_EMBED_SCALE = 4,           // embeddings times sqrt(hidden)
    ST_ARCH_QKV_BIAS = 8,              // q, k, v have biases
    ST_ARCH_BIAS = 16,                 // every linear of a layer has one
    ST_ARCH_HEAD_BIAS = 32,            // so has the output head
    ST_ARCH_QK_NORM = 64,              // RMSNorm of each head's q and k before the rotation
    ST_ARCH_DUAL_ACT = 128,            // hidden_act "relu" means relu on gate and on up
    ST_ARCH_GELU_IS_TANH = 256,        // "gelu" without hidden_activation means the tanh form
    ST_ARCH_POSITIONS = 512,           // learned positions instead of a rotation, offset by 2
    ST_ARCH_GGUF_INTERLEAVED = 1024,   // GGUF stores q and k with rotation pairs (2i, 2i + 1)
    ST_ARCH_INTERLEAVED = 2048,        // so does every layout
    ST_ARCH_QK_NORM_WHOLE = 4096,      // RMSNorm of all heads of q together, and of k
    ST_ARCH_ROUTE_ALL = 8192,          // experts weigh their scores as they are, if nothing is said
    ST_ARCH_SINKS = 1 << 20,           // attention's softmax has one more score for each head
    ST_ARCH_CLAMPED = 1 << 21,         // "silu" means ST_ACT_SWIGLU_CLAMPED
    ST_ARCH_WHOLE_YARN = 1 << 22,      // GGUF: YaRN's borders between pairs are not rounded
    ST_ARCH_ROUTE_SIGMOID = 1 << 24,   // routers' scores are sigmoids
    ST_ARCH_ROUTE_BIAS = 1 << 25,      // a bias helps to select experts
    ST_ARCH_EXPERT_COLUMNS = 1 << 23,  // folders store experts as model/stored_experts.h says
    ST_ARCH_GATED_ATTENTION = 1 << 14, // q's rows are [heads, 2, head_dim]: with gates of what
                                       // attention gives
    ST_ARCH_GGUF_TILED_HEADS = 1 << 15, // GGUF: value head h of a delta net has key head h modulo
                                        // their number, not h / (value heads per key head)
    ST_ARCH_FUSED_GATES = 1 << 16,  // a delta net's rates and decays are one linear, per key head
    ST_ARCH_HF_FUSED_MIX = 1 << 17, // Hugging Face: so are its q, k, v and output gate
    ST_ARCH_SQUARED_RELU = 1 << 26, // GGUF: it is the activation of feed-forward blocks
    ST_ARCH_HALVES = 1 << 27,       // a layer of the file is one half of a layer: a mixer, or a
                                    // feed-forward block; some of our layers have no second half
    ST_ARCH_MAY_ROTATE = 1 << 18,   // there is a rotation only where the file says so
    ST_ARCH_UNSCALED = 1 << 28,     // attention's scores are not scaled, if nothing is said
    ST_ARCH_VALUE_NORM = 1 << 29,   // RMSNorm without weights of each head's v
    ST_ARCH_LAYERS = 1 << 30,       // what config_layers.c reads differs between layers
    ST_ARCH_JOINT = 1 << 19,        // a layer of the file is attention and the other form, both on
                                    // one input: two of our layers
};

// What a tensor is for. Per layer from ST_ROLE_ATTN_NORM on; %u is the layer, the second %u the
// expert.
enum st_role {
    ST_ROLE_EMBED,
    ST_ROLE_POSITIONS,
    ST_ROLE_PROJECT_IN,
    ST_ROLE_PROJECT_OUT,
    ST_ROLE_FINAL_NORM,
    ST_ROLE_HEAD,
    ST_ROLE_ROPE_FACTORS,
    ST_ROLE_ROPE_SHORT,
    ST_ROLE_ROPE_LONG,
    ST_ROLE_LAYER_EMBED,   // tokens' inputs of all layers, one beside the other
    ST_ROLE_LAYER_PROJECT, // what the embedding adds to them
    ST_ROLE_LAYER_PROJECT_NORM,
    ST_ROLE_STREAM_IN, // further hidden states of an embedding; %u is their number
    ST_ROLE_STREAM_OUT,
    ST_ROLE_ATTN_NORM,
    ST_ROLE_Q,
    ST_ROLE_K,
    ST_ROLE_V,
    ST_ROLE_QKV,
    ST_ROLE_O,
    ST_ROLE_O_NORM, // of what meets o
    ST_ROLE_Q_NORM,
    ST_ROLE_K_NORM,
    ST_ROLE_POST_ATTN_NORM,
    ST_ROLE_FFN_NORM,
    ST_ROLE_GATE,
    ST_ROLE_UP,
    ST_ROLE_GATE_UP,
    ST_ROLE_DOWN,
    ST_ROLE_DOWN_NORM, // of what meets down
    ST_ROLE_POST_FFN_NORM,
    ST_ROLE_ROUTER,
    ST_ROLE_EXPERT_GATE,
    ST_ROLE_EXPERT_UP,
    ST_ROLE_EXPERT_DOWN,
    ST_ROLE_EXPERTS_GATE, // all experts in one tensor [experts, out, in]
    ST_ROLE_EXPERTS_UP,
    ST_ROLE_EXPERTS_DOWN,
    ST_ROLE_EXPERTS_GATE_UP, // rows of both in turn
    ST_ROLE_EXPERTS_HALVES,  // of each expert the rows of gate, then those of up; no ending
    ST_ROLE_ROUTER_SCALE,    // of what the router meets, and of experts' weights: no ending, in
    ST_ROLE_EXPERT_SCALE,    // GGUF ".scale"
    ST_ROLE_EXPERT_NORM,     // of what experts meet, where that is not what the shared one meets
    ST_ROLE_EXPERT_OUT_NORM, // of what experts give together
    ST_ROLE_SHARED_OUT_NORM, // of what the shared one gives
    ST_ROLE_SINKS,
    ST_ROLE_Q_A, // latent attention's
    ST_ROLE_Q_A_NORM,
    ST_ROLE_Q_B,
    ST_ROLE_KV_A,
    ST_ROLE_KV_A_NORM,
    ST_ROLE_KV_B, // for each head what makes its keys, then its values; GGUF: apart, and turned
    ST_ROLE_K_B,
    ST_ROLE_V_B,
    ST_ROLE_ROUTER_BIAS,
    ST_ROLE_SHARED_INPUT_GATE, // a gate of the shared expert's output
    ST_ROLE_SHARED_GATE,
    ST_ROLE_SHARED_UP,
    ST_ROLE_SHARED_GATE_UP,
    ST_ROLE_SHARED_DOWN,
    ST_ROLE_LAYER_GATE, // of a layer's input, from the layer's result
    ST_ROLE_LAYER_OUT,  // the projection of what passes it
    ST_ROLE_LAYER_OUT_NORM,
    ST_ROLE_LAYER_SCALE,   // of a layer's result; Hugging Face: no ending
    ST_ROLE_STREAM_ROUTER, // factors of what predicts and corrects hidden states
    ST_ROLE_STREAM_ROUTER_NORM,
    ST_ROLE_STREAM_PREDICT,
    ST_ROLE_STREAM_CORRECT,
    ST_ROLE_STREAM_SCALE, // of what opens the gate of a layer's input; Hugging Face: no ending
    ST_ROLE_LAUREL_IN,    // a residual sum of low rank
    ST_ROLE_LAUREL_OUT,
    ST_ROLE_LAUREL_NORM,
    ST_ROLE_CONV,        // a convolution's taps
    ST_ROLE_CONV_IN,     // its input; a short convolution's with its two gates, one below the other
    ST_ROLE_CONV_OUT,    // the projection of what the layer gives
    ST_ROLE_STATE_GATE,  // of a layer whose state is a matrix: the gate of what it gives
    ST_ROLE_STATE_NORM,  // the norm before that
    ST_ROLE_STATE_RATE,  // how fast the state learns; with how fast it fades where they are fused
    ST_ROLE_STATE_DECAY, // how fast it fades, to which the bias is added; no ending in these two:
    ST_ROLE_STATE_DECAY_BIAS,
    ST_ROLE_STATE_SKIP,        // what of the values passes by the state
    ST_ROLE_STATE_DECAY_SCALE, // Hugging Face: its logarithm; GGUF: times -1
    ST_ROLE_AHEAD_JOIN,        // of a layer that predicts a further token: what makes its input of
    ST_ROLE_AHEAD_EMBED_NORM,  // a token's embedding, normed,
    ST_ROLE_AHEAD_HIDDEN_NORM, // and of the hidden state before it, normed
    ST_ROLE_AHEAD_NORM,        // the norm behind that layer
    ST_N_ROLES
};

// Printf patterns without ".weight" / ".bias"; NULL: this layout does not have it.
struct st_names {
    const char *role[ST_N_ROLES];
};

struct st_arch {
    const char *name;
    const char *model_types[4]; // config.json's model_type; NULL-terminated unless full
    const char *gguf;           // general.architecture; NULL: none
    enum st_norm norm;
    enum st_block block;
    enum st_window_rule window;
    enum st_form form;                 // of layers without attention; ATTENTION: there are none
    unsigned flags;                    // ST_ARCH_*
    const struct st_names *names;      // overrides of the Hugging Face names; NULL: none
    const struct st_names *gguf_names; // overrides of GGUF's; NULL: none
    const char *defaults; // JSON: values of keys that real config.json files of the family leave
                          // out; or NULL
    unsigned gguf_wide_scale_layers; // GGUF: with this many layers queries are scaled by hidden /
                                     // heads; 0: never
    uint32_t window_pattern;         // ST_WINDOW_PATTERN's period, where the file does not say
    uint32_t unrotated_pattern; // every n-th layer has no rotation, where the file does not say;
                                // 0: none
    double gguf_local_theta;    // GGUF: theta of layers with a window; 0: as of the others
    uint32_t gguf_window;       // GGUF: where the file does not say
    double gguf_softcaps[2];    // the same: of attention, of the logits
};

extern const struct st_arch st_archs[]; // ends with a NULL name

// By config.json's model_type or GGUF's general.architecture. STINT_E_UNSUPPORTED that lists the
// known ones.
stint_status st_arch_find_hf(const char *model_type, const struct st_arch **arch);
stint_status st_arch_find_gguf(const char *name, size_t n_bytes, const struct st_arch **arch);

// The pattern of a role in this layout, or NULL.
const char *st_arch_role(const struct st_arch *arch, bool gguf, enum st_role role);

#endif
