// SPDX-License-Identifier: Apache-2.0
// What a session opens for hybrid steps: the device's memory, its weights and graphs.
#include "session/weights/hybrid.h"

#include "base/log.h"
#include "base/size.h"
#include "session/weights/bounded.h"

#include <string.h>

// ---- Memory

// The most neurons of a layer that the device gets.
static size_t most_given(const struct st_neurons *n) {
    size_t most = 1, first, all = (size_t)ST_NEURON_RATES * n->model->config.n_layers;
    for (size_t i = 0; i < all; i++)
        most = st_max(most, st_dense_neurons(n, (struct st_clusters){0, n->elsewhere[i]}, &first));
    return most;
}

static void lay_out(const struct st_bounded *r, struct st_hybrid *h, struct st_arena *a) {
    const struct st_config *c = &r->neurons.model->config;
    size_t tokens = ST_NEURON_TOKENS, all = h->most;
    h->segments = st_arena_take(a, c->n_layers, sizeof *h->segments);
    h->x = ST_TAKE(a, float, tokens * c->hidden);
    h->quantized = ST_TAKE(a, uint8_t, st_quantized_bytes(tokens, c->hidden, true));
    h->in_capacity = tokens * c->hidden;
    h->in = (struct st_outliers *)ST_TAKE(a, uint8_t, st_outliers_bytes(h->in_capacity));
    h->add_row = ST_TAKE(a, int32_t, tokens);
    h->capacity = tokens * all;
    for (size_t b = 0; b < ST_HYBRID_SEGMENTS; b++) {
        h->middle[b] = ST_TAKE(a, uint8_t, st_quantized_bytes(tokens, all, true));
        h->sums[b] = ST_TAKE(a, int32_t, ST_SPARSE_ROWS * (size_t)c->hidden);
        h->lists[b] = (struct st_outliers *)ST_TAKE(a, uint8_t, st_outliers_bytes(h->capacity));
        h->add[b] = ST_TAKE(a, float, tokens * 2 * st_round_up(all, ST_DEVICE_GROUP));
    }
}

static void close_memory(struct st_hybrid *h) {
    st_mirror_close(&h->mirror);
    st_arena_close(&h->arena);
}

// For segments of up to so many neurons.
static stint_status open_memory(struct st_bounded *r, struct st_hybrid *h, size_t most) {
    struct st_arena measure = st_arena_measure();
    h->most = most;
    lay_out(r, h, &measure);
    ST_TRY(st_arena_check(&measure, "hybrid steps"));
    ST_TRY(st_arena_open(&h->arena, measure.used));
    lay_out(r, h, &h->arena);
    ST_TRY(st_mirror_open(h->device, h->arena.base, h->arena.used, &h->mirror));
    for (int32_t t = 0; t < ST_NEURON_TOKENS; t++) h->add_row[t] = t;
    return st_mirror_push(&h->mirror, h->add_row, sizeof *h->add_row * ST_NEURON_TOKENS);
}

// ---- Graphs

// Where a layer's segments end, in order: each batch ends with one, and so do its hot clusters.
static void cut(const struct st_neurons *n, uint32_t layer, uint32_t ends[ST_HYBRID_SEGMENTS]) {
    for (size_t b = 0; b < ST_HYBRID_BATCHES; b++) {
        ends[2 * b] = st_neurons_elsewhere(n, layer, (size_t)1 << b);
        ends[2 * b + 1] = (uint32_t)st_min(ends[2 * b], st_neurons_dense(n, layer, (size_t)1 << b));
    }
    for (size_t i = 1; i < ST_HYBRID_SEGMENTS; i++)
        for (size_t j = i; j > 0 && ends[j - 1] > ends[j]; j--) {
            uint32_t other = ends[j];
            ends[j] = ends[j - 1];
            ends[j - 1] = other;
        }
}

static stint_status open_segments(struct st_bounded *r, struct st_hybrid *h) {
    ST_TRY(open_memory(r, h, most_given(&r->neurons)));
    for (uint32_t i = 0; i < r->neurons.model->config.n_layers; i++) {
        uint32_t first = 0, ends[ST_HYBRID_SEGMENTS];
        cut(&r->neurons, i, ends);
        for (size_t j = 0; j < ST_HYBRID_SEGMENTS; j++) {
            h->segments[i][j].clusters = (struct st_clusters){first, ends[j]};
            ST_TRY(st_hybrid_open_segment(r, i, &h->segments[i][j]));
            first = ends[j];
        }
    }
    st_neurons_keep(&r->neurons);
    return STINT_OK;
}

static stint_status open_threads(struct st_bounded *r, const struct st_hybrid_options *o) {
    ST_TRY(st_hybrid_open_threads(r, o));
    if (!(o->share > 0.0f)) ST_TRY(st_hybrid_measure(r, r->hybrid.threads.cpu));
    return st_hybrid_assign(&r->neurons, r->hybrid.rates, o->share, true);
}

static stint_status measure(struct st_bounded *r, const struct st_hybrid_options *o) {
    struct st_hybrid *h = &r->hybrid;
    ST_TRY(open_memory(r, h, r->neurons.model->neurons.layout.n));
    stint_status status = st_hybrid_measure(r, o->pool);
    close_memory(h);
    h->segments = NULL;
    return status;
}

static stint_status open_device(struct st_bounded *r, const struct st_hybrid_options *o) {
    if (!(o->share > 0.0f)) ST_TRY(measure(r, o));
    ST_TRY(st_hybrid_assign(&r->neurons, r->hybrid.rates, o->share, false));
    return open_segments(r, &r->hybrid);
}

stint_status st_hybrid_open(struct st_bounded *r, const struct st_hybrid_options *o) {
    const struct st_device_caps *caps = st_device_caps(o->device);
    struct st_hybrid *h = &r->hybrid;
    if (!r->sparse || o->share < 0.0f) return STINT_OK;
    h->share = o->share;
    if (o->npu_threads) return open_threads(r, o);
    if (!caps->own_processor || !caps->sums) return STINT_OK;
    h->device = o->device;
    stint_status status = open_device(r, o);
    if (status == STINT_OK || h->share > 0.0f) return status;
    st_hybrid_close(r);
    if (status != STINT_E_DEVICE && status != STINT_E_NOMEM && status != STINT_E_LIMIT)
        return status;
    st_log(STINT_LOG_WARNING, "%s: the CPU computes all neurons", stint_error_text());
    return STINT_OK;
}

void st_hybrid_close(struct st_bounded *r) {
    struct st_hybrid *h = &r->hybrid;
    st_hybrid_close_threads(&h->threads);
    for (uint32_t i = 0; h->segments && i < r->neurons.model->config.n_layers; i++)
        for (size_t b = 0; b < ST_HYBRID_SEGMENTS; b++) st_hybrid_drop(&h->segments[i][b]);
    close_memory(h);
    *h = (struct st_hybrid){0};
}
