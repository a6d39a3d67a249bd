// SPDX-License-Identifier: Apache-2.0
// Layer by layer the calibration text runs in float, then the layer's linears are quantized,
// written and forgotten (llm.npu, section 3; docs/NUMERICS.md).
#include "prepare/job.h"

#include "base/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The linears of a layer, or the head.
typedef stint_status linear_fn(struct st_prepare_job *job, struct st_pack_source *source);

static stint_status for_ffn(struct st_prepare_job *job, uint32_t layer, uint32_t expert,
                            linear_fn *fn) {
    const struct st_ffn_weight *w = &job->model->weights.layers[layer].ffn[expert];
    bool gated = w->gate.data != NULL;
    struct st_pack_source up = {.role = ST_INT8_UP, .layer = layer, .expert = expert};
    struct st_pack_source down = {
        .role = ST_INT8_DOWN, .layer = layer, .expert = expert, .parts = {&w->down}};
    up.parts[0] = gated ? &w->gate : &w->up;
    up.parts[1] = gated ? &w->up : NULL;
    ST_TRY(fn(job, &up));
    return fn(job, &down);
}

static stint_status for_layer(struct st_prepare_job *job, uint32_t layer, linear_fn *fn) {
    const struct st_layer *l = &job->model->weights.layers[layer];
    struct st_pack_source qkv = {
        .role = ST_INT8_QKV, .layer = layer, .parts = {&l->q, &l->k, &l->v}};
    struct st_pack_source o = {.role = ST_INT8_O, .layer = layer, .parts = {&l->o}};
    ST_TRY(fn(job, &qkv));
    ST_TRY(fn(job, &o));
    for (uint32_t e = 0; e < st_max(1, job->model->config.n_experts); e++)
        ST_TRY(for_ffn(job, layer, e, fn));
    return STINT_OK;
}

static stint_status for_head(struct st_prepare_job *job, linear_fn *fn) {
    struct st_pack_source head = {.role = ST_INT8_HEAD, .parts = {&job->model->weights.head}};
    return fn(job, &head);
}

static struct st_input_stats *stats_of(struct st_prepare_job *job, const struct st_pack_source *s) {
    return st_calibration_stats(&job->calibration, s->role, s->expert);
}

static void name_of(const struct st_prepare_job *job, const struct st_pack_source *s, char *name) {
    st_int8_name(s->role, &job->model->config, s->layer, s->expert, name);
}

// Before the second pass.
static stint_status pack(struct st_prepare_job *job, struct st_pack_source *s) {
    struct st_input_stats *stats = stats_of(job, s);
    s->per_tensor = job->options->weight_scale == STINT_SCALE_TENSOR;
    s->norms = stats->norms;
    ST_TRY(st_pack_linear(job->packer, s, job->writer));
    job->summary.n_linears++;
    return STINT_OK;
}

static stint_status set_scales(struct st_prepare_job *job, struct st_pack_source *s) {
    char name[ST_INT8_NAME_BYTES];
    name_of(job, s, name);
    return st_outlier_scales(stats_of(job, s), name);
}

static stint_status add_section(struct st_prepare_job *job, const char *linear, const char *ending,
                                enum st_section_type type, const void *data, size_t n) {
    char name[ST_INT8_NAME_BYTES + 16];
    snprintf(name, sizeof name, "%s%s", linear, ending);
    struct st_section s = {.name = name,
                           .type = type,
                           .n_dims = 1,
                           .dims = {n, 1, 1, 1},
                           .data = data,
                           .bytes = n * sizeof(float)};
    return st_package_add(job->writer, &s);
}

// After the second pass: all is known.
static stint_status plan(struct st_prepare_job *job, struct st_pack_source *s) {
    struct st_input_stats *stats = stats_of(job, s);
    char name[ST_INT8_NAME_BYTES];
    name_of(job, s, name);
    for (size_t i = 0; i < ST_STAGE_PARTS && s->parts[i]; i++)
        st_map_forget(s->parts[i]->data, s->parts[i]->n_out * s->parts[i]->row_bytes);
    st_outlier_choose(stats);
    ST_TRY(st_plan_add(&job->plan, name, s->role, s->layer, s->expert, stats));
    struct st_planned *l = &job->plan.linears[job->plan.n - 1];
    if (job->options->outliers == STINT_OUTLIERS_NONE)
        l->scales[0] = l->scales[1] = stats->scales[0];
    return add_section(job, name, ST_INT8_INPUT, ST_SECTION_F32, l->scales, 2);
}

static stint_status convert_layer(struct st_prepare_job *job, uint32_t i) {
    ST_TRY(st_calibration_layer(&job->calibration, i));
    ST_TRY(for_layer(job, i, set_scales));
    ST_TRY(st_prepare_step(job, "calibrating"));
    ST_TRY(for_layer(job, i, pack));
    ST_TRY(st_calibration_layer_again(&job->calibration, i));
    ST_TRY(for_layer(job, i, plan));
    return st_prepare_step(job, "quantizing");
}

stint_status st_prepare_convert(struct st_prepare_job *job) {
    for (uint32_t i = 0; i < job->model->config.n_layers; i++) ST_TRY(convert_layer(job, i));
    ST_TRY(st_calibration_head(&job->calibration));
    ST_TRY(for_head(job, set_scales));
    ST_TRY(st_prepare_step(job, "calibrating"));
    ST_TRY(for_head(job, pack));
    ST_TRY(st_calibration_head_again(&job->calibration));
    ST_TRY(for_head(job, plan));
    ST_TRY(st_prepare_step(job, "quantizing"));
    return st_plan_rank(&job->plan);
}

// ---- Columns of shadowed linears

// Four channels at a time: they lie side by side in the panels.
static stint_status write_channels(struct st_prepare_job *job, const int8_t *panels, size_t k,
                                   size_t rows, int8_t *columns) {
    size_t panel_bytes = st_int8_panel_bytes(k);
    for (size_t c = 0; c < k; c += 4) {
        for (size_t r = 0; r < rows; r++) {
            const int8_t *from = panels + r / ST_INT8_PANEL * panel_bytes + c * ST_INT8_PANEL +
                                 r % ST_INT8_PANEL * 4;
            for (size_t i = 0; i < 4; i++) columns[i * rows + r] = from[i];
        }
        ST_TRY(st_package_append(job->writer, columns, st_min(4, k - c) * rows));
    }
    return STINT_OK;
}

static stint_status write_columns(struct st_prepare_job *job, const struct st_planned *l,
                                  struct st_map *map) {
    char weight[ST_INT8_NAME_BYTES + 16], name[ST_INT8_NAME_BYTES + 16];
    struct st_section panels = {0};
    snprintf(weight, sizeof weight, "%s%s", l->name, ST_INT8_WEIGHT);
    snprintf(name, sizeof name, "%s%s", l->name, ST_INT8_COLUMNS);
    ST_TRY(st_package_look(job->writer, map, weight, &panels));
    size_t rows = panels.dims[0], k = panels.dims[1];
    struct st_section columns = {
        .name = name, .type = ST_SECTION_I8, .n_dims = 2, .dims = {k, rows, 1, 1}};
    int8_t *scratch = malloc(4 * rows);
    if (!scratch) return st_fail(STINT_E_NOMEM, "no memory for the columns of '%s'", l->name);
    stint_status status = st_package_begin(job->writer, &columns);
    if (status == STINT_OK) status = write_channels(job, panels.data, k, rows, scratch);
    free(scratch);
    if (status != STINT_OK) return status;
    st_map_forget(panels.data, panels.bytes);
    return add_section(job, l->name, ST_INT8_HOT, ST_SECTION_I32, l->hot, k);
}

stint_status st_prepare_write_columns(struct st_prepare_job *job) {
    struct st_map map = {0};
    stint_status status = STINT_OK;
    for (size_t i = 0; i < job->plan.n && status == STINT_OK; i++)
        if (job->plan.linears[i].shadowed) status = write_columns(job, &job->plan.linears[i], &map);
    st_map_close(&map);
    return status;
}
