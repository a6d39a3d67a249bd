// SPDX-License-Identifier: Apache-2.0
#include "neuron/storage.h"

#include "base/clock.h"
#include "base/size.h"

#include <stdlib.h>

struct measuring {
    struct st_loader *loader;
    const struct st_reading *reading;
    struct st_load *loads; // [depth]
    unsigned char *memory;
    uint64_t n_blocks, at, random;
};

// The next block to be read; xorshift, so that every measurement reads the same ones.
static uint64_t next_block(struct measuring *m) {
    if (!m->reading->random) return m->at++ % m->n_blocks;
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return m->random % m->n_blocks;
}

static void prefetch(struct measuring *m, size_t i) {
    struct st_load *load = &m->loads[i];
    load->offset = next_block(m) * m->reading->block;
    load->bytes = m->reading->block;
    load->to = m->memory + i * m->reading->block;
    st_loader_prefetch(m->loader, load);
}

static stint_status time_reads(struct measuring *m, double seconds, double *per_second) {
    uint64_t begun = st_now_ns(), max = (uint64_t)(seconds * 1e9), reads = 0;
    size_t depth = m->reading->depth;
    stint_status status = STINT_OK;
    for (size_t i = 0; i < depth; i++) prefetch(m, i);
    while (status == STINT_OK && st_now_ns() - begun < max) {
        status = st_loader_wait(m->loader, &m->loads[reads % depth]);
        if (status == STINT_OK) prefetch(m, reads++ % depth);
    }
    for (size_t i = 0; i < depth && status == STINT_OK; i++, reads++)
        status = st_loader_wait(m->loader, &m->loads[reads % depth]);
    st_loader_drain(m->loader);
    *per_second = (double)reads * 1e9 / (double)st_max(1, st_now_ns() - begun);
    return status;
}

stint_status st_storage_rate(const struct st_loader_options *options, uint64_t file_bytes,
                             const struct st_reading *reading, double seconds,
                             unsigned char *memory, double *per_second, bool *direct) {
    struct st_loader_options o = *options;
    struct measuring m = {.reading = reading,
                          .memory = memory,
                          .n_blocks = file_bytes / reading->block,
                          .random = 0x9e3779b97f4a7c15};
    double rate = 0.0;
    o.n_threads = reading->n_threads;
    ST_TRY(st_loader_open(&o, &m.loader));
    bool is_direct = st_loader_is_direct(m.loader);
    m.loads = calloc(reading->depth, sizeof *m.loads);
    stint_status status = m.loads ? STINT_OK : st_fail(STINT_E_NOMEM, "no memory to read with");
    if (status == STINT_OK && m.n_blocks) status = time_reads(&m, seconds, &rate);
    st_loader_close(m.loader);
    free(m.loads);
    if (status != STINT_OK) return status;
    *per_second = rate;
    *direct = is_direct;
    return STINT_OK;
}

double st_storage_seconds(const uint32_t *blocks, const double *per_second, size_t n,
                          double bytes) {
    double before = 0.0, took = 0.0;
    for (size_t i = 0; i < n && per_second[i] > 0.0; i++) {
        double block = (double)blocks[i], here = 1.0 / per_second[i];
        if (bytes <= block && i == 0) return here;
        if (bytes <= block) return took + (here - took) * (bytes - before) / (block - before);
        before = block;
        took = here;
    }
    return before > 0.0 ? took * bytes / before : 0.0;
}
