// SPDX-License-Identifier: Apache-2.0
// Inputs that a token gives to each layer (Gemma 3n, 4): rows of a table, and what the embedding
// adds to them. At its end a layer lets its input pass a gate that its result opens, and adds what
// passed. No package quantizes the linears here.
#include "session/pass.h"

#include "base/size.h"
#include "session/linear/op.h"
#include "session/weights/source.h"

#include <math.h>

struct job {
    const struct st_run *run;
    uint32_t first, n_layers; // whose inputs are made
};

static float *input_of(const struct st_run *r, size_t t, uint32_t layer) {
    const struct st_config *c = &r->s->model->config;
    return r->buffers->layer_inputs + (t * c->n_layers + layer) * c->layer_input;
}

// The row and the normalised projection, each with half of the variance.
static void join_token(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct job *j = context;
    const struct stint_session *s = j->run->s;
    const struct st_elementwise *k = s->kernels.elementwise;
    size_t n = s->model->config.layer_input;
    const float *weight = s->model->weights.layer_project_norm.weight;
    for (uint32_t i = 0; i < j->n_layers; i++) {
        float *projected = j->run->buffers->layer_projected + (t * j->n_layers + i) * n;
        float *input = input_of(j->run, t, j->first + i);
        k->rmsnorm(projected, weight, s->model->config.norm_epsilon, n, projected);
        k->scale(sqrtf(0.5f * (float)n), input, n, input);
        k->axpy(sqrtf(0.5f), projected, n, input);
    }
}

size_t st_layer_projected_floats(const struct stint_session *s) {
    const struct st_config *c = &s->model->config;
    return st_max(s->chunk_len, st_session_step_rows(s) * c->n_layers) * c->layer_input;
}

// Of as many layers at a time as there is room for.
static stint_status project(const struct st_run *r, struct job job) {
    const struct st_config *c = &r->s->model->config;
    const struct st_linear_weight *all = &r->s->model->weights.layer_project;
    struct st_linear_weight some = *all;
    some.n_out = job.n_layers * c->layer_input;
    some.data = (const char *)all->data + (size_t)job.first * c->layer_input * all->row_bytes;
    ST_TRY(st_lone_linear(r, r->buffers->x, r->batch->n, &some, r->buffers->layer_projected));
    st_pool_run(r->group->pool, join_token, &job, r->batch->n);
    return STINT_OK;
}

stint_status st_layer_inputs_make(const struct st_run *r, const int32_t *ids, uint32_t first,
                                  uint32_t n_layers) {
    const struct st_config *c = &r->s->model->config;
    if (c->layer_input == 0) return STINT_OK;
    size_t rows = st_max(r->batch->n, r->phase == ST_PHASE_PREFILL ? ST_LINEAR_FEW_TOKENS + 1 : 1);
    size_t room = st_layer_projected_floats(r->s) / (rows * c->layer_input), end = first + n_layers;
    ST_TRY(r->s->source->embed(r, ST_TABLE_LAYER_INPUTS, ids, r->buffers->layer_inputs));
    while (first < end) {
        uint32_t n = (uint32_t)st_max(1, st_min(room, end - first));
        ST_TRY(project(r, (struct job){r, first, n}));
        first += n;
    }
    return STINT_OK;
}

static void gate_token(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct st_run *r = context;
    const struct st_config *c = &r->s->model->config;
    float *gate = r->buffers->layer_projected + t * c->layer_input;
    r->s->kernels.elementwise->act_gated(c->act, gate, input_of(r, t, r->layer), c->layer_input,
                                         gate);
}

stint_status st_layer_input_add(const struct st_run *r) {
    const struct st_config *c = &r->s->model->config;
    const struct st_layer *l = &r->s->model->weights.layers[r->layer];
    const struct st_elementwise *k = r->s->kernels.elementwise;
    struct st_chunk_buffers *b = r->buffers;
    size_t n = r->batch->n;
    bool streams = c->n_streams != 0;
    if (streams) ST_TRY(st_streams_correct(r));
    if (c->layer_input) {
        const float *opens = streams ? b->normed : b->x;
        ST_TRY(st_lone_linear(r, opens, n, &l->input_gate, b->layer_projected));
        st_pool_run(r->group->pool, gate_token, (void *)(uintptr_t)r, n);
        ST_TRY(st_lone_linear(r, b->layer_projected, n, &l->input_out, b->projected));
        st_pass_norm(r, &l->input_norm, b->projected, n, b->projected);
        if (streams)
            st_streams_add(r, b->projected);
        else
            k->add(b->projected, n * c->hidden, b->x);
    }
    if (streams && r->layer + 1 == c->n_layers) return st_streams_end(r);
    if (l->scale) k->scale(*l->scale, b->x, n * c->hidden, b->x);
    return STINT_OK;
}
