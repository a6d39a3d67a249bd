// SPDX-License-Identifier: Apache-2.0
#include "prepare/pack.h"

#include "base/cpu.h"
#include "base/size.h"
#include "kernels/elementwise.h"
#include "kernels/dequantize.h"
#include "kernels/tile.h"
#include "prepare/descent.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PANELS = 12,
    BLOCK = PANELS * ST_INT8_PANEL, // rows at a time
    PARTS = BLOCK / ST_DESCENT_ROWS,
};

static_assert((int)BLOCK % ST_DESCENT_ROWS == 0 && (int)BLOCK % ST_NEURON_K == 0, "whole parts");

struct st_packer {
    const struct st_config *config;
    const struct st_dequantize *dequantize;
    const struct st_elementwise *elementwise;
    const struct st_tile *tile;
    struct st_arena arena;
    float *row;    // [k] one row of the source
    int8_t *rows;  // [BLOCK, k] quantized
    int8_t *panel; // packed
    // For descent, of each part of a block: weights over their row's scale, codes, and scratch.
    float *exact[PARTS], *value[PARTS], *scratch[PARTS];
    float *scale; // [packed rows], as are the next two
    int32_t *sums;
    float *bias;
};

struct widest {
    const struct st_config *config;
    size_t k, rows;
};

static stint_status widen(void *context, struct st_linear_id id) {
    struct widest *w = context;
    struct st_linear_op linear_op;
    st_int8_shape(id.role, w->config, id.layer, id.expert, &linear_op);
    w->k = st_max(w->k, linear_op.weight.n_in);
    w->rows = st_max(w->rows, (size_t)linear_op.weight.n_panels * ST_INT8_PANEL);
    return STINT_OK;
}

static void lay_out(struct st_packer *p, struct st_arena *arena) {
    struct widest widest = {p->config, 0, 0};
    st_linears_each(p->config, (uint32_t)st_max(1, p->config->n_experts), widen, &widest);
    size_t k = widest.k, rows = widest.rows;
    p->row = ST_TAKE(arena, float, k);
    p->rows = ST_TAKE(arena, int8_t, k * BLOCK);
    p->panel = ST_TAKE(arena, int8_t, st_int8_panel_bytes(k));
    for (size_t i = 0; i < PARTS; i++) {
        p->exact[i] = ST_TAKE(arena, float, k *ST_DESCENT_ROWS);
        p->value[i] = ST_TAKE(arena, float, k *ST_DESCENT_ROWS);
        p->scratch[i] = ST_TAKE(arena, float, st_descent_scratch(p->tile, k, ST_DESCENT_ROWS));
    }
    p->scale = ST_TAKE(arena, float, rows);
    p->sums = ST_TAKE(arena, int32_t, rows);
    p->bias = ST_TAKE(arena, float, rows);
}

stint_status st_packer_open(const struct st_config *config, struct st_packer **packer) {
    struct st_packer *p = calloc(1, sizeof *p);
    struct st_arena measure = st_arena_measure();
    if (!p) return st_fail(STINT_E_NOMEM, "no memory to pack weights");
    p->config = config;
    p->dequantize = st_dequantize_select(st_cpu_flags());
    p->elementwise = st_elementwise_select(st_cpu_flags());
    p->tile = st_tile_select(st_cpu_flags());
    lay_out(p, &measure);
    stint_status status = st_arena_open(&p->arena, measure.used);
    if (status == STINT_OK) {
        lay_out(p, &p->arena);
        status = st_arena_check(&p->arena, "packed weights");
    }
    if (status != STINT_OK) {
        st_packer_close(p);
        return status;
    }
    *packer = p;
    return STINT_OK;
}

void st_packer_close(struct st_packer *packer) {
    if (!packer) return;
    st_arena_close(&packer->arena);
    free(packer);
}

struct packing {
    struct st_packer *p;
    const struct st_pack_source *source;
    struct st_linear_op linear_op;
    char name[ST_INT8_NAME_BYTES];
    float tensor_scale; // 0: one per row
};

// Dequantizes the row into p->row and returns its largest magnitude.
static stint_status load_row(const struct packing *j, uint32_t part, size_t row, float *max) {
    const struct st_linear_weight *w = j->source->parts[part];
    float *x = j->p->row, best = 0.0f;
    st_linear_dequantize_row(j->p->dequantize, w, row, 0, w->n_in, x);
    for (size_t i = 0; i < w->n_in; i++) {
        float magnitude = fabsf(x[i]);
        if (magnitude > best || isnan(magnitude)) best = magnitude; // a NaN stays
    }
    if (!isfinite(best))
        return st_fail(STINT_E_FORMAT, "'%s', row %zu, holds a value that is not finite", j->name,
                       row);
    *max = best;
    return STINT_OK;
}

static float scale_of(float max) {
    float scale = max / 127.0f;
    return scale >= 0x1p-100f ? scale : 1.0f; // a row of zeros
}

static stint_status measure_tensor(struct packing *j) {
    float max = 0.0f, row_max = 0.0f;
    for (size_t packed = 0; packed < (size_t)j->linear_op.weight.n_panels * ST_INT8_PANEL;
         packed++) {
        uint32_t part;
        size_t row;
        if (!st_linear_op_find_row(&j->linear_op, packed, &part, &row)) continue;
        ST_TRY(load_row(j, part, row, &row_max));
        max = fmaxf(max, row_max);
    }
    j->tensor_scale = scale_of(max);
    return STINT_OK;
}

// Row r of a block, for descent.
static void keep_row(const struct packing *j, size_t r, float scale) {
    float *exact = j->p->exact[r / ST_DESCENT_ROWS] + r % ST_DESCENT_ROWS;
    for (size_t i = 0; i < j->linear_op.weight.n_in; i++)
        exact[i * ST_DESCENT_ROWS] = j->p->row[i] / scale;
}

static stint_status pack_row(const struct packing *j, size_t packed, int8_t *q) {
    struct st_packer *p = j->p;
    uint32_t part;
    size_t row, k = j->linear_op.weight.n_in;
    float max;
    p->scale[packed] = 1.0f;
    p->bias[packed] = 0.0f;
    memset(q, 0, k);
    if (!st_linear_op_find_row(&j->linear_op, packed, &part, &row)) {
        memset(p->row, 0, k * sizeof *p->row);
        return STINT_OK;
    }
    ST_TRY(load_row(j, part, row, &max));
    const struct st_linear_weight *w = j->source->parts[part];
    p->scale[packed] = j->tensor_scale > 0.0f ? j->tensor_scale : scale_of(max);
    if (w->bias) p->bias[packed] = w->bias[row];
    p->elementwise->quantize(p->row, k, p->scale[packed], 0, (uint8_t *)q);
    for (size_t i = 0; i < k && j->source->norms; i++) j->source->norms[i] += p->row[i] * p->row[i];
    return STINT_OK;
}

// What fills a part of a block up.
static void clear_row(const struct packing *j, size_t r) {
    float *exact = j->p->exact[r / ST_DESCENT_ROWS] + r % ST_DESCENT_ROWS;
    size_t k = j->linear_op.weight.n_in;
    memset(j->p->rows + r * k, 0, k);
    for (size_t i = 0; i < k; i++) exact[i * ST_DESCENT_ROWS] = 0.0f;
}

// A neuron's rows are rows of `up`, and its column is one of `down`, of which BLOCK rows are in
// memory.
static void round_block(const struct packing *j, size_t n_rows) {
    const struct st_levels *levels = j->source->levels;
    int8_t *rows = j->p->rows;
    size_t k = j->linear_op.weight.n_in;
    if (j->source->role == ST_INT8_DOWN)
        for (size_t r = 0; r < n_rows; r += ST_NEURON_K)
            for (size_t i = 0; i < k; i++)
                st_levels_round(levels, rows + r * k + i, st_min(ST_NEURON_K, n_rows - r), k);
    for (size_t r = 0; r < n_rows && j->source->role == ST_INT8_UP; r++)
        for (size_t i = 0; i < k; i += ST_NEURON_K)
            st_levels_round(levels, rows + r * k + i, st_min(ST_NEURON_K, k - i), 1);
}

// ---- Descent

// Of a number within 2^22, halves to even.
static float nearest(float x) {
    const float whole = 0x1.8p23f; // floats from 2^23 to 2^24 have no bits behind the point
    return (x + whole) - whole;
}

static void select_nearest(void *context, size_t element, const float *target, float *value) {
    (void)context, (void)element;
    for (size_t r = 0; r < ST_DESCENT_ROWS; r++) {
        float x = target[r] > -127.0f ? target[r] : -127.0f;
        value[r] = nearest(x < 127.0f ? x : 127.0f);
    }
}

static void descend_part(void *context, size_t part, size_t worker) {
    (void)worker;
    const struct packing *j = context;
    size_t k = j->linear_op.weight.n_in;
    int8_t *rows = j->p->rows + part * ST_DESCENT_ROWS * k;
    float *value = j->p->value[part];
    struct st_descent d = {.n_rows = ST_DESCENT_ROWS,
                           .w = j->p->exact[part],
                           .k = k,
                           .slopes = j->source->slopes,
                           .max = j->source->max,
                           .select = select_nearest,
                           .value = value};
    for (size_t i = 0; i < k; i++)
        for (size_t r = 0; r < ST_DESCENT_ROWS; r++)
            value[i * ST_DESCENT_ROWS + r] = (float)rows[r * k + i];
    st_descent_run(&d, j->p->scratch[part]);
    for (size_t i = 0; i < k; i++)
        for (size_t r = 0; r < ST_DESCENT_ROWS; r++)
            rows[r * k + i] = (int8_t)value[i * ST_DESCENT_ROWS + r];
}

static void descend(const struct packing *j, size_t n_rows) {
    size_t parts = st_ceil_div(n_rows, ST_DESCENT_ROWS);
    for (size_t r = n_rows; r < parts * ST_DESCENT_ROWS; r++) clear_row(j, r);
    st_pool_run(j->source->pool, descend_part, (void *)(uintptr_t)j, parts);
}

static stint_status write_panels(const struct packing *j, struct st_package_writer *writer) {
    bool descends = j->source->slopes && !j->source->nearest;
    size_t k = j->linear_op.weight.n_in,
           rows = (size_t)j->linear_op.weight.n_panels * ST_INT8_PANEL;
    for (size_t first = 0; first < rows; first += BLOCK) {
        size_t n = st_min(BLOCK, rows - first);
        for (size_t r = 0; r < n; r++) {
            ST_TRY(pack_row(j, first + r, j->p->rows + r * k));
            if (descends) keep_row(j, r, j->p->scale[first + r]);
        }
        if (descends) descend(j, n);
        if (j->source->levels) round_block(j, n);
        for (size_t r = 0; r < n; r += ST_INT8_PANEL) {
            st_int8_pack_panel(j->p->rows + r * k, ST_INT8_PANEL, k, j->p->panel,
                               j->p->sums + first + r);
            ST_TRY(st_package_append(writer, j->p->panel, st_int8_panel_bytes(k)));
        }
    }
    return STINT_OK;
}

stint_status st_pack_section(struct st_package_writer *writer, const char *linear,
                             const char *ending, enum st_section_type type, const void *data,
                             size_t n) {
    char name[ST_INT8_NAME_BYTES + 32];
    snprintf(name, sizeof name, "%s%s", linear, ending);
    struct st_section s = {.name = name,
                           .type = type,
                           .n_dims = 1,
                           .dims = {n, 1, 1, 1},
                           .data = data,
                           .bytes = n * sizeof(float)};
    return st_package_add(writer, &s);
}

static bool has_bias(const struct packing *j) {
    for (uint32_t i = 0; i < ST_LINEAR_OP_PARTS; i++)
        if (j->source->parts[i] && j->source->parts[i]->bias) return true;
    return false;
}

static stint_status begin(struct packing *j) {
    uint32_t n_in = j->linear_op.weight.n_in;
    if (n_in > ST_INT8_MAX_K)
        return st_fail(STINT_E_UNSUPPORTED, "'%s' has %u inputs, INT8 sums hold %d", j->name, n_in,
                       ST_INT8_MAX_K);
    if (j->source->per_tensor) ST_TRY(measure_tensor(j));
    if (j->source->norms) memset(j->source->norms, 0, n_in * sizeof *j->source->norms);
    return STINT_OK;
}

static stint_status write_scales(const struct packing *j, struct st_package_writer *writer) {
    size_t rows = st_linear_op_rows(&j->linear_op);
    ST_TRY(st_pack_section(writer, j->name, ST_INT8_SCALE, ST_SECTION_F32, j->p->scale, rows));
    if (!has_bias(j)) return STINT_OK;
    return st_pack_section(writer, j->name, ST_INT8_BIAS, ST_SECTION_F32, j->p->bias, rows);
}

static stint_status pack(struct packing *j, struct st_package_writer *writer) {
    size_t rows = st_linear_op_rows(&j->linear_op);
    char name[ST_INT8_NAME_BYTES + 16];
    snprintf(name, sizeof name, "%s%s", j->name, ST_INT8_WEIGHT);
    struct st_section section = {.name = name,
                                 .type = ST_SECTION_INT8_N16K4,
                                 .n_dims = 2,
                                 .dims = {rows, j->linear_op.weight.n_in, 1, 1}};
    ST_TRY(begin(j));
    ST_TRY(st_package_begin(writer, &section));
    ST_TRY(write_panels(j, writer));
    ST_TRY(st_pack_section(writer, j->name, ST_INT8_SUMS, ST_SECTION_I32, j->p->sums, rows));
    return write_scales(j, writer);
}

static struct packing packing_of(struct st_packer *packer, const struct st_pack_source *source) {
    struct packing j = {.p = packer, .source = source};
    st_int8_shape(source->role, packer->config, source->layer, source->expert, &j.linear_op);
    st_int8_name(source->role, packer->config, source->layer, source->expert, j.name);
    return j;
}

stint_status st_pack_scales(struct st_packer *packer, const struct st_pack_source *source,
                            struct st_package_writer *writer, const float **scales) {
    struct packing j = packing_of(packer, source);
    ST_TRY(begin(&j));
    for (size_t row = 0; row < st_linear_op_rows(&j.linear_op); row++)
        ST_TRY(pack_row(&j, row, packer->rows));
    *scales = packer->scale;
    return write_scales(&j, writer);
}

stint_status st_pack_linear(struct st_packer *packer, const struct st_pack_source *source,
                            struct st_package_writer *writer) {
    struct packing j = packing_of(packer, source);
    return pack(&j, writer);
}

stint_status st_pack_named(struct st_packer *packer, const char *name,
                           const struct st_linear_op *linear_op,
                           const struct st_linear_weight *weight,
                           struct st_package_writer *writer) {
    struct st_pack_source source = {.parts = {weight}};
    struct packing j = {.p = packer, .source = &source, .linear_op = *linear_op};
    snprintf(j.name, sizeof j.name, "%s", name);
    return pack(&j, writer);
}
