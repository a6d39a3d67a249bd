// SPDX-License-Identifier: Apache-2.0
#include "session/step/step_program.h"

#include "session/linear/op.h"

#include <stdlib.h>
#include <string.h>

enum { OPS_OF_LAYER = 10 };

// ---- Which models

static const struct st_stored_slot *slots_of(const struct stint_session *s, enum st_int8_role role,
                                             uint32_t layer) {
    return st_stored_slots(s, &(struct st_linear_id){role, layer, 0});
}

// All linears of a unit are the device's, and nothing is left to the host.
static bool has_unit(const struct stint_session *s, enum st_int8_role role, uint32_t layer,
                     size_t n) {
    const struct st_stored_slot *slots = slots_of(s, role, layer);
    for (size_t i = 0; i < n; i++) {
        const struct st_linear_weight *w = slots[i].weight;
        if (!w || !slots[i].stored || slots[i].form != ST_STORED_NESTED ||
            w->nested->outlier_rows || w->scale != 0.0f || (w->bias && role != ST_INT8_QKV))
            return false;
    }
    return true;
}

static bool layer_is_plain(const struct stint_session *s, uint32_t i) {
    const struct st_config *c = &s->model->config;
    const struct st_layer *l = &s->model->weights.layers[i];
    const bool plain = c->form[i] == ST_FORM_ATTENTION && !c->joined[i] && !c->cache_back[i] &&
                       !c->keys_as_values[i] && st_config_blocks(c, i) == 1 && !c->cut[i];
    const bool norms = l->attn_norm.weight && l->ffn_norm.weight && !l->post_attn_norm.weight &&
                       !l->post_ffn_norm.weight && !l->v_norm.weight && !l->mixed_norm.weight &&
                       !l->q_norm.whole && !l->k_norm.whole;
    return plain && norms && !l->sinks && !l->scale && !l->ffn[0].norm &&
           has_unit(s, ST_INT8_QKV, i, 3) && has_unit(s, ST_INT8_O, i, 1) &&
           has_unit(s, ST_INT8_UP, i, 2) && has_unit(s, ST_INT8_DOWN, i, 1);
}

bool st_step_is_plain(const struct stint_session *s) {
    const struct st_config *c = &s->model->config;
    const unsigned without = ST_ARCH_GATED_ATTENTION | ST_ARCH_SINKS | ST_ARCH_VALUE_NORM;
    if (s->bounded || s->kv.layerwise || st_kv_mixes_keys(&s->kv) || s->model->neurons.layers ||
        st_key_bias_dims(s->model, s->kv.type) || s->stored.shares)
        return false;
    if (c->block != ST_BLOCK_PRE || c->norm != ST_NORM_RMS || c->residual_scale != 1.0f ||
        c->n_streams || c->latent.rank || c->layer_input || c->n_experts || c->qk_layernorm ||
        c->rope.query_growth > 0.0 || c->flags & without || !(c->flags & ST_ARCH_GATED))
        return false;
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const struct st_device_attention shape = st_kv_attention_shape(s, i);
        if (!layer_is_plain(s, i) || !st_device_attends_steps(s->stored.device, &shape))
            return false;
    }
    return true;
}

static bool has_head(const struct stint_session *s) {
    const struct st_weights *w = &s->model->weights;
    return w->final_norm.weight && !w->project_out.data && has_unit(s, ST_INT8_HEAD, 0, 1) &&
           w->head.n_out == s->model->config.vocab;
}

// ---- Places

static size_t take(size_t *bytes, size_t n) {
    size_t at = *bytes;
    *bytes = st_round_up(at + n, ST_DEVICE_ALIGNMENT);
    return at;
}

static size_t take_floats(size_t *bytes, size_t n) {
    return take(bytes, n * sizeof(float));
}

static void lay_out_layer(const struct stint_session *s, uint32_t i, struct st_step_layer *l,
                          size_t *bytes) {
    const struct st_config *c = &s->model->config;
    const struct st_heads heads = st_config_heads(c, i);
    const size_t n[3] = {c->n_heads * heads.dim, heads.n_kv * heads.dim, heads.n_kv * heads.dim};
    for (int k = 0; k < 2; k++) l->norm[k] = take_floats(bytes, c->hidden);
    for (int k = 0; k < 3; k++) l->bias[k] = take_floats(bytes, n[k]);
    for (int k = 0; k < 2; k++) l->qk_norm[k] = take_floats(bytes, n[k]);
}

static void lay_out_in(const struct stint_session *s, struct st_step_layout *l, size_t *bytes) {
    const struct st_config *c = &s->model->config;
    const size_t half = st_config_widest_heads(c).rope_dims / 2;
    l->in_begin = *bytes;
    l->place = take(bytes, sizeof(struct st_program_place));
    l->x = take_floats(bytes, c->hidden);
    for (int i = 0; i < 2; i++) {
        l->cosine[i] = take_floats(bytes, half);
        l->sine[i] = take_floats(bytes, half);
    }
    l->in_end = *bytes;
}

static void lay_out_work(const struct stint_session *s, struct st_step_layout *l, size_t *bytes) {
    const struct st_config *c = &s->model->config;
    const struct st_mixer_widths widths = st_config_widest_mixer(c);
    const size_t ffn = st_config_widest_ffn(c);
    const size_t widest = st_max(st_max(c->hidden, widths.out), ffn);
    for (int i = 0; i < 2; i++) l->sum[i] = take_floats(bytes, c->hidden);
    l->input = take(bytes, st_stored_input_bytes(ST_STORED_NESTED, widest, 1, ST_TWO_TERMS));
    l->q = take_floats(bytes, widths.q);
    l->k = take_floats(bytes, widths.k);
    l->v = take_floats(bytes, widths.v);
    l->attended = take_floats(bytes, widths.out);
    l->projected = take_floats(bytes, c->hidden);
    l->gate = take_floats(bytes, ffn);
    l->up = take_floats(bytes, ffn);
    l->scores = take_floats(bytes, c->n_heads * s->kv.positions);
}

void st_step_lay_out(const struct stint_session *s, struct st_step_layout *l) {
    const struct st_config *c = &s->model->config;
    size_t bytes = 0;
    *l = (struct st_step_layout){.layers = l->layers, .head = has_head(s)};
    for (uint32_t i = 0; i < c->n_layers; i++) lay_out_layer(s, i, &l->layers[i], &bytes);
    l->final_norm = take_floats(&bytes, c->hidden);
    lay_out_in(s, l, &bytes);
    lay_out_work(s, l, &bytes);
    l->out_begin = bytes;
    for (uint32_t i = 0; i < c->n_layers; i++)
        l->layers[i].rows = take(&bytes, 2 * s->kv.layers[i].n_heads * s->kv.layers[i].row_bytes);
    l->out_x = take_floats(&bytes, c->hidden);
    l->logits = bytes;
    if (l->head) take_floats(&bytes, c->vocab);
    l->out_end = bytes;
}

static void put(unsigned char *to, const float *from, size_t n) {
    if (from) memcpy(to, from, n * sizeof *from);
}

void st_step_fill(const struct stint_session *s, const struct st_step_layout *layout,
                  unsigned char *memory) {
    const struct st_config *c = &s->model->config;
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const struct st_layer *l = &s->model->weights.layers[i];
        const struct st_step_layer *at = &layout->layers[i];
        const struct st_heads heads = st_config_heads(c, i);
        const size_t q = c->n_heads * heads.dim, k = heads.n_kv * heads.dim;
        put(memory + at->norm[0], l->attn_norm.weight, c->hidden);
        put(memory + at->norm[1], l->ffn_norm.weight, c->hidden);
        put(memory + at->bias[0], l->q.bias, q);
        put(memory + at->bias[1], l->k.bias, k);
        put(memory + at->bias[2], l->v.bias, k);
        put(memory + at->qk_norm[0], l->q_norm.weight, l->q_norm.per_head ? q : heads.dim);
        put(memory + at->qk_norm[1], l->k_norm.weight, l->k_norm.per_head ? k : heads.dim);
    }
    put(memory + layout->final_norm, s->model->weights.final_norm.weight, c->hidden);
}

// ---- Operations

struct builder {
    const struct stint_session *s;
    const struct st_step_layout *l;
    struct st_buffer *memory, *cache;
    unsigned bits;
    struct st_program_op *ops;
    size_t n;
    struct st_slice x; // the hidden state without the last sum
    int next;          // of layout->sum
};

static struct st_slice at(const struct builder *b, size_t offset) {
    return (struct st_slice){.buffer = b->memory, .offset = offset};
}

static struct st_slice if_there(const struct builder *b, const void *there, size_t offset) {
    return (struct st_slice){.buffer = there ? b->memory : NULL, .offset = offset};
}

static size_t terms_of(const struct builder *b, const struct st_stored_slot *slots, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (slots[i].weight->nested->bits[b->bits] > ST_ONE_TERM_BITS) return ST_TWO_TERMS;
    return 1;
}

static void add(struct builder *b, enum st_program_kind kind, struct st_program_quantize quantize) {
    b->ops[b->n++] = (struct st_program_op){.kind = kind, .quantize = quantize};
}

// A unit's linears: the input, quantized, and the products.
static void add_unit(struct builder *b, enum st_int8_role role, uint32_t layer, size_t n,
                     struct st_program_quantize input, const struct st_slice *y) {
    const struct st_stored_slot *slots = slots_of(b->s, role, layer);
    struct st_program_multiply m = {.x = at(b, b->l->input), .n_parts = n};
    input.terms = m.terms = terms_of(b, slots, n);
    input.n = slots[0].weight->n_in;
    input.to = m.x;
    input.epsilon = b->s->model->config.norm_epsilon;
    input.act = b->s->model->config.act;
    for (size_t i = 0; i < n; i++) {
        m.stored[i] = slots[i].stored;
        m.bits[i] = slots[i].weight->nested->bits[b->bits];
        m.y[i] = y[i];
    }
    add(b, ST_PROGRAM_QUANTIZE, input);
    b->ops[b->n++] = (struct st_program_op){.kind = ST_PROGRAM_MULTIPLY, .multiply = m};
}

// The hidden state with what the last unit has added, through a norm.
static struct st_program_quantize normed(struct builder *b, bool first, struct st_slice norm) {
    struct st_program_quantize q = {.x = b->x, .norm = norm};
    if (first) return q;
    q.add = at(b, b->l->projected);
    q.sum = at(b, b->l->sum[b->next]);
    b->x = q.sum;
    b->next = 1 - b->next;
    return q;
}

static struct st_slice cache(const struct builder *b, unsigned char *cache, uint32_t layer) {
    const struct st_kv_cache *kv = &b->s->kv;
    const unsigned char *first = st_kv_row(kv, cache, 0, layer, 0, 0);
    return (struct st_slice){b->cache, (size_t)(first - (const unsigned char *)kv->arena.base),
                             kv->stretch * kv->layers[layer].row_bytes};
}

static void add_attention(struct builder *b, uint32_t i) {
    const struct st_config *c = &b->s->model->config;
    const struct st_layer *w = &b->s->model->weights.layers[i];
    const struct st_step_layer *l = &b->l->layers[i];
    const int local = c->sliding[i];
    const struct st_program_rotate rotate = {
        .shape = st_kv_attention_shape(b->s, i),
        .q = at(b, b->l->q),
        .k = at(b, b->l->k),
        .v = at(b, b->l->v),
        .bias = {if_there(b, w->q.bias, l->bias[0]), if_there(b, w->k.bias, l->bias[1]),
                 if_there(b, w->v.bias, l->bias[2])},
        .norm = {if_there(b, w->q_norm.weight, l->qk_norm[0]),
                 if_there(b, w->k_norm.weight, l->qk_norm[1])},
        .per_head = {w->q_norm.per_head, w->k_norm.per_head},
        .epsilon = c->norm_epsilon,
        .place = at(b, b->l->place),
        .cosine = at(b, b->l->cosine[local]),
        .sine = at(b, b->l->sine[local]),
        .rope_dims = c->unrotated[i] ? 0 : st_config_heads(c, i).rope_dims,
        .interleaved = c->rope_interleaved,
        .keys = cache(b, b->s->kv.keys, i),
        .values = cache(b, b->s->kv.values, i),
        .rows = at(b, l->rows)};
    struct st_program_attend attend = {.shape = rotate.shape,
                                       .q = rotate.q,
                                       .out = at(b, b->l->attended),
                                       .place = rotate.place,
                                       .keys = rotate.keys,
                                       .values = rotate.values,
                                       .scores = at(b, b->l->scores)};
    attend.scores.row_bytes = b->s->kv.positions * sizeof(float);
    b->ops[b->n++] = (struct st_program_op){.kind = ST_PROGRAM_ROTATE, .rotate = rotate};
    b->ops[b->n++] = (struct st_program_op){.kind = ST_PROGRAM_ATTEND, .attend = attend};
}

static void add_layer(struct builder *b, uint32_t i) {
    const struct st_step_layout *l = b->l;
    const struct st_slice qkv[] = {at(b, l->q), at(b, l->k), at(b, l->v)};
    const struct st_slice up[] = {at(b, l->up), at(b, l->gate)};
    const struct st_slice projected = at(b, l->projected);
    const struct st_slice norms[] = {at(b, l->layers[i].norm[0]), at(b, l->layers[i].norm[1])};
    add_unit(b, ST_INT8_QKV, i, 3, normed(b, i == 0, norms[0]), qkv);
    add_attention(b, i);
    add_unit(b, ST_INT8_O, i, 1, (struct st_program_quantize){.x = at(b, l->attended)}, &projected);
    add_unit(b, ST_INT8_UP, i, 2, normed(b, false, norms[1]), up);
    add_unit(b, ST_INT8_DOWN, i, 1, (struct st_program_quantize){.x = up[1], .up = up[0]},
             &projected);
}

// The last hidden state goes to the host, and into the head where that is the device's.
static void add_end(struct builder *b) {
    const struct st_step_layout *l = b->l;
    const struct st_slice logits = at(b, l->logits);
    struct st_program_quantize q =
        normed(b, false, if_there(b, b->s->model->weights.final_norm.weight, l->final_norm));
    q.sum = at(b, l->out_x);
    if (l->head) {
        add_unit(b, ST_INT8_HEAD, 0, 1, q, &logits);
        return;
    }
    q.norm.buffer = NULL;
    q.n = b->s->model->config.hidden;
    q.terms = 1;
    q.to = at(b, l->input);
    add(b, ST_PROGRAM_QUANTIZE, q);
}

stint_status st_step_options(const struct stint_session *s, const struct st_step_layout *layout,
                             unsigned bits, struct st_program_options *options) {
    const uint32_t n_layers = s->model->config.n_layers;
    struct builder b = {.s = s,
                        .l = layout,
                        .memory = options->memory,
                        .cache = options->cache,
                        .bits = bits,
                        .ops = calloc((size_t)n_layers * OPS_OF_LAYER + 2, sizeof *b.ops)};
    if (!b.ops) return st_fail(STINT_E_NOMEM, "no memory for a step's program");
    b.x = at(&b, layout->x);
    for (uint32_t i = 0; i < n_layers; i++) add_layer(&b, i);
    add_end(&b);
    options->ops = b.ops;
    options->n_ops = b.n;
    options->positions = s->kv.positions;
    options->caches = (s->n_sequences - 1) * s->kv.sequence_bytes;
    return STINT_OK;
}
