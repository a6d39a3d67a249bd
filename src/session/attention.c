// SPDX-License-Identifier: Apache-2.0
// Attention over the KV cache. Prompts: for each key-value head, blocks of queries (of all heads
// that share it) lie in vector lanes and meet the keys in tiles, with an online softmax
// (FlashAttention, Dao et al. 2022), so that no more than a tile of scores exists. Key tiles begin
// at multiples of ST_KEY_TILE, so a token's result does not depend on how its prompt was cut into
// batches. Decoding: one query at a time, split over heads.
#include "session/session.h"

#include "base/size.h"

#include <math.h>
#include <string.h>

struct job {
    const struct st_run *run;
    uint32_t window;      // tokens; 0: none
    size_t group;         // query heads per key-value head
    size_t n_lanes;       // queries per key-value head
    size_t lane_block;    // queries per item
    size_t n_lane_blocks; // items per key-value head
};

static unsigned char *cache_at(const struct st_run *r, unsigned char *cache, size_t head,
                               struct st_place place) {
    return st_session_cache(r->s, cache, place.sequence, r->layer, head, place.position);
}

static void normalise_head(const struct job *job, const struct st_norm_weight *norm, size_t head,
                           float *x) {
    const struct st_config *c = &job->run->s->model->config;
    const struct st_elementwise *k = job->run->s->kernels.elementwise;
    if (!norm->weight) return;
    const float *weight = norm->weight + (norm->per_head ? head * c->head_dim : 0);
    if (c->qk_layernorm)
        k->layernorm(x, weight, norm->bias, c->norm_epsilon, c->head_dim, x);
    else
        k->rmsnorm(x, weight, c->norm_epsilon, c->head_dim, x);
}

static void store(const struct stint_session *s, const float *x, unsigned char *to) {
    size_t n = s->model->config.head_dim;
    if (s->kv == ST_DTYPE_F32)
        memcpy(to, x, n * sizeof(float));
    else
        s->kernels.attention->to_f16(x, n, (uint16_t *)(void *)to);
}

static void rotate(const struct job *job, size_t t, float *x) {
    const struct st_config *c = &job->run->s->model->config;
    const struct st_lane *lane = job->run->lane;
    size_t half = c->rope_dims / 2;
    bool local = c->sliding[job->run->layer];
    if (half)
        job->run->s->kernels.elementwise->rope(x, lane->cosine[local] + t * half,
                                               lane->sine[local] + t * half, c->rope_dims,
                                               c->rope_interleaved);
}

// One token's keys and values: norm, rotation, and its row of the cache.
static void append_token(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct job *job = context;
    const struct stint_session *s = job->run->s;
    const struct st_config *c = &s->model->config;
    struct st_place place = st_batch_place(job->run->batch, t);
    size_t hd = c->head_dim;
    float *k = job->run->lane->k + t * c->n_kv_heads * hd;
    const float *v = job->run->lane->v + t * c->n_kv_heads * hd;
    for (size_t h = 0; h < c->n_kv_heads; h++) {
        normalise_head(job, &st_run_layer(job->run)->k_norm, h, k + h * hd);
        rotate(job, t, k + h * hd);
        store(s, k + h * hd, cache_at(job->run, s->keys, h, place));
        store(s, v + h * hd, cache_at(job->run, s->values, h, place));
    }
}

static void rotate_queries(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct job *job = context;
    const struct st_config *c = &job->run->s->model->config;
    float *q = job->run->lane->q + t * c->n_heads * c->head_dim;
    for (size_t h = 0; h < c->n_heads; h++) {
        normalise_head(job, &st_run_layer(job->run)->q_norm, h, q + h * c->head_dim);
        rotate(job, t, q + h * c->head_dim);
    }
}

static size_t first_key(const struct job *job, size_t position) {
    return job->window && position + 1 > job->window ? position + 1 - job->window : 0;
}

// One query head of one token.
static void decode_item(void *context, size_t item, size_t worker) {
    const struct job *job = context;
    const struct stint_session *s = job->run->s;
    const struct st_config *c = &s->model->config;
    size_t t = item / c->n_heads, h = item % c->n_heads, hd = c->head_dim;
    struct st_place place = st_batch_place(job->run->batch, t);
    size_t n_keys = place.position + 1;
    place.position = first_key(job, place.position);
    n_keys -= place.position;
    s->kernels.attention->decode(job->run->lane->q + (t * c->n_heads + h) * hd,
                                 cache_at(job->run, s->keys, h / job->group, place),
                                 cache_at(job->run, s->values, h / job->group, place), s->kv,
                                 n_keys, hd, c->attn_scale, c->attn_softcap,
                                 job->run->crew->workers[worker].scores,
                                 job->run->lane->attended + (t * c->n_heads + h) * hd);
}

// Lanes [lane0, lane0 + width) of one key-value head: lane l is token l / group, head l % group of
// the group.
struct lanes {
    size_t head, lane0, width, padded;
    int32_t low[ST_TILE_MAX_WIDTH], high[ST_TILE_MAX_WIDTH];
    float maximum[ST_TILE_MAX_WIDTH], sum[ST_TILE_MAX_WIDTH], factor[ST_TILE_MAX_WIDTH];
};

static float *lane_row(const struct job *job, const struct lanes *lanes, float *base, size_t l) {
    const struct st_config *c = &job->run->s->model->config;
    size_t lane = lanes->lane0 + l, t = lane / job->group;
    size_t h = lanes->head * job->group + lane % job->group;
    return base + (t * c->n_heads + h) * c->head_dim;
}

static void load_lanes(const struct job *job, struct lanes *lanes, struct st_worker *w) {
    const struct stint_session *s = job->run->s;
    size_t hd = s->model->config.head_dim;
    for (size_t l = 0; l < lanes->width; l++) {
        size_t position = job->run->batch->position + (lanes->lane0 + l) / job->group;
        memcpy(w->rows + l * hd, lane_row(job, lanes, job->run->lane->q, l), hd * sizeof(float));
        lanes->low[l] = (int32_t)first_key(job, position);
        lanes->high[l] = (int32_t)position + 1;
    }
    lanes->padded = st_tile_pack(s->kernels.tile, w->rows, hd, lanes->width, hd, w->queries);
    for (size_t l = 0; l < lanes->padded; l++) {
        if (l >= lanes->width) lanes->low[l] = lanes->high[l] = 0;
        lanes->maximum[l] = -INFINITY;
        lanes->sum[l] = 0.0f;
    }
}

// Rows [key0, key0 + n) of the cache as floats, with room for a whole tile. What follows them in
// the cache may be written at this moment, for a later chunk, so part of a tile is copied.
static const float *cache_tile(const struct job *job, struct st_worker *w, unsigned char *cache,
                               size_t head, size_t key0, size_t n_keys) {
    const struct stint_session *s = job->run->s;
    size_t n = n_keys * s->model->config.head_dim;
    struct st_place first = {job->run->batch->sequence, key0};
    const unsigned char *rows = cache_at(job->run, cache, head, first);
    if (s->kv == ST_DTYPE_F32 && n_keys == ST_KEY_TILE) return (const float *)(const void *)rows;
    if (s->kv == ST_DTYPE_F32)
        memcpy(w->keys, rows, n * sizeof(float));
    else
        s->kernels.expand->fn[ST_DTYPE_F16](rows, 0, n, w->keys);
    return w->keys;
}

// c[rows, width] = a . b over k, rows rounded up to whole tiles.
static void tile_rows(const struct st_tile *tile, size_t rows, size_t k, const float *a,
                      size_t a_row, size_t a_col, const float *b, size_t width, float *c) {
    st_tile_fn *fn = tile->fn[width / tile->lanes - 1];
    for (size_t r = 0; r < rows; r += tile->m)
        fn(k, a + r * a_row, a_row, a_col, b, c + r * width, width);
}

static void attend_tile(const struct job *job, struct lanes *lanes, struct st_worker *w,
                        size_t key0, size_t n_keys) {
    const struct stint_session *s = job->run->s;
    const struct st_config *c = &s->model->config;
    const struct st_attention *attention = s->kernels.attention;
    size_t hd = c->head_dim, width = lanes->padded;
    const float *keys = cache_tile(job, w, s->keys, lanes->head, key0, n_keys);
    memset(w->scores, 0, (ST_KEY_TILE + ST_TILE_MAX_M) * width * sizeof(float));
    tile_rows(s->kernels.tile, n_keys, hd, keys, hd, 1, w->queries, width, w->scores);
    attention->softmax_tile(w->scores, n_keys, width, (int32_t)key0, lanes->low, lanes->high,
                            c->attn_scale, c->attn_softcap, lanes->maximum, lanes->sum,
                            lanes->factor);
    attention->rescale(w->out, hd, width, lanes->factor);
    const float *values = cache_tile(job, w, s->values, lanes->head, key0, n_keys);
    tile_rows(s->kernels.tile, hd, n_keys, values, 1, hd, w->scores, width, w->out);
}

static void store_lanes(const struct job *job, const struct lanes *lanes, const float *out) {
    size_t hd = job->run->s->model->config.head_dim;
    for (size_t l = 0; l < lanes->width; l++) {
        float *row = lane_row(job, lanes, job->run->lane->attended, l),
              scale = 1.0f / lanes->sum[l];
        for (size_t d = 0; d < hd; d++) row[d] = out[d * lanes->padded + l] * scale;
    }
}

// One block of queries of one key-value head.
static void prompt_item(void *context, size_t item, size_t worker) {
    const struct job *job = context;
    struct st_worker *w = &job->run->crew->workers[worker];
    // The last blocks see the most keys: begin with them, so that threads end together.
    size_t block = job->n_lane_blocks - 1 - item / job->run->s->model->config.n_kv_heads;
    struct lanes lanes = {.head = item % job->run->s->model->config.n_kv_heads,
                          .lane0 = block * job->lane_block};
    lanes.width = st_min(job->lane_block, job->n_lanes - lanes.lane0);
    load_lanes(job, &lanes, w);
    size_t rows = st_round_up(job->run->s->model->config.head_dim, ST_TILE_MAX_M);
    memset(w->out, 0, rows * lanes.padded * sizeof(float));
    size_t end = (size_t)lanes.high[lanes.width - 1];
    for (size_t key0 = (size_t)lanes.low[0] / ST_KEY_TILE * ST_KEY_TILE; key0 < end;
         key0 += ST_KEY_TILE)
        attend_tile(job, &lanes, w, key0, st_min(ST_KEY_TILE, end - key0));
    store_lanes(job, &lanes, w->out);
}

static struct job job_of(const struct st_run *r) {
    const struct st_config *c = &r->s->model->config;
    return (struct job){.run = r,
                        .window = c->sliding[r->layer] ? c->window : 0,
                        .group = c->n_heads / c->n_kv_heads};
}

void st_session_append(const struct st_run *r) {
    struct job job = job_of(r);
    st_pool_run(r->crew->pool, append_token, &job, r->batch->n);
}

stint_status st_session_attention(const struct st_run *r) {
    const struct stint_session *s = r->s;
    struct job job = job_of(r);
    st_pool_run(r->crew->pool, rotate_queries, &job, r->batch->n);
    if (!s->prompt) {
        st_pool_run(r->crew->pool, decode_item, &job, r->batch->n * s->model->config.n_heads);
        return STINT_OK;
    }
    job.n_lanes = r->batch->n * job.group;
    job.lane_block = s->kernels.tile->vectors * s->kernels.tile->lanes;
    job.n_lane_blocks = st_ceil_div(job.n_lanes, job.lane_block);
    st_pool_run(r->crew->pool, prompt_item, &job, job.n_lane_blocks * s->model->config.n_kv_heads);
    return STINT_OK;
}
