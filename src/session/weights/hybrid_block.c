// SPDX-License-Identifier: Apache-2.0
// The device's part of one sparse block.
#include "session/weights/hybrid.h"

#include "base/size.h"
#include "session/linear/npu.h"
#include "session/session.h"
#include "session/weights/bounded.h"

#include <string.h>

// Added to a gate: whatever else is in the sum, its activation is 0.
static const float closed = -1e30f;

static struct st_outlier_slice list_slice(const struct st_hybrid *h, const struct st_outliers *list,
                                          size_t capacity) {
    struct st_slice at = st_mirror_slice(&h->mirror, list, 0);
    return (struct st_outlier_slice){
        .buffer = at.buffer, .offset = at.offset, .capacity = capacity};
}

// The host has quantized the same input and has its outliers: here they only become zeros.
static stint_status submit_input(const struct st_bounded *r, struct st_hybrid *h, const float *x,
                                 size_t n_tokens) {
    const struct st_int8_weight *up = &r->block.up->weight;
    size_t bytes = n_tokens * up->n_in * sizeof *x;
    struct st_quantize_args args = {.x = st_mirror_slice(&h->mirror, h->x, up->n_in * sizeof *x),
                                    .quantized = st_mirror_slice(&h->mirror, h->quantized, 0),
                                    .n_rows = n_tokens,
                                    .n = up->n_in,
                                    .scale = up->input_scale,
                                    .two_term = true};
    if (up->shadowed) args.outliers = list_slice(h, h->in, h->in_capacity);
    memcpy(h->x, x, bytes);
    ST_TRY(st_mirror_push(&h->mirror, h->x, bytes));
    ST_TRY(st_device_quantize(h->device, &args, NULL, 0, &h->jobs[0]));
    h->n_jobs = 1;
    return STINT_OK;
}

// What the block adds to a segment's neurons for one token, or nothing.
static void add_block(const struct st_sparse *block, const struct st_hybrid_segment *s, size_t t,
                      float *add) {
    struct st_linear_op up = *block->up;
    if (!block->add || block->add_row[t] < 0) return;
    const float *from = block->add + (size_t)block->add_row[t] * st_linear_op_rows(block->up);
    up.rows[0] = s->n;
    for (size_t packed = 0; packed < s->packed_rows; packed++) {
        uint32_t part;
        size_t i;
        if (st_linear_op_find_row(&up, packed, &part, &i))
            add[packed] = from[st_sparse_packed_row(block->up, (uint32_t)s->order[i], part)];
    }
}

// Closes the gates of the neurons that no token's scores name.
static void close_gates(const struct st_bounded *r, const struct st_hybrid_segment *s,
                        const float *scores, float *add) {
    const struct st_neuron_layout *l = &r->neurons.model->neurons.layout;
    size_t n_tokens = r->block.n_tokens, first;
    st_dense_neurons(&r->neurons, s->clusters, &first);
    for (size_t i = 0; i < s->n; i++) {
        if (st_neurons_names(scores, n_tokens, l->n, first + i, 0.0f)) continue;
        size_t packed = st_sparse_packed_row(r->block.up, (uint32_t)i, 0);
        for (size_t t = 0; t < n_tokens; t++) add[t * s->packed_rows + packed] = closed;
    }
}

// What is added before the activation, in the order of a segment's rows. scores NULL: all neurons
// count.
static stint_status push_added(const struct st_bounded *r, struct st_hybrid *h,
                               const struct st_hybrid_segment *s, const float *scores, float *add) {
    size_t n_tokens = r->block.n_tokens, bytes = n_tokens * s->packed_rows * sizeof *add;
    memset(add, 0, bytes);
    for (size_t t = 0; t < n_tokens; t++) add_block(&r->block, s, t, add + t * s->packed_rows);
    if (scores) close_gates(r, s, scores, add);
    return st_mirror_push(&h->mirror, add, bytes);
}

static stint_status submit_segment(const struct st_bounded *r, struct st_hybrid *h,
                                   const struct st_hybrid_segment *s, const float *scores,
                                   size_t b) {
    const struct st_sparse *block = &r->block;
    size_t outputs = block->down->rows[0];
    struct st_graph_args args = {
        .n_rows = block->n_tokens,
        .in = st_mirror_slice(&h->mirror, h->quantized, 0),
        .middle = st_mirror_slice(&h->mirror, h->middle[b], 0),
        .out = {st_mirror_slice(&h->mirror, h->sums[b], outputs * sizeof *h->sums[b])}};
    if (block->outliers) args.outliers = list_slice(h, h->lists[b], h->capacity);
    if (block->add || scores) {
        ST_TRY(push_added(r, h, s, scores, h->add[b]));
        args.add = st_mirror_slice(&h->mirror, h->add[b], s->packed_rows * sizeof(float));
        args.add_row = st_mirror_slice(&h->mirror, h->add_row, 0);
    }
    ST_TRY(st_device_submit(s->graph, &args, h->jobs, 1, &h->jobs[h->n_jobs]));
    h->n_jobs++;
    return STINT_OK;
}

// Segments of a layer, from the first on, that end there, and that the device has if there is
// anything in them.
static size_t n_segments(const struct st_bounded *r, uint32_t layer, uint32_t end) {
    const struct st_hybrid_segment *s = r->hybrid.segments[layer];
    size_t n = 0;
    for (; n < ST_HYBRID_SEGMENTS && s[n].clusters.end <= end; n++)
        if (!s[n].graph && s[n].clusters.first < s[n].clusters.end) break;
    return n;
}

// Waits for all jobs; the first failure is what is returned.
static stint_status join(struct st_hybrid *h, size_t *n_clipped) {
    struct st_error first = {0};
    size_t clipped = 0;
    for (size_t i = 0; i < h->n_jobs; i++) {
        struct st_job_result result;
        stint_status status = st_job_join(h->jobs[i], &result);
        if (status != STINT_OK && first.status == STINT_OK) st_error_save(&first);
        if (i > 0) clipped += result.n_clipped; // of the input, the host counts them
    }
    h->n_jobs = 0;
    if (first.status != STINT_OK) return st_error_restore(&first);
    *n_clipped = clipped;
    return STINT_OK;
}

// Segments up to the n-th that have not begun yet.
static stint_status submit_segments(const struct st_bounded *r, struct st_hybrid *h, uint32_t layer,
                                    const float *scores, size_t n) {
    const struct st_hybrid_segment *s = h->segments[layer];
    for (; h->n_begun < n; h->n_begun++)
        if (s[h->n_begun].graph) ST_TRY(submit_segment(r, h, &s[h->n_begun], scores, h->n_begun));
    return STINT_OK;
}

// Whether the host takes over, which computes all then.
static bool gives_up(const struct st_run *run, struct st_hybrid *h, stint_status status) {
    bool host = st_npu_takes_over(run, ST_NPU_DEVICE, status);
    for (size_t i = 0; i < h->n_jobs; i++) st_job_join(h->jobs[i], NULL);
    h->n_jobs = 0;
    return host;
}

stint_status st_hybrid_begin(const struct st_run *run, const float *x, size_t n_tokens,
                             uint32_t *n) {
    struct st_bounded *r = run->s->bounded;
    struct st_hybrid *h = &r->hybrid;
    *n = 0;
    if (h->threads.worker)
        return st_hybrid_begin_threads(r, run->layer,
                                       st_neurons_elsewhere(&r->neurons, run->layer, n_tokens), n);
    if (!h->device || st_device_is_lost(h->device)) return STINT_OK;
    size_t segments =
        n_segments(r, run->layer, st_neurons_elsewhere(&r->neurons, run->layer, n_tokens));
    const struct st_hybrid_segment *s = h->segments[run->layer];
    if (segments == 0 || s[segments - 1].clusters.end == 0) return STINT_OK;
    uint32_t hot = st_neurons_dense(&r->neurons, run->layer, n_tokens);
    h->n_begun = 0;
    stint_status status = submit_input(r, h, x, n_tokens);
    if (status == STINT_OK)
        status = submit_segments(r, h, run->layer, NULL,
                                 st_min(segments, n_segments(r, run->layer, hot)));
    if (status != STINT_OK) return gives_up(run, h, status) ? STINT_OK : status;
    *n = s[segments - 1].clusters.end;
    return STINT_OK;
}

stint_status st_hybrid_go_on(const struct st_run *run, const float *scores, size_t n_tokens,
                             uint32_t *n) {
    struct st_bounded *r = run->s->bounded;
    struct st_hybrid *h = &r->hybrid;
    if (*n == 0 || h->threads.worker) return STINT_OK;
    size_t segments =
        n_segments(r, run->layer, st_neurons_elsewhere(&r->neurons, run->layer, n_tokens));
    stint_status status = submit_segments(r, h, run->layer, scores, segments);
    if (status == STINT_OK) return STINT_OK;
    *n = 0;
    return gives_up(run, h, status) ? STINT_OK : status;
}

// A segment's outliers, as those of the whole block.
static stint_status take_outliers(const struct st_bounded *r, const struct st_hybrid *h,
                                  const struct st_hybrid_segment *s, struct st_outliers *list) {
    const struct st_sparse *block = &r->block;
    struct st_outliers *all = block->outliers;
    if (!s->graph) return STINT_OK;
    ST_TRY(st_mirror_pull_outliers(&h->mirror, list));
    for (size_t i = 0; i < st_min(list->count, list->capacity); i++) {
        struct st_outlier o = list->entries[i];
        o.row += (uint32_t)block->first_token;
        o.channel = (uint32_t)s->order[o.channel];
        if (all->count < all->capacity) all->entries[all->count] = o;
        all->count++;
    }
    return STINT_OK;
}

static stint_status take(struct st_bounded *r, uint32_t layer, size_t b) {
    struct st_hybrid *h = &r->hybrid;
    size_t rows = ST_TWO_TERMS * r->block.n_tokens;
    if (!h->segments[layer][b].graph) return STINT_OK;
    ST_TRY(
        st_mirror_pull(&h->mirror, h->sums[b], rows * r->block.down->rows[0] * sizeof *h->sums[b]));
    r->block.others[r->block.n_others++] = h->sums[b];
    r->neurons.computed += h->segments[layer][b].n;
    h->computed += h->segments[layer][b].n;
    return STINT_OK;
}

// Everything that a device may fail at comes before anything is added to the block.
static stint_status take_all(const struct st_run *run, size_t segments) {
    struct st_bounded *r = run->s->bounded;
    struct st_hybrid *h = &r->hybrid;
    size_t clipped;
    ST_TRY(join(h, &clipped));
    atomic_fetch_add_explicit(&run->s->npus.clipped, clipped, memory_order_relaxed);
    uint32_t kept = r->block.outliers ? r->block.outliers->count : 0;
    stint_status status = STINT_OK;
    for (size_t b = 0; b < segments && status == STINT_OK && r->block.outliers; b++)
        status = take_outliers(r, h, &h->segments[run->layer][b], h->lists[b]);
    for (size_t b = 0; b < segments && status == STINT_OK; b++) status = take(r, run->layer, b);
    if (status == STINT_OK) return STINT_OK;
    r->block.n_others = 0;
    if (r->block.outliers) r->block.outliers->count = kept;
    return status;
}

stint_status st_hybrid_end(const struct st_run *run, stint_status host, const float *scores,
                           uint32_t n) {
    struct st_bounded *r = run->s->bounded;
    if (n == 0) return host;
    if (r->hybrid.threads.worker) {
        st_hybrid_end_threads(r);
        return host;
    }
    if (host != STINT_OK) {
        struct st_error error;
        size_t clipped;
        st_error_save(&error);
        for (size_t i = 0; i < r->hybrid.n_jobs; i++) st_job_cancel(r->hybrid.jobs[i]);
        (void)join(&r->hybrid, &clipped);
        return st_error_restore(&error);
    }
    stint_status status = take_all(run, r->hybrid.n_begun);
    if (!st_npu_takes_over(run, ST_NPU_DEVICE, status)) return status;
    return st_neurons_run(&r->neurons, run->layer, (struct st_clusters){0, n}, scores, &r->block,
                          run->group->pool, !(r->leave_out & STINT_LEAVE_PIPELINE));
}

stint_status st_hybrid_try(struct st_bounded *r, const float *x,
                           const struct st_hybrid_segment *s) {
    struct st_hybrid *h = &r->hybrid;
    size_t clipped, n_tokens = r->block.n_tokens;
    size_t bytes = ST_TWO_TERMS * n_tokens * r->block.down->rows[0] * sizeof *h->sums[0];
    stint_status status = submit_input(r, h, x, n_tokens);
    if (status == STINT_OK) status = submit_segment(r, h, s, NULL, 0);
    struct st_error error = {0};
    if (status != STINT_OK) st_error_save(&error);
    stint_status ended = join(h, &clipped);
    if (status != STINT_OK) return st_error_restore(&error);
    if (ended != STINT_OK) return ended;
    return st_mirror_pull(&h->mirror, h->sums[0], bytes);
}
