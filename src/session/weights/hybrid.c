// SPDX-License-Identifier: Apache-2.0
// What a session opens for hybrid steps: the device's memory, its weights and graphs.
#include "session/weights/hybrid.h"

#include "base/log.h"
#include "base/size.h"
#include "session/weights/bounded.h"

#include <string.h>

// ---- Memory

// The most neurons of a layer that are hot at a time.
static size_t most_hot(const struct st_neurons *n) {
    size_t most = 1, first;
    for (uint32_t i = 0; i < n->model->config.n_layers; i++)
        for (size_t b = 0; b < ST_HYBRID_SEGMENTS; b++) {
            struct st_clusters hot = {0, st_neurons_dense(n, i, (size_t)1 << b)};
            most = st_max(most, st_dense_neurons(n, hot, &first));
        }
    return most;
}

static void lay_out(const struct st_bounded *r, struct st_hybrid *h, struct st_arena *a) {
    const struct st_config *c = &r->neurons.model->config;
    size_t tokens = ST_NEURON_TOKENS, all = most_hot(&r->neurons);
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

static stint_status open_memory(struct st_bounded *r, struct st_hybrid *h) {
    struct st_arena measure = st_arena_measure();
    lay_out(r, h, &measure);
    ST_TRY(st_arena_check(&measure, "hybrid steps"));
    ST_TRY(st_arena_open(&h->arena, measure.used));
    lay_out(r, h, &h->arena);
    return st_mirror_open(h->device, h->arena.base, h->arena.used, &h->mirror);
}

// ---- Graphs

// Clusters that are hot for one row, those that are for two as well, and so on.
static stint_status open_segments(struct st_bounded *r, struct st_hybrid *h) {
    for (uint32_t i = 0; i < r->neurons.model->config.n_layers; i++) {
        uint32_t first = 0;
        for (size_t b = 0; b < ST_HYBRID_SEGMENTS; b++) {
            uint32_t end =
                (uint32_t)st_max(first, st_hybrid_share(&r->neurons, &h->rates, h->share, i, b));
            h->segments[i][b].clusters = (struct st_clusters){first, end};
            ST_TRY(st_hybrid_open_segment(r, i, &h->segments[i][b]));
            first = end;
        }
    }
    return STINT_OK;
}

static stint_status open_threads(struct st_bounded *r, const struct st_hybrid_options *o) {
    ST_TRY(st_hybrid_open_threads(r, o));
    return o->share > 0.0f ? STINT_OK : st_hybrid_measure(r, r->hybrid.threads.cpu);
}

stint_status st_hybrid_open(struct st_bounded *r, const struct st_hybrid_options *o) {
    const struct st_device_caps *caps = st_device_caps(o->device);
    struct st_hybrid *h = &r->hybrid;
    if (!r->sparse || o->share < 0.0f) return STINT_OK;
    h->share = o->share;
    if (o->npu_threads) return open_threads(r, o);
    if (!caps->own_processor || !caps->sums) return STINT_OK;
    h->device = o->device;
    ST_TRY(open_memory(r, h));
    if (h->share > 0.0f) return open_segments(r, h);
    stint_status status = st_hybrid_measure(r, o->pool);
    if (status == STINT_OK) return open_segments(r, h);
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
    st_mirror_close(&h->mirror);
    st_arena_close(&h->arena);
    *h = (struct st_hybrid){0};
}
