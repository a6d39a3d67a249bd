// SPDX-License-Identifier: Apache-2.0
// Jobs in the wire's form, and what may come back.
#include "device/hexagon/hexagon.h"

static uint32_t offset_of(const struct st_buffer *buffer, size_t offset) {
    return buffer ? ((const struct hexagon_buffer *)buffer)->range->offset + (uint32_t)offset : 0;
}

static struct wire_slice slice_of(const struct st_slice *s) {
    return (struct wire_slice){offset_of(s->buffer, s->offset), (uint32_t)s->row_bytes};
}

static struct wire_outliers outliers_of(const struct st_outlier_slice *s) {
    return (struct wire_outliers){offset_of(s->buffer, s->offset), (uint32_t)s->capacity,
                                  s->append};
}

static void write_graph_args(const struct st_job *job, struct wire_job *w) {
    const struct st_graph_args *a = &job->args;
    w->kind = WIRE_GRAPH;
    w->graph = ((const struct hexagon_graph *)job->graph)->range->offset;
    w->n_rows = (uint32_t)a->n_rows;
    w->in = slice_of(&a->in);
    w->quantized = slice_of(&a->middle);
    w->floats = slice_of(&a->floats);
    w->add = slice_of(&a->add);
    w->add_row = slice_of(&a->add_row);
    for (int i = 0; i < WIRE_PARTS; i++) w->out[i] = slice_of(&a->out[i]);
    w->outliers = outliers_of(&a->outliers);
}

static void write_quantize_args(const struct st_job *job, struct wire_job *w) {
    const struct st_quantize_args *a = &job->quantize;
    w->kind = WIRE_QUANTIZE;
    w->n_rows = (uint32_t)a->n_rows;
    w->n = (uint32_t)a->n;
    w->scale = a->scale;
    w->two_term = a->two_term;
    w->in = slice_of(&a->x);
    w->quantized = slice_of(&a->quantized);
    w->outliers = outliers_of(&a->outliers);
    w->norm = offset_of(a->norm.buffer, a->norm.offset);
    w->norm_epsilon = a->norm_epsilon;
    if (w->norm) w->floats = slice_of(&a->normed);
}

void st_hexagon_write_job(const struct hexagon_device *d, const struct st_job *job,
                          struct wire_job *to) {
    struct wire_job w = {.sequence = job->number, .n_after = (uint32_t)job->n_after};
    for (size_t i = 0; i < job->n_after; i++) w.after[i] = (uint32_t)(job->after[i] - d->base.jobs);
    if (job->kind == ST_JOB_GRAPH)
        write_graph_args(job, &w);
    else
        write_quantize_args(job, &w);
    *to = w;
}

static bool list_is_sane(const struct hexagon_device *d, const struct st_outlier_slice *s,
                         size_t n_rows, size_t n) {
    if (!s->buffer) return true;
    const struct st_outliers *list =
        (const void *)(d->transport->memory + offset_of(s->buffer, s->offset));
    if (list->capacity != s->capacity) return false;
    if (!s->append && list->count > n_rows * n) return false;
    for (size_t i = 0; i < st_min(list->count, s->capacity); i++)
        if (list->entries[i].row >= n_rows || list->entries[i].channel >= n) return false;
    return true;
}

bool st_hexagon_job_is_sane(const struct hexagon_device *d, const struct st_job *job,
                            const struct wire_result *result) {
    bool graph = job->kind == ST_JOB_GRAPH;
    if (result->status == 0 || result->status >= WIRE_N_STATUS) return false;
    if (result->status != WIRE_DONE) return true;
    if (graph && job->graph->subgraph.n_linear_ops == 1) return result->n_clipped == 0;
    size_t n_rows = graph ? job->args.n_rows : job->quantize.n_rows;
    size_t n = graph ? job->graph->subgraph.linear_ops[0].rows[0] : job->quantize.n;
    if (result->n_clipped > n_rows * n) return false;
    return list_is_sane(d, graph ? &job->args.outliers : &job->quantize.outliers, n_rows, n);
}
