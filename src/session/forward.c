// SPDX-License-Identifier: Apache-2.0
// A batch of tokens through the layers, in float: each layer's six subgraphs (model/graph.h), one
// after the other.
#include "session/session.h"

#include "base/clock.h"
#include "base/size.h"
#include "model/graph.h"
#include "model/rope.h"

#include <math.h>
#include <string.h>

enum { ROWS_MAPPED = 16 }; // of the embedding, at a time

struct norm_job {
    const struct stint_session *s;
    const struct st_norm_weight *norm;
    const float *x;
    float *y;
};

void st_session_norm_row(const struct stint_session *s, const struct st_norm_weight *norm,
                         const float *x, float *y) {
    const struct st_config *c = &s->model->config;
    const struct st_elementwise *k = s->kernels.elementwise;
    if (c->norm == ST_NORM_RMS)
        k->rmsnorm(x, norm->weight, c->norm_epsilon, c->hidden, y);
    else
        k->layernorm(x, norm->weight, norm->bias, c->norm_epsilon, c->hidden, y);
}

static void norm_row(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct norm_job *j = context;
    size_t hidden = j->s->model->config.hidden;
    st_session_norm_row(j->s, j->norm, j->x + t * hidden, j->y + t * hidden);
}

void st_session_norm(const struct st_run *r, const struct st_norm_weight *norm, const float *x,
                     size_t n, float *y) {
    struct norm_job job = {r->s, norm, x, y};
    st_pool_run(r->crew->pool, norm_row, &job, n);
}

void st_session_residual(const struct st_run *r, const struct st_norm_weight *post,
                         const struct st_norm_weight *after) {
    const struct st_config *c = &r->s->model->config;
    struct st_lane *lane = r->lane;
    size_t n = r->batch->n;
    if (post->weight) st_session_norm(r, post, lane->projected, n, lane->projected);
    r->s->kernels.elementwise->add(lane->projected, n * c->hidden, lane->x);
    if (c->block == ST_BLOCK_POST) st_session_norm(r, after, lane->x, n, lane->x);
}

void st_session_block_norm(const struct st_run *r, const struct st_norm_weight *norm) {
    const struct st_config *c = &r->s->model->config;
    struct st_lane *lane = r->lane;
    if (c->block == ST_BLOCK_POST)
        memcpy(lane->normed, lane->x, r->batch->n * c->hidden * sizeof(float));
    else
        st_session_norm(r, norm, lane->x, r->batch->n, lane->normed);
}

stint_status st_session_attn_norm(const struct st_run *r) {
    st_session_block_norm(r, &st_run_layer(r)->attn_norm);
    return STINT_OK;
}

static stint_status qkv(const struct st_run *r) {
    const struct st_layer *l = st_run_layer(r);
    struct st_lane *lane = r->lane;
    const struct st_matmul linears[] = {
        {&l->q, lane->q, l->q.n_out}, {&l->k, lane->k, l->k.n_out}, {&l->v, lane->v, l->v.n_out}};
    const struct st_linear_input input = {r->layer,     0,           ST_INT8_QKV,
                                          lane->normed, r->batch->n, r->s->model->config.hidden};
    st_session_linears(r, st_session_observe(r->s, &input), r->batch->n, linears, 3);
    st_session_append(r);
    return STINT_OK;
}

static stint_status o(const struct st_run *r) {
    const struct st_config *c = &r->s->model->config;
    const struct st_layer *l = st_run_layer(r);
    const struct st_linear_input input = {
        r->layer, 0, ST_INT8_O, r->lane->attended, r->batch->n, (size_t)c->n_heads * c->head_dim};
    st_session_linear(r, st_session_observe(r->s, &input), r->batch->n, &l->o, r->lane->projected);
    st_session_residual(r, &l->post_attn_norm, &l->attn_norm);
    return STINT_OK;
}

stint_status st_session_ffn_norm(const struct st_run *r) {
    // A parallel block's feed-forward part works on the first norm's result.
    if (r->s->model->config.block != ST_BLOCK_PARALLEL)
        st_session_block_norm(r, &st_run_layer(r)->ffn_norm);
    return STINT_OK;
}

static stint_status ffn(const struct st_run *r) {
    const struct st_layer *l = st_run_layer(r);
    st_session_ffn(r, r->lane->normed, r->batch->n, r->lane->projected);
    st_session_residual(r, &l->post_ffn_norm, &l->ffn_norm);
    return STINT_OK;
}

static st_subgraph_fn *const float_subgraphs[ST_N_SUBGRAPHS] = {
    [ST_SUBGRAPH_ATTN_NORM] = st_session_attn_norm, [ST_SUBGRAPH_QKV] = qkv,
    [ST_SUBGRAPH_ATTENTION] = st_session_attention, [ST_SUBGRAPH_O] = o,
    [ST_SUBGRAPH_FFN_NORM] = st_session_ffn_norm,   [ST_SUBGRAPH_FFN] = ffn,
};

static void expand_row(const struct stint_session *s, const struct st_linear_weight *w, size_t row,
                       float *to) {
    s->kernels.expand->fn[w->dtype]((const unsigned char *)w->data + row * w->row_bytes, 0, w->n_in,
                                    to);
}

// A prompt's rows lie scattered, and the system maps the neighbourhood of each, huge pages of it
// where the file lies in such: nearly all of the table would stay resident, of which a package uses
// nothing else.
static void forget_embedding(const struct stint_session *s) {
    const struct st_linear_weight *w = &s->model->weights.embed;
    if (s->model->checkpoint.package && !s->resident)
        st_map_forget(w->data, w->n_out * w->row_bytes);
}

stint_status st_session_embed(const struct st_run *r, const int32_t *ids) {
    const struct stint_session *s = r->s;
    struct st_lane *lane = r->lane;
    const struct st_config *c = &s->model->config;
    const struct st_weights *w = &s->model->weights;
    const struct st_elementwise *k = s->kernels.elementwise;
    // embed <= hidden or project_in exists
    float *rows = w->project_in.data ? lane->normed : lane->x;
    if (s->resident) ST_TRY(st_resident_embed(r, ids, rows));
    for (size_t t = 0; t < r->batch->n; t++) {
        if (!s->resident) expand_row(s, &w->embed, (size_t)ids[t], rows + t * c->embed);
        if (c->embed_scale != 1.0f)
            k->scale(c->embed_scale, rows + t * c->embed, c->embed, rows + t * c->embed);
        if (t % ROWS_MAPPED == ROWS_MAPPED - 1 || t + 1 == r->batch->n) forget_embedding(s);
    }
    if (w->project_in.data) st_session_linear(r, rows, r->batch->n, &w->project_in, lane->x);
    if (!w->positions.data) return STINT_OK;
    for (size_t t = 0; t < r->batch->n; t++) { // the first two rows are padding's
        expand_row(s, &w->positions, st_batch_place(r->batch, t).position + 2, lane->projected);
        k->add(lane->projected, c->hidden, lane->x + t * c->hidden);
    }
    return STINT_OK;
}

// Of n tokens from `position` on, which are the batch's from `first` on, in a text of n_total.
static void rotations(const struct st_run *r, size_t first, size_t position, size_t n,
                      uint64_t n_total) {
    const struct st_config *c = &r->s->model->config;
    const struct st_rope *ropes[] = {&c->rope, &c->rope_local};
    double frequencies[ST_MAX_HEAD_DIM / 2], magnitude;
    size_t at = first * (c->rope_dims / 2);
    for (int i = 0; i < 2 && c->rope_dims; i++) {
        st_rope_frequencies(ropes[i], c->rope_dims, n_total, frequencies, &magnitude);
        st_rope_table(frequencies, magnitude, c->rope_dims, position, n, r->lane->cosine[i] + at,
                      r->lane->sine[i] + at);
    }
}

void st_session_rotations(const struct st_run *r) {
    const struct st_batch *b = r->batch;
    if (!b->places) rotations(r, 0, b->position, b->n, b->n_total);
    for (size_t t = 0; t < b->n && b->places; t++)
        rotations(r, t, b->places[t].position, 1, b->places[t].position + 1);
}

// Neurons have no nested weights.
static st_subgraph_fn *const *subgraphs_of(const struct st_run *r, enum st_subgraph_kind kind) {
    const struct stint_session *s = r->s;
    bool neurons = s->fine.graphs && (kind == ST_SUBGRAPH_FFN_NORM || kind == ST_SUBGRAPH_FFN);
    if (!st_run_on_npu(r) && !neurons) return float_subgraphs;
    return s->fine.graphs && r->phase == ST_PHASE_DECODE ? st_fine_subgraphs : st_npu_subgraphs;
}

stint_status st_session_subgraph(const struct st_run *r, enum st_subgraph_kind kind) {
    if (atomic_load_explicit(&r->s->canceled, memory_order_relaxed))
        return st_fail(STINT_E_CANCELED, "canceled");
    return subgraphs_of(r, kind)[kind](r);
}

void st_session_record(const struct st_run *r, uint8_t kind, uint64_t begin) {
    const struct stint_session *s = r->s;
    struct st_timeline *t = &r->s->timeline;
    bool split = s->split.on && !r->bits; // then the executor does
    if (!r->batch || r->phase == ST_PHASE_DECODE || split || t->n == s->most_events) return;
    bool npu = kind < ST_N_SUBGRAPHS && st_subgraphs[kind].processor == ST_PROCESSOR_NPU;
    t->events[t->n] =
        (struct st_event){.node = t->n,
                          .chunk = (uint32_t)((r->batch->position - s->begun) / s->chunk_len),
                          .layer = (uint16_t)r->layer,
                          .kind = kind,
                          .processor = npu ? ST_PROCESSOR_NPU : ST_PROCESSOR_CPU,
                          .begin = (double)begin * 1e-9,
                          .end = (double)st_now_ns() * 1e-9};
    t->n++;
}

stint_status st_session_layer(const struct st_run *r) {
    for (int kind = 0; kind < ST_N_SUBGRAPHS; kind++) {
        uint64_t begin = st_now_ns();
        ST_TRY(st_session_subgraph(r, (enum st_subgraph_kind)kind));
        st_session_record(r, (uint8_t)kind, begin);
    }
    return STINT_OK;
}

stint_status st_session_forward(const struct st_run *run, const int32_t *ids) {
    struct st_run r = *run;
    ST_TRY(st_session_embed(&r, ids));
    st_session_rotations(&r);
    for (r.layer = 0; r.layer < r.s->model->config.n_layers; r.layer++)
        ST_TRY(st_session_layer(&r));
    return STINT_OK;
}

static bool all_finite(const float *x, size_t n) {
    uint32_t worst = 0; // an exponent of all ones is infinite or not a number
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        worst = (bits & 0x7f800000u) > worst ? bits & 0x7f800000u : worst;
    }
    return worst != 0x7f800000u;
}

const float *st_session_head_input(const struct st_run *r, const float *x, size_t n) {
    const struct st_weights *w = &r->s->model->weights;
    if (w->final_norm.weight) {
        st_session_norm(r, &w->final_norm, x, n, r->lane->normed);
        x = r->lane->normed;
    }
    if (!w->project_out.data) return x;
    st_session_linear(r, x, n, &w->project_out, r->lane->projected);
    return r->lane->projected;
}

stint_status st_session_logits(const struct st_run *r, size_t first, size_t n, float *logits) {
    const struct stint_session *s = r->s;
    const struct st_config *c = &s->model->config;
    struct st_linear_input input = {.role = ST_INT8_HEAD, .n_tokens = n, .n = c->embed};
    input.x = st_session_head_input(r, r->lane->x + first * c->hidden, n);
    if (st_run_on_npu(r))
        ST_TRY((s->fine.graphs ? st_fine_head : st_npu_head)(r, input.x, n, logits));
    else
        st_session_linear(r, st_session_observe(s, &input), n, &s->model->weights.head, logits);
    if (c->final_softcap > 0.0f)
        s->kernels.elementwise->softcap(c->final_softcap, logits, n * c->vocab, logits);
    if (!all_finite(logits, n * c->vocab))
        return st_fail(STINT_E_FORMAT, "the logits are not finite numbers: weights of this model "
                                       "are damaged (NaN or infinite)");
    return STINT_OK;
}
