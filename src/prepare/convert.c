// SPDX-License-Identifier: Apache-2.0
// For each layer: runs the calibration text in float, then quantizes and writes the layer's linears
// and releases them (llm.npu, section 3; docs/NUMERICS.md).
#include "prepare/job.h"

#include "base/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A linear of the source.
typedef stint_status linear_fn(struct st_prepare_job *job, struct st_pack_source *source);

static struct st_pack_source source_of(const struct st_prepare_job *job, enum st_int8_role role,
                                       uint32_t layer, uint32_t expert) {
    const struct st_weights *w = &job->model->weights;
    const struct st_layer *l = &w->layers[layer];
    const struct st_ffn_weight *ffn = &l->ffn[expert];
    bool gated = ffn->gate.data != NULL;
    struct st_pack_source s = {.role = role, .layer = layer, .expert = expert};
    const struct st_linear_weight *parts[ST_INT8_ROLES][ST_LINEAR_OP_PARTS] = {
        [ST_INT8_QKV] = {&l->q, l->k.n_out ? &l->k : NULL, l->v.n_out ? &l->v : NULL},
        [ST_INT8_O] = {&l->o},
        [ST_INT8_UP] = {gated ? &ffn->gate : &ffn->up, gated ? &ffn->up : NULL},
        [ST_INT8_DOWN] = {&ffn->down},
        [ST_INT8_HEAD] = {&w->head},
    };
    memcpy(s.parts, parts[role], sizeof s.parts);
    return s;
}

static stint_status for_linear(struct st_prepare_job *job, enum st_int8_role role, uint32_t layer,
                               uint32_t expert, linear_fn *fn) {
    struct st_pack_source s = source_of(job, role, layer, expert);
    return fn(job, &s);
}

static stint_status for_layer(struct st_prepare_job *job, uint32_t layer, linear_fn *fn) {
    ST_TRY(for_linear(job, ST_INT8_QKV, layer, 0, fn));
    ST_TRY(for_linear(job, ST_INT8_O, layer, 0, fn));
    for (uint32_t e = 0; e < st_config_blocks(&job->model->config, layer); e++) {
        ST_TRY(for_linear(job, ST_INT8_UP, layer, e, fn));
        ST_TRY(for_linear(job, ST_INT8_DOWN, layer, e, fn));
    }
    return STINT_OK;
}

static struct st_input_stats *stats_of(struct st_prepare_job *job, const struct st_pack_source *s) {
    return st_calibration_stats(&job->calibration, s->role, s->expert);
}

static void name_of(const struct st_prepare_job *job, const struct st_pack_source *s, char *name) {
    st_int8_name(s->role, &job->model->config, s->layer, s->expert, name);
}

// Called before the second pass.
static stint_status pack(struct st_prepare_job *job, struct st_pack_source *s) {
    struct st_input_stats *stats = stats_of(job, s);
    s->per_tensor = job->options->weight_scale == STINT_SCALE_TENSOR;
    s->norms = stats->norms;
    if (job->neurons) s->levels = st_neurons_levels(job->neurons);
    bool nested = job->nested && !(job->neurons && st_int8_is_ffn(s->role));
    const float *scales = NULL;
    if (nested) ST_TRY(st_nested_finish_moments(stats, s->layer));
    // A tied embedding has the head's rows: there each weight counts by itself.
    bool tied = s->role == ST_INT8_HEAD && job->model->config.tied;
    s->nearest = tied;
    if (nested && stats->products) {
        st_slopes_set(&job->slopes, stats->products, stats->n,
                      job->calibration.session->group.pool);
        s->slopes = &job->slopes;
    }
    s->max = stats->max;
    s->pool = job->calibration.session->group.pool;
    if (job->options->one_set)
        ST_TRY(st_pack_scales(job->packer, s, job->writer, &scales));
    else
        ST_TRY(st_pack_linear(job->packer, s, job->writer));
    job->summary.n_linears++;
    if (!nested) return STINT_OK;
    return st_nested_pack(job->nested, s, stats, scales, job->writer);
}

static stint_status set_scales(struct st_prepare_job *job, struct st_pack_source *s) {
    char name[ST_INT8_NAME_BYTES];
    name_of(job, s, name);
    return st_outlier_scales(stats_of(job, s), name);
}

// Releases the memory of the source's weights, where a file has them.
static void forget(const struct st_prepare_job *job, const struct st_pack_source *s) {
    for (size_t i = 0; i < ST_LINEAR_OP_PARTS && s->parts[i]; i++)
        st_checkpoint_forget(&job->model->checkpoint, s->parts[i]->data,
                             s->parts[i]->n_out * s->parts[i]->row_bytes);
}

// Called after the second pass, when the statistics are complete.
static stint_status plan(struct st_prepare_job *job, struct st_pack_source *s) {
    struct st_input_stats *stats = stats_of(job, s);
    char name[ST_INT8_NAME_BYTES];
    name_of(job, s, name);
    forget(job, s);
    st_outlier_select(stats);
    ST_TRY(st_plan_add(&job->plan, name, s->role, s->layer, s->expert, stats));
    struct st_planned *l = &job->plan.linears[job->plan.n - 1];
    l->own_scales =
        s->role == ST_INT8_DOWN && job->model->weights.layers[s->layer].ffn[s->expert].norm != NULL;
    if (job->options->outliers == STINT_OUTLIERS_NONE)
        l->scales[0] = l->scales[1] = stats->scales[0];
    return STINT_OK;
}

static stint_status convert_layer(struct st_prepare_job *job, uint32_t i) {
    ST_TRY(st_calibration_layer(&job->calibration, i));
    ST_TRY(for_layer(job, i, set_scales));
    ST_TRY(st_prepare_step(job, "calibrating"));
    ST_TRY(for_layer(job, i, pack));
    ST_TRY(st_calibration_layer_again(&job->calibration, i));
    ST_TRY(for_layer(job, i, plan));
    if (job->neurons) ST_TRY(st_neurons_pack(job->neurons, i, job->packer, job->writer));
    return st_prepare_step(job, job->neurons ? "quantizing, learning" : "quantizing");
}

stint_status st_prepare_convert(struct st_prepare_job *job) {
    for (uint32_t i = 0; i < job->model->config.n_layers; i++) ST_TRY(convert_layer(job, i));
    ST_TRY(st_calibration_head(&job->calibration));
    ST_TRY(for_linear(job, ST_INT8_HEAD, 0, 0, set_scales));
    ST_TRY(st_prepare_step(job, "calibrating"));
    ST_TRY(for_linear(job, ST_INT8_HEAD, 0, 0, pack));
    ST_TRY(st_calibration_head_again(&job->calibration));
    ST_TRY(for_linear(job, ST_INT8_HEAD, 0, 0, plan));
    ST_TRY(st_prepare_step(job, "quantizing"));
    return st_plan_rank(&job->plan);
}

stint_status st_prepare_write_inputs(struct st_prepare_job *job) {
    for (size_t i = 0; i < job->plan.n; i++) {
        const struct st_planned *l = &job->plan.linears[i];
        ST_TRY(st_pack_section(job->writer, l->name, ST_INT8_INPUT, ST_SECTION_F32, l->input, 2));
    }
    return STINT_OK;
}

// ---- Columns of shadowed linears: the most important linears first. The columns that turn out not
// to be needed are then at the end of the file and can be cut off.

static stint_status write_columns(struct st_prepare_job *job, struct st_planned *l,
                                  struct st_map *map) {
    struct st_pack_source s = source_of(job, l->role, l->layer, l->expert);
    struct st_section scales = {0};
    char name[ST_INT8_NAME_BYTES + 16];
    snprintf(name, sizeof name, "%s%s", l->name, ST_INT8_SCALE);
    ST_TRY(st_package_look(job->writer, map, name, &scales));
    l->first_section = st_package_sections(job->writer);
    l->written = true;
    ST_TRY(st_pack_columns(&job->model->config, &s, scales.data, job->writer));
    forget(job, &s);
    return st_pack_section(job->writer, l->name, ST_INT8_HOT, ST_SECTION_I32, l->hot, l->n_in);
}

stint_status st_prepare_write_columns(struct st_prepare_job *job) {
    const struct st_plan *p = &job->plan;
    struct st_map map = {0};
    stint_status status = STINT_OK;
    for (size_t i = p->n; i-- > 0 && status == STINT_OK;) {
        struct st_planned *l = &p->linears[p->by_importance[i]];
        if (l->shadowed && !l->written) status = write_columns(job, l, &map);
        if (status == STINT_OK && st_prepare_is_canceled((void *)(uintptr_t)job->options))
            status = st_fail(STINT_E_CANCELED, "canceled");
    }
    st_map_close(&map);
    return status;
}

stint_status st_prepare_drop_columns(struct st_prepare_job *job) {
    // The plan may have been ranked anew since: the first in the file counts, not in the plan.
    size_t first = SIZE_MAX;
    for (size_t i = 0; i < job->plan.n; i++) {
        const struct st_planned *l = &job->plan.linears[i];
        if (l->written && !l->shadowed) first = st_min(first, l->first_section);
    }
    return first == SIZE_MAX ? STINT_OK : st_package_drop(job->writer, first);
}
