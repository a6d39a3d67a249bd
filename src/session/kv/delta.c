// SPDX-License-Identifier: Apache-2.0
// Gated delta nets (Yang et al. 2024; Qwen3.5). A token's queries, keys and values
// go through a convolution over the last few tokens and an activation. Then each head has a matrix
// that fades, learns that its key stands for its value, and answers its query
// (kernels/recurrence.h). A norm and a gate follow, head by head. The first linear's outputs, which
// the convolution takes in, are in the chunk's buffer `raw`; the gates are in place of k.
#include "session/pass.h"

#include "base/size.h"
#include "session/kv/state.h"
#include "session/linear/op.h"

#include <math.h>
#include <string.h>

static const struct st_state_shape *shape_of(const struct st_run *r) {
    return &r->s->model->config.state;
}

static const struct st_layer *layer_of(const struct st_run *r) {
    return &r->s->model->weights.layers[r->layer];
}

// ---- How fast states learn and fade: [n, 2, heads], decays first

// The places of a head's rate and decay among a token's: all rates and then all decays, or, fused,
// for each key head the rates of its value heads and then their decays.
static size_t place_of(const struct st_run *r, size_t head, bool decay) {
    const struct st_state_shape *shape = shape_of(r);
    bool fused = (r->s->model->config.flags & ST_ARCH_FUSED_GATES) != 0;
    size_t each = fused ? shape->n_heads / shape->n_groups : shape->n_heads;
    return head / each * 2 * each + (decay ? each : 0) + head % each;
}

static void set_gates(const struct st_run *r) {
    const struct st_state_weight *w = &layer_of(r)->state;
    size_t n = shape_of(r)->n_heads;
    for (size_t i = 0; i < r->batch->n * n; i++) {
        size_t t = i / n, h = i % n;
        const float *x = r->buffers->v + 2 * t * n;
        float *gates = r->buffers->state_gates + 2 * t * n;
        float decay = st_softplus(x[place_of(r, h, true)] + w->decay_bias[h]);
        gates[h] = expf(w->decay_scale[h] * decay);
        gates[n + h] = 1.0f / (1.0f + expf(-x[place_of(r, h, false)]));
    }
}

static stint_status find_gates(const struct st_run *r) {
    const struct st_state_weight *w = &layer_of(r)->state;
    const struct st_linear_weight *const linears[] = {&w->rate, &w->decay};
    size_t n = shape_of(r)->n_heads;
    struct st_operands o = {.x = r->buffers->normed,
                            .n = r->batch->n,
                            .y = {r->buffers->v, r->buffers->v + n},
                            .y_row = {2 * n, 2 * n}};
    ST_TRY(st_lone_linears(r, &o, linears, w->decay.data ? 2 : 1));
    set_gates(r);
    return STINT_OK;
}

// ---- What is kept of a token

// A fused first linear has, for each key head, its query, its key, its values and their gates.
static void take_apart(const struct st_run *r, size_t t) {
    const struct st_config *c = &r->s->model->config;
    const struct st_state_shape *s = &c->state;
    size_t keys = (size_t)s->n_groups * s->n_keys, values = (size_t)s->n_heads * s->n_values;
    size_t n = s->n_keys, m = values / s->n_groups;
    const float *from = r->buffers->q + t * 2 * (keys + values);
    float *to = r->buffers->raw + t * st_config_conv_width(c), *gates = r->buffers->k + t * values;
    for (size_t g = 0; g < s->n_groups; g++, from += 2 * (n + m)) {
        memcpy(to + g * n, from, n * sizeof *to);
        memcpy(to + keys + g * n, from + n, n * sizeof *to);
        memcpy(to + 2 * keys + g * m, from + 2 * n, m * sizeof *to);
        memcpy(gates + g * m, from + 2 * n + m, m * sizeof *to);
    }
}

static void append_token(void *context, size_t t, size_t worker) {
    const struct st_run *r = context;
    const struct st_config *c = &r->s->model->config;
    (void)worker;
    if (c->fused_mix) take_apart(r, t);
    st_state_keep(r, t, r->buffers->raw + t * st_config_conv_width(c));
}

stint_status st_delta_append(const struct st_run *r) {
    st_pool_run(r->group->pool, append_token, (void *)(uintptr_t)r, r->batch->n);
    return find_gates(r);
}

// ---- What is made of it

// Queries and keys have length 1; queries are divided by the root of their size as well.
static void normalise(const struct st_run *r, float *x) {
    const struct st_state_shape *shape = shape_of(r);
    const struct st_elementwise *k = r->s->kernels.elementwise;
    const float *ones = layer_of(r)->state.ones;
    size_t n = shape->n_keys, keys = (size_t)shape->n_groups * n;
    float epsilon = 1e-6f / (float)n, root = 1.0f / sqrtf((float)n);
    for (size_t at = 0; at < 2 * keys; at += n) k->rmsnorm(x + at, ones, epsilon, n, x + at);
    k->scale(root * root, x, keys, x);
    k->scale(root, x + keys, keys, x + keys);
}

static void convolve_token(void *context, size_t t, size_t worker) {
    const struct st_run *r = context;
    (void)worker;
    st_conv_activate(r, t);
    normalise(r, r->buffers->q + t * st_config_conv_width(&r->s->model->config));
}

static struct st_recurrence_run tokens_of(const struct st_run *r, size_t t, size_t head) {
    const struct st_config *c = &r->s->model->config;
    const struct st_state_shape *s = &c->state;
    size_t width = st_config_conv_width(c), group = st_state_group(s, head);
    float *x = r->buffers->q + t * width;
    const float *gates = r->buffers->state_gates + 2 * t * s->n_heads + head;
    return (struct st_recurrence_run){
        .n_keys = s->n_keys,
        .n_values = s->n_values,
        .queries = x + group * s->n_keys,
        .keys = x + (s->n_groups + group) * s->n_keys,
        .key_row = width,
        .values = x + 2 * (size_t)s->n_groups * s->n_keys + head * s->n_values,
        .value_row = width,
        .decays = gates,
        .rates = gates + s->n_heads,
        .gate_row = 2 * (size_t)s->n_heads,
        .out = r->buffers->attended + (t * s->n_heads + head) * s->n_values,
        .out_row = (size_t)s->n_heads * s->n_values,
    };
}

static void finish_token(void *context, size_t t, size_t worker) {
    const struct st_run *r = context;
    const struct st_state_shape *s = shape_of(r);
    const struct st_elementwise *k = r->s->kernels.elementwise;
    size_t n = (size_t)s->n_heads * s->n_values;
    float *x = r->buffers->attended + t * n;
    (void)worker;
    for (size_t at = 0; at < n; at += s->n_values)
        k->rmsnorm(x + at, layer_of(r)->state.norm, r->s->model->config.norm_epsilon, s->n_values,
                   x + at);
    k->act_gated(ST_ACT_SILU, r->buffers->k + t * n, x, n, x);
}

void st_delta_mix(const struct st_run *r) {
    void *context = (void *)(uintptr_t)r;
    st_pool_run(r->group->pool, convolve_token, context, r->batch->n);
    st_state_pass(r, tokens_of);
    st_pool_run(r->group->pool, finish_token, context, r->batch->n);
}
