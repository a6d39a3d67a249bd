// SPDX-License-Identifier: Apache-2.0
// What hybrid_share.c divides by: a second processor and the host are timed with a layer's own
// neurons when a session opens. No bit depends on the outcome.
#include "session/weights/hybrid.h"

#include "base/clock.h"
#include "base/cpu.h"
#include "base/log.h"
#include "base/size.h"
#include "session/session.h"
#include "session/weights/bounded.h"

#include <math.h>
#include <string.h>

enum {
    ROUNDS = 5,        // of which the median counts
    ZERO = 128,        // the byte that stands for 0
    CACHE_LINE = 64,   // bytes
    FEW_CLUSTERS = 32, // at least so many are timed
    APART = 5,         // neurons of the host's that are named: one of so many, or fewer
};

typedef stint_status run_fn(struct st_bounded *bounded, struct st_pool *pool, uint32_t layer,
                            const struct st_hybrid_segment *segment);

static stint_status run_device(struct st_bounded *r, struct st_pool *pool, uint32_t layer,
                               const struct st_hybrid_segment *s) {
    (void)pool;
    (void)layer;
    return st_hybrid_try(r, r->prediction.guess, s);
}

static stint_status run_host(struct st_bounded *r, struct st_pool *pool, uint32_t layer,
                             const struct st_hybrid_segment *s) {
    st_sparse_begin(&r->block, r->prediction.quantized, 0, ZERO, r->block.n_tokens);
    return st_neurons_run(&r->neurons, layer, s->clusters, NULL, &r->block, pool, true);
}

static stint_status run_threads(struct st_bounded *r, struct st_pool *pool, uint32_t layer,
                                const struct st_hybrid_segment *s) {
    uint32_t n;
    (void)pool;
    st_sparse_begin(&r->block, r->prediction.quantized, 0, ZERO, r->block.n_tokens);
    ST_TRY(st_hybrid_begin_threads(r, layer, s->clusters.end, &n));
    if (n) st_hybrid_end_threads(r);
    return STINT_OK;
}

static double median(double *seconds) {
    for (size_t i = 1; i < ROUNDS; i++)
        for (size_t j = i; j > 0 && seconds[j - 1] > seconds[j]; j--) {
            double other = seconds[j];
            seconds[j] = seconds[j - 1];
            seconds[j - 1] = other;
        }
    return seconds[ROUNDS / 2];
}

// In steps other layers push a layer's weights out of the processor's caches: here bytes of the
// cold region do that, which hold nothing yet.
static void push_out(struct st_bounded *r) {
    const struct st_cache *c = &r->neurons.cold;
    size_t room = (size_t)(c->n_entries - c->n_used) * c->entry_bytes;
    volatile unsigned char *bytes = st_cache_data(c, (int32_t)c->n_used);
    room = st_min(room, st_cpu_cache_bytes(3));
    for (size_t i = 0; i < room; i += CACHE_LINE) bytes[i] = 0;
}

// The first run, which reads what is missing, does not count.
static stint_status time_run(struct st_bounded *r, struct st_pool *pool, uint32_t layer,
                             const struct st_hybrid_segment *s, run_fn *fn, double *seconds) {
    double all[ROUNDS];
    ST_TRY(fn(r, pool, layer, s));
    for (size_t i = 0; i < ROUNDS; i++) {
        push_out(r);
        uint64_t begun = st_now_ns();
        ST_TRY(fn(r, pool, layer, s));
        all[i] = (double)(st_now_ns() - begun) * 1e-9;
    }
    *seconds = median(all);
    return STINT_OK;
}

static void set_layer(struct st_bounded *r, uint32_t layer) {
    const struct st_ffn_int8 *ffn = r->neurons.model->int8.layers[layer].ffn;
    r->block.up = &ffn->up;
    r->block.down = &ffn->down;
}

// A block in which nothing is clipped. All of its rows are the same.
static void set_up(struct st_bounded *r, uint32_t layer, atomic_size_t *clipped) {
    const struct st_ffn_int8 *ffn = r->neurons.model->int8.layers[layer].ffn;
    size_t n = r->neurons.model->config.hidden;
    set_layer(r, layer);
    r->block.add = NULL;
    r->block.outliers = NULL;
    r->block.clipped = clipped;
    r->block.first_token = 0;
    memset(r->prediction.quantized, ZERO, st_int8_padded_k(n));
    for (size_t i = 0; i < n; i++) {
        int q = (int)(i * 37 % 65) - 32;
        r->prediction.quantized[i] = (uint8_t)(ZERO + q);
        for (size_t t = 0; t < ST_NEURON_TOKENS; t++)
            r->prediction.guess[t * n + i] = (float)q * ffn->up.weight.input_scale;
    }
}

// The time of a segment on the device, which gets it for this.
static stint_status time_device(struct st_bounded *r, uint32_t layer, uint32_t n_clusters,
                                struct st_hybrid_segment *s, double *seconds) {
    *s = (struct st_hybrid_segment){.clusters = {0, n_clusters}};
    if (r->hybrid.threads.worker) return time_run(r, NULL, layer, s, run_threads, seconds);
    stint_status status = st_hybrid_open_segment(r, layer, s);
    if (status == STINT_OK && !s->graph)
        status = st_fail(STINT_E_LIMIT, "device '%s': no room for a cluster of neurons",
                         st_device_caps(r->hybrid.device)->name);
    if (status == STINT_OK) status = time_run(r, NULL, layer, s, run_device, seconds);
    st_hybrid_drop(s);
    return status;
}

// Scores that name neurons of one layer, so few that those of all rounds find room twice.
static void name_some(struct st_bounded *r) {
    const struct st_neuron_layout *l = &r->neurons.model->neurons.layout;
    size_t room = st_max(1, (size_t)r->neurons.plan.n_cold * l->per_entry / (2 * ROUNDS));
    size_t apart = st_max(APART, st_ceil_div(l->n, room));
    for (size_t i = 0; i < r->block.n_tokens * l->n; i++)
        r->prediction.scores[i] = i % l->n % apart ? -1.0f : 1.0f;
}

// The time of a neuron on the host, that lies anywhere and is in no cache of the processor: each
// round has another layer. 0: all neurons are hot.
static stint_status time_sparse(struct st_bounded *r, struct st_pool *pool, double *seconds) {
    struct st_neurons *n = &r->neurons;
    double all[ROUNDS] = {0};
    name_some(r);
    for (uint32_t i = 0; i < 2 * ROUNDS; i++) { // the first half reads what is missing
        uint32_t layer = i % ROUNDS % n->model->config.n_layers;
        struct st_clusters cold = {st_neurons_dense(n, layer, r->block.n_tokens),
                                   n->plan.n_clusters};
        if (i == ROUNDS) push_out(r);
        uint64_t computed = n->computed, begun = st_now_ns();
        set_layer(r, layer);
        st_sparse_begin(&r->block, r->prediction.quantized, 0, ZERO, r->block.n_tokens);
        ST_TRY(st_neurons_run(n, layer, cold, r->prediction.scores, &r->block, pool, true));
        all[i % ROUNDS] =
            (double)(st_now_ns() - begun) * 1e-9 / (double)st_max(1, n->computed - computed);
        if (n->computed == computed) all[i % ROUNDS] = 0.0;
    }
    *seconds = median(all);
    return STINT_OK;
}

static stint_status time_host(struct st_bounded *r, struct st_pool *pool, uint32_t layer,
                              const struct st_hybrid_segment *s, size_t neurons, double *seconds) {
    *seconds = 0.0;
    if (r->hybrid.device) ST_TRY(time_sparse(r, pool, seconds));
    set_layer(r, layer);
    if (*seconds > 0.0) return STINT_OK;
    double all;
    ST_TRY(time_run(r, pool, layer, s, run_host, &all));
    *seconds = all / (double)neurons;
    return STINT_OK;
}

static stint_status time_all(struct st_bounded *r, struct st_pool *pool, uint32_t layer, uint32_t n,
                             struct st_hybrid_rates *rates) {
    struct st_hybrid_segment one, all;
    double few = 0.0, many;
    size_t first, one_neurons = st_dense_neurons(&r->neurons, (struct st_clusters){0, 1}, &first);
    size_t neurons = st_dense_neurons(&r->neurons, (struct st_clusters){0, n}, &first);
    ST_TRY(time_device(r, layer, n, &all, &many));
    if (n > 1) ST_TRY(time_device(r, layer, 1, &one, &few));
    all.clusters = (struct st_clusters){0, n};
    ST_TRY(time_host(r, pool, layer, &all, neurons, &rates->host_neuron));
    double more = many > few && n > 1 ? (many - few) / (double)(neurons - one_neurons) : 0.0;
    rates->device_neuron = more;
    // Noise may make the slope too steep; a block is never less than free.
    rates->device_block = fmax(0.0, many - more * (double)neurons);
    return STINT_OK;
}

// The layer with the most hot clusters in a step of `tokens` rows.
static uint32_t hottest(const struct st_neurons *n, size_t tokens) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < n->model->config.n_layers; i++)
        if (st_neurons_dense(n, i, tokens) > st_neurons_dense(n, best, tokens)) best = i;
    return best;
}

stint_status st_hybrid_measure(struct st_bounded *r, struct st_pool *pool) {
    struct st_neurons *n = &r->neurons;
    uint32_t layer = hottest(n, ST_NEURON_TOKENS);
    uint32_t dense = st_neurons_dense(n, layer, ST_NEURON_TOKENS);
    if (r->hybrid.device) dense = (uint32_t)st_max(dense, st_min(FEW_CLUSTERS, n->plan.n_clusters));
    atomic_size_t clipped = 0;
    if (dense == 0) return STINT_OK;
    uint64_t computed = n->computed, hits = n->hot.hits, misses = n->hot.misses;
    uint64_t on_npu = r->hybrid.computed;
    set_up(r, layer, &clipped);
    stint_status status = STINT_OK;
    for (size_t b = 0; b < ST_HYBRID_BATCHES && status == STINT_OK; b++) {
        r->block.n_tokens = (size_t)1 << b;
        status = time_all(r, pool, layer, dense, &r->hybrid.rates[b]);
    }
    n->computed = computed;
    r->hybrid.computed = on_npu;
    n->hot.hits = hits;
    n->hot.misses = misses;
    r->block.up = r->block.down = NULL;
    r->block.clipped = NULL;
    for (size_t b = 0; b < ST_HYBRID_BATCHES && status == STINT_OK; b++)
        st_log(STINT_LOG_DEBUG,
               "%s: a block of %zu rows takes %.1f us and %.3f us for each neuron; on the host a "
               "neuron takes %.3f us",
               r->hybrid.device ? st_device_caps(r->hybrid.device)->name : "threads of the NPU",
               (size_t)1 << b, r->hybrid.rates[b].device_block * 1e6,
               r->hybrid.rates[b].device_neuron * 1e6, r->hybrid.rates[b].host_neuron * 1e6);
    return status;
}
