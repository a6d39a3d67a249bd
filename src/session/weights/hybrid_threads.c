// SPDX-License-Identifier: Apache-2.0
// Hybrid steps on this machine's cores alone: some threads compute hot clusters dense while the
// others predict, read and compute the other neurons. Weights stay where they are, so this takes no
// memory but for sums; those of both parts are exact and are added in the end.
#include "session/weights/hybrid.h"

#include "session/weights/bounded.h"

static void lay_out(const struct st_bounded *r, struct st_hybrid_threads *t, struct st_arena *a) {
    st_sparse_lay_out(&t->block, a);
    t->refs = ST_TAKE(a, struct st_neuron_ref, r->block.layout.n);
}

static stint_status open_in(struct st_bounded *r, const struct st_hybrid_options *o,
                            struct st_hybrid_threads *t) {
    struct st_arena measure = st_arena_measure();
    ST_TRY(st_pool_open(o->npu_threads, &t->npu));
    ST_TRY(st_pool_open(o->cpu_threads, &t->cpu));
    struct st_device_options device = {.name = "cpu", .workers = t->cpu};
    ST_TRY(st_device_open(&device, &t->device));
    t->block = (struct st_sparse){.kernel = r->block.kernel,
                                  .elementwise = r->block.elementwise,
                                  .layout = r->block.layout,
                                  .n_threads = o->npu_threads};
    lay_out(r, t, &measure);
    ST_TRY(st_arena_check(&measure, "hybrid steps"));
    ST_TRY(st_arena_open(&t->arena, measure.used));
    lay_out(r, t, &t->arena);
    return st_worker_open(&t->worker);
}

stint_status st_hybrid_open_threads(struct st_bounded *r, const struct st_hybrid_options *o) {
    struct st_hybrid_threads *t = &r->hybrid.threads;
    stint_status status = open_in(r, o, t);
    if (status != STINT_OK) st_hybrid_close_threads(t);
    return status;
}

void st_hybrid_close_threads(struct st_hybrid_threads *t) {
    st_worker_close(t->worker);
    st_device_close(t->device);
    st_pool_close(t->npu);
    st_pool_close(t->cpu);
    st_arena_close(&t->arena);
    *t = (struct st_hybrid_threads){0};
}

struct st_pool *st_hybrid_pool(const struct st_hybrid *h, struct st_pool *all) {
    return h->threads.worker ? h->threads.cpu : all;
}

// ---- A block

static void compute(void *context) {
    struct st_hybrid_threads *t = context;
    st_sparse_clear(&t->block);
    st_sparse_add(&t->block, t->npu, t->refs, t->n_refs);
    t->sums = st_sparse_sums(&t->block);
}

// The input, what is added and the outliers are those of the block at hand.
stint_status st_hybrid_begin_threads(struct st_bounded *r, uint32_t layer, uint32_t n_clusters,
                                     uint32_t *n) {
    struct st_hybrid_threads *t = &r->hybrid.threads;
    const struct st_clusters part = {0, n_clusters};
    *n = 0;
    if (n_clusters == 0) return STINT_OK;
    ST_TRY(st_neurons_list(&r->neurons, layer, part, t->refs, &t->n_refs, n));
    if (*n == 0) return STINT_OK;
    st_sparse_share(&t->block, &r->block);
    r->hybrid.computed += t->n_refs;
    st_worker_begin(t->worker, compute, t);
    return STINT_OK;
}

void st_hybrid_end_threads(struct st_bounded *r) {
    struct st_hybrid_threads *t = &r->hybrid.threads;
    st_worker_join(t->worker);
    r->block.others[r->block.n_others++] = t->sums;
}
