// SPDX-License-Identifier: Apache-2.0
// The length of a chunk, chosen by measuring (`--chunk auto`).
#include "session/pass.h"

#include "base/clock.h"
#include "session/linear/op.h"

#include <math.h>
#include <string.h>

enum { RUNS = 3 };

// Seconds a token of the first layer's static subgraphs takes in a chunk of n, over what is in the
// buffers: the best of a few runs.
static stint_status time_chunk(struct stint_session *s, size_t n, double *seconds) {
    static const enum st_subgraph_kind kinds[] = {ST_SUBGRAPH_QKV, ST_SUBGRAPH_O, ST_SUBGRAPH_FFN};
    struct st_batch batch = {.n = n, .n_total = n};
    struct st_run run = st_session_run(s, ST_PHASE_PREFILL, ST_PRECISION_INT8, &batch);
    if (run.buffers->shadow.any)
        st_outliers_reset(run.buffers->shadow.in, run.buffers->shadow.capacity);
    *seconds = INFINITY;
    for (int i = 0; i < RUNS; i++) {
        uint64_t begun = st_now_ns();
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            ST_TRY(st_pass_subgraph(&run, kinds[k]));
        *seconds = fmin(*seconds, (double)(st_now_ns() - begun) * 1e-9 / (double)n);
    }
    memset(run.buffers->x, 0, n * s->model->config.hidden * sizeof *run.buffers->x);
    return STINT_OK;
}

// A longer chunk must earn its memory by being faster.
stint_status st_session_tune(struct stint_session *s) {
    double best = INFINITY, seconds;
    size_t selected = s->chunk_len;
    for (size_t n = ST_CHUNK_SHORTEST; n <= s->chunk_len; n *= 2) {
        ST_TRY(time_chunk(s, n, &seconds));
        if (seconds >= best * 0.98) continue;
        best = seconds;
        selected = n;
    }
    s->chunk_len = selected;
    s->timeline.n = 0;
    s->buffers->shadow.counts = (struct st_shadow_counts){0};
    atomic_store_explicit(&s->npus.clipped, 0, memory_order_relaxed);
    return STINT_OK;
}
