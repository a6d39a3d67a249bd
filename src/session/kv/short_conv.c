// SPDX-License-Identifier: Apache-2.0
// Gated short convolutions (LFM2): of the three parts b, c and x of a token, the rows b * x of the
// last few tokens are weighted channel by channel, and c gates the sum. In the chunk's buffers b is
// where other layers have q, c is in place of k, x in place of v.
#include "session/pass.h"

#include "base/size.h"
#include "session/kv/state.h"

static void append_token(void *context, size_t t, size_t worker) {
    const struct st_run *r = context;
    size_t n = r->s->model->config.hidden;
    float *row = r->buffers->v + t * n;
    (void)worker;
    r->s->kernels.elementwise->multiply(r->buffers->q + t * n, n, row);
    st_state_keep(r, t, row);
}

void st_conv_rows(const struct st_run *r, size_t t, const float *inputs, size_t width,
                  const float **rows) {
    size_t length = r->s->model->config.conv_length;
    bool prompt = r->phase == ST_PHASE_PREFILL;
    for (size_t k = 0; k < length; k++) {
        size_t back = length - 1 - k;
        bool here = prompt ? back <= t : back == 0;
        rows[k] = here ? inputs + (t - back) * width : st_state_row(r, t, back);
    }
}

void st_conv_activate(const struct st_run *r, size_t t) {
    const struct st_config *c = &r->s->model->config;
    const struct st_elementwise *k = r->s->kernels.elementwise;
    const struct st_conv_weight *w = &r->s->model->weights.layers[r->layer].conv;
    const float *rows[ST_MAX_CONV_LENGTH];
    size_t n = st_config_conv_width(c);
    float *x = r->buffers->q + t * n;
    st_conv_rows(r, t, r->buffers->raw, n, rows);
    k->short_conv(rows, w->taps, c->conv_length, w->bias, NULL, n, x);
    k->act(ST_ACT_SILU, x, n, x);
}

static void mix_token(void *context, size_t t, size_t worker) {
    const struct st_run *r = context;
    const struct st_config *c = &r->s->model->config;
    const struct st_conv_weight *w = &r->s->model->weights.layers[r->layer].conv;
    const float *rows[ST_MAX_CONV_LENGTH];
    size_t n = c->hidden;
    (void)worker;
    st_conv_rows(r, t, r->buffers->v, n, rows);
    r->s->kernels.elementwise->short_conv(rows, w->taps, c->conv_length, w->bias,
                                          r->buffers->k + t * n, n, r->buffers->attended + t * n);
}

stint_status st_conv_append(const struct st_run *r) {
    st_pool_run(r->group->pool, append_token, (void *)(uintptr_t)r, r->batch->n);
    return STINT_OK;
}

void st_conv_mix(const struct st_run *r) {
    st_pool_run(r->group->pool, mix_token, (void *)(uintptr_t)r, r->batch->n);
}
