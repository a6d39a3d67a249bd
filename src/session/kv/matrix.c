// SPDX-License-Identifier: Apache-2.0
#include "session/kv/matrix.h"

#include "base/size.h"
#include "session/kv/state_places.h"
#include "session/session.h"

#include <string.h>

// ---- Where things are

static float *matrices_of(const struct st_state_cache *state, float *all, uint32_t sequence,
                          size_t slot) {
    return all + (sequence * state->n_layers + slot) * state->matrix;
}

static bool is_first_of_group(const struct st_state_shape *shape, size_t head) {
    return shape->tiled ? head < shape->n_groups : head % (shape->n_heads / shape->n_groups) == 0;
}

// What a token added to a head's matrix, in a ring.
struct added {
    float *key, *value, *decay;
};

static struct added added_of(const struct stint_session *s, uint32_t sequence, size_t slot,
                             size_t head, size_t position) {
    const struct st_state_shape *shape = &s->model->config.state;
    const struct st_state_cache *state = &s->kv.state;
    float *row = st_state_ring_row(state, sequence, slot, position) + state->inputs;
    float *values = row + (size_t)shape->n_groups * shape->n_keys;
    return (struct added){.key = row + st_state_group(shape, head) * shape->n_keys,
                          .value = values + head * shape->n_values,
                          .decay = values + (size_t)shape->n_heads * shape->n_values + head};
}

// ---- Adding again

// Takes a head's matrix of length `from` to length `to`.
static void add_again(const struct stint_session *s, uint32_t sequence, size_t slot, size_t head,
                      size_t from, size_t to, float *matrix) {
    const struct st_state_shape *shape = &s->model->config.state;
    size_t row = s->kv.state.row;
    for (size_t n; from < to; from += n) {
        struct added a = added_of(s, sequence, slot, head, from);
        n = st_min(to - from, ST_STATE_RECENT - from % ST_STATE_RECENT);
        struct st_recurrence_run run = {.n_tokens = n,
                                        .n_keys = shape->n_keys,
                                        .n_values = shape->n_values,
                                        .state = matrix,
                                        .keys = a.key,
                                        .key_row = row,
                                        .values = a.value,
                                        .value_row = row,
                                        .decays = a.decay,
                                        .gate_row = row};
        s->kernels.recurrence->run(&run);
    }
}

struct job {
    const struct stint_session *s;
    uint32_t sequence;
    size_t from, to; // lengths
    float *matrices; // [sequences, n_layers, matrix] that are taken from one to the other
    bool from_base;  // they are the bases' first
};

static void take_head(void *context, size_t item, size_t worker) {
    const struct job *j = context;
    const struct st_state_cache *state = &j->s->kv.state;
    size_t n_heads = j->s->model->config.state.n_heads, head = item % n_heads;
    size_t slot = item / n_heads, at = head * state->head;
    float *matrix = matrices_of(state, j->matrices, j->sequence, slot) + at;
    (void)worker;
    if (j->from_base)
        memcpy(matrix, matrices_of(state, state->base, j->sequence, slot) + at,
               state->head * sizeof *matrix);
    add_again(j->s, j->sequence, slot, head, j->from, j->to, matrix);
}

static void take(const struct job *j) {
    size_t n_heads = j->s->model->config.state.n_heads;
    st_pool_run(j->s->group.pool, take_head, (void *)(uintptr_t)j,
                j->s->kv.state.n_layers * n_heads);
}

// ---- Lengths

bool st_matrix_is_held(const struct st_state_cache *state, const struct st_state_text *text,
                       size_t length) {
    return state->matrix == 0 || text->live == length ||
           (text->base != ST_STATE_NONE && text->base <= length);
}

void st_matrix_read(const struct stint_session *s, uint32_t sequence, size_t slot, size_t length,
                    float *to) {
    const struct st_state_cache *state = &s->kv.state;
    const struct st_state_text *text = &state->texts[sequence];
    bool live = text->live == length;
    if (state->matrix == 0) return;
    memcpy(to, matrices_of(state, live ? state->live : state->base, sequence, slot),
           state->matrix * sizeof *to);
    for (size_t head = 0; head < s->model->config.state.n_heads && !live; head++)
        add_again(s, sequence, slot, head, text->base, length, to + head * state->head);
}

void st_matrix_write(struct stint_session *s, uint32_t sequence, size_t slot, size_t length,
                     const float *from) {
    struct st_state_cache *state = &s->kv.state;
    size_t bytes = state->matrix * sizeof *from;
    if (state->matrix == 0) return;
    memcpy(matrices_of(state, state->live, sequence, slot), from, bytes);
    memcpy(matrices_of(state, state->base, sequence, slot), from, bytes);
    state->texts[sequence].live = state->texts[sequence].base = length;
}

// ---- Batches

static void begin_text(struct stint_session *s, uint32_t sequence) {
    struct st_state_cache *state = &s->kv.state;
    size_t bytes = state->n_layers * state->matrix * sizeof(float);
    memset(matrices_of(state, state->live, sequence, 0), 0, bytes);
    memset(matrices_of(state, state->base, sequence, 0), 0, bytes);
    state->texts[sequence].live = state->texts[sequence].base = 0;
}

void st_matrix_begin(struct stint_session *s, const struct st_state_batch *b) {
    struct st_state_cache *state = &s->kv.state;
    struct st_state_text *text = &state->texts[b->sequence];
    size_t end = b->position + b->n, oldest = end > ST_STATE_RECENT ? end - ST_STATE_RECENT : 0;
    if (state->matrix == 0) return;
    state->rebase = ST_STATE_NONE;
    if (b->position == 0) begin_text(s, b->sequence);
    if (text->live != b->position)
        take(&(struct job){s, b->sequence, text->base, b->position, state->live, true});
    text->live = ST_STATE_NONE; // until all layers are there
    if (oldest > b->position) {
        state->rebase = oldest;
        text->base = ST_STATE_NONE;
    } else if (text->base < oldest) {
        size_t to = st_min(b->position, end - ST_STATE_RECENT / 2);
        take(&(struct job){s, b->sequence, text->base, to, state->base, false});
        text->base = to;
    }
}

void st_matrix_end(struct stint_session *s, const struct st_state_batch *b) {
    struct st_state_cache *state = &s->kv.state;
    struct st_state_text *text = &state->texts[b->sequence];
    text->live = b->position + b->n;
    if (state->rebase != ST_STATE_NONE) text->base = state->rebase;
}

// ---- Within a layer

static void advance(const struct stint_session *s, float *matrix,
                    const struct st_recurrence_run *tokens, size_t first, size_t n) {
    struct st_recurrence_run run = *tokens;
    run.n_tokens = n;
    run.state = matrix;
    run.queries += first * run.key_row;
    run.keys += first * run.key_row;
    run.values += first * run.value_row;
    run.decays += first * run.gate_row;
    if (run.rates) run.rates += first * run.gate_row;
    run.out += first * run.out_row;
    s->kernels.recurrence->run(&run);
}

// Notes what a token added.
static void keep(const struct stint_session *s, struct st_place place, size_t slot, size_t head,
                 const struct st_recurrence_run *tokens, size_t i) {
    const struct st_state_shape *shape = &s->model->config.state;
    struct added a = added_of(s, place.sequence, slot, head, place.position);
    if (is_first_of_group(shape, head))
        memcpy(a.key, tokens->keys + i * tokens->key_row, shape->n_keys * sizeof(float));
    memcpy(a.value, tokens->values + i * tokens->value_row, shape->n_values * sizeof(float));
    *a.decay = tokens->decays[i * tokens->gate_row];
}

// n tokens of one sequence that follow each other, through a head.
static void pass(const struct st_run *r, size_t t, size_t n, size_t head,
                 const struct st_recurrence_run *tokens) {
    const struct stint_session *s = r->s;
    const struct st_state_cache *state = &s->kv.state;
    struct st_place place = st_batch_place(r->batch, t);
    size_t slot = st_state_slot(r), at = head * state->head, bytes = state->head * sizeof(float);
    float *live = matrices_of(state, state->live, place.sequence, slot) + at;
    bool prompt = r->phase == ST_PHASE_PREFILL;
    size_t first = 0;
    if (prompt && state->rebase >= place.position && state->rebase < place.position + n) {
        first = state->rebase - place.position;
        advance(s, live, tokens, 0, first);
        memcpy(matrices_of(state, state->base, place.sequence, slot) + at, live, bytes);
    }
    advance(s, live, tokens, first, n - first);
    for (size_t i = 0; i < n; i++, place.position++)
        if (!prompt || place.position + ST_STATE_RECENT >= state->end)
            keep(s, place, slot, head, tokens, i);
    float *border = t + n == r->batch->n ? st_state_border_matrices(r) : NULL;
    if (border) memcpy(border + at, live, bytes);
}

struct passing {
    const struct st_run *run;
    st_state_tokens_fn *tokens_of;
};

static void pass_prompt(void *context, size_t head, size_t worker) {
    const struct passing *p = context;
    struct st_recurrence_run tokens = p->tokens_of(p->run, 0, head);
    (void)worker;
    pass(p->run, 0, p->run->batch->n, head, &tokens);
}

// Rows of a sequence go one after another: the first of them takes the others along.
static void pass_step(void *context, size_t item, size_t worker) {
    const struct passing *p = context;
    const struct st_batch *b = p->run->batch;
    size_t n_heads = p->run->s->model->config.state.n_heads;
    size_t head = item % n_heads, first = item / n_heads;
    uint32_t sequence = st_batch_place(b, first).sequence;
    (void)worker;
    for (size_t t = 0; t < first; t++)
        if (st_batch_place(b, t).sequence == sequence) return;
    for (size_t t = first; t < b->n; t++) {
        if (st_batch_place(b, t).sequence != sequence) continue;
        struct st_recurrence_run tokens = p->tokens_of(p->run, t, head);
        pass(p->run, t, 1, head, &tokens);
    }
}

void st_state_pass(const struct st_run *r, st_state_tokens_fn *tokens_of) {
    struct passing passing = {r, tokens_of};
    size_t n_heads = r->s->model->config.state.n_heads;
    if (r->phase == ST_PHASE_PREFILL)
        st_pool_run(r->group->pool, pass_prompt, &passing, n_heads);
    else
        st_pool_run(r->group->pool, pass_step, &passing, r->batch->n * n_heads);
}
