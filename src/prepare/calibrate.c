// SPDX-License-Identifier: Apache-2.0
// Layer by layer over the whole text, so that one layer's weights and one layer's KV cache are in
// memory at a time (docs/ARCHITECTURE.md).
#include "prepare/calibrate.h"

#include "base/size.h"
#include "prepare/calibration_tokens.h"

#include <math.h>
#include <string.h>

enum { BATCH_TOKENS = 256 };

static struct st_maxima take_maxima(struct st_arena *arena, size_t n) {
    return (struct st_maxima){ST_TAKE(arena, float, n), n};
}

static void lay_out(struct st_calibration *c, struct st_arena *arena) {
    const struct st_config *config = &c->model->config;
    size_t n_ffn = st_max(1, config->n_experts);
    struct st_layer_maxima *m = &c->maxima;
    c->hidden = ST_TAKE(arena, float, c->n_ids * config->hidden);
    m->qkv = take_maxima(arena, config->hidden);
    m->o = take_maxima(arena, (size_t)config->n_heads * config->head_dim);
    m->head = take_maxima(arena, config->embed);
    m->up = ST_TAKE(arena, struct st_maxima, n_ffn);
    m->down = ST_TAKE(arena, struct st_maxima, n_ffn);
    for (size_t e = 0; e < n_ffn; e++) {
        struct st_maxima up = take_maxima(arena, config->hidden);
        struct st_maxima down = take_maxima(arena, config->ffn);
        if (m->up) m->up[e] = up;
        if (m->down) m->down[e] = down;
    }
}

static struct st_maxima *maxima_of(struct st_calibration *c, enum st_int8_role role,
                                   uint32_t expert) {
    struct st_layer_maxima *m = &c->maxima;
    switch (role) {
    case ST_INT8_QKV:
        return &m->qkv;
    case ST_INT8_O:
        return &m->o;
    case ST_INT8_UP:
        return &m->up[expert];
    case ST_INT8_DOWN:
        return &m->down[expert];
    case ST_INT8_HEAD:
    case ST_INT8_ROLES:
        break;
    }
    return &m->head;
}

static void observe(void *context, enum st_int8_role role, uint32_t expert, const float *x,
                    size_t n_tokens, size_t n) {
    float *channel = maxima_of(context, role, expert)->channel;
    for (size_t t = 0; t < n_tokens; t++)
        for (size_t i = 0; i < n; i++) {
            float magnitude = fabsf(x[t * n + i]);
            // A NaN stays: nothing is above it.
            if (magnitude > channel[i] || isnan(magnitude)) channel[i] = magnitude;
        }
}

static void clear(struct st_maxima *m) {
    memset(m->channel, 0, m->n * sizeof *m->channel);
}

// The batches of all sequences, one after the other.
typedef stint_status batch_fn(struct st_calibration *c, const struct st_batch *batch, size_t first,
                              uint32_t layer);

static stint_status for_batches(struct st_calibration *c, batch_fn *fn, uint32_t layer) {
    for (size_t start = 0; start < c->n_ids; start += c->n_sequence) {
        size_t n = st_min(c->n_sequence, c->n_ids - start);
        for (size_t done = 0; done < n; done += BATCH_TOKENS) {
            struct st_batch batch = {st_min(BATCH_TOKENS, n - done), done, n};
            if (c->stop && c->stop(c->stop_context)) return st_fail(STINT_E_CANCELED, "canceled");
            ST_TRY(fn(c, &batch, start + done, layer));
        }
    }
    return STINT_OK;
}

static float *hidden_of(const struct st_calibration *c, size_t token) {
    return c->hidden + token * c->model->config.hidden;
}

static size_t row_bytes(const struct st_calibration *c) {
    return c->model->config.hidden * sizeof(float);
}

static stint_status embed(struct st_calibration *c, const struct st_batch *batch, size_t first,
                          uint32_t layer) {
    (void)layer;
    st_session_embed(c->session, c->ids + first, batch);
    memcpy(hidden_of(c, first), c->session->x, batch->n * row_bytes(c));
    return STINT_OK;
}

static stint_status run_layer(struct st_calibration *c, const struct st_batch *batch, size_t first,
                              uint32_t layer) {
    memcpy(c->session->x, hidden_of(c, first), batch->n * row_bytes(c));
    st_session_rotations(c->session, batch);
    ST_TRY(st_session_layer(c->session, layer, batch));
    memcpy(hidden_of(c, first), c->session->x, batch->n * row_bytes(c));
    return STINT_OK;
}

static stint_status run_head(struct st_calibration *c, const struct st_batch *batch, size_t first,
                             uint32_t layer) {
    (void)layer;
    const float *x = hidden_of(c, first);
    x = st_session_head_input(c->session, x, batch->n);
    observe(c, ST_INT8_HEAD, 0, x, batch->n, c->model->config.embed);
    return STINT_OK;
}

static stint_status open_in(struct st_calibration *c, uint32_t n_threads) {
    stint_session_options options = {.size = sizeof options,
                                     .n_threads = n_threads,
                                     .n_context = (uint32_t)c->n_sequence,
                                     .chunk_len = BATCH_TOKENS};
    struct st_arena measure = st_arena_measure();
    lay_out(c, &measure);
    ST_TRY(st_arena_check(&measure, "calibration"));
    ST_TRY(st_arena_open(&c->arena, measure.used));
    lay_out(c, &c->arena);
    ST_TRY(st_session_open_layerwise(c->model, &options, &c->session));
    c->session->prompt = c->n_sequence > ST_DECODE_TOKENS;
    c->session->observe = observe;
    c->session->observe_context = c;
    return for_batches(c, embed, 0);
}

stint_status st_calibration_open(const struct stint_model *model, const int32_t *ids, size_t n_ids,
                                 uint32_t n_threads, struct st_calibration *calibration) {
    calibration->model = model;
    calibration->ids = ids;
    calibration->n_ids = n_ids;
    calibration->n_sequence = st_min(st_calibration_sequence(model), n_ids);
    return open_in(calibration, n_threads);
}

void st_calibration_close(struct st_calibration *calibration) {
    stint_session_close(calibration->session);
    st_arena_close(&calibration->arena);
    calibration->session = NULL;
}

static bool is_silent(const struct st_maxima *m) {
    for (size_t i = 0; i < m->n; i++)
        if (m->channel[i] != 0.0f) return false;
    return true;
}

// An expert that met no token takes what the others met at most, channel by channel.
static void fill_silent(struct st_maxima *experts, size_t n) {
    for (size_t e = 0; e < n; e++) {
        if (!is_silent(&experts[e])) continue;
        for (size_t other = 0; other < n; other++)
            for (size_t i = 0; i < experts[e].n; i++)
                experts[e].channel[i] = fmaxf(experts[e].channel[i], experts[other].channel[i]);
    }
}

stint_status st_calibration_layer(struct st_calibration *c, uint32_t layer) {
    size_t n_ffn = st_max(1, c->model->config.n_experts);
    clear(&c->maxima.qkv);
    clear(&c->maxima.o);
    for (size_t e = 0; e < n_ffn; e++) {
        clear(&c->maxima.up[e]);
        clear(&c->maxima.down[e]);
    }
    ST_TRY(for_batches(c, run_layer, layer));
    fill_silent(c->maxima.up, n_ffn);
    fill_silent(c->maxima.down, n_ffn);
    return STINT_OK;
}

stint_status st_calibration_head(struct st_calibration *c) {
    clear(&c->maxima.head);
    return for_batches(c, run_head, 0);
}

stint_status st_maxima_scale(const struct st_maxima *maxima, const char *name, float *scale) {
    float most = 0.0f;
    for (size_t i = 0; i < maxima->n; i++) {
        if (!isfinite(maxima->channel[i]))
            return st_fail(STINT_E_FORMAT,
                           "the input of '%s', channel %zu, is not finite on the calibration text: "
                           "weights of this model are damaged",
                           name, i);
        most = fmaxf(most, maxima->channel[i]);
    }
    *scale = most > 0.0f ? most / 127.0f : 1.0f;
    // A scale so small that it rounds to zero would divide by it.
    if (*scale < 0x1p-100f) *scale = 0x1p-100f;
    return STINT_OK;
}
