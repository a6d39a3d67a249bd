// SPDX-License-Identifier: Apache-2.0
// Attention of steps. The keys of a query are split into spans whose results are joined in their
// order (Flash-Decoding, Dao et al. 2023), so that few heads keep many threads busy. The spans
// follow from how many keys there are alone: what a token gets depends neither on the threads nor
// on the other tokens of its step.
#include "session/pass.h"

struct job {
    const struct st_run *run;
    struct st_heads heads;
    size_t group;  // query heads per key-value head
    size_t share;  // of these, that one unit takes together
    size_t shares; // units of a token and key-value head
    size_t spans;  // of the longest row
};

// Queries of one token that share keys and values: a unit of work, or a span of it is.
struct unit {
    struct st_place place; // of the first key
    size_t n_keys, span;   // keys of a span
    size_t kv_head, n;     // queries
    size_t row;            // the first one, of [tokens, n_heads]
    const float *sinks;    // [n], or NULL
};

static size_t spans_of(size_t n_keys) {
    return st_min(st_ceil_div(n_keys, ST_KV_SPAN), ST_KV_SPANS);
}

// Of about the same length, in whole tiles: the last may be shorter, or there are fewer.
static size_t span_of(size_t n_keys) {
    return st_round_up(st_ceil_div(n_keys, spans_of(n_keys)), ST_KV_TILE);
}

static size_t keys_of(const struct st_run *r, struct st_place place) {
    return place.position + 1 - st_session_first_key(r->s, r->layer, place.position);
}

// Tokens that share keys and values follow each other.
static struct unit unit_of(const struct job *job, size_t i) {
    const struct st_run *r = job->run;
    size_t t = i % r->batch->n, part = i / r->batch->n;
    size_t first = part % job->shares * job->share, kv_head = part / job->shares;
    size_t head = kv_head * job->group + first;
    struct st_place place = st_batch_place(r->batch, t);
    size_t n_keys = keys_of(r, place);
    const float *sinks = r->s->model->weights.layers[r->layer].sinks;
    place.position -= n_keys - 1;
    return (struct unit){.place = place,
                         .n_keys = n_keys,
                         .span = span_of(n_keys),
                         .kv_head = kv_head,
                         .n = st_min(job->share, job->group - first),
                         .row = t * r->s->model->config.n_heads + head,
                         .sinks = sinks ? sinks + head : NULL};
}

// Keys from one position on, and behind them what the next span reads, or the next head.
static struct st_kv_rows rows_of(const struct job *job, const struct unit *u, size_t position,
                                 size_t n_keys) {
    const struct st_run *r = job->run;
    const struct st_kv_cache *kv = &r->s->kv;
    uint32_t sequence = u->place.sequence;
    struct st_kv_rows rows = st_kv_rows_at(kv, sequence, r->layer, u->kv_head, position);
    if (position + n_keys < u->place.position + u->n_keys)
        rows.next = st_kv_row(kv, kv->keys, sequence, r->layer, u->kv_head, position + n_keys);
    else if (u->kv_head + 1 < job->heads.n_kv)
        rows.next = st_kv_row(kv, kv->keys, sequence, r->layer, u->kv_head + 1, u->place.position);
    return rows;
}

// Returns false if the unit has no such span.
static bool attend_span(const struct job *job, const struct unit *u, size_t i, size_t worker,
                        struct st_attended *attended, float *out) {
    const struct st_run *r = job->run;
    const struct stint_session *s = r->s;
    const struct st_config *c = &s->model->config;
    size_t hd = job->heads.dim, dims = job->heads.rope_dims, first = i * u->span;
    if (first >= u->n_keys) return false;
    size_t n_keys = st_min(u->span, u->n_keys - first), position = u->place.position + first;
    float *scores = r->group->workers[worker].scores;
    const float *rotations = st_key_bias_rotations(&s->kv.bias, s->model, r->layer);
    if (rotations)
        s->kernels.attention->score(r->buffers->bias_factors + u->row * dims, u->n,
                                    rotations + position * dims, n_keys, dims, scores);
    struct st_kv_rows rows = rows_of(job, u, position, n_keys);
    st_session_kv_kernel(s)->decode(r->buffers->q + u->row * hd, u->n, &rows, n_keys, hd,
                                    c->attn_scale, c->attn_softcap, rotations != NULL, scores,
                                    attended, out);
    return true;
}

// ---- A unit's results, made of those of its spans: all, spans [u->n], outs [u->n, head_dim]

static float *results(const struct job *job, const struct unit *u, size_t query) {
    return job->run->buffers->attended + (u->row + query) * job->heads.dim;
}

static void begin(const struct job *job, const struct unit *u, struct st_attended *all) {
    for (size_t q = 0; q < u->n; q++)
        st_attended_begin(u->sinks ? u->sinks + q : NULL, job->heads.dim, &all[q],
                          results(job, u, q));
}

static void join(const struct job *job, const struct unit *u, const struct st_attended *spans,
                 const float *outs, struct st_attended *all) {
    for (size_t q = 0; q < u->n; q++)
        st_attended_join(&spans[q], outs + q * job->heads.dim, job->heads.dim, &all[q],
                         results(job, u, q));
}

static void end(const struct job *job, const struct unit *u, const struct st_attended *all) {
    for (size_t q = 0; q < u->n; q++) st_attended_end(&all[q], job->heads.dim, results(job, u, q));
}

// ---- Work: whole units, or their spans, which are joined afterwards

// The spans of a unit one after another.
static void unit_item(void *context, size_t item, size_t worker) {
    const struct job *job = context;
    struct unit u = unit_of(job, item);
    float *out = job->run->group->workers[worker].out;
    struct st_attended all[ST_KV_QUERIES], span[ST_KV_QUERIES];
    begin(job, &u, all);
    for (size_t i = 0; attend_span(job, &u, i, worker, span, out); i++)
        join(job, &u, span, out, all);
    end(job, &u, all);
}

// Where span i of a unit is kept, in queries.
static size_t kept_at(const struct job *job, const struct unit *u, size_t i) {
    return i * job->run->batch->n * job->run->s->model->config.n_heads + u->row;
}

static void span_item(void *context, size_t item, size_t worker) {
    const struct job *job = context;
    const struct st_chunk_buffers *b = job->run->buffers;
    size_t n = job->run->batch->n, i = item / n % job->spans;
    struct unit u = unit_of(job, item / n / job->spans * n + item % n);
    size_t at = kept_at(job, &u, i);
    attend_span(job, &u, i, worker, b->spans + at, b->span_outs + at * job->heads.dim);
}

static void join_spans(const struct job *job, size_t n_units) {
    const struct st_chunk_buffers *b = job->run->buffers;
    for (size_t unit = 0; unit < n_units; unit++) {
        struct unit u = unit_of(job, unit);
        struct st_attended all[ST_KV_QUERIES];
        begin(job, &u, all);
        for (size_t i = 0; i * u.span < u.n_keys; i++) {
            size_t at = kept_at(job, &u, i);
            join(job, &u, b->spans + at, b->span_outs + at * job->heads.dim, all);
        }
        end(job, &u, all);
    }
}

// How many query heads a unit takes, so that the last worker is done soonest: reading the cache
// costs about as much as one of them does.
static size_t share_of(const struct job *job, size_t n_threads) {
    size_t spans = job->run->batch->n * job->heads.n_kv * job->spans;
    size_t best = 1, best_cost = SIZE_MAX;
    for (size_t share = st_min(ST_KV_QUERIES, job->group); share > 0; share--) {
        size_t items = spans * st_ceil_div(job->group, share);
        size_t cost = st_ceil_div(items, n_threads) * (share + 1);
        if (cost >= best_cost) continue;
        best_cost = cost;
        best = share;
    }
    return best;
}

static size_t most_spans(const struct st_run *r) {
    size_t most = 0;
    for (size_t t = 0; t < r->batch->n; t++)
        most = st_max(most, spans_of(keys_of(r, st_batch_place(r->batch, t))));
    return most;
}

void st_kv_attend_step(const struct st_run *r) {
    const struct st_config *c = &r->s->model->config;
    struct st_heads heads = st_config_heads(c, r->layer);
    size_t n_threads = st_pool_threads(r->group->pool);
    struct job job = {.run = r, .heads = heads, .group = c->n_heads / heads.n_kv, .spans = 1};
    if (r->batch->n * c->n_heads <= ST_KV_KEPT && n_threads > 1) job.spans = most_spans(r);
    job.share = share_of(&job, n_threads);
    job.shares = st_ceil_div(job.group, job.share);
    size_t n_units = r->batch->n * heads.n_kv * job.shares;
    if (job.spans == 1) {
        st_pool_run(r->group->pool, unit_item, &job, n_units);
        return;
    }
    st_pool_run(r->group->pool, span_item, &job, n_units * job.spans);
    join_spans(&job, n_units);
}
