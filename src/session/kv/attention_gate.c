// SPDX-License-Identifier: Apache-2.0
// Gates of what attention gives (Qwen3.5): the first linear has, head by head, a query and its
// gate, and each of a head's outputs is multiplied with the gate's sigmoid.
#include "session/pass.h"

#include <math.h>
#include <string.h>

static void take_token(void *context, size_t t, size_t worker) {
    const struct st_run *r = context;
    const struct st_config *c = &r->s->model->config;
    size_t n = st_config_heads(c, r->layer).dim, row = t * c->n_heads * n;
    (void)worker;
    for (size_t h = 0; h < c->n_heads; h++)
        memcpy(r->buffers->q + row + h * n, r->buffers->raw + 2 * (row + h * n), n * sizeof(float));
}

static void apply_token(void *context, size_t t, size_t worker) {
    const struct st_run *r = context;
    const struct st_config *c = &r->s->model->config;
    size_t n = st_config_heads(c, r->layer).dim, row = t * c->n_heads * n;
    (void)worker;
    for (size_t h = 0; h < c->n_heads; h++) {
        const float *gate = r->buffers->raw + 2 * (row + h * n) + n;
        float *x = r->buffers->attended + row + h * n;
        for (size_t d = 0; d < n; d++) x[d] /= 1.0f + expf(-gate[d]);
    }
}

void st_gate_take(const struct st_run *r) {
    st_pool_run(r->group->pool, take_token, (void *)(uintptr_t)r, r->batch->n);
}

void st_gate_apply(const struct st_run *r) {
    st_pool_run(r->group->pool, apply_token, (void *)(uintptr_t)r, r->batch->n);
}
