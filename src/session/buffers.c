// SPDX-License-Identifier: Apache-2.0
// The buffers of a chunk and of a worker: what each has room for follows from the model's widths.
#include "session/session.h"

#include "base/size.h"
#include "session/linear/int8.h"

#include <unistd.h>

void st_buffers_lay_out_worker(struct stint_session *s, struct st_arena *a, struct st_worker *w) {
    const struct st_config *c = &s->model->config;
    size_t hd = st_config_widest_heads(c).dim, tile_rows = ST_KEY_TILE + ST_PAIRS_MAX_M;
    size_t bias_dims = st_key_bias_dims(s->model, s->kv.type);
    size_t span = st_max(ST_KV_SPAN, st_ceil_div(s->n_context, ST_KV_SPANS));
    struct st_worker worker = {
        .linear = ST_TAKE(a, float, st_linear_scratch_floats(s->kernels.tile, s->chunk_len)),
        .rows = ST_TAKE(a, float, ST_TILE_MAX_WIDTH *hd),
        .queries = ST_TAKE(a, float, ST_LANE_BLOCKS *ST_TILE_MAX_WIDTH *hd),
        .bias_factors = ST_TAKE(a, float, ST_LANE_BLOCKS *ST_TILE_MAX_WIDTH *bias_dims),
        .scores = ST_TAKE(a, float, st_max(tile_rows * ST_TILE_MAX_WIDTH, ST_KV_QUERIES * span)),
        .out = ST_TAKE(a, float, ST_LANE_BLOCKS *ST_TILE_MAX_WIDTH *(hd + ST_PAIRS_MAX_M)),
        .keys = ST_TAKE(a, float, tile_rows *hd),
        .values = ST_TAKE(a, float, tile_rows *hd),
    };
    if (s->kernels.pairs) {
        worker.query_pairs = ST_TAKE(a, uint32_t, ST_LANE_BLOCKS * ST_TILE_MAX_WIDTH * hd / 2);
        worker.key_pairs = ST_TAKE(a, uint32_t, tile_rows * hd / 2);
        worker.value_rows = ST_TAKE(a, uint32_t, ST_KEY_TILE * hd / 2);
        worker.value_pairs = ST_TAKE(a, uint32_t, ST_KEY_TILE * (hd + ST_PAIRS_MAX_M) / 2);
        worker.weight_pairs = ST_TAKE(a, uint32_t, ST_KEY_TILE * ST_TILE_MAX_WIDTH / 2);
    }
    if (s->model->fast) worker.own = ST_TAKE(a, struct st_own_input, 1);
    if (w) *w = worker;
}

// Of the linears that take packed floats: those in float, and nested ones of prompts.
static size_t widest_input(const struct stint_session *s) {
    const struct st_config *c = &s->model->config;
    const struct st_weights *w = &s->model->weights;
    const struct st_latent *latent = &c->latent;
    size_t widest = st_max(st_max(c->hidden, c->embed), w->head.n_in);
    widest = st_max(widest, st_max(c->layer_input, c->laurel));
    widest = st_max(widest, st_max(latent->query_rank, st_max(latent->plain, latent->rank)));
    if (s->ahead.on) widest = st_max(widest, w->ahead.join.n_in);
    if (s->model->nested.high && st_linear_nested_path(s->kernels.cpu_flags))
        widest = st_max(widest, st_nested_widest(c));
    for (uint32_t i = 0; i < c->n_layers && !s->model->int8.layers; i++) {
        const struct st_layer *l = &w->layers[i];
        widest = st_max(widest, st_max(l->q.n_in, l->o.n_in));
        for (uint32_t e = 0; e < st_config_blocks(c, i); e++)
            widest = st_max(widest, st_max(l->ffn[e].up.n_in, l->ffn[e].down.n_in));
    }
    return widest;
}

// Of what becomes q.
static size_t raw_width(const struct st_config *c) {
    size_t widest = c->state.n_heads ? st_config_conv_width(c) : 0; // ahead of a convolution
    for (uint32_t i = 0; i < c->n_layers; i++)
        if (st_config_keeps_raw(c, i)) widest = st_max(widest, st_config_mixer(c, i).q);
    return widest;
}

// Queries that meet latents, what they find, and both expanded. With latents mixer.q is what the
// first linear gives.
static void lay_out_latents(const struct st_config *c, size_t n, struct st_arena *a,
                            struct st_chunk_buffers *b) {
    const struct st_latent *l = &c->latent;
    if (!l->rank) return;
    b->latent = ST_TAKE(a, float, n *st_config_widest_mixer(c).q);
    b->expanded = ST_TAKE(a, float, n * c->n_heads * st_max(l->plain + c->rope_dims, l->value));
    b->latent_head = ST_TAKE(a, float, n *st_max(l->plain, l->rank));
}

static void lay_out_mixer(const struct stint_session *s, size_t n, struct st_arena *a,
                          struct st_chunk_buffers *b) {
    const struct st_config *c = &s->model->config;
    struct st_mixer_widths mixer = st_config_widest_mixer(c);
    size_t heads = c->latent.rank ? (size_t)c->n_heads * c->head_dim : 0; // that meet latents
    size_t state_values = (size_t)c->state.n_heads * c->state.n_values;
    size_t half = st_config_widest_heads(c).rope_dims / 2;
    lay_out_latents(c, n, a, b);
    b->q = ST_TAKE(a, float, n *st_max(c->latent.rank ? 0 : mixer.q, heads));
    b->k = ST_TAKE(a, float, n *st_max(mixer.k, state_values));
    // Values may be copies of keys.
    b->v = ST_TAKE(a, float, n *st_max(st_max(mixer.v, mixer.k), 2 * c->state.n_heads));
    b->raw = ST_TAKE(a, float, raw_width(c) * n);
    b->state_gates = ST_TAKE(a, float, n * 2 * c->state.n_heads);
    b->bias_factors = ST_TAKE(a, float, n * c->n_heads * st_key_bias_dims(s->model, s->kv.type));
    b->attended = ST_TAKE(a, float, n *st_max(mixer.out, heads));
    size_t spans = st_min(ST_KV_SPANS, st_ceil_div(s->n_context, ST_KV_SPAN));
    size_t kept = spans > 1 ? spans * ST_KV_KEPT : 0;
    b->spans = ST_TAKE(a, struct st_attended, kept);
    b->span_outs = ST_TAKE(a, float, kept *st_config_widest_heads(c).dim);
    for (int i = 0; i < 2; i++) {
        b->cosine[i] = ST_TAKE(a, float, n *half);
        b->sine[i] = ST_TAKE(a, float, n *half);
    }
}

static void lay_out_layer_inputs(const struct stint_session *s, size_t n, struct st_arena *a,
                                 struct st_chunk_buffers *b) {
    const struct st_config *c = &s->model->config;
    b->layer_inputs = ST_TAKE(a, float, n * c->n_layers * c->layer_input);
    b->layer_projected = ST_TAKE(a, float, st_layer_projected_floats(s));
    if (c->n_streams == 0) return;
    b->streams = ST_TAKE(a, float, n *(c->n_streams - 1) * c->hidden);
    b->predicted = ST_TAKE(a, float, n * c->hidden);
    b->stream_routes = ST_TAKE(a, float, n * c->n_streams);
    b->laurel_rank = ST_TAKE(a, float, n * c->laurel);
    b->laurel = ST_TAKE(a, float, n * c->hidden);
}

static void lay_out_ffn(const struct stint_session *s, size_t n, struct st_arena *a,
                        struct st_chunk_buffers *b) {
    const struct st_config *c = &s->model->config;
    size_t n_ffn = st_config_widest_ffn(c);
    bool floats = !s->model->int8.layers || s->model->nested.high, cut = st_config_any_cut(c);
    bool gates = (floats || cut) && c->flags & ST_ARCH_GATED;
    bool middle = floats || cut || s->model->int8.row_scaled_middle;
    b->gate = ST_TAKE(a, float, gates ? n *n_ffn : 0);
    b->up = ST_TAKE(a, float, middle ? n *n_ffn : 0);
    if (!c->n_experts) return;
    b->route = ST_TAKE(a, float, n * c->n_experts);
    b->expert_in = ST_TAKE(a, float, n * c->hidden);
    b->expert_out = ST_TAKE(a, float, n * c->hidden);
    b->expert_tokens = ST_TAKE(a, int32_t, n);
    b->shared_gate = ST_TAKE(a, float, n);
}

// Inputs as the linears' kernels take them.
static void lay_out_inputs(struct stint_session *s, size_t n, struct st_arena *a,
                           struct st_chunk_buffers *b) {
    if (s->model->int8.layers) s->quantized_bytes = st_int8_lay_out(s, b, a);
    if (s->model->nested.high) st_nested_lay_out(s, b, a);
    if (s->model->fast) st_blocks_lay_out(widest_input(s), b, a);
    st_shadow_lay_out(&b->shadow, s->model, n, a);
    b->packed = ST_TAKE(a, float, st_linear_packed_floats(s->kernels.tile, n, widest_input(s)));
}

void st_buffers_lay_out(struct stint_session *s, struct st_arena *a, struct st_chunk_buffers *b) {
    const struct st_config *c = &s->model->config;
    size_t n = s->chunk_len, wide = st_max(c->hidden, c->embed);
    b->x = ST_TAKE(a, float, n * c->hidden);
    b->normed = ST_TAKE(a, float, n *wide);
    b->projected = ST_TAKE(a, float, n *wide);
    lay_out_mixer(s, n, a, b);
    lay_out_layer_inputs(s, n, a, b);
    lay_out_ffn(s, n, a, b);
    lay_out_inputs(s, n, a, b);
}

enum { MAX_PARTS = 4 }; // of what is taken as one: numbers, scales, sums

static bool may_lend(const struct stint_session *s) {
    const struct stint_model *m = s->model;
    return m->checkpoint.lazy && !s->own_buffers && !m->neurons.layers &&
           m->config.n_streams == 0 && s->chunk_len > STINT_MAX_STEP_ROWS;
}

size_t st_buffers_lent(struct stint_session *s) {
    size_t chunk_len = s->chunk_len, quantized = s->quantized_bytes,
           page = (size_t)sysconf(_SC_PAGESIZE);
    struct st_chunk_buffers buffers = {0};
    struct st_arena chunk = st_arena_measure(), step = st_arena_measure();
    if (!may_lend(s)) return 0;
    st_buffers_lay_out(s, &chunk, &buffers);
    s->chunk_len = STINT_MAX_STEP_ROWS;
    st_buffers_lay_out(s, &step, &buffers);
    s->chunk_len = chunk_len;
    s->quantized_bytes = quantized;
    size_t of_steps = step.used + 2 * page * MAX_PARTS * step.n_taken; // it ends within pages
    return chunk.used - st_min(chunk.used, of_steps);
}
