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

static void mix_token(void *context, size_t t, size_t worker) {
    const struct st_run *r = context;
    const struct st_config *c = &r->s->model->config;
    const struct st_conv_weight *w = &r->s->model->weights.layers[r->layer].conv;
    const float *rows[ST_MAX_CONV_LENGTH];
    size_t n = c->hidden;
    bool prompt = r->phase == ST_PHASE_PREFILL;
    (void)worker;
    for (size_t k = 0; k < c->conv_length; k++) {
        size_t back = c->conv_length - 1 - k;
        bool here = prompt ? back <= t : back == 0;
        rows[k] = here ? r->buffers->v + (t - back) * n : st_state_row(r, t, back);
    }
    r->s->kernels.elementwise->short_conv(rows, w->taps, c->conv_length, w->bias,
                                          r->buffers->k + t * n, n, r->buffers->attended + t * n);
}

void st_conv_append(const struct st_run *r) {
    st_pool_run(r->group->pool, append_token, (void *)(uintptr_t)r, r->batch->n);
}

void st_conv_mix(const struct st_run *r) {
    st_pool_run(r->group->pool, mix_token, (void *)(uintptr_t)r, r->batch->n);
}
