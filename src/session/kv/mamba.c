// SPDX-License-Identifier: Apache-2.0
// Mamba-2 (Dao and Gu 2024; Granite 4, Falcon-H1). Of a token, values and what stands for keys and
// queries go through a convolution and an activation. Each head has a step, by which its matrix
// fades and its values are scaled (kernels/recurrence.h); some of the values passes by the matrix.
// A gate and mostly a norm follow. Of the first linear's outputs the convolution's inputs are in
// the chunk's buffer `raw`, the gates in place of k, the steps in place of v.
#include "session/pass.h"

#include "session/kv/state.h"

#include <string.h>

static const struct st_state_shape *shape_of(const struct st_run *r) {
    return &r->s->model->config.state;
}

static const struct st_state_weight *weights_of(const struct st_run *r) {
    return &r->s->model->weights.layers[r->layer].state;
}

static void append_token(void *context, size_t t, size_t worker) {
    const struct st_run *r = context;
    (void)worker;
    st_state_keep(r, t, r->buffers->raw + t * st_config_conv_width(&r->s->model->config));
}

stint_status st_mamba_append(const struct st_run *r) {
    st_pool_run(r->group->pool, append_token, (void *)(uintptr_t)r, r->batch->n);
    return STINT_OK;
}

// A token's decays, and its values times its steps. These take the place of the convolution's
// inputs, of which the last ones are kept elsewhere.
static void step_token(void *context, size_t t, size_t worker) {
    const struct st_run *r = context;
    const struct st_state_shape *s = shape_of(r);
    const struct st_elementwise *k = r->s->kernels.elementwise;
    const struct st_state_weight *w = weights_of(r);
    size_t width = st_config_conv_width(&r->s->model->config), n = s->n_values;
    const float *x = r->buffers->q + t * width, *steps = r->buffers->v + t * s->n_heads;
    float *decays = r->buffers->state_gates + 2 * t * s->n_heads;
    (void)worker;
    for (size_t h = 0; h < s->n_heads; h++) {
        float step = st_softplus(steps[h] + w->decay_bias[h]);
        decays[h] = expf(step * w->decay_scale[h]);
        k->scale(step, x + h * n, n, r->buffers->raw + t * width + h * n);
    }
}

static void convolve_token(void *context, size_t t, size_t worker) {
    (void)worker;
    st_conv_activate(context, t);
}

static struct st_recurrence_run tokens_of(const struct st_run *r, size_t t, size_t head) {
    const struct st_state_shape *s = shape_of(r);
    size_t width = st_config_conv_width(&r->s->model->config), group = st_state_group(s, head);
    size_t n = (size_t)s->n_heads * s->n_values;
    const float *keys = r->buffers->q + t * width + n + group * s->n_keys;
    return (struct st_recurrence_run){
        .n_keys = s->n_keys,
        .n_values = s->n_values,
        .queries = keys + (size_t)s->n_groups * s->n_keys,
        .keys = keys,
        .key_row = width,
        .values = r->buffers->raw + t * width + head * s->n_values,
        .value_row = width,
        .decays = r->buffers->state_gates + 2 * t * s->n_heads + head,
        .gate_row = 2 * (size_t)s->n_heads,
        .out = r->buffers->attended + t * n + head * s->n_values,
        .out_row = n,
    };
}

static void finish_token(void *context, size_t t, size_t worker) {
    const struct st_run *r = context;
    const struct st_config *c = &r->s->model->config;
    const struct st_state_shape *s = &c->state;
    const struct st_elementwise *k = r->s->kernels.elementwise;
    const struct st_state_weight *w = weights_of(r);
    size_t n = (size_t)s->n_heads * s->n_values, group = n / s->n_groups;
    const float *x = r->buffers->q + t * st_config_conv_width(c);
    float *y = r->buffers->attended + t * n;
    (void)worker;
    for (size_t h = 0; h < s->n_heads; h++)
        k->axpy(w->skip[h], x + h * s->n_values, s->n_values, y + h * s->n_values);
    k->act_gated(ST_ACT_SILU, r->buffers->k + t * n, y, n, y);
    for (size_t at = 0; at < n && w->norm; at += group)
        k->rmsnorm(y + at, w->norm + at, c->norm_epsilon, group, y + at);
}

void st_mamba_mix(const struct st_run *r) {
    void *context = (void *)(uintptr_t)r;
    st_pool_run(r->group->pool, convolve_token, context, r->batch->n);
    st_pool_run(r->group->pool, step_token, context, r->batch->n);
    st_state_pass(r, tokens_of);
    st_pool_run(r->group->pool, finish_token, context, r->batch->n);
}
