// SPDX-License-Identifier: Apache-2.0
// Attention over the KV cache: what every token passes through. Queries meet the cache in
// step_attention.c and prompt_attention.c.
#include "session/pass.h"

#include <math.h>
#include <string.h>

struct job {
    const struct st_run *run;
    struct st_heads heads;
    size_t group; // query heads per key-value head
};

static unsigned char *cache_at(const struct st_run *r, unsigned char *cache, size_t head,
                               struct st_place place) {
    return st_kv_row(&r->s->kv, cache, place.sequence, r->layer, head, place.position);
}

static void normalise_head(const struct job *job, const struct st_norm_weight *norm, size_t head,
                           float *x) {
    const struct st_config *c = &job->run->s->model->config;
    const struct st_elementwise *k = job->run->s->kernels.elementwise;
    if (!norm->weight || norm->whole) return;
    size_t n = job->heads.dim;
    const float *weight = norm->weight + (norm->per_head ? head * n : 0);
    if (c->qk_layernorm)
        k->layernorm(x, weight, norm->bias, c->norm_epsilon, n, x);
    else
        k->rmsnorm(x, weight, c->norm_epsilon, n, x);
}

// All heads of a row, [n_heads, head_dim], where one norm covers them.
static void normalise_row(const struct job *job, const struct st_norm_weight *norm, size_t n_heads,
                          float *x) {
    const struct st_config *c = &job->run->s->model->config;
    if (norm->weight && norm->whole)
        job->run->s->kernels.elementwise->rmsnorm(x, norm->weight, c->norm_epsilon,
                                                  n_heads * job->heads.dim, x);
}

// Llama 4's scale of queries, which keeps attention sharp in texts beyond the original context.
static float query_scale(const struct st_rope *rope, size_t position) {
    if (rope->query_growth <= 0.0) return 1.0f;
    return (float)(1.0 +
                   rope->query_growth * log1p(floor((double)position / rope->original_context)));
}

static void rotate(const struct job *job, size_t t, float *x) {
    const struct st_config *c = &job->run->s->model->config;
    const struct st_chunk_buffers *b = job->run->buffers;
    size_t half = job->heads.rope_dims / 2;
    bool local = c->sliding[job->run->layer];
    if (half && !c->unrotated[job->run->layer])
        job->run->s->kernels.elementwise->rope(x, b->cosine[local] + t * half,
                                               b->sine[local] + t * half, 2 * half,
                                               c->rope_interleaved);
}

static void mix_key(const struct stint_session *s, float *key, size_t n) {
    st_kv_mix(key, n);
    s->kernels.elementwise->scale(1.0f / (float)st_kv_mix_length(n), key, n, key);
}

// One token's keys and values: norm, rotation, and its row of the cache, which may lack the bias.
static void append_token(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct job *job = context;
    const struct stint_session *s = job->run->s;
    const struct st_config *c = &s->model->config;
    const struct st_kv_kernel *kernel = st_session_kv_kernel(s);
    struct st_place place = st_batch_place(job->run->batch, t);
    size_t hd = job->heads.dim, n_kv = job->heads.n_kv, width = n_kv * hd;
    float *k = job->run->buffers->k + t * width, *v = job->run->buffers->v + t * width;
    const float *bias = st_key_bias_of(&s->kv.bias, s->model, job->run->layer);
    const struct st_layer *layer = &s->model->weights.layers[job->run->layer];
    if (c->keys_as_values[job->run->layer]) memcpy(v, k, width * sizeof *v);
    normalise_row(job, &layer->k_norm, n_kv, k);
    for (size_t h = 0; h < n_kv; h++) {
        for (size_t d = 0; d < job->heads.rope_dims && bias; d++) k[h * hd + d] -= bias[h * hd + d];
        normalise_head(job, &layer->k_norm, h, k + h * hd);
        normalise_head(job, &layer->v_norm, h, v + h * hd);
        rotate(job, t, k + h * hd);
        if (st_kv_mixes_keys(&s->kv)) mix_key(s, k + h * hd, hd);
        kernel->store(k + h * hd, hd, cache_at(job->run, s->kv.keys, h, place));
        kernel->store(v + h * hd, hd, cache_at(job->run, s->kv.values, h, place));
    }
}

static void rotate_queries(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct job *job = context;
    const struct stint_session *s = job->run->s;
    const struct st_config *c = &s->model->config;
    const struct st_layer *layer = &s->model->weights.layers[job->run->layer];
    const float *bias = st_key_bias_of(&s->kv.bias, s->model, job->run->layer);
    bool mixed = st_kv_mixes_keys(&s->kv);
    float scale = query_scale(&c->rope, st_batch_place(job->run->batch, t).position);
    size_t hd = job->heads.dim;
    normalise_row(job, &layer->q_norm, c->n_heads, job->run->buffers->q + t * c->n_heads * hd);
    for (size_t h = 0; h < c->n_heads; h++) {
        size_t row = t * c->n_heads + h;
        float *q = job->run->buffers->q + row * hd;
        normalise_head(job, &layer->q_norm, h, q);
        rotate(job, t, q);
        if (scale != 1.0f) s->kernels.elementwise->scale(scale, q, hd, q);
        if (bias)
            st_key_bias_factors(c, job->heads.rope_dims, q, bias + h / job->group * hd,
                                job->run->buffers->bias_factors + row * job->heads.rope_dims);
        if (mixed) st_kv_mix(q, hd);
    }
}

static struct job job_of(const struct st_run *r) {
    const struct st_config *c = &r->s->model->config;
    struct st_heads heads = st_config_heads(c, r->layer);
    return (struct job){.run = r, .heads = heads, .group = c->n_heads / heads.n_kv};
}

static bool is_gated(const struct st_run *r) {
    return (r->s->model->config.flags & ST_ARCH_GATED_ATTENTION) != 0;
}

// Rows that another layer has made, where its cache is gone.
static void store_token(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct job *job = context;
    const struct stint_session *s = job->run->s;
    struct st_place place = st_batch_place(job->run->batch, t);
    size_t hd = job->heads.dim;
    for (size_t h = 0; h < job->heads.n_kv; h++) {
        size_t at = (t * job->heads.n_kv + h) * hd;
        st_session_kv_kernel(s)->store(job->run->buffers->k + at, hd,
                                       cache_at(job->run, s->kv.keys, h, place));
        st_session_kv_kernel(s)->store(job->run->buffers->v + at, hd,
                                       cache_at(job->run, s->kv.values, h, place));
    }
}

// What a device knows of these rows is no longer so.
static void forget(const struct st_run *r) {
    size_t n = r->batch->places ? r->batch->n : 1;
    for (size_t t = 0; t < n; t++) {
        struct st_place place = st_batch_place(r->batch, t);
        st_kv_device_forget_layer(r->s, place.sequence, r->layer, place.position);
    }
}

stint_status st_kv_append(const struct st_run *r) {
    struct job job = job_of(r);
    if (r->s->model->config.cache_back[r->layer]) {
        if (r->s->kv.layerwise) st_pool_run(r->group->pool, store_token, &job, r->batch->n);
        return STINT_OK;
    }
    if (is_gated(r)) st_gate_take(r);
    st_pool_run(r->group->pool, append_token, &job, r->batch->n);
    forget(r);
    return STINT_OK;
}

void st_kv_attend(const struct st_run *r) {
    struct job job = job_of(r);
    st_pool_run(r->group->pool, rotate_queries, &job, r->batch->n);
    st_kv_attend_rotated(r);
}

void st_kv_attend_rotated(const struct st_run *r) {
    if (r->phase != ST_PHASE_PREFILL)
        st_kv_attend_step(r);
    else if (!st_kv_device_attend(r))
        st_kv_attend_prompt(r);
    if (is_gated(r)) st_gate_apply(r);
}
