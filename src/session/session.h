// SPDX-License-Identifier: Apache-2.0
// One conversation: KV cache, scratch for one batch of tokens, sampler state. Everything lies in
// one arena that is carved when the session is opened; prefill and decode allocate nothing.
#ifndef ST_SESSION_SESSION_H
#define ST_SESSION_SESSION_H

#include "base/arena.h"
#include "base/thread.h"
#include "kernels/kernels.h"
#include "kernels/linear.h"
#include "model/model.h"

#include <stdatomic.h>

enum {
    ST_DECODE_TOKENS = ST_GEMV_MAX_COLUMNS, // batches up to this size run the decode kernels
    ST_KEY_TILE = 64,                       // keys per step of the online softmax
    ST_ROW_BLOCK = ST_LINEAR_ROWS,          // weight rows per item of a parallel loop
    ST_MAX_LINEARS = 4,                     // linears that share one input
};

// The kernels that this process runs, chosen once per session.
struct st_kernel_set {
    uint64_t cpu_flags;
    const struct st_tile *tile;
    const struct st_expand *expand;
    const struct st_gemv *gemv;
    const struct st_elementwise *elementwise;
    const struct st_attention *attention;
};

// Scratch of one worker.
struct st_worker {
    float *linear;  // st_linear_rows
    float *rows;    // [ST_TILE_MAX_WIDTH, head_dim] queries or outputs of one attention tile
    float *queries; // packed
    float *scores;  // [ST_KEY_TILE, ST_TILE_MAX_WIDTH] or [context] when decoding
    float *out;     // [head_dim rounded up, ST_TILE_MAX_WIDTH]
    float *keys;    // [ST_KEY_TILE, head_dim] expanded from F16
};

// A token of the candidate list while sampling.
struct st_candidate {
    float p;
    int32_t id;
};

struct stint_session {
    const struct stint_model *model;
    struct st_pool *pool;
    struct st_arena arena;
    struct st_kernel_set kernels;
    size_t length;                // tokens in the KV cache
    size_t n_context;             // most it can hold
    size_t n_batch;               // most tokens computed together
    enum st_dtype kv;             // F32 or F16
    size_t kv_stride;             // elements of one head's keys in one layer
    int32_t *history;             // [n_context] the tokens held
    unsigned char *keys, *values; // [layers, kv heads, kv_stride / head_dim positions, head_dim]
    // One batch: [n_batch, ...]
    float *x, *normed, *q, *k, *v, *attended, *gate, *up, *projected;
    float *packed;                   // one linear's input in tile order
    float *cosine[2], *sine[2];      // [n_batch, rope_dims / 2]; 1: layers with a sliding window
    float *route;                    // [n_batch, n_experts]
    float *expert_in, *expert_out;   // [n_batch, hidden]
    int32_t *expert_tokens;          // [n_batch] tokens of the expert at hand
    float *logits;                   // [vocab]
    struct st_candidate *candidates; // [vocab]
    struct st_worker *workers;       // [threads]
    atomic_bool canceled;
};

// One batch on its way through the layers.
struct st_batch {
    size_t n;        // tokens
    size_t position; // of the first
    uint64_t
        n_total; // tokens of the whole text this batch belongs to, for scalings that depend on it
};

// ---- linears.c

// A linear and where its result goes: y[t * y_row + n].
struct st_matmul {
    const struct st_linear_weight *weight;
    float *y;
    size_t y_row;
};

// Runs linears that share the input x [n_tokens, k]. Bitwise the same for any number of threads.
void st_session_linears(struct stint_session *s, const float *x, size_t n_tokens,
                        const struct st_matmul *linears, size_t n_linears);
void st_session_linear(struct stint_session *s, const float *x, size_t n_tokens,
                       const struct st_linear_weight *weight, float *y);

// ---- attention.c

// Rotates q and k of the batch, appends k and v to the cache, attends: s->q, k, v -> s->attended.
void st_session_attention(struct stint_session *s, uint32_t layer, const struct st_batch *batch);

// ---- ffn.c

// y [n, hidden] = ffn(x)
void st_session_ffn(struct stint_session *s, uint32_t layer, const float *x, size_t n, float *y);

// ---- forward.c

// Runs one batch through all layers; s->x holds its last hidden states. STINT_E_CANCELED.
stint_status st_session_forward(struct stint_session *s, const int32_t *ids,
                                const struct st_batch *batch);
// logits [n, vocab] of rows first..first + n - 1 of s->x. STINT_E_FORMAT if they are not finite.
stint_status st_session_logits(struct stint_session *s, size_t first, size_t n, float *logits);
// Norm of every row of x [n, hidden] into y.
void st_session_norm(struct stint_session *s, const struct st_norm_weight *norm, const float *x,
                     size_t n, float *y);

// ---- sample.c

// Picks the next token from s->logits, which it may change. `draw` in [0, 1).
int32_t st_session_sample(struct stint_session *s, const stint_sampling *sampling, double draw);
// The n-th draw of a seed, in [0, 1).
double st_random_draw(uint64_t seed, uint64_t n);

#endif
