// SPDX-License-Identifier: Apache-2.0
#include "session/kv/state.h"

#include "base/size.h"
#include "session/kv/matrix.h"
#include "session/kv/state_places.h"
#include "session/session.h"

#include <string.h>

// ---- Sizes

// With the shortest chunk that measuring may choose.
static size_t max_borders(const struct stint_session *s) {
    return s->split.on ? st_session_max_chunks(s) + 1 : s->n_context / s->kv.state.stride_min + 1;
}

static void set_sizes(struct stint_session *s) {
    struct st_state_cache *state = &s->kv.state;
    const struct st_config *c = &s->model->config;
    const struct st_state_shape *shape = &c->state;
    size_t stretch = st_ceil_div(s->n_context, ST_STATE_MATRICES);
    state->n_layers = s->kv.layerwise ? 1 : st_config_n_recurrent(c);
    state->inputs = st_config_conv_width(c);
    state->row = state->inputs;
    state->n_before = c->conv_length - 1;
    state->stride_min = ST_STATE_STRIDE;
    if (shape->n_heads) {
        state->head = st_state_floats(shape->n_keys, shape->n_values);
        state->matrix = shape->n_heads * state->head;
        state->row += (size_t)shape->n_groups * shape->n_keys +
                      (size_t)shape->n_heads * (shape->n_values + 1u);
        state->stride_min = st_max(ST_STATE_STRIDE, stretch);
    }
    state->floats = state->n_before * state->inputs + state->matrix;
    state->n_borders = max_borders(s);
}

void st_state_lay_out(struct stint_session *s, struct st_arena *arena) {
    struct st_state_cache *state = &s->kv.state;
    if (st_config_n_recurrent(&s->model->config) == 0) return;
    set_sizes(s);
    size_t inputs = state->n_before * state->inputs, all = s->n_sequences * state->n_layers;
    size_t floats = ST_STATE_RECENT * state->row + state->n_borders * state->floats + inputs +
                    2 * state->matrix; // of a layer
    state->text_bytes =
        state->n_layers * floats * sizeof(float) + state->n_borders * sizeof(size_t) + s->n_context;
    state->recent = st_arena_take(arena, all * ST_STATE_RECENT, state->row * sizeof(float));
    state->borders = st_arena_take(arena, all * state->n_borders, state->floats * sizeof(float));
    state->live = st_arena_take(arena, all, state->matrix * sizeof(float));
    state->base = st_arena_take(arena, all, state->matrix * sizeof(float));
    state->begun = ST_TAKE(arena, float, state->n_layers *inputs);
    state->texts = ST_TAKE(arena, struct st_state_text, s->n_sequences);
    for (uint32_t i = 0; i < s->n_sequences; i++) {
        struct st_state_text text = {.base = ST_STATE_NONE,
                                     .live = ST_STATE_NONE,
                                     .borders = ST_TAKE(arena, size_t, state->n_borders),
                                     .ways = ST_TAKE(arena, uint8_t, s->n_context)};
        if (state->texts) state->texts[i] = text;
    }
}

// Each of its parts begins and ends within pages.
size_t st_state_touched(const struct st_state_cache *state) {
    enum { PARTS = 7, PAGE_BYTES = 4096 };
    return state->n_layers ? state->text_bytes + 2 * PARTS * PAGE_BYTES : 0;
}

// ---- Batches

// Copies the inputs before a length between the ring and another place.
static void copy_inputs(const struct stint_session *s, uint32_t sequence, size_t slot,
                        size_t length, float *place, bool to_ring) {
    const struct st_state_cache *state = &s->kv.state;
    for (size_t i = 0; i < state->n_before; i++) {
        if (length + i < state->n_before) continue; // before the text's beginning
        float *row = st_state_ring_row(state, sequence, slot, length + i - state->n_before);
        float *other = place + i * state->inputs;
        memcpy(to_ring ? row : other, to_ring ? other : row, state->inputs * sizeof(float));
    }
}

static bool rings_hold(const struct stint_session *s, const struct st_state_text *text,
                       size_t length) {
    return length <= text->to && (text->from == 0 || text->from + s->kv.state.n_before <= length) &&
           st_matrix_is_held(&s->kv.state, text, length);
}

// A border that steps have passed since.
static void keep_border(struct stint_session *s, uint32_t sequence, size_t length) {
    struct st_state_cache *state = &s->kv.state;
    struct st_state_text *text = &state->texts[sequence];
    size_t stride = st_state_stride(s), border = length / stride;
    if (border == 0 || text->borders[border] || !rings_hold(s, text, border * stride)) return;
    for (size_t slot = 0; slot < state->n_layers; slot++)
        st_state_read(s, sequence, border * stride, slot,
                      st_state_border(state, sequence, border, slot));
    text->borders[border] = border * stride;
}

void st_state_begin(struct stint_session *s, const struct st_state_batch *b) {
    struct st_state_cache *state = &s->kv.state;
    size_t end = b->position + b->n, layer = state->n_before * state->inputs;
    if (state->n_layers == 0) return;
    struct st_state_text *text = &state->texts[b->sequence];
    // Borders beyond are those of a text that was truncated.
    for (size_t i = b->position / st_state_stride(s); i < state->n_borders; i++)
        if (text->borders[i] > b->position) text->borders[i] = 0;
    keep_border(s, b->sequence, b->position);
    for (size_t slot = 0; slot < state->n_layers; slot++)
        copy_inputs(s, b->sequence, slot, b->position, state->begun + slot * layer, false);
    st_matrix_begin(s, b);
    state->first = b->position;
    state->end = end;
    if (b->position == 0) text->from = 0;
    text->from = st_max(text->from, end > ST_STATE_RECENT ? end - ST_STATE_RECENT : 0);
    text->to = b->position;
}

void st_state_end(struct stint_session *s, const struct st_state_batch *b) {
    struct st_state_cache *state = &s->kv.state;
    size_t end = b->position + b->n;
    if (state->n_layers == 0) return;
    struct st_state_text *text = &state->texts[b->sequence];
    memset(text->ways + b->position, (int)b->way, b->n);
    text->to = end;
    st_matrix_end(s, b);
    if ((b->way & ~ST_WAY_PRECISION) != ST_WAY_PROMPT) return;
    for (size_t at = b->position, n; at < end; at += n) {
        n = st_min(s->chunk_len, end - at);
        if (st_state_ends_at_border(s, at, n))
            text->borders[(at + n) / st_state_stride(s)] = at + n;
    }
}

// ---- Within a layer

const float *st_state_row(const struct st_run *r, size_t t, size_t back) {
    const struct st_state_cache *state = &r->s->kv.state;
    struct st_place place = st_batch_place(r->batch, t);
    size_t slot = st_state_slot(r), layer = state->n_before * state->inputs;
    if (place.position < back) return NULL;
    if (r->phase == ST_PHASE_DECODE)
        return st_state_ring_row(state, place.sequence, slot, place.position - back);
    const float *before = r->batch->position == state->first
                              ? state->begun + slot * layer
                              : st_state_border(state, place.sequence,
                                                r->batch->position / st_state_stride(r->s), slot);
    return before + (state->n_before + t - back) * state->inputs;
}

void st_state_keep(const struct st_run *r, size_t t, const float *inputs) {
    const struct st_state_cache *state = &r->s->kv.state;
    const struct st_batch *b = r->batch;
    struct st_place place = st_batch_place(b, t);
    size_t bytes = state->inputs * sizeof(float), slot = st_state_slot(r);
    bool prompt = r->phase == ST_PHASE_PREFILL;
    if (!prompt || place.position + ST_STATE_RECENT >= state->end)
        memcpy(st_state_ring_row(state, place.sequence, slot, place.position), inputs, bytes);
    if (!prompt || t + state->n_before < b->n || !st_state_ends_at_border(r->s, b->position, b->n))
        return;
    size_t border = (b->position + b->n) / st_state_stride(r->s);
    memcpy(st_state_border(state, place.sequence, border, slot) +
               (state->n_before + t - b->n) * state->inputs,
           inputs, bytes);
}

// ---- Sequences

bool st_state_is_current(const struct stint_session *s, uint32_t sequence) {
    size_t length = s->sequences[sequence].length;
    return s->kv.state.n_layers == 0 || length == 0 ||
           rings_hold(s, &s->kv.state.texts[sequence], length);
}

size_t st_state_restore(struct stint_session *s, uint32_t sequence) {
    struct st_state_cache *state = &s->kv.state;
    struct st_state_text *text = &state->texts[sequence];
    size_t length = s->sequences[sequence].length, i = length / st_state_stride(s);
    while (i > 0 && (text->borders[i] == 0 || text->borders[i] > length)) i--;
    size_t border = i ? text->borders[i] : 0;
    text->live = text->base = ST_STATE_NONE;
    for (size_t slot = 0; slot < state->n_layers && border; slot++) {
        float *floats = st_state_border(state, sequence, i, slot);
        copy_inputs(s, sequence, slot, border, floats, true);
        st_matrix_write(s, sequence, slot, border, st_state_matrices(state, floats));
    }
    text->from = border > state->n_before ? border - state->n_before : 0;
    text->to = border;
    return border;
}

// ---- Saved sequences

size_t st_state_held(const struct stint_session *s, uint32_t sequence, size_t i) {
    const struct st_state_text *text = &s->kv.state.texts[sequence];
    size_t length = s->sequences[sequence].length, last = 0;
    for (size_t b = 1; b <= length / st_state_stride(s); b++) {
        if (text->borders[b] == 0 || text->borders[b] > length) continue;
        if (last && text->borders[b] / ST_STATE_STRIDE == last / ST_STATE_STRIDE) continue;
        last = text->borders[b];
        if (i-- == 0) return last;
    }
    return i == 0 && last != length && rings_hold(s, text, length) ? length : 0;
}

void st_state_read(const struct stint_session *s, uint32_t sequence, size_t length, size_t slot,
                   float *to) {
    const struct st_state_cache *state = &s->kv.state;
    size_t border = length / st_state_stride(s), n = state->n_before * state->inputs;
    if (border && state->texts[sequence].borders[border] == length) {
        memcpy(to, st_state_border(state, sequence, border, slot), state->floats * sizeof *to);
        return;
    }
    memset(to, 0, n * sizeof *to);
    copy_inputs(s, sequence, slot, length, to, false);
    st_matrix_read(s, sequence, slot, length, st_state_matrices(state, to));
}

void st_state_write(struct stint_session *s, uint32_t sequence, size_t length, size_t slot,
                    const float *from) {
    struct st_state_cache *state = &s->kv.state;
    struct st_state_text *text = &state->texts[sequence];
    size_t border = length / st_state_stride(s);
    float *floats = (float *)(uintptr_t)from;
    if (length == s->sequences[sequence].length) {
        copy_inputs(s, sequence, slot, length, floats, true);
        st_matrix_write(s, sequence, slot, length, st_state_matrices(state, floats));
        text->from = length > state->n_before ? length - state->n_before : 0;
        text->to = length;
    }
    if (border == 0) return;
    memcpy(st_state_border(state, sequence, border, slot), from, state->floats * sizeof *from);
    text->borders[border] = length;
}

void st_state_reset(struct stint_session *s, uint32_t sequence, size_t length, const void *ways) {
    struct st_state_cache *state = &s->kv.state;
    struct st_state_text *text = &state->texts[sequence];
    memset(text->borders, 0, state->n_borders * sizeof *text->borders);
    memcpy(text->ways, ways, length);
    text->from = text->to = 0;
    text->live = text->base = ST_STATE_NONE;
}
