// SPDX-License-Identifier: Apache-2.0
// What a memory-bounded session says about itself.
#include "base/size.h"
#include "session/session.h"
#include "session/weights/bounded.h"

#include <math.h>
#include <string.h>

static double share(uint64_t part, uint64_t whole) {
    return whole ? (double)part / (double)whole : 0.0;
}

// What was read for nothing was not needed.
static double slices_hit_rate(const struct st_slices *slices) {
    const struct st_foresight *f = &slices->foresight;
    uint64_t hits = 0, misses = 0;
    for (int i = 0; i < ST_N_REGIONS; i++) {
        hits += slices->regions[i].hits;
        misses += slices->regions[i].misses;
    }
    misses -= f->read - f->used;
    return share(hits, hits + misses);
}

static double neurons_hit_rate(const struct st_neurons *n) {
    uint64_t entries = n->plan.cluster_entries, hits = n->cold.hits + n->hot.hits * entries;
    return share(hits, hits + n->cold.misses + n->hot.misses * entries);
}

static void describe(const struct st_bounded *r, stint_memory_info *out) {
    const struct st_budget *b = &r->budget;
    const struct st_foresight *f = &r->slices.foresight;
    struct st_loader_counts counts;
    st_loader_count(r->loader, &counts);
    out->budget_bytes = b->bound;
    out->peak_bytes = r->peak_bytes;
    out->fixed_bytes = st_budget_fixed(b) + b->prompt + b->regions[ST_REGION_FIXED];
    out->hot_bytes = b->regions[ST_REGION_STREAM] + b->hot;
    out->cold_bytes = b->cold;
    out->kv_bytes = b->kv;
    out->bytes_read = counts.bytes;
    out->reads = counts.reads;
    out->hit_rate = r->sparse ? neurons_hit_rate(&r->neurons) : slices_hit_rate(&r->slices);
    if (r->sparse) out->computed = share(r->neurons.computed, r->neurons.possible);
    if (r->sparse) out->on_npu = share(r->hybrid.computed, r->neurons.computed);
    out->npu_block_seconds = r->hybrid.rates[0].device_block;
    out->npu_neuron_seconds = r->hybrid.rates[0].device_neuron;
    out->cpu_neuron_seconds = r->hybrid.rates[0].host_neuron;
    out->hidden_fraction = 1.0;
    if (counts.busy_ns)
        out->hidden_fraction = 1.0 - fmin(1.0, (double)counts.waited_ns / (double)counts.busy_ns);
    out->bytes_per_step = share(r->steps.bytes, r->steps.n);
    out->foreseen = share(f->used, f->used + f->late);
    out->foreseen_used = share(f->used, f->read);
}

stint_status stint_session_memory(const stint_session *session, stint_memory_info *info) {
    if (!session || !info || info->size == 0)
        return st_fail(STINT_E_ARG, "info->size must be set to sizeof(stint_memory_info)");
    stint_memory_info out = {.size = info->size};
    if (session->bounded) describe(session->bounded, &out);
    memcpy(info, &out, st_min(info->size, sizeof out));
    return STINT_OK;
}
