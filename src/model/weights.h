// SPDX-License-Identifier: Apache-2.0
// The tensors of a checkpoint bound to their places in the layers, every shape checked against the
// config. Linears stay where they are (mapped); norms and biases are small and become float copies
// in the model's arena.
#ifndef ST_MODEL_WEIGHTS_H
#define ST_MODEL_WEIGHTS_H

#include "base/arena.h"
#include "kernels/dequantize.h"
#include "kernels/nested.h"
#include "model/config.h"

// y[n_out] = W x + bias, W [n_out, n_in] as stored.
struct st_linear_weight {
    const void *data;  // NULL: this model has no such linear, or has it as INT8 alone
    const float *bias; // [n_out] or NULL
    size_t row_bytes;
    uint32_t n_out, n_in;
    enum st_dtype dtype;
    float scale; // outputs are times it, the bias too; 0: as they are
    // Not 0: `data` is where it lies in the mapped file, but a session reads it on demand: piece
    // number `piece` - 1 (model/file_pieces.h).
    uint32_t piece;
    const struct st_nested_weight *nested; // the same as nested codes; or NULL
};

static inline bool st_linear_exists(const struct st_linear_weight *w) {
    return w->data || w->nested;
}

// Elements [first, first + n) of a row that is in memory, as floats, with the scale.
static inline void st_linear_dequantize_row(const struct st_dequantize *dequantize,
                                            const struct st_linear_weight *w, size_t row,
                                            size_t first, size_t n, float *out) {
    dequantize->fn[w->dtype]((const char *)w->data + row * w->row_bytes, first, n, out);
    for (size_t i = 0; i < n && w->scale != 0.0f; i++) out[i] *= w->scale;
}

struct st_norm_weight {
    const float *weight; // NULL: no such norm
    const float *bias;   // or NULL
    uint32_t n;          // elements
    bool per_head;       // q and k norms: weight is [heads, head_dim] instead of [head_dim]
    bool whole;          // q and k norms: one norm over all heads, weight is [heads * head_dim]
};

// One gated or plain feed-forward block; a mixture has several.
struct st_ffn_weight {
    struct st_linear_weight gate, up, down; // gate does not exist if not gated
    const float *norm;                      // [width] RMSNorm of what down meets; or NULL
};

// A convolution's.
struct st_conv_weight {
    const float *taps; // [conv_length, st_config_conv_width()], those of the oldest input first
    const float *bias; // [the same] or NULL
};

// Of a layer whose state is a matrix, beside its linears. Rates and decays are never quantized.
struct st_state_weight {
    struct st_linear_weight rate, decay;   // [heads, hidden]; or one of [2 heads, hidden], and none
    const float *decay_bias, *decay_scale; // [heads]; scales are negative
    const float *norm; // [n_values] of what a head gives; or of all heads; or NULL
    const float *skip; // [heads], or NULL
    const float *ones; // [n_keys]
};

// Latent attention's; all heads' linears, one below the other.
struct st_latent_weight {
    struct st_norm_weight query_norm, norm;
    struct st_linear_weight query;  // [heads * (plain + rope_dims), query_rank], if there is a rank
    struct st_linear_weight keys;   // [heads * rank, plain]: turned, for queries
    struct st_linear_weight values; // [heads * value, rank]
};

// Of a layer whose tokens have several hidden states (session/streams.c).
struct st_stream_weight {
    struct st_linear_weight router; // [n_streams, hidden]
    struct st_norm_weight router_norm;
    const float *predict, *correct; // [n_streams * n_streams, n_streams], [n_streams, n_streams]
    const float *scale;             // [hidden] or NULL
};

// Of a mixture whose router, experts and shared block meet the normed input each in its own way
// (Gemma 4): factors [hidden] of that, norms [hidden] of what the last two give.
struct st_mixture_norms {
    const float *router, *experts, *shared; // NULL in all: they have one input
    const float *experts_out, *shared_out;
    const float *scale; // [n_experts] of the experts' weights
};

struct st_layer {
    struct st_norm_weight attn_norm, q_norm, k_norm, post_attn_norm, ffn_norm, post_ffn_norm;
    struct st_norm_weight v_norm;                  // its weights are 1
    struct st_norm_weight mixed_norm;              // of what meets o
    struct st_linear_weight q, k, v, o, router;    // v does not exist with latent attention
    struct st_linear_weight input_gate, input_out; // of the layer's input, where there is one
    struct st_norm_weight input_norm;
    struct st_stream_weight streams;
    struct st_linear_weight laurel_in, laurel_out; // a residual sum of low rank
    struct st_norm_weight laurel_norm;
    const float *scale;       // of the layer's result; or NULL
    const float *router_bias; // [n_experts] for the selection; or NULL
    struct st_mixture_norms mixture;
    struct st_linear_weight shared_gate; // [1, hidden] of the shared expert, if it has one
    const float *sinks; // [n_heads] scores that attention adds to its softmax; or NULL
    struct st_conv_weight conv;
    struct st_state_weight state;
    struct st_latent_weight latent;
    struct st_ffn_weight *ffn; // [st_config_blocks()]; where that is 0, one of nothing
};

// A layer behind the others that predicts a further token (multi-token prediction): of a token's
// embedding and of the hidden state before it.
struct st_ahead_weight {
    struct st_linear_weight
        join; // [hidden, 2 hidden]: of the embedding, then of the state; or none
    struct st_norm_weight embed_norm, hidden_norm, norm; // of both, and behind the layer
};

struct st_weights {
    struct st_layer *layers; // [n_layers], and one more where ahead.join exists
    struct st_ahead_weight ahead;
    struct st_linear_weight embed, positions, project_in, project_out, head;
    // Tokens' inputs of all layers [layer_vocab, n_layers * layer_input], and their projection.
    struct st_linear_weight layer_embed, layer_project;
    struct st_norm_weight layer_project_norm; // of one layer's
    // [n_streams - 1] of [hidden, hidden]: further hidden states of an embedding, and back.
    struct st_linear_weight stream_in[ST_MAX_STREAMS - 1], stream_out[ST_MAX_STREAMS - 1];
    struct st_norm_weight final_norm;
};

// Where a tensor comes from: a checkpoint, or a generator of random ones.
struct st_tensor_source {
    const struct st_tensors *tensors; // looked up first
    // Makes a tensor that is not there; NULL: it is missing. dims as in struct st_tensor.
    stint_status (*make)(void *context, const char *name, uint32_t n_dims, const uint64_t *dims,
                         struct st_tensor *tensor);
    void *context;
    bool gguf;
    // Told of every tensor that is bound; or NULL.
    void (*seen)(void *context, const struct st_tensor *tensor);
    bool no_embedding; // it is the head's rows, which are bound elsewhere
    bool int8; // linears of the layers and the head are bound elsewhere (model/weights_int8.h)
};

// Binds everything; what does not fit the config is named. Runs twice on `arena` (base/arena.h):
// while measuring the pointers that it sets must not be used. May finish config->tied.
stint_status st_weights_bind(const struct st_tensor_source *source, struct st_config *config,
                             struct st_arena *arena, struct st_weights *weights);

#endif
