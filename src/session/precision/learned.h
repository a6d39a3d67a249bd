// SPDX-License-Identifier: Apache-2.0
// The learned precision scheduler (PMPD, section 4.3 and appendix A.1): attention pooling of the
// last block's keys and values with a learned query, a hidden layer, a softmax over the schedules
// to choose from. Asked once, after the prompt.
#ifndef ST_SESSION_LEARNED_H
#define ST_SESSION_LEARNED_H

#include "base/arena.h"
#include "base/map.h"
#include "model/config.h"
#include "session/precision/precision.h"

enum {
    ST_LEARNED_CHOICES = 8,   // most
    ST_LEARNED_HIDDEN = 64,   // width of the hidden layer
    ST_LEARNED_TOKENS = 2048, // of a prompt that it looks at, the last ones
};

// The network: for each head h, pooled_h = softmax(q_h K_h^T / sqrt(D)) V_h; x = norm(pooled);
// logits = W2 relu(W1 x + b1) + b2, where norm is a layer norm without weights.
struct st_pooling_net {
    size_t n_heads, head_dim, n_hidden, n_choices;
    float *query; // [n_heads, head_dim]
    float *w1;    // [n_hidden, n_heads * head_dim]
    float *b1;    // [n_hidden]
    float *w2;    // [n_choices, n_hidden]
    float *b2;    // [n_choices]
};

// Floats of all parameters, one after the other from `query` on.
size_t st_pooling_net_size(const struct st_pooling_net *net);
// Points the parameters into floats[st_pooling_net_size()].
void st_pooling_net_place(struct st_pooling_net *net, float *floats);

// One example: keys and values [n_heads, n, head_dim], heads `stride` floats apart.
struct st_pooling_input {
    const float *keys, *values;
    size_t n, stride;
};

// What a pass leaves behind for the next one backwards.
struct st_pooling_state {
    float *weights;  // [n_heads, n] of the attention
    float *pooled;   // [n_heads * head_dim]
    float *normed;   // the same
    float *hidden;   // [n_hidden]
    float *logits;   // [n_choices]
    float deviation; // of pooled
};

// n: most tokens of an input.
void st_pooling_state_take(const struct st_pooling_net *net, size_t n, struct st_arena *arena,
                           struct st_pooling_state *state);
void st_pooling_forward(const struct st_pooling_net *net, const struct st_pooling_input *input,
                        struct st_pooling_state *state);
// Adds to the gradients `grad`, a net of the same sizes, those of the cross-entropy at `label`;
// returns the cross-entropy. After the pass forward. `scratch`: a state of its own.
double st_pooling_backward(const struct st_pooling_net *net, const struct st_pooling_input *input,
                           const struct st_pooling_state *state, size_t label,
                           struct st_pooling_state *scratch, struct st_pooling_net *grad);

struct st_learned;

// A file that st_learned_write() wrote for this package. STINT_E_FORMAT, E_ARG.
stint_status st_learned_open(const struct stint_model *model, const char *path,
                             const struct st_map *map, struct st_learned **learned);
void st_learned_close(struct st_learned *learned);           // accepts NULL
size_t st_learned_choices(const struct st_learned *learned); // how many there are
const stint_precision *st_learned_choice(const struct st_learned *learned, size_t i);
stint_status st_learned_write(const struct stint_model *model, const struct st_pooling_net *net,
                              const stint_precision *choices, const char *path);

// The heads of the last block with attention.
static inline struct st_heads st_learned_heads(const struct st_config *config) {
    return st_config_heads(config, st_config_last_attention(config));
}

// The last block's keys and values of the newest tokens a sequence holds, at most
// ST_LEARNED_TOKENS: [kv heads, tokens, head_dim] each, as floats.
size_t st_learned_cache_floats(const struct stint_session *session, uint32_t sequence);
void st_learned_read_cache(const struct stint_session *session, uint32_t sequence, float *keys,
                           float *values);

// Chooses by what the sequence holds.
void st_learned_select(struct st_learned *learned, const struct stint_session *session,
                       uint32_t sequence, stint_precision *precision);

#endif
