// SPDX-License-Identifier: Apache-2.0
#include "session/ahead.h"

#include "base/size.h"
#include "session/linear/op.h"
#include "session/pass.h"

#include <string.h>

bool st_ahead_applies(const struct stint_session *s) {
    const struct stint_model *m = s->model;
    return s->drafting.n && m->weights.ahead.join.data && !m->checkpoint.lazy && !s->split.on &&
           !s->kv.layerwise && st_key_bias_dims(m, s->kv.type) == 0;
}

void st_ahead_lay_out(struct stint_session *s, struct st_arena *arena) {
    size_t hidden = s->model->config.hidden;
    if (!s->ahead.on) return;
    s->ahead.hidden = ST_TAKE(arena, float, STINT_MAX_STEP_ROWS *hidden);
    s->ahead.chunk = ST_TAKE(arena, float, s->chunk_len *hidden);
    s->ahead.joined = ST_TAKE(arena, float, 2 * st_max(STINT_MAX_STEP_ROWS, s->chunk_len) * hidden);
    s->ahead.texts = ST_TAKE(arena, struct st_ahead_text, s->n_sequences);
    for (uint32_t i = 0; i < s->n_sequences; i++) {
        struct st_ahead_text text = {.rows = ST_TAKE(arena, float, ST_AHEAD_ROWS *hidden),
                                     .chain = ST_TAKE(arena, float, hidden)};
        if (s->ahead.texts) s->ahead.texts[i] = text;
    }
}

// ---- Pairs through the layer

// Of hidden states [n, hidden] and the tokens that follow, at the batch's positions. What the layer
// gives is left in the buffers' x.
static stint_status forward(const struct st_run *run, const float *states, const int32_t *next) {
    struct stint_session *s = run->s;
    const struct st_ahead_weight *w = &s->model->weights.ahead;
    struct st_chunk_buffers *b = run->buffers;
    size_t n = run->batch->n, hidden = s->model->config.hidden, bytes = hidden * sizeof(float);
    struct st_run r = *run;
    uint32_t n_events = s->timeline.n;
    ST_TRY(st_pass_embed(&r, next, 0));
    for (int half = 0; half < 2; half++) {
        st_pass_norm(&r, half ? &w->hidden_norm : &w->embed_norm, half ? states : b->x, n,
                     b->normed);
        for (size_t t = 0; t < n; t++)
            memcpy(s->ahead.joined + (2 * t + (size_t)half) * hidden, b->normed + t * hidden,
                   bytes);
    }
    ST_TRY(st_lone_linear(&r, s->ahead.joined, n, &w->join, b->x));
    r.layer = s->model->config.n_layers;
    s->timeline.n = s->max_events; // what is recorded is the model's own
    stint_status status = st_pass_layer(&r);
    s->timeline.n = n_events;
    return status;
}

// Of a sequence, those whose hidden states are here and whose tokens are held.
static stint_status catch_up(struct stint_session *s, uint32_t sequence, size_t end) {
    struct st_ahead_text *text = &s->ahead.texts[sequence];
    const struct st_sequence *held = &s->sequences[sequence];
    size_t hidden = s->model->config.hidden, most = st_min(STINT_MAX_STEP_ROWS, s->chunk_len);
    struct st_place places[STINT_MAX_STEP_ROWS];
    size_t at = st_max(text->filled, text->from);
    for (size_t n; at < st_min(end, text->from + text->n); at += n) {
        n = st_min(most, st_min(end, text->from + text->n) - at);
        struct st_batch batch = {.n = n, .places = places};
        struct st_run run = st_session_run(s, ST_PHASE_DECODE, 0, &batch);
        for (size_t i = 0; i < n; i++) places[i] = (struct st_place){sequence, at + i};
        ST_TRY(forward(&run, text->rows + (at - text->from) * hidden, held->history + at + 1));
        text->filled = at + n;
        text->next = held->history[at + n];
    }
    return STINT_OK;
}

// ---- Hidden states

// Forgets what belongs to another end of a text, which goes on with `id` at a position.
static void rewind_to(struct st_ahead_text *text, size_t position, int32_t id) {
    if (text->from + text->n > position)
        text->n = position > text->from ? position - text->from : 0;
    if (text->from + text->n != position) {
        text->from = position;
        text->n = 0;
    }
    bool same = text->filled == position && text->next == id;
    if (!same) text->filled = st_min(text->filled, position > 0 ? position - 1 : 0);
}

void st_ahead_keep(struct stint_session *s, uint32_t sequence, size_t position, int32_t id,
                   const float *x) {
    struct st_ahead_text *text = &s->ahead.texts[sequence];
    size_t hidden = s->model->config.hidden;
    rewind_to(text, position, id);
    if (text->n == ST_AHEAD_ROWS) {
        text->n--;
        text->from++;
        memmove(text->rows, text->rows + hidden, text->n * hidden * sizeof(float));
    }
    memcpy(text->rows + text->n++ * hidden, x, hidden * sizeof(float));
}

stint_status st_ahead_prompt(const struct st_run *run, const struct st_eval_request *e, size_t done,
                             size_t n) {
    struct stint_session *s = run->s;
    struct st_ahead_text *text = &s->ahead.texts[e->sequence];
    size_t position = s->sequences[e->sequence].length - n, hidden = s->model->config.hidden;
    size_t n_pairs = done + n < e->n ? n : n - 1; // whose tokens are here
    struct st_batch batch = {
        .n = n_pairs, .position = position, .n_total = e->n_total, .sequence = e->sequence};
    struct st_run r = *run;
    r.batch = &batch;
    memcpy(s->ahead.chunk, run->buffers->x, n * hidden * sizeof(float));
    rewind_to(text, position, e->ids[done]);
    ST_TRY(catch_up(s, e->sequence, position));
    if (n_pairs > 0) {
        ST_TRY(forward(&r, s->ahead.chunk, e->ids + done + 1));
        text->filled = position + n_pairs;
        text->next = e->ids[done + n_pairs];
    }
    for (size_t t = n_pairs; t < n; t++)
        st_ahead_keep(s, e->sequence, position + t, e->ids[done + t], s->ahead.chunk + t * hidden);
    return STINT_OK;
}

// ---- Drafts

bool st_ahead_is_ready(const struct stint_session *s, uint32_t sequence) {
    const struct st_ahead_text *text = &s->ahead.texts[sequence];
    size_t length = s->sequences[sequence].length; // drafts behind it may have been rejected
    return text->from < length && length <= text->from + text->n;
}

// The hidden states that the pairs of a step begin with.
static stint_status gather(struct stint_session *s, const uint32_t *sequences, size_t n,
                           bool first) {
    size_t hidden = s->model->config.hidden;
    for (size_t i = 0; i < n; i++) {
        struct st_ahead_text *text = &s->ahead.texts[sequences[i]];
        size_t length = s->sequences[sequences[i]].length;
        if (first) ST_TRY(catch_up(s, sequences[i], length - 1));
        memcpy(s->ahead.hidden + i * hidden,
               first ? text->rows + (length - 1 - text->from) * hidden : text->chain,
               hidden * sizeof(float));
    }
    return STINT_OK;
}

static void append(struct stint_session *s, const struct st_run *run, const int32_t *ids,
                   bool first) {
    size_t hidden = s->model->config.hidden;
    for (size_t i = 0; i < run->batch->n; i++) {
        struct st_place place = run->batch->places[i];
        struct st_ahead_text *text = &s->ahead.texts[place.sequence];
        struct st_sequence *held = &s->sequences[place.sequence];
        memcpy(text->chain, run->buffers->x + i * hidden, hidden * sizeof(float));
        held->history[held->length++] = ids[i];
        if (!first) continue; // a guess follows a guess: it is computed again
        text->filled = place.position + 1;
        text->next = ids[i];
    }
}

stint_status st_ahead_step(struct stint_session *s, const uint32_t *sequences, const int32_t *ids,
                           size_t n, bool first, float *logits) {
    const struct st_norm_weight *norm = &s->model->weights.ahead.norm;
    struct st_place places[STINT_MAX_STEP_ROWS];
    struct st_batch batch = {.n = n, .places = places};
    struct st_run run = st_session_run(s, ST_PHASE_DECODE, 0, &batch);
    ST_TRY(gather(s, sequences, n, first));
    for (size_t i = 0; i < n; i++) {
        places[i] = (struct st_place){sequences[i], s->sequences[sequences[i]].length - 1};
        st_session_reach(s, sequences[i], places[i].position + 1);
    }
    ST_TRY(forward(&run, s->ahead.hidden, ids));
    append(s, &run, ids, first);
    st_pass_norm(&run, norm, run.buffers->x, n, run.buffers->normed);
    return st_pass_head(&run, run.buffers->normed, n, logits);
}
