// SPDX-License-Identifier: Apache-2.0
// The pass: a batch of tokens through the six subgraphs of each layer (model/graph.h) and what
// surrounds the layers, written once. How a linear is computed is the table's business
// (linear/op.h), where its weights are the weight source's (weights/source.h).
#include "session/pass.h"

#include "base/clock.h"
#include "session/linear/input_norm.h"
#include "session/linear/op.h"
#include "session/weights/source.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { LOGITS_AT_A_TIME = 4096 };

// ---- Around the units

// A layer's input norm, or the input itself where the block form has none there.
static void block_norm(const struct st_run *r, const struct st_norm_weight *norm) {
    const struct st_config *c = &r->s->model->config;
    struct st_chunk_buffers *b = r->buffers;
    if (!st_block_norms_input(c->block))
        memcpy(b->normed, b->x, r->batch->n * c->hidden * sizeof(float));
    else
        st_pass_norm(r, norm, b->x, r->batch->n, b->normed);
}

// x += projected, with the norms that the block form puts around the sum.
static void add_residual(const struct st_run *r, const struct st_norm_weight *post,
                         const struct st_norm_weight *after) {
    const struct st_config *c = &r->s->model->config;
    struct st_chunk_buffers *b = r->buffers;
    size_t n = r->batch->n;
    if (post->weight) st_pass_norm(r, post, b->projected, n, b->projected);
    if (c->residual_scale == 1.0f)
        r->s->kernels.elementwise->add(b->projected, n * c->hidden, b->x);
    else
        r->s->kernels.elementwise->axpy(c->residual_scale, b->projected, n * c->hidden, b->x);
    if (c->block == ST_BLOCK_POST) st_pass_norm(r, after, b->x, n, b->x);
}

// ---- Block forms

// What passes between the tokens of a layer: what is kept of a token, and what is made of it and
// those before it.
static const struct {
    stint_status (*append)(const struct st_run *);
    void (*mix)(const struct st_run *);
} forms[ST_N_FORMS] = {[ST_FORM_ATTENTION] = {st_kv_append, st_kv_attend},
                       [ST_FORM_CONV] = {st_conv_append, st_conv_mix},
                       [ST_FORM_DELTA] = {st_delta_append, st_delta_mix},
                       [ST_FORM_MAMBA] = {st_mamba_append, st_mamba_mix}};

static enum st_form form_of(const struct st_run *r) {
    return (enum st_form)r->s->model->config.form[r->layer];
}

// ---- Units of linears

static struct st_operands operands_of(const struct st_run *r, enum st_unit unit) {
    const struct st_config *c = &r->s->model->config;
    struct st_chunk_buffers *b = r->buffers;
    struct st_mixer_widths widths = st_config_mixer(c, r->layer);
    struct st_operands o = {.role = st_unit_role(unit),
                            .x = unit == ST_UNIT_O ? b->attended : b->normed,
                            .n = r->batch->n,
                            .y = {b->projected},
                            .y_row = {c->hidden}};
    if (unit != ST_UNIT_QKV) return o;
    float *first = c->latent.rank ? b->latent : st_config_keeps_raw(c, r->layer) ? b->raw : b->q;
    memcpy(o.y, (float *[]){first, widths.k ? b->k : NULL, widths.v ? b->v : NULL}, sizeof o.y);
    memcpy(o.y_row, (size_t[]){widths.q, widths.k, widths.v}, sizeof o.y_row);
    return o;
}

static stint_status prepare(const struct st_run *r, enum st_unit unit) {
    const struct st_op *op = st_op_of(r, unit);
    if (!op->prepare) return STINT_OK;
    struct st_operands o = operands_of(r, unit);
    return op->prepare(r, &o);
}

// A norm whose result meets this unit alone may be the op's: then it is done.
static bool leaves_norm(const struct st_run *r, enum st_unit unit) {
    return st_op_of(r, unit)->prepare_normed && st_input_norm_is_left(r, st_unit_role(unit));
}

static stint_status prepare_normed(const struct st_run *r, enum st_unit unit,
                                   const struct st_norm_weight *norm) {
    struct st_operands o = operands_of(r, unit);
    return st_op_of(r, unit)->prepare_normed(r, &o, norm);
}

// The end of a unit, and what follows it in a layer.
static stint_status finish(const struct st_run *r, enum st_unit unit, const struct st_op *op,
                           const struct st_operands *o) {
    const struct st_layer *l = &r->s->model->weights.layers[r->layer];
    if (op->finish) ST_TRY(op->finish(r, o));
    if (unit == ST_UNIT_QKV)
        return r->s->model->config.latent.rank ? st_latent_append(r) : forms[form_of(r)].append(r);
    if (unit == ST_UNIT_O) {
        add_residual(r, &l->post_attn_norm, &l->attn_norm);
        if (r->s->model->config.n_streams) st_laurel_add(r);
        return STINT_OK;
    }
    add_residual(r, &l->post_ffn_norm, &l->ffn_norm);
    return st_layer_input_add(r);
}

static stint_status compute(const struct st_run *r, enum st_unit unit) {
    const struct st_op *op = st_op_of(r, unit);
    struct st_operands o = operands_of(r, unit);
    unsigned apart = r->shadows_apart && op->apart ? op->apart(r->s->model, r->layer, o.role) : 0;
    if (op->before && !(apart & ST_SHADOW_BEFORE)) ST_TRY(op->before(r, &o));
    ST_TRY(op->run(r, &o));
    return apart & ST_SHADOW_AFTER ? STINT_OK : finish(r, unit, op, &o);
}

// ---- The subgraphs of a layer

static stint_status attn_norm(const struct st_run *r) {
    uint32_t n_streams = r->s->model->config.n_streams;
    const struct st_norm_weight *norm = &r->s->model->weights.layers[r->layer].attn_norm;
    if (leaves_norm(r, ST_UNIT_QKV)) return prepare_normed(r, ST_UNIT_QKV, norm);
    if (n_streams) ST_TRY(st_streams_predict(r));
    // A second mixer of the same input finds that where the first one has left it.
    if (!r->s->model->config.joined[r->layer]) block_norm(r, norm);
    if (n_streams) ST_TRY(st_laurel_make(r));
    return prepare(r, ST_UNIT_QKV);
}

static stint_status qkv(const struct st_run *r) {
    return compute(r, ST_UNIT_QKV);
}

static stint_status attention(const struct st_run *r) {
    const struct st_norm_weight *norm = &r->s->model->weights.layers[r->layer].mixed_norm;
    float *mixed = r->buffers->attended;
    if (r->s->model->config.latent.rank)
        ST_TRY(st_latent_mix(r));
    else
        forms[form_of(r)].mix(r);
    if (norm->weight) st_pass_norm(r, norm, mixed, r->batch->n, mixed);
    return STINT_OK;
}

static stint_status o(const struct st_run *r) {
    ST_TRY(prepare(r, ST_UNIT_O));
    return compute(r, ST_UNIT_O);
}

static stint_status ffn_norm(const struct st_run *r) {
    const struct st_norm_weight *norm = &r->s->model->weights.layers[r->layer].ffn_norm;
    if (st_config_blocks(&r->s->model->config, r->layer) == 0) return STINT_OK;
    if (leaves_norm(r, ST_UNIT_FFN)) return prepare_normed(r, ST_UNIT_FFN, norm);
    // A parallel block's feed-forward part works on the first norm's result.
    if (r->s->model->config.block != ST_BLOCK_PARALLEL) block_norm(r, norm);
    return prepare(r, ST_UNIT_FFN);
}

static stint_status ffn(const struct st_run *r) {
    if (st_config_blocks(&r->s->model->config, r->layer) == 0) return STINT_OK;
    return compute(r, ST_UNIT_FFN);
}

static stint_status (*const subgraphs[ST_N_SUBGRAPHS])(const struct st_run *) = {
    [ST_SUBGRAPH_ATTN_NORM] = attn_norm, [ST_SUBGRAPH_QKV] = qkv,
    [ST_SUBGRAPH_ATTENTION] = attention, [ST_SUBGRAPH_O] = o,
    [ST_SUBGRAPH_FFN_NORM] = ffn_norm,   [ST_SUBGRAPH_FFN] = ffn,
};

stint_status st_pass_subgraph(const struct st_run *r, enum st_subgraph_kind kind) {
    if (atomic_load_explicit(&r->s->canceled, memory_order_relaxed))
        return st_fail(STINT_E_CANCELED, "canceled");
    return subgraphs[kind](r);
}

stint_status st_pass_shadow(const struct st_run *r, enum st_int8_role role) {
    static const enum st_unit units[] = {[ST_INT8_QKV] = ST_UNIT_QKV,
                                         [ST_INT8_O] = ST_UNIT_O,
                                         [ST_INT8_UP] = ST_UNIT_FFN,
                                         [ST_INT8_DOWN] = ST_UNIT_FFN};
    const struct st_op *op = st_op_of(r, units[role]);
    struct st_operands o = operands_of(r, units[role]);
    if (role != ST_INT8_UP) return finish(r, units[role], op, &o);
    return op->before ? op->before(r, &o) : STINT_OK;
}

// ---- Layers and head

// Subgraphs [from, to) of a layer.
static stint_status run_subgraphs(const struct st_run *r, int from, int to) {
    for (int kind = from; kind < to; kind++) {
        uint64_t begin = st_now_ns();
        ST_TRY(st_pass_subgraph(r, (enum st_subgraph_kind)kind));
        st_session_record(r, (uint8_t)kind, begin);
    }
    return STINT_OK;
}

// Only where each token goes on from attention by itself, in memory that the device shares with the
// host. Observers look at all tokens; weights under a bound come in an order that all layers keep.
bool st_pass_leaves_unread(const struct stint_session *s) {
    const struct st_config *c = &s->model->config;
    const struct st_npu *npu = s->group.npu[ST_NPU_DEVICE];
    return c->block != ST_BLOCK_PARALLEL && !c->n_streams && !c->layer_input &&
           !c->joined[c->n_layers - 1] && !s->observe && !s->bounded && !s->stored.device &&
           (!npu || npu->mirror.shared);
}

// Of n tokens, behind attention, from row `from` on.
static void move_rows(const struct st_run *r, size_t n, size_t to, size_t from) {
    const struct st_config *c = &r->s->model->config;
    size_t hidden = c->hidden, mixed = st_config_mixer(c, r->layer).out;
    float *x = r->buffers->x, *attended = r->buffers->attended;
    memmove(x + to * hidden, x + from * hidden, n * hidden * sizeof *x);
    memmove(attended + to * mixed, attended + from * mixed, n * mixed * sizeof *attended);
}

// Unread tokens leave their keys and values, or what another mixer keeps of them, and no more. The
// others take their place, as linears may read the rows of more tokens than there are.
static stint_status last_layer(const struct st_run *r) {
    size_t n = r->n_unread, n_read = r->batch->n - n;
    bool no_attention = n_read == 0 && form_of(r) == ST_FORM_ATTENTION;
    ST_TRY(run_subgraphs(r, 0, no_attention ? ST_SUBGRAPH_ATTENTION : ST_SUBGRAPH_O));
    if (n_read == 0) return STINT_OK;
    struct st_batch batch = *r->batch;
    struct st_run read = *r;
    batch.n = n_read;
    batch.position += n;
    read.batch = &batch;
    move_rows(r, n_read, 0, n);
    ST_TRY(run_subgraphs(&read, ST_SUBGRAPH_O, ST_N_SUBGRAPHS));
    move_rows(r, n_read, n, 0);
    return STINT_OK;
}

stint_status st_pass_layer(const struct st_run *r) {
    bool last = r->layer + 1 == r->s->model->config.n_layers;
    ST_TRY(last && r->n_unread ? last_layer(r) : run_subgraphs(r, 0, ST_N_SUBGRAPHS));
    return r->s->source->look_ahead ? r->s->source->look_ahead(r) : STINT_OK;
}

stint_status st_pass_forward(const struct st_run *run, const int32_t *ids) {
    struct st_run r = *run;
    r.layer = 0;
    ST_TRY(st_pass_embed(&r, ids, r.s->model->config.n_layers));
    for (; r.layer < r.s->model->config.n_layers; r.layer++) ST_TRY(st_pass_layer(&r));
    return STINT_OK;
}

stint_status st_pass_head_input(const struct st_run *r, const float *x, size_t n,
                                const float **input) {
    const struct st_weights *w = &r->s->model->weights;
    *input = x;
    if (w->final_norm.weight) {
        st_pass_norm(r, &w->final_norm, x, n, r->buffers->normed);
        *input = r->buffers->normed;
    }
    if (!w->project_out.data) return STINT_OK;
    ST_TRY(st_lone_linear(r, *input, n, &w->project_out, r->buffers->projected));
    *input = r->buffers->projected;
    return STINT_OK;
}

struct logits {
    const struct st_run *run;
    float *logits;
    atomic_bool damaged;
};

static void finish_logits(void *context, size_t from, size_t to, size_t worker) {
    struct logits *l = context;
    const struct st_config *c = &l->run->s->model->config;
    const struct st_elementwise *k = l->run->s->kernels.elementwise;
    float *x = l->logits + from;
    size_t n = to - from;
    (void)worker;
    if (c->logit_scale != 1.0f) k->scale(c->logit_scale, x, n, x);
    if (c->final_softcap > 0.0f) k->softcap(c->final_softcap, x, n, x);
    if (!k->finite(x, n)) atomic_store_explicit(&l->damaged, true, memory_order_relaxed);
}

static stint_status finish_all(const struct st_run *r, size_t n, float *logits) {
    struct logits l = {.run = r, .logits = logits};
    st_pool_run_ranges(r->group->pool, finish_logits, &l, n, LOGITS_AT_A_TIME);
    if (l.damaged)
        return st_fail(STINT_E_FORMAT, "the logits are not finite numbers: weights of this model "
                                       "are damaged (NaN or infinite)");
    return STINT_OK;
}

stint_status st_pass_finish_logits(const struct st_run *r, size_t n, float *logits) {
    return finish_all(r, n * r->s->model->config.vocab, logits);
}

// Of a step that only drafts: no other token is drafted.
static stint_status head_in_part(const struct st_run *r, const struct st_operands *o) {
    struct st_run part = *r;
    part.n_rows = st_draft_head_rows(&r->s->model->config);
    ST_TRY(st_op_all(st_op_of(&part, ST_UNIT_HEAD), &part, o));
    for (size_t t = 0; t < o->n; t++) {
        float *logits = o->y[0] + t * o->y_row[0];
        ST_TRY(finish_all(r, part.n_rows, logits));
        for (size_t i = part.n_rows; i < o->y_row[0]; i++) logits[i] = -INFINITY;
    }
    return STINT_OK;
}

stint_status st_pass_head(const struct st_run *r, const float *input, size_t n, float *logits) {
    const struct st_config *c = &r->s->model->config;
    struct st_operands o = {
        .role = ST_INT8_HEAD, .x = input, .n = n, .y = {logits}, .y_row = {c->vocab}};
    if (r->head_in_part) return head_in_part(r, &o);
    ST_TRY(st_op_all(st_op_of(r, ST_UNIT_HEAD), r, &o));
    return st_pass_finish_logits(r, n, logits);
}

stint_status st_pass_logits(const struct st_run *r, size_t first, size_t n, float *logits) {
    const float *input;
    ST_TRY(st_pass_head_input(r, r->buffers->x + first * r->s->model->config.hidden, n, &input));
    return st_pass_head(r, input, n, logits);
}
