// SPDX-License-Identifier: Apache-2.0
// Latent attention (DeepSeek-V2, section 2.1): the cache holds one row for all heads of a token,
// [rotated part, latent], from which each head's key and value would be expanded. Instead a head's
// expansion of keys is applied to its query, and that of values to what it attends to, so that all
// heads attend to the rows as they are: the cache is a key's and a value's at once, and a head of
// DeepSeek-V3 takes 576 numbers of a token for all of its 128 heads. Prompts do the same, so that
// a text's bits do not depend on how it was cut.
#include "session/pass.h"

#include "session/linear/op.h"

#include <string.h>

// Of the norms within attention, whatever the config says of the others.
static const float epsilon = 1e-6f;

struct job {
    const struct st_run *run;
    size_t row;  // elements of a row of all heads
    size_t head; // of one
};

static void rotate(const struct st_run *r, size_t t, float *x) {
    const struct st_config *c = &r->s->model->config;
    size_t half = c->rope_dims / 2;
    r->s->kernels.elementwise->rope(x, r->buffers->cosine[0] + t * half,
                                    r->buffers->sine[0] + t * half, c->rope_dims,
                                    c->rope_interleaved);
}

// One token's row: the latent with its norm, what the heads share with its rotation.
static void append_token(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct st_run *r = context;
    const struct stint_session *s = r->s;
    const struct st_config *c = &s->model->config;
    const struct st_latent_weight *w = &s->model->weights.layers[r->layer].latent;
    struct st_place place = st_batch_place(r->batch, t);
    size_t rank = c->latent.rank;
    const float *k = r->buffers->k + t * c->head_dim;
    float row[ST_MAX_HEAD_DIM];
    memcpy(row, k + rank, c->rope_dims * sizeof *row);
    rotate(r, t, row);
    s->kernels.elementwise->rmsnorm(k, w->norm.weight, epsilon, rank, row + c->rope_dims);
    st_session_kv_kernel(s)->store(
        row, c->head_dim,
        st_kv_row(&s->kv, s->kv.keys, place.sequence, r->layer, 0, place.position));
}

stint_status st_latent_append(const struct st_run *r) {
    st_pool_run(r->group->pool, append_token, (void *)(uintptr_t)r, r->batch->n);
    return STINT_OK;
}

static void normalise_query(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct st_run *r = context;
    const struct st_config *c = &r->s->model->config;
    const struct st_norm_weight *norm = &r->s->model->weights.layers[r->layer].latent.query_norm;
    float *x = r->buffers->latent + t * c->latent.query_rank;
    r->s->kernels.elementwise->rmsnorm(x, norm->weight, epsilon, c->latent.query_rank, x);
}

// What heads have in `from` [tokens, row], from element `at` of each on, through a linear of each
// head: rows [head * n_out, (head + 1) * n_out) of `weight`. To y [tokens, heads, y_head].
static stint_status each_head(const struct st_run *r, const float *from, size_t row, size_t head,
                              size_t at, const struct st_linear_weight *weight, float *y,
                              size_t y_head) {
    const struct st_config *c = &r->s->model->config;
    struct st_linear_weight own = *weight;
    own.n_out = weight->n_out / c->n_heads;
    for (size_t h = 0; h < c->n_heads; h++) {
        float *x = r->buffers->latent_head;
        for (size_t t = 0; t < r->batch->n; t++)
            memcpy(x + t * own.n_in, from + t * row + h * head + at, own.n_in * sizeof *x);
        own.data = (const unsigned char *)weight->data + h * own.n_out * weight->row_bytes;
        ST_TRY(st_lone_linear_rows(r, x, r->batch->n, &own, y + h * y_head, c->n_heads * y_head));
    }
    return STINT_OK;
}

static void place_query(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct job *job = context;
    const struct st_run *r = job->run;
    const struct st_config *c = &r->s->model->config;
    const float *from = r->buffers->expanded + t * job->row;
    for (size_t h = 0; h < c->n_heads; h++) {
        float *q = r->buffers->q + (t * c->n_heads + h) * c->head_dim;
        memcpy(q, from + h * job->head + c->latent.plain, c->rope_dims * sizeof *q);
        rotate(r, t, q);
    }
}

// Queries [rotated part, what meets the latents] of all heads, to q.
static stint_status make_queries(const struct st_run *r) {
    const struct st_config *c = &r->s->model->config;
    const struct st_latent_weight *w = &r->s->model->weights.layers[r->layer].latent;
    struct st_chunk_buffers *b = r->buffers;
    size_t head = c->latent.plain + c->rope_dims, n = r->batch->n;
    struct job job = {r, c->n_heads * head, head};
    if (c->latent.query_rank) {
        st_pool_run(r->group->pool, normalise_query, (void *)(uintptr_t)r, n);
        ST_TRY(st_lone_linear(r, b->latent, n, &w->query, b->expanded));
    } else {
        memcpy(b->expanded, b->latent, n * job.row * sizeof(float));
    }
    ST_TRY(each_head(r, b->expanded, job.row, head, 0, &w->keys, b->q + c->rope_dims, c->head_dim));
    st_pool_run(r->group->pool, place_query, &job, n);
    return STINT_OK;
}

stint_status st_latent_mix(const struct st_run *r) {
    const struct st_config *c = &r->s->model->config;
    const struct st_latent_weight *w = &r->s->model->weights.layers[r->layer].latent;
    struct st_chunk_buffers *b = r->buffers;
    size_t value = c->latent.value;
    ST_TRY(make_queries(r));
    st_kv_attend_rotated(r);
    ST_TRY(each_head(r, b->attended, (size_t)c->n_heads * c->head_dim, c->head_dim, c->rope_dims,
                     &w->values, b->expanded, value));
    memcpy(b->attended, b->expanded, r->batch->n * c->n_heads * value * sizeof(float));
    return STINT_OK;
}
