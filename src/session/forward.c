// SPDX-License-Identifier: Apache-2.0
// A batch of tokens through the layers, in float: each layer's six subgraphs (model/graph.h), one
// after the other.
#include "session/session.h"

#include "base/size.h"
#include "model/graph.h"
#include "model/rope.h"

#include <math.h>
#include <string.h>

struct norm_job {
    struct stint_session *s;
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

void st_session_norm(struct stint_session *s, const struct st_norm_weight *norm, const float *x,
                     size_t n, float *y) {
    struct norm_job job = {s, norm, x, y};
    st_pool_run(s->pool, norm_row, &job, n);
}

void st_session_residual(const struct st_layer_run *r, const struct st_norm_weight *post,
                         const struct st_norm_weight *after) {
    struct stint_session *s = r->s;
    size_t n = r->batch->n;
    if (post->weight) st_session_norm(s, post, s->projected, n, s->projected);
    s->kernels.elementwise->add(s->projected, n * s->model->config.hidden, s->x);
    if (s->model->config.block == ST_BLOCK_POST) st_session_norm(s, after, s->x, n, s->x);
}

void st_session_block_norm(const struct st_layer_run *r, const struct st_norm_weight *norm) {
    struct stint_session *s = r->s;
    if (s->model->config.block == ST_BLOCK_POST)
        memcpy(s->normed, s->x, r->batch->n * s->model->config.hidden * sizeof(float));
    else
        st_session_norm(s, norm, s->x, r->batch->n, s->normed);
}

static stint_status attn_norm(const struct st_layer_run *r) {
    st_session_block_norm(r, &r->layer->attn_norm);
    return STINT_OK;
}

static stint_status qkv(const struct st_layer_run *r) {
    struct stint_session *s = r->s;
    const struct st_matmul linears[] = {{&r->layer->q, s->q, r->layer->q.n_out},
                                        {&r->layer->k, s->k, r->layer->k.n_out},
                                        {&r->layer->v, s->v, r->layer->v.n_out}};
    const struct st_linear_input input = {r->index,  0,           ST_INT8_QKV,
                                          s->normed, r->batch->n, s->model->config.hidden};
    st_session_linears(s, st_session_observe(s, &input), r->batch->n, linears, 3);
    return STINT_OK;
}

stint_status st_session_run_attention(const struct st_layer_run *r) {
    st_session_attention(r->s, r->index, r->batch);
    return STINT_OK;
}

static stint_status o(const struct st_layer_run *r) {
    const struct st_config *c = &r->s->model->config;
    const struct st_linear_input input = {
        r->index, 0, ST_INT8_O, r->s->attended, r->batch->n, (size_t)c->n_heads * c->head_dim};
    st_session_linear(r->s, st_session_observe(r->s, &input), r->batch->n, &r->layer->o,
                      r->s->projected);
    st_session_residual(r, &r->layer->post_attn_norm, &r->layer->attn_norm);
    return STINT_OK;
}

static stint_status ffn_norm(const struct st_layer_run *r) {
    // A parallel block's feed-forward part works on the first norm's result.
    if (r->s->model->config.block != ST_BLOCK_PARALLEL)
        st_session_block_norm(r, &r->layer->ffn_norm);
    return STINT_OK;
}

static stint_status ffn(const struct st_layer_run *r) {
    st_session_ffn(r->s, r->index, r->s->normed, r->batch->n, r->s->projected);
    st_session_residual(r, &r->layer->post_ffn_norm, &r->layer->ffn_norm);
    return STINT_OK;
}

static st_subgraph_fn *const float_subgraphs[ST_N_SUBGRAPHS] = {
    [ST_SUBGRAPH_ATTN_NORM] = attn_norm,
    [ST_SUBGRAPH_QKV] = qkv,
    [ST_SUBGRAPH_ATTENTION] = st_session_run_attention,
    [ST_SUBGRAPH_O] = o,
    [ST_SUBGRAPH_FFN_NORM] = ffn_norm,
    [ST_SUBGRAPH_FFN] = ffn,
};

static void expand_row(const struct stint_session *s, const struct st_linear_weight *w, size_t row,
                       float *to) {
    s->kernels.expand->fn[w->dtype]((const unsigned char *)w->data + row * w->row_bytes, 0, w->n_in,
                                    to);
}

void st_session_embed(struct stint_session *s, const int32_t *ids, const struct st_batch *batch) {
    const struct st_config *c = &s->model->config;
    const struct st_weights *w = &s->model->weights;
    const struct st_elementwise *k = s->kernels.elementwise;
    float *rows = w->project_in.data ? s->normed : s->x; // embed <= hidden or project_in exists
    for (size_t t = 0; t < batch->n; t++) {
        expand_row(s, &w->embed, (size_t)ids[t], rows + t * c->embed);
        if (c->embed_scale != 1.0f)
            k->scale(c->embed_scale, rows + t * c->embed, c->embed, rows + t * c->embed);
    }
    // A prompt's rows lie scattered, and the system maps the neighbourhood of each: nearly all of
    // the table would stay resident, of which a package uses nothing else.
    if (s->prompt && s->model->checkpoint.package)
        st_map_forget(w->embed.data, w->embed.n_out * w->embed.row_bytes);
    if (w->project_in.data) st_session_linear(s, rows, batch->n, &w->project_in, s->x);
    if (!w->positions.data) return;
    for (size_t t = 0; t < batch->n; t++) { // the first two rows are padding's
        expand_row(s, &w->positions, batch->position + t + 2, s->projected);
        k->add(s->projected, c->hidden, s->x + t * c->hidden);
    }
}

void st_session_rotations(struct stint_session *s, const struct st_batch *batch) {
    const struct st_config *c = &s->model->config;
    const struct st_rope *ropes[] = {&c->rope, &c->rope_local};
    double frequencies[ST_MAX_HEAD_DIM / 2], magnitude;
    for (int i = 0; i < 2 && c->rope_dims; i++) {
        st_rope_frequencies(ropes[i], c->rope_dims, batch->n_total, frequencies, &magnitude);
        st_rope_table(frequencies, magnitude, c->rope_dims, batch->position, batch->n, s->cosine[i],
                      s->sine[i]);
    }
}

stint_status st_session_layer(struct stint_session *s, uint32_t layer,
                              const struct st_batch *batch) {
    st_subgraph_fn *const *subgraphs = s->npu.device ? st_npu_subgraphs : float_subgraphs;
    struct st_layer_run run = {s, &s->model->weights.layers[layer], batch, layer};
    for (int kind = 0; kind < ST_N_SUBGRAPHS; kind++) {
        if (atomic_load_explicit(&s->canceled, memory_order_relaxed))
            return st_fail(STINT_E_CANCELED, "canceled");
        ST_TRY(subgraphs[kind](&run));
    }
    return STINT_OK;
}

stint_status st_session_forward(struct stint_session *s, const int32_t *ids,
                                const struct st_batch *batch) {
    st_session_embed(s, ids, batch);
    st_session_rotations(s, batch);
    for (uint32_t i = 0; i < s->model->config.n_layers; i++) ST_TRY(st_session_layer(s, i, batch));
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

const float *st_session_head_input(struct stint_session *s, const float *x, size_t n) {
    const struct st_weights *w = &s->model->weights;
    if (w->final_norm.weight) {
        st_session_norm(s, &w->final_norm, x, n, s->normed);
        x = s->normed;
    }
    if (!w->project_out.data) return x;
    st_session_linear(s, x, n, &w->project_out, s->projected);
    return s->projected;
}

stint_status st_session_logits(struct stint_session *s, size_t first, size_t n, float *logits) {
    const struct st_config *c = &s->model->config;
    const float *x = st_session_head_input(s, s->x + first * c->hidden, n);
    if (s->npu.device)
        ST_TRY(st_npu_head(s, x, n, logits));
    else
        st_session_linear(
            s, st_session_observe(s, &(struct st_linear_input){0, 0, ST_INT8_HEAD, x, n, c->embed}),
            n, &s->model->weights.head, logits);
    if (c->final_softcap > 0.0f)
        s->kernels.elementwise->softcap(c->final_softcap, logits, n * c->vocab, logits);
    if (!all_finite(logits, n * c->vocab))
        return st_fail(STINT_E_FORMAT, "the logits are not finite numbers: weights of this model "
                                       "are damaged (NaN or infinite)");
    return STINT_OK;
}
