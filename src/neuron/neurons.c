// SPDX-License-Identifier: Apache-2.0
#include "neuron/neurons.h"

#include "base/clock.h"
#include "base/size.h"
#include "neuron/section.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum {
    EXPECT_SHARE = 4, // of the cold region, for what is expected
    FILL_PARTS = 4,   // of a layer's entries, each of which all layers get before the next
};
// To be read before it is certain to be needed a neuron must score more than the threshold: about
// e to this more likely than those that are named.
static const float likely = 4.0f;

static const struct st_neuron_layout *layout_of(const struct st_neurons *n) {
    return &n->model->neurons.layout;
}

// ---- Opening

static size_t panel_bytes(const struct st_linear_op *linear_op) {
    return st_int8_packed_bytes(&linear_op->weight);
}

static void lay_out(struct st_neurons *n, struct st_arena *a) {
    const struct stint_model *m = n->model;
    const struct st_neuron_layout *l = &m->neurons.layout;
    uint32_t layers = m->config.n_layers;
    n->hot = (struct st_cache){.entry_bytes = n->plan.cluster_bytes,
                               .n_entries = n->plan.n_hot,
                               .n_ids = layers * n->plan.n_clusters};
    n->cold = (struct st_cache){.entry_bytes = n->plan.entry_bytes,
                                .n_entries = n->plan.n_cold,
                                .n_ids = layers * l->n_entries};
    st_cache_lay_out(&n->hot, a);
    st_cache_lay_out(&n->cold, a);
    n->hot_clusters = ST_TAKE(a, uint32_t, (size_t)ST_NEURON_RATES * layers);
    n->elsewhere = ST_TAKE(a, uint32_t, (size_t)ST_NEURON_RATES * layers);
    n->kept = ST_TAKE(a, uint32_t, layers);
    n->predictors = st_arena_take(a, layers, sizeof *n->predictors);
    n->refs = ST_TAKE(a, struct st_neuron_ref, l->n);
    n->ready = ST_TAKE(a, int32_t, l->n_entries);
    n->pending = ST_TAKE(a, int32_t, l->n_entries);
    n->wanted = ST_TAKE(a, uint8_t, l->n_entries);
    n->expected = ST_TAKE(a, int32_t, l->n_entries);
    for (uint32_t i = 0; i < layers && m->neurons.layers; i++) {
        const struct st_layer_neurons *layer = &m->neurons.layers[i];
        const struct st_linear_op *linear_ops[] = {&layer->predict_in, &layer->predict_out};
        for (int j = 0; j < 2 && layer->predicted; j++) {
            unsigned char *panels = st_section_room(a, panel_bytes(linear_ops[j]));
            if (!n->predictors) continue;
            n->predictors[i][j] = *linear_ops[j];
            n->predictors[i][j].weight.panels = (const int8_t *)panels;
        }
    }
}

uint64_t st_neurons_fixed_bytes(const struct stint_model *model,
                                const struct st_neurons_plan *plan) {
    struct st_neurons n = {.model = model, .plan = *plan};
    struct st_arena measure = st_arena_measure();
    lay_out(&n, &measure);
    return measure.used - n.plan.n_hot * n.plan.cluster_bytes - n.plan.n_cold * n.plan.entry_bytes;
}

static stint_status damaged(const struct st_neurons *n, uint32_t layer, const char *ending) {
    char name[ST_INT8_NAME_BYTES];
    st_neurons_name(layer, ending, name);
    return st_section_damaged(n->path, name);
}

static uint64_t offset_of(const struct st_neurons *n, const void *data) {
    return (uint64_t)((const unsigned char *)data - n->model->checkpoint.maps->data);
}

static stint_status read_predictor(struct st_neurons *n, struct st_loader *loader, uint32_t layer,
                                   int which) {
    const char *ending = which ? ST_NEURONS_PREDICT_OUT : ST_NEURONS_PREDICT_IN;
    const struct st_linear_op *linear_op = &n->predictors[layer][which];
    char linear[ST_INT8_NAME_BYTES], name[ST_INT8_NAME_BYTES + 16];
    st_neurons_name(layer, ending, linear);
    snprintf(name, sizeof name, "%s%s", linear, ST_INT8_WEIGHT);
    return st_section_keep(n->model, loader, name, panel_bytes(linear_op),
                           (unsigned char *)(uintptr_t)linear_op->weight.panels);
}

static stint_status open_in(struct st_neurons *n, struct st_loader *loader) {
    struct st_arena measure = st_arena_measure();
    uint32_t layers = n->model->config.n_layers;
    lay_out(n, &measure);
    ST_TRY(st_arena_check(&measure, "the neuron cache"));
    ST_TRY(st_arena_open(&n->arena, measure.used));
    lay_out(n, &n->arena);
    ST_TRY(st_arena_check(&n->arena, "the neuron cache"));
    st_cache_open(&n->hot, loader);
    st_cache_open(&n->cold, loader);
    st_neurons_divide(n);
    for (uint32_t i = 0; i < layers; i++)
        for (int which = 0; which < 2 && n->model->neurons.layers[i].predicted; which++)
            ST_TRY(read_predictor(n, loader, i, which));
    return STINT_OK;
}

stint_status st_neurons_open(const struct stint_model *model, const struct st_neurons_plan *plan,
                             struct st_loader *loader, struct st_neurons *n) {
    *n = (struct st_neurons){.model = model, .path = model->checkpoint.path, .plan = *plan};
    return open_in(n, loader);
}

void st_neurons_close(struct st_neurons *n) {
    st_arena_close(&n->arena);
    *n = (struct st_neurons){0};
}

void st_neurons_reset(struct st_neurons *n) {
    if (n->hot.n_entries) st_cache_give_all(&n->hot);
    if (n->cold.n_entries) st_cache_give_all(&n->cold);
    n->n_expected = 0;
}

// Cold entries [first, end) of a layer, which no step has asked for yet.
static void fill_layer(struct st_neurons *n, uint32_t layer, size_t first, size_t end) {
    const struct st_neuron_layout *l = layout_of(n);
    uint64_t bundles = offset_of(n, n->model->neurons.layers[layer].bundles);
    struct st_extent extent = {.offset = bundles + first * l->entry_bytes, .bytes = l->entry_bytes};
    st_cache_fill(&n->cold, layer * l->n_entries + (uint32_t)first, (uint32_t)(end - first),
                  extent);
}

void st_neurons_fill(struct st_neurons *n, double seconds) {
    uint32_t layers = n->model->config.n_layers;
    if (n->cold.n_used > 0) st_cache_open(&n->cold, n->cold.loader);
    uint64_t until = st_now_ns() + (uint64_t)(seconds * 1e9);
    for (size_t part = 0; part < FILL_PARTS; part++)
        for (uint32_t i = 0; i < layers && st_now_ns() < until; i++) {
            size_t first = st_neurons_first_cold(n, i), all = n->kept[i] - first;
            size_t from = first + all * part / FILL_PARTS,
                   to = first + all * (part + 1) / FILL_PARTS;
            if (to > from) fill_layer(n, i, from, to);
        }
}

// ---- Running

struct run {
    struct st_neurons *n;
    struct st_sparse *sparse;
    struct st_pool *pool;
    const float *scores; // NULL: all are named
    float min;           // what is named scores more
    uint32_t layer;
    struct st_clusters part;
    size_t dense; // neurons up to this place are computed, named or not
    bool pipelined;
    struct st_neuron_ref *refs; // [n_refs] to be computed next
    size_t n_refs, n_ready, n_pending;
};

static bool is_named(const struct run *r, size_t place) {
    size_t neurons = layout_of(r->n)->n;
    return r->scores == NULL || place < r->dense ||
           st_neurons_names(r->scores, r->sparse->n_tokens, neurons, place, r->min);
}

// The neurons of an entry; of a cold one, those that are named.
static void add_refs(struct run *r, size_t entry, const unsigned char *data, bool all) {
    const struct st_neuron_layout *l = layout_of(r->n);
    const int32_t *order = r->n->model->neurons.layers[r->layer].order;
    for (size_t i = 0; i < l->per_entry; i++) {
        size_t place = entry * l->per_entry + i;
        if (place >= l->n || !(all || is_named(r, place))) continue;
        r->refs[r->n_refs++] =
            (struct st_neuron_ref){data + i * l->bundle_bytes, (uint32_t)order[place]};
    }
}

static void compute(struct run *r) {
    r->n->computed += r->n_refs;
    st_sparse_add(r->sparse, r->pool, r->refs, r->n_refs);
    r->n_refs = 0;
}

static bool has_check(const struct run *r, size_t entry, const unsigned char *data) {
    uint64_t wanted;
    memcpy(&wanted, r->n->model->neurons.layers[r->layer].checks + 2 * entry, sizeof wanted);
    return XXH3_64bits(data, layout_of(r->n)->entry_bytes) == wanted;
}

// Entries that lie one behind the other.
static struct st_extent extent_of(const struct run *r, size_t entry, size_t n) {
    size_t bytes = layout_of(r->n)->entry_bytes;
    uint64_t first = offset_of(r->n, r->n->model->neurons.layers[r->layer].bundles);
    return (struct st_extent){.offset = first + entry * bytes, .bytes = n * bytes};
}

// Entries of a hot cluster, the last of which may be smaller.
static size_t cluster_end(const struct run *r, size_t cluster) {
    return st_min(layout_of(r->n)->n_entries, (cluster + 1) * r->n->plan.cluster_entries);
}

static int32_t take_cluster(struct run *r, uint32_t cluster) {
    size_t first = (size_t)cluster * r->n->plan.cluster_entries;
    return st_cache_take(&r->n->hot, r->layer * r->n->plan.n_clusters + cluster,
                         extent_of(r, first, cluster_end(r, cluster) - first));
}

static stint_status use_cluster(struct run *r, uint32_t cluster, int32_t taken, bool all) {
    size_t first = (size_t)cluster * r->n->plan.cluster_entries;
    const unsigned char *data = st_cache_data(&r->n->hot, taken);
    bool fresh;
    ST_TRY(st_cache_wait(&r->n->hot, taken, &fresh));
    for (size_t e = first; e < cluster_end(r, cluster); e++) {
        const unsigned char *entry = data + (e - first) * layout_of(r->n)->entry_bytes;
        if (fresh && !has_check(r, e, entry)) {
            st_cache_discard(&r->n->hot, taken);
            return damaged(r->n, r->layer, ST_NEURONS_BUNDLES);
        }
        add_refs(r, e, entry, all);
    }
    return STINT_OK;
}

static uint32_t cold_id(const struct run *r, size_t entry) {
    return r->layer * layout_of(r->n)->n_entries + (uint32_t)entry;
}

static stint_status use_entry(struct run *r, int32_t taken) {
    struct st_cache *cold = &r->n->cold;
    size_t entry = (size_t)cold->id_of[taken] - cold_id(r, 0);
    bool fresh;
    ST_TRY(st_cache_wait(cold, taken, &fresh));
    if (fresh && !has_check(r, entry, st_cache_data(cold, taken))) {
        st_cache_discard(cold, taken);
        return damaged(r->n, r->layer, ST_NEURONS_BUNDLES);
    }
    add_refs(r, entry, st_cache_data(cold, taken), false);
    return STINT_OK;
}

// Takes wanted entries from *entry on, as many as there is room for: those that are there and those
// that are on their way.
static void take_entries(struct run *r, size_t *entry) {
    size_t n_entries = layout_of(r->n)->n_entries;
    r->n_ready = r->n_pending = 0;
    for (; *entry < n_entries; ++*entry) {
        if (!r->n->wanted[*entry]) continue;
        int32_t taken = st_cache_take(&r->n->cold, cold_id(r, *entry), extent_of(r, *entry, 1));
        if (taken == ST_CACHE_NONE) return;
        if (st_cache_is_there(&r->n->cold, taken))
            r->n->ready[r->n_ready++] = taken;
        else
            r->n->pending[r->n_pending++] = taken;
    }
}

// What arrived is computed while the rest is on its way.
static stint_status use_pending(struct run *r) {
    for (size_t i = 0; i < r->n_pending;) {
        ST_TRY(use_entry(r, r->n->pending[i++]));
        while (i < r->n_pending &&
               (!r->pipelined || st_cache_is_there(&r->n->cold, r->n->pending[i])))
            ST_TRY(use_entry(r, r->n->pending[i++]));
        compute(r);
    }
    compute(r);
    return STINT_OK;
}

// What is active often stays, the last used longest; what is not makes room first.
static void give_entry(const struct run *r, int32_t taken) {
    struct st_cache *cold = &r->n->cold;
    if (cold->id_of[taken] == ST_CACHE_NONE) return;
    size_t entry = (size_t)cold->id_of[taken] - cold_id(r, 0);
    st_cache_give(cold, taken, entry < r->n->kept[r->layer] ? ST_EVICT_LAST : ST_EVICT_FIRST);
}

static void give_entries(struct run *r) {
    for (size_t i = 0; i < r->n_ready; i++) give_entry(r, r->n->ready[i]);
    for (size_t i = 0; i < r->n_pending; i++) give_entry(r, r->n->pending[i]);
}

// Marks the entries that are wanted of [first, end).
static void mark(const struct run *r, size_t first, size_t end) {
    const struct st_neuron_layout *l = layout_of(r->n);
    memset(r->n->wanted, 0, l->n_entries);
    end = st_min(end * l->per_entry, l->n);
    for (size_t place = first * l->per_entry; place < end; place++)
        r->n->wanted[place / l->per_entry] |= is_named(r, place);
}

// Clusters that are hot for the largest batch are in memory for smaller ones too; of those that are
// not hot then, what is named is computed.
static stint_status run_layer(struct run *r) {
    struct st_neurons *n = r->n;
    uint32_t taken = r->part.first, hot = st_neurons_dense(n, r->layer, r->sparse->n_tokens);
    uint32_t max = (uint32_t)st_max(hot, st_neurons_resident_clusters(n, r->layer));
    max = (uint32_t)st_min(max, r->part.end);
    r->dense = (size_t)hot * n->plan.cluster_entries * layout_of(n)->per_entry;
    while (taken < max && take_cluster(r, taken) != ST_CACHE_NONE) taken++;
    size_t entry = (size_t)taken * n->plan.cluster_entries;
    mark(r, entry, (size_t)r->part.end * n->plan.cluster_entries);
    take_entries(r, &entry); // what must be read is on its way before anything is computed
    for (uint32_t c = r->part.first; c < taken; c++)
        ST_TRY(use_cluster(r, c, take_cluster(r, c), c < hot));
    for (;;) {
        for (size_t i = 0; i < r->n_ready; i++) ST_TRY(use_entry(r, n->ready[i]));
        if (r->pipelined) compute(r);
        ST_TRY(use_pending(r));
        give_entries(r);
        if (entry >= layout_of(n)->n_entries) return STINT_OK;
        take_entries(r, &entry);
    }
}

static void give_clusters(struct run *r) {
    struct st_cache *hot = &r->n->hot;
    for (uint32_t c = 0; c < r->n->plan.n_clusters; c++) {
        int32_t taken = hot->entry_of[r->layer * r->n->plan.n_clusters + c];
        if (taken != ST_CACHE_NONE) st_cache_give(hot, taken, ST_EVICT_LAST);
    }
}

stint_status st_neurons_run(struct st_neurons *n, uint32_t layer, struct st_clusters part,
                            const float *scores, struct st_sparse *sparse, struct st_pool *pool,
                            bool pipelined) {
    struct run r = {.n = n,
                    .sparse = sparse,
                    .pool = pool,
                    .scores = scores,
                    .layer = layer,
                    .part = part,
                    .refs = n->refs,
                    .pipelined = pipelined};
    ST_TRY(run_layer(&r));
    give_clusters(&r);
    return STINT_OK;
}

stint_status st_neurons_list(struct st_neurons *n, uint32_t layer, struct st_clusters part,
                             struct st_neuron_ref *refs, size_t *n_refs, uint32_t *end) {
    struct run r = {.n = n, .layer = layer, .part = part, .refs = refs};
    uint32_t taken = part.first;
    while (taken < part.end && take_cluster(&r, taken) != ST_CACHE_NONE) taken++;
    for (uint32_t c = part.first; c < taken; c++)
        ST_TRY(use_cluster(&r, c, take_cluster(&r, c), true));
    n->computed += r.n_refs;
    *n_refs = r.n_refs;
    *end = taken;
    return STINT_OK;
}

void st_neurons_end(struct st_neurons *n) {
    for (; n->n_expected; n->n_expected--)
        st_cache_give(&n->cold, n->expected[n->n_expected - 1], ST_EVICT_FIRST);
}

bool st_neurons_may_miss(const struct st_neurons *n) {
    return n->cold.n_entries < st_neurons_single(n->model, &n->plan);
}

void st_neurons_expect(struct st_neurons *n, uint32_t layer, const float *scores, size_t n_tokens) {
    struct st_sparse few = {.n_tokens = n_tokens};
    struct run r = {.n = n, .sparse = &few, .scores = scores, .min = likely, .layer = layer};
    size_t first = st_neurons_first_cold(n, layer);
    size_t max = n->cold.n_entries / EXPECT_SHARE;
    mark(&r, first, layout_of(n)->n_entries);
    for (size_t e = first; e < layout_of(n)->n_entries && n->n_expected < max; e++) {
        size_t cluster = e / n->plan.cluster_entries;
        if (!n->wanted[e] || st_cache_has(&n->cold, cold_id(&r, e)) ||
            st_cache_has(&n->hot, layer * n->plan.n_clusters + (uint32_t)cluster))
            continue;
        int32_t taken = st_cache_take(&n->cold, cold_id(&r, e), extent_of(&r, e, 1));
        if (taken == ST_CACHE_NONE) return;
        n->expected[n->n_expected++] = taken;
    }
}
