// SPDX-License-Identifier: Apache-2.0
// A subgraph runs on all threads of the pool: blocks of rows are handed out, every block meets all
// tokens while its weights lie in the second-level cache, and its sums become floats or the next
// stage's INT8 before they leave the first (llm.npu, section 3.1; docs/ARCHITECTURE.md).
#include "device/cpu/cpu.h"

#include "base/cpu.h"

#include <stdlib.h>
#include <string.h>

struct st_device {
    const struct st_device_type *type;
    struct st_pool *pool;
    const struct st_int8_kernel *kernel;
    const struct st_elementwise *elementwise;
};

struct st_graph {
    const struct st_device *device;
    struct st_graph_desc desc;
    size_t n_tokens;
};

// One stage of a run.
struct job {
    const struct st_device *device;
    const struct st_stage *stage;
    const struct st_graph_io *io;
    const uint8_t *x;
    size_t x_row;
    size_t group;     // the stage's first that runs
    float next_scale; // of the quantized output
    const float *add; // io->add in the first stage
};

// Sums of n_panels panels for some tokens, [n_tokens, ST_DEVICE_GROUP].
static void multiply(const struct job *j, const int8_t *panels, size_t n_panels, size_t token,
                     size_t n, int32_t *sums) {
    const struct st_int8_kernel *kernel = j->device->kernel;
    size_t k = st_int8_padded_k(j->stage->weight.n_in), panel_bytes = k * ST_INT8_PANEL;
    for (size_t p = 0; p < n_panels; p += kernel->panels)
        kernel->tile(panels + p * panel_bytes, st_min(kernel->panels, n_panels - p),
                     j->x + token * j->x_row, j->x_row, n, k, sums + p * ST_INT8_PANEL,
                     ST_DEVICE_GROUP);
}

// The weights of a group.
static const int8_t *group_panels(const struct job *j, size_t group) {
    const struct st_graph_part *part = j->io->part;
    size_t bytes = st_stage_group_bytes(j->stage);
    if (!part) return j->stage->weight.panels + group * bytes;
    return part->slices[group / part->slice_groups] + group % part->slice_groups * bytes;
}

static void to_floats(const struct job *j, size_t row, size_t n_rows, size_t n, float *y,
                      size_t y_row, const int32_t *sums) {
    const struct st_int8_weight *w = &j->stage->weight;
    for (size_t t = 0; t < n; t++)
        j->device->elementwise->dequantize(sums + t * ST_DEVICE_GROUP, w->row_sums + row,
                                           j->device->kernel->zero, w->factor + row,
                                           w->bias ? w->bias + row : NULL, n_rows, y + t * y_row);
}

// Of the first stage, where something is to be added before its epilogue.
static const float *added(const struct job *j, size_t token, size_t row) {
    if (!j->add || j->io->add_row[token] < 0) return NULL;
    size_t packed = (size_t)j->stage->weight.n_panels * ST_INT8_PANEL;
    return j->add + (size_t)j->io->add_row[token] * packed + row;
}

// The group's rows [row, row1), part by part.
static void float_epilogue(const struct job *j, size_t row, size_t row1, size_t token, size_t n,
                           const int32_t *sums) {
    size_t start = 0;
    for (uint32_t i = 0; i < j->stage->n_parts; i++) {
        size_t rows = j->stage->rows[i];
        size_t from = st_max(row, start), to = st_min(row1, start + rows);
        if (from < to)
            to_floats(j, from, to - from, n,
                      j->io->out[i] + token * j->io->out_row[i] + (from - start), j->io->out_row[i],
                      sums + (from - row));
        start += st_round_up(rows, ST_INT8_PANEL);
    }
}

// Floats of one token at a time, activated and quantized. Returns how many were clipped.
static size_t act_epilogue(const struct job *j, size_t row, size_t n_rows, size_t token, size_t n,
                           const int32_t *sums) {
    const struct st_elementwise *e = j->device->elementwise;
    const struct st_stage *stage = j->stage;
    bool gated = stage->epilogue == ST_EPILOGUE_GATED;
    size_t first = gated ? row / 2 : row, clipped = 0;
    if (first >= stage->rows[0]) return 0;
    size_t n_out = st_min(gated ? ST_GATED_GROUP : n_rows, stage->rows[0] - first);
    for (size_t t = 0; t < n; t++) {
        float y[ST_DEVICE_GROUP];
        to_floats(j, row, n_rows, 1, y, 0, sums + t * ST_DEVICE_GROUP);
        const float *add = added(j, token + t, row);
        if (add) e->add(add, n_rows, y);
        if (gated)
            e->act_gated(stage->act, y, y + ST_GATED_GROUP, n_out, y);
        else
            e->act(stage->act, y, n_out, y);
        uint8_t zero = j->device->kernel->zero;
        uint8_t *q = j->io->middle + (token + t) * j->io->middle_row + first;
        size_t n_clipped = e->quantize(y, n_out, j->next_scale, zero, q);
        if (n_clipped && j->io->spill)
            st_spill_row(j->io->spill, y, n_out, j->next_scale, (uint32_t)(token + t),
                         (uint32_t)first, zero, q);
        clipped += n_clipped;
    }
    return clipped;
}

// Groups [from, to) of those that run.
static void run_groups(void *context, size_t from, size_t to, size_t worker) {
    (void)worker;
    const struct job *j = context;
    const struct st_stage *stage = j->stage;
    size_t n_panels = stage->weight.n_panels, per_group = ST_DEVICE_GROUP / ST_INT8_PANEL;
    size_t clipped = 0;
    _Alignas(64) int32_t sums[ST_INT8_SUMS];
    for (size_t group = j->group + from; group < j->group + to; group++) {
        size_t here = st_min(per_group, n_panels - group * per_group);
        size_t row = group * ST_DEVICE_GROUP;
        const int8_t *panels = group_panels(j, group);
        for (size_t t = 0; t < j->io->n_tokens; t += j->device->kernel->tokens) {
            size_t n = st_min(j->device->kernel->tokens, j->io->n_tokens - t);
            multiply(j, panels, here, t, n, sums);
            if (stage->epilogue == ST_EPILOGUE_FLOAT)
                float_epilogue(j, row, row + here * ST_INT8_PANEL, t, n, sums);
            else
                clipped += act_epilogue(j, row, here * ST_INT8_PANEL, t, n, sums);
        }
    }
    if (clipped) atomic_fetch_add_explicit(j->io->clipped, clipped, memory_order_relaxed);
}

static stint_status submit(struct st_graph *graph, const struct st_graph_io *io) {
    struct st_pool *pool = graph->device->pool;
    const struct st_graph_desc *desc = &graph->desc;
    if (io->n_tokens > graph->n_tokens)
        return st_fail(STINT_E_INTERNAL, "a graph for %zu tokens was given %zu", graph->n_tokens,
                       io->n_tokens);
    const struct st_graph_part *part = io->part;
    for (uint32_t i = 0; i < desc->n_stages; i++) {
        if (part && part->stage != i) continue;
        struct job j = {.device = graph->device,
                        .stage = &desc->stages[i],
                        .io = io,
                        .x = i ? io->middle : io->in,
                        .x_row = i ? io->middle_row : io->in_row,
                        .add = i ? NULL : io->add};
        if (i + 1 < desc->n_stages) j.next_scale = desc->stages[i + 1].weight.input_scale;
        j.group = part ? part->group : 0;
        size_t n_groups = part ? part->n_groups : st_stage_groups(j.stage);
        st_pool_run_ranges(pool, run_groups, &j, n_groups, 1);
    }
    return STINT_OK;
}

static stint_status wait(struct st_device *device) {
    (void)device; // submit has done the work: its threads are the caller's
    return STINT_OK;
}

static stint_status compile(struct st_device *device, const struct st_graph_desc *desc,
                            size_t n_tokens, struct st_graph **graph) {
    for (uint32_t i = 0; i < desc->n_stages; i++) {
        const struct st_stage *s = &desc->stages[i];
        bool last = i + 1 == desc->n_stages, floats = s->epilogue == ST_EPILOGUE_FLOAT;
        size_t rows = st_stage_packed_rows(s->epilogue, s->n_parts, s->rows);
        if (last != floats || rows != (size_t)s->weight.n_panels * ST_INT8_PANEL ||
            s->weight.n_in == 0 || s->weight.n_in > ST_INT8_MAX_K)
            return st_fail(STINT_E_INTERNAL, "a graph's stage %u does not fit its weights", i);
    }
    struct st_graph *g = malloc(sizeof *g);
    if (!g) return st_fail(STINT_E_NOMEM, "no memory for a graph");
    *g = (struct st_graph){device, *desc, n_tokens};
    *graph = g;
    return STINT_OK;
}

static void free_graph(struct st_graph *graph) {
    free(graph);
}

static uint8_t zero(const struct st_device *device) {
    return device->kernel->zero;
}

static size_t graph_bytes(const struct st_graph *graph) {
    return sizeof *graph;
}

static bool cpu_is_present(void) {
    return true;
}

static bool amx_is_present(void) {
    return (st_cpu_flags() & ST_CPU_AMX_INT8) != 0;
}

static stint_status open_device(const struct st_device_type *type, struct st_pool *pool,
                                struct st_device **device) {
    struct st_device *d = malloc(sizeof *d);
    if (!d) return st_fail(STINT_E_NOMEM, "no memory for a device");
    uint64_t flags = st_cpu_flags();
    if (type == &st_device_cpu) flags &= ~(uint64_t)ST_CPU_AMX_INT8;
    *d = (struct st_device){type, pool, st_int8_select(flags), st_elementwise_select(flags)};
    *device = d;
    return STINT_OK;
}

static void close_device(struct st_device *device) {
    free(device);
}

#define OPERATIONS                                                                                 \
    .open = open_device, .close = close_device, .compile = compile, .free_graph = free_graph,      \
    .submit = submit, .wait = wait, .zero = zero, .graph_bytes = graph_bytes

const struct st_device_type st_device_cpu = {
    .name = "cpu", .what = "the vector units of all cores", .present = cpu_is_present, OPERATIONS};
const struct st_device_type st_device_amx = {
    .name = "amx", .what = "Intel's tile unit, AMX-INT8", .present = amx_is_present, OPERATIONS};
