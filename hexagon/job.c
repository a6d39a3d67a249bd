// SPDX-License-Identifier: Apache-2.0
// One job. Quantized inputs are rows of signed bytes, padded to a multiple of 8, each with room for
// its scale behind it; in two terms a row has two of these. Linears run tile by tile (tiles.h): a
// group's weights come to VTCM, meet all rows of the tile, and its sums go through the epilogue
// that all devices share (device/epilogue.h).
#include "program.h"

#include "device/epilogue.h"
#include "device/two_term.h"
#include "kernels.h"

static uint8_t vtcm[TILE_VTCM_BYTES] __attribute__((aligned(WIRE_ALIGNMENT)));
static int8_t packed[TILE_INPUT_BYTES] __attribute__((aligned(WIRE_ALIGNMENT)));
static int32_t start[TILE_ROWS];

static_assert((int)TILE_GROUP == ST_DEVICE_GROUP, "a group has one epilogue");

// NULL where there is none. The host has checked that offsets lie in the memory.
static void *at(const struct dsp *dsp, uint32_t offset) {
    return offset && offset < dsp->memory_bytes ? dsp->memory + offset : NULL;
}

static uint32_t row_of(uint32_t n) {
    return tile_padded_k(n) + TILE_K;
}

static struct st_quantized quantized_at(const struct dsp *dsp, const struct wire_slice *s,
                                        uint32_t n, bool two_term) {
    uint32_t row = row_of(n);
    return (struct st_quantized){.data = at(dsp, s->offset),
                                 .row = (two_term ? ST_TWO_TERMS : 1) * row,
                                 .rest = row,
                                 .scale = tile_padded_k(n),
                                 .two_term = two_term};
}

static struct st_outliers *outliers_at(const struct dsp *dsp, const struct wire_outliers *o) {
    struct st_outliers *list = at(dsp, o->offset);
    if (list && !o->append) st_outliers_reset(list, o->capacity);
    return list;
}

static bool goes_on(struct dsp *dsp, const struct wire_job *job) {
    dsp->own->progress++;
    return dsp->host->canceled[job - (const struct wire_job *)dsp->host->jobs] != job->sequence;
}

// ---- Quantizing

struct norm {
    uint32_t weight, n; // offset of [n] floats
    float epsilon;
};

// To where the job has room for floats, which may be where x lies.
static bool norm_rows(struct dsp *dsp, const struct wire_job *job, const struct wire_slice *x,
                      const struct norm *norm) {
    const float *weight = at(dsp, norm->weight);
    const uint8_t *from = at(dsp, x->offset);
    uint8_t *to = at(dsp, job->floats.offset);
    uint32_t lanes = dsp->host->norm_lanes;
    if (!weight) return true;
    if (!to || lanes == 0 || lanes > DSP_MAX_LANES) return false;
    for (uint32_t t = 0; t < job->n_rows; t++) {
        if (!goes_on(dsp, job)) return false;
        dsp_rmsnorm((const float *)(const void *)from, weight, norm->epsilon, norm->n, lanes,
                    (float *)(void *)to);
        from += x->row_bytes;
        to += job->floats.row_bytes;
    }
    return true;
}

static bool quantize_rows(struct dsp *dsp, const struct wire_job *job, const struct wire_slice *x,
                          const struct st_quantized *to, uint32_t n, float scale,
                          struct st_outliers *list, uint32_t *n_clipped) {
    const uint8_t *row = at(dsp, x->offset);
    for (uint32_t t = 0; t < job->n_rows; t++, row += x->row_bytes) {
        const float *from = (const float *)(const void *)row;
        if (!goes_on(dsp, job)) return false;
        if (scale > 0.0f)
            *n_clipped += st_quantize_row(&dsp_elementwise, to, from, n, scale, t, 0, list);
        else
            st_quantize_own_scale(&dsp_elementwise, to, from, n, t);
    }
    return true;
}

// ---- Products

struct linear {
    struct st_linear_op op;
    struct st_epilogue_run epilogue;
    struct st_quantized x;
    const uint8_t *groups;
};

static void describe(const struct dsp *dsp, const struct wire_linear *w, struct st_linear_op *op) {
    *op = (struct st_linear_op){.epilogue = (enum st_epilogue)w->epilogue,
                                .act = (enum st_act)w->act,
                                .n_parts = w->n_parts};
    for (uint32_t i = 0; i < WIRE_PARTS; i++) op->rows[i] = w->rows[i];
    op->weight.factor = at(dsp, w->factor);
    op->weight.bias = at(dsp, w->bias);
    op->weight.row_sums = at(dsp, w->factor); // not read: dsp_elementwise needs none
    op->weight.n_in = w->n_in;
    op->weight.n_panels = w->packed_rows / ST_INT8_PANEL;
    op->weight.input_scale = w->input_scale;
}

static void connect(const struct dsp *dsp, const struct wire_job *job, const struct wire_graph *g,
                    uint32_t i, struct linear *l) {
    struct st_epilogue_run *e = &l->epilogue;
    describe(dsp, &g->linears[i], &l->op);
    l->groups = at(dsp, g->linears[i].groups);
    l->x = quantized_at(dsp, i ? &job->quantized : &job->in, l->op.weight.n_in,
                        g->linears[i].two_term);
    *e = (struct st_epilogue_run){
        .elementwise = &dsp_elementwise, .linear_op = &l->op, .two_term = l->x.two_term};
    if (st_int8_row_scales(&l->op.weight)) {
        e->scales = l->x.data + l->x.scale;
        e->scales_row = l->x.row;
    }
    if (i + 1 == g->n_linears) {
        for (uint32_t p = 0; p < l->op.n_parts; p++) {
            e->out[p] = at(dsp, job->out[p].offset);
            e->out_row[p] = job->out[p].row_bytes / sizeof(float);
        }
        return;
    }
    e->next = quantized_at(dsp, &job->quantized, g->linears[1].n_in, g->linears[1].two_term);
    e->next_scale = g->linears[1].input_scale;
    if (e->next_scale <= 0.0f) {
        e->next_floats = at(dsp, job->floats.offset);
        e->next_row = job->floats.row_bytes / sizeof(float);
    }
    e->outliers = outliers_at(dsp, &job->outliers);
    e->add = at(dsp, job->add.offset);
    e->add_row_floats = job->add.row_bytes / sizeof(float);
    e->add_row = at(dsp, job->add_row.offset);
}

// Rows [first, first + n) of the kernels' input through one group, whose packed rows begin at
// `row`.
static bool run_group(struct dsp *dsp, const struct wire_job *job, const struct linear *l,
                      const struct tile_plan *plan, uint32_t row, uint32_t first, uint32_t n,
                      uint32_t *n_clipped) {
    uint32_t terms = l->x.two_term ? ST_TWO_TERMS : 1;
    uint32_t rows = tile_least(TILE_GROUP, st_linear_op_rows(&l->op) - row);
    int32_t *sums = (int32_t *)(void *)(vtcm + plan->group_bytes);
    const uint8_t *w = l->groups + row * plan->k;
    if (n > TILE_STEP) { // else each weight is used once
        dsp_copy_group(vtcm, w, plan->group_bytes);
        w = vtcm;
    }
    for (uint32_t t = 0; t < n; t += TILE_STEP) {
        uint32_t step = tile_least(TILE_STEP, n - t);
        if (!goes_on(dsp, job)) return false;
        dsp_product_hvx(w, packed + t * plan->k, plan->k, step, start + t, sums);
        *n_clipped += st_epilogue(&l->epilogue, row, rows, (first + t) / terms, step / terms, sums);
    }
    return true;
}

static bool run_linear(struct dsp *dsp, const struct wire_job *job, const struct linear *l,
                       uint32_t *n_clipped) {
    uint32_t n = job->n_rows * (l->x.two_term ? ST_TWO_TERMS : 1), x_row = l->x.rest;
    const int8_t *x = (const int8_t *)l->x.data;
    struct tile_plan plan;
    if (!tile_plan_make(l->op.weight.n_in, dsp->host->vtcm_bytes, &plan)) return false;
    for (uint32_t first = 0; first < n; first += plan.rows) {
        uint32_t here = tile_least(plan.rows, n - first);
        dsp_pack_rows(x + first * x_row, x_row, here, l->op.weight.n_in, packed, start);
        for (uint32_t row = 0; row < st_linear_op_rows(&l->op); row += TILE_GROUP)
            if (!run_group(dsp, job, l, &plan, row, first, here, n_clipped)) return false;
    }
    return true;
}

static bool run_graph(struct dsp *dsp, const struct wire_job *job, uint32_t *n_clipped) {
    const struct wire_graph *g = at(dsp, job->graph);
    if (!g) return false;
    for (uint32_t i = 0; i < g->n_linears && i < 2; i++) {
        struct linear l;
        connect(dsp, job, g, i, &l);
        const struct wire_linear *w = &g->linears[i];
        const struct norm norm = {w->norm, w->n_in, w->norm_epsilon};
        if (i == 1 && st_int8_row_scales(&l.op.weight) &&
            (!norm_rows(dsp, job, &job->floats, &norm) ||
             !quantize_rows(dsp, job, &job->floats, &l.x, l.op.weight.n_in, 0.0f, NULL, n_clipped)))
            return false;
        if (!run_linear(dsp, job, &l, n_clipped)) return false;
    }
    return true;
}

// ---- What the host has written, and what it reads

static void sync_at(const struct dsp *dsp, uint32_t offset, uint32_t bytes) {
    const uint8_t *data = at(dsp, offset);
    if (data) dsp_sync(data, tile_least(bytes, dsp->memory_bytes - offset));
}

static void sync_quantized(const struct dsp *dsp, const struct wire_slice *s, uint32_t n_rows,
                           uint32_t n, bool two_term) {
    sync_at(dsp, s->offset, n_rows * (two_term ? ST_TWO_TERMS : 1) * row_of(n));
}

static void sync_linear(const struct dsp *dsp, const struct wire_linear *w) {
    uint32_t floats = w->packed_rows * (uint32_t)sizeof(float);
    uint32_t groups = (w->packed_rows + TILE_GROUP - 1) / TILE_GROUP;
    sync_at(dsp, w->groups, groups * TILE_GROUP * tile_padded_k(w->n_in));
    sync_at(dsp, w->factor, floats);
    sync_at(dsp, w->bias, floats);
    sync_at(dsp, w->norm, w->n_in * (uint32_t)sizeof(float));
}

static void sync_graph(const struct dsp *dsp, const struct wire_job *job, bool before) {
    const struct wire_graph *g = at(dsp, job->graph);
    if (!g) return;
    sync_at(dsp, job->graph, sizeof *g);
    for (uint32_t i = 0; i < g->n_linears && i < 2; i++) {
        if (before) sync_linear(dsp, &g->linears[i]);
        sync_quantized(dsp, i ? &job->quantized : &job->in, job->n_rows, g->linears[i].n_in,
                       g->linears[i].two_term);
    }
    sync_at(dsp, job->floats.offset, job->n_rows * job->floats.row_bytes);
    sync_at(dsp, job->add_row.offset, job->n_rows * (uint32_t)sizeof(int32_t));
    if (before && job->add_row.offset) { // rows that add_row names
        const int32_t *rows = at(dsp, job->add_row.offset);
        for (uint32_t t = 0; t < job->n_rows; t++)
            if (rows[t] >= 0)
                sync_at(dsp, job->add.offset + (uint32_t)rows[t] * job->add.row_bytes,
                        job->add.row_bytes);
    }
    for (uint32_t p = 0; p < WIRE_PARTS; p++)
        sync_at(dsp, job->out[p].offset, job->n_rows * job->out[p].row_bytes);
}

static void sync_job(const struct dsp *dsp, const struct wire_job *job, bool before) {
    if (job->kind == WIRE_GRAPH) {
        sync_graph(dsp, job, before);
    } else {
        sync_at(dsp, job->in.offset, job->n_rows * job->in.row_bytes);
        sync_at(dsp, job->norm, job->n * (uint32_t)sizeof(float));
        sync_at(dsp, job->floats.offset, job->n_rows * job->floats.row_bytes);
        sync_quantized(dsp, &job->quantized, job->n_rows, job->n, job->two_term);
    }
    sync_at(dsp, job->outliers.offset, (uint32_t)st_outliers_bytes(job->outliers.capacity));
}

static bool run(struct dsp *dsp, const struct wire_job *job, uint32_t *n_clipped) {
    if (job->kind == WIRE_GRAPH) return run_graph(dsp, job, n_clipped);
    struct st_quantized to = quantized_at(dsp, &job->quantized, job->n, job->two_term);
    const struct norm norm = {job->norm, job->n, job->norm_epsilon};
    if (!norm_rows(dsp, job, &job->in, &norm)) return false;
    return quantize_rows(dsp, job, job->norm ? &job->floats : &job->in, &to, job->n, job->scale,
                         outliers_at(dsp, &job->outliers), n_clipped);
}

bool dsp_run_job(struct dsp *dsp, const struct wire_job *job, uint32_t *n_clipped) {
    sync_job(dsp, job, true);
    bool done = run(dsp, job, n_clipped);
    sync_job(dsp, job, false);
    return done;
}
