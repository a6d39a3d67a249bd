// SPDX-License-Identifier: Apache-2.0
// Weights, graphs and their arguments: what is the same on every device.
#include "device/driver.h"
#include "device/two_term.h"

// ---- Weights

size_t st_device_weights_bytes(const struct st_device *device,
                               const struct st_int8_weight *weight) {
    return device->ops->weights_bytes(device, weight);
}

stint_status st_device_import_weights(struct st_device *device, const struct st_int8_weight *weight,
                                      bool in_parts, struct st_device_weights **weights) {
    struct st_device_weights *w = NULL;
    ST_TRY(st_device_check(device));
    if (weight->n_in == 0 || weight->n_in > ST_INT8_MAX_K || weight->n_panels == 0)
        return st_device_broken(device, "weights of an impossible shape");
    if (in_parts && !device->caps.host_memory)
        return st_fail(STINT_E_UNSUPPORTED, "device '%s': it runs no linears in parts",
                       device->ops->name);
    size_t bytes = in_parts ? 0 : st_device_weights_bytes(device, weight);
    ST_TRY(st_device_count(device, bytes, "weights"));
    stint_status status = device->ops->import_weights(device, weight, in_parts, &w);
    if (status != STINT_OK) {
        st_device_uncount(device, bytes);
        return status;
    }
    w->device = device;
    w->n_in = weight->n_in;
    w->n_panels = weight->n_panels;
    w->bytes = bytes;
    w->in_parts = in_parts;
    *weights = w;
    return STINT_OK;
}

void st_device_free_weights(struct st_device_weights *weights) {
    if (!weights) return;
    st_device_uncount(weights->device, weights->bytes);
    weights->device->ops->free_weights(weights);
}

// ---- Graphs

static bool is_well_formed(const struct st_device_subgraph *s) {
    if (s->n_linear_ops < 1 || s->n_linear_ops > 2) return false;
    for (uint32_t i = 0; i < s->n_linear_ops; i++) {
        const struct st_linear_op *linear_op = &s->linear_ops[i];
        bool last = i + 1 == s->n_linear_ops;
        if (last != st_epilogue_is_last(linear_op->epilogue) || linear_op->n_parts < 1 ||
            linear_op->n_parts > ST_LINEAR_OP_PARTS)
            return false;
        if (linear_op->weight.n_in == 0 || linear_op->weight.n_in > ST_INT8_MAX_K) return false;
        if (linear_op->epilogue == ST_EPILOGUE_SUMS && st_int8_row_scales(&linear_op->weight))
            return false;
        if (linear_op->norm && (i == 0 || !st_int8_row_scales(&linear_op->weight))) return false;
        if (st_linear_op_packed_rows(linear_op->epilogue, linear_op->n_parts, linear_op->rows) !=
            st_linear_op_rows(linear_op))
            return false;
    }
    return s->n_linear_ops == 1 || s->linear_ops[0].rows[0] == s->linear_ops[1].weight.n_in;
}

static bool has_row_scales(const struct st_device_subgraph *s) {
    return st_int8_row_scales(&s->linear_ops[0].weight) ||
           (s->n_linear_ops == 2 && st_int8_row_scales(&s->linear_ops[1].weight));
}

static bool has_sums(const struct st_device_subgraph *s) {
    return s->linear_ops[s->n_linear_ops - 1].epilogue == ST_EPILOGUE_SUMS;
}

bool st_device_supports(const struct st_device *device, const struct st_device_subgraph *subgraph) {
    if (!is_well_formed(subgraph)) return false;
    if (subgraph->in_parts && !device->caps.host_memory) return false;
    if (has_row_scales(subgraph) && !device->caps.row_scales) return false;
    if (subgraph->linear_ops[1].norm && !device->ops->norms) return false;
    if (has_sums(subgraph) && !device->caps.sums) return false;
    return device->ops->supports(device, subgraph);
}

stint_status st_device_compile(struct st_device *device, const struct st_device_subgraph *subgraph,
                               struct st_device_weights *const *weights, size_t max_rows,
                               struct st_graph **graph) {
    struct st_graph *g = NULL;
    ST_TRY(st_device_check(device));
    if (!is_well_formed(subgraph))
        return st_device_broken(device, "a graph whose linears do not fit their weights");
    for (uint32_t i = 0; i < subgraph->n_linear_ops; i++) {
        const struct st_device_weights *w = weights[i];
        if (w->device != device || w->n_in != subgraph->linear_ops[i].weight.n_in ||
            w->n_panels != subgraph->linear_ops[i].weight.n_panels ||
            (w->in_parts && !subgraph->in_parts))
            return st_device_broken(device, "a graph with weights of another one");
    }
    if (max_rows == 0 || max_rows > device->caps.max_rows)
        return st_device_broken(device, "a graph for too many rows");
    if (!st_device_supports(device, subgraph))
        return st_fail(STINT_E_UNSUPPORTED, "device '%s': it does not run this subgraph",
                       device->ops->name);
    ST_TRY(device->ops->compile(device, subgraph, weights, &g));
    g->device = device;
    g->max_rows = max_rows;
    *graph = g;
    return STINT_OK;
}

void st_device_free_graph(struct st_graph *graph) {
    if (graph) graph->device->ops->free_graph(graph);
}

size_t st_graph_bytes(const struct st_graph *graph) {
    return graph->device->ops->graph_bytes(graph);
}

// ---- Arguments

bool st_slice_fits(const struct st_device *device, const struct st_slice *s, size_t n_rows,
                   size_t bytes, size_t alignment) {
    const struct st_buffer *b = s->buffer;
    size_t all;
    if (!b || b->device != device || s->offset % alignment || s->row_bytes % alignment)
        return false;
    if (n_rows == 0) return true;
    if (n_rows > 1 && s->row_bytes < bytes) return false;
    return st_size_mul(n_rows - 1, s->row_bytes, &all) && st_size_add(all, bytes, &all) &&
           st_size_add(all, s->offset, &all) && all <= b->bytes;
}

static bool floats_fit(const struct st_device *device, const struct st_slice *s, size_t n_rows,
                       size_t n) {
    return st_slice_fits(device, s, n_rows, n * sizeof(float), sizeof(float));
}

static bool quantized_fits(const struct st_device *device, const struct st_slice *s, size_t n_rows,
                           size_t n, bool two_term) {
    size_t bytes = n_rows ? st_quantized_bytes(n_rows, n, two_term) : 0;
    return st_slice_fits(device, &(struct st_slice){s->buffer, s->offset, 0}, 1, bytes,
                         ST_DEVICE_ALIGNMENT);
}

static bool outliers_fit(const struct st_device *device, const struct st_outlier_slice *s) {
    size_t bytes;
    if (!s->buffer) return true;
    return s->capacity <= UINT32_MAX &&
           st_size_mul(s->capacity, sizeof(struct st_outlier), &bytes) &&
           st_slice_fits(device, &(struct st_slice){s->buffer, s->offset, 0}, 1,
                         st_outliers_bytes(s->capacity), ST_DEVICE_ALIGNMENT);
}

static bool part_fits(const struct st_graph *g, const struct st_linear_op_part *p) {
    if (!p || p->linear_op >= g->subgraph.n_linear_ops || p->slice_groups == 0) return false;
    const struct st_linear_op *linear_op = &g->subgraph.linear_ops[p->linear_op];
    size_t groups = st_linear_op_groups(linear_op), end = (size_t)p->group + p->n_groups;
    size_t panel = st_int8_panel_bytes(linear_op->weight.n_in);
    if (end > groups) return false;
    for (size_t i = p->group / p->slice_groups; i * p->slice_groups < end; i++) {
        // Of the last slice, what the part needs of it.
        size_t first = i * p->slice_groups, last = st_min(end, first + p->slice_groups);
        size_t panels =
            st_min(last * (ST_DEVICE_GROUP / ST_INT8_PANEL), linear_op->weight.n_panels) -
            first * (ST_DEVICE_GROUP / ST_INT8_PANEL);
        if (!st_slice_fits(g->device, &p->slices[i], 1, panels * panel, 1)) return false;
    }
    return true;
}

static bool added_fits(const struct st_graph *g, const struct st_graph_args *a) {
    if (!a->add.buffer) return true;
    return g->subgraph.n_linear_ops == 2 &&
           floats_fit(g->device, &a->add, 1, st_linear_op_rows(&g->subgraph.linear_ops[0])) &&
           st_slice_fits(g->device, &a->add_row, 1, a->n_rows * sizeof(int32_t), sizeof(int32_t)) &&
           a->add.row_bytes % sizeof(float) == 0;
}

static const char *check_args(const struct st_graph *g, const struct st_graph_args *a) {
    const struct st_device_subgraph *s = &g->subgraph;
    const struct st_linear_op *last = &s->linear_ops[s->n_linear_ops - 1];
    bool two = s->n_linear_ops == 2;
    if (a->n_rows > g->max_rows) return "more rows than its graph was compiled for";
    if ((a->part != NULL) != s->in_parts || (a->part && !part_fits(g, a->part)))
        return "a part that its graph does not have";
    if (!quantized_fits(g->device, &a->in, a->n_rows, s->linear_ops[0].weight.n_in, s->two_term[0]))
        return "an input outside its buffer";
    if (two && !quantized_fits(g->device, &a->middle, a->n_rows, last->weight.n_in, s->two_term[1]))
        return "a middle outside its buffer";
    if (two && st_int8_row_scales(&last->weight) &&
        !floats_fit(g->device, &a->floats, a->n_rows, last->weight.n_in))
        return "a middle of floats outside its buffer";
    size_t terms = has_sums(s) && s->two_term[s->n_linear_ops - 1] ? ST_TWO_TERMS : 1;
    for (uint32_t i = 0; i < last->n_parts; i++) // sums have the size of floats
        if (!floats_fit(g->device, &a->out[i], terms * a->n_rows, last->rows[i]))
            return "an output outside its buffer";
    if (!outliers_fit(g->device, &a->outliers)) return "a list of outliers outside its buffer";
    return added_fits(g, a) ? NULL : "a sum outside its buffer";
}

stint_status st_device_submit(struct st_graph *graph, const struct st_graph_args *args,
                              struct st_job *const *after, size_t n_after, struct st_job **job) {
    const char *wrong = check_args(graph, args);
    if (wrong) return st_device_broken(graph->device, wrong);
    return st_job_start(graph->device, ST_JOB_GRAPH, graph, args, after, n_after, job);
}

static bool norm_fits(const struct st_device *device, const struct st_quantize_args *a) {
    return floats_fit(device, &a->norm, 1, a->n) && floats_fit(device, &a->normed, a->n_rows, a->n);
}

stint_status st_device_quantize(struct st_device *device, const struct st_quantize_args *args,
                                struct st_job *const *after, size_t n_after, struct st_job **job) {
    if (args->n_rows > device->caps.max_rows || args->n == 0 || args->n > ST_INT8_MAX_K ||
        !(args->scale > 0.0f || (args->scale >= 0.0f && device->caps.row_scales)))
        return st_device_broken(device, "an input that cannot be quantized");
    if (!floats_fit(device, &args->x, args->n_rows, args->n) ||
        !quantized_fits(device, &args->quantized, args->n_rows, args->n, args->two_term) ||
        !outliers_fit(device, &args->outliers))
        return st_device_broken(device, "an argument of quantizing outside its buffer");
    if (args->norm.buffer && !(device->caps.row_norms && norm_fits(device, args)))
        return st_device_broken(device, "an input that cannot be normalised");
    return st_job_start(device, ST_JOB_QUANTIZE, NULL, args, after, n_after, job);
}
