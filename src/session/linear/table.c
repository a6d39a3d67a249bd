// SPDX-License-Identifier: Apache-2.0
// Which op computes which unit of which layer, in which phase, over which weights.
#include "session/linear/op.h"

#include "sched/dag.h"

#include <string.h>

enum { N_PHASES = 2, N_WEIGHTS = 2 }; // INT8 or float weights, nested ones

static const enum st_int8_role roles[ST_N_UNITS] = {[ST_UNIT_QKV] = ST_INT8_QKV,
                                                    [ST_UNIT_O] = ST_INT8_O,
                                                    [ST_UNIT_FFN] = ST_INT8_UP,
                                                    [ST_UNIT_EXPERT] = ST_INT8_UP,
                                                    [ST_UNIT_HEAD] = ST_INT8_HEAD};

// A way of computing a whole model, from which the table takes its ops.
struct way {
    const struct st_op *linear, *ffn, *head;
};
static const struct way in_float = {&st_op_float, &st_op_float_ffn, &st_op_float},
                        blocks = {&st_op_blocks, &st_op_blocks_ffn, &st_op_blocks},
                        nested = {&st_op_nested, &st_op_nested_ffn, &st_op_nested},
                        int8 = {&st_op_int8, &st_op_int8_ffn, &st_op_int8_head},
                        two_term = {&st_op_two_term, &st_op_two_term_ffn, &st_op_two_term_head},
                        sparse = {&st_op_two_term, &st_op_sparse_ffn, &st_op_two_term_head};

enum st_int8_role st_unit_role(enum st_unit unit) {
    return roles[unit];
}

size_t st_op_table_size(const struct stint_model *model) {
    size_t n_layers = model->config.n_layers + (model->weights.ahead.join.data != NULL);
    return n_layers * ST_N_UNITS * N_PHASES * N_WEIGHTS;
}

static const struct st_op **row_of(const struct stint_session *s, uint32_t layer,
                                   enum st_unit unit) {
    return s->ops + ((size_t)layer * ST_N_UNITS + unit) * N_PHASES * N_WEIGHTS;
}

const struct st_op *st_op_of(const struct st_run *r, enum st_unit unit) {
    return row_of(r->s, r->layer, unit)[(size_t)r->phase * N_WEIGHTS + (r->bits != 0)];
}

// Of the INT8 weights of a package, or of other models those in float, or in blocks. What a
// predictor leaves out moves roundings, so steps of models with neurons take their inputs in two
// terms.
static struct way way_of(const struct stint_session *s, enum st_phase phase) {
    const struct stint_model *m = s->model;
    if (!m->int8.layers) return st_runs_in_blocks(m, phase) ? blocks : in_float;
    if (!m->neurons.layers || phase == ST_PHASE_PREFILL) return int8;
    return s->bounded ? sparse : two_term; // only what is read neuron by neuron leaves some out
}

// Neurons have no nested weights.
static struct way nested_way(const struct stint_session *s, enum st_phase phase) {
    struct way way = nested;
    if (s->model->neurons.layers) way.ffn = way_of(s, phase).ffn;
    return way;
}

static const struct st_op *op_of(const struct stint_session *s, uint32_t layer, enum st_unit unit,
                                 const struct way *way) {
    if (unit == ST_UNIT_FFN && st_config_is_routed(&s->model->config, layer, 0))
        return &st_op_mixture;
    if (unit == ST_UNIT_FFN && way->ffn == &st_op_int8_ffn &&
        st_config_is_cut(&s->model->config, layer))
        return &st_op_cut_ffn;
    if (unit == ST_UNIT_HEAD) return way->head;
    return unit == ST_UNIT_FFN || unit == ST_UNIT_EXPERT ? way->ffn : way->linear;
}

static void fill_row(const struct stint_session *s, uint32_t layer, enum st_unit unit) {
    const struct st_op **row = row_of(s, layer, unit);
    for (size_t phase = 0; phase < N_PHASES; phase++) {
        const struct way plain = way_of(s, (enum st_phase)phase);
        const struct way bits = nested_way(s, (enum st_phase)phase);
        row[phase * N_WEIGHTS] = op_of(s, layer, unit, &plain);
        row[phase * N_WEIGHTS + 1] = s->model->nested.high ? op_of(s, layer, unit, &bits) : NULL;
    }
}

void st_op_table_fill(struct stint_session *s) {
    for (uint32_t i = 0; i < s->model->config.n_layers + s->ahead.on; i++)
        for (int unit = 0; unit < ST_N_UNITS; unit++) fill_row(s, i, (enum st_unit)unit);
}

void st_op_shadows(const struct stint_session *s, uint32_t layer, uint8_t shadows[ST_N_SUBGRAPHS]) {
    static const uint8_t kinds[] = {[ST_UNIT_QKV] = ST_SUBGRAPH_QKV,
                                    [ST_UNIT_O] = ST_SUBGRAPH_O,
                                    [ST_UNIT_FFN] = ST_SUBGRAPH_FFN};
    const struct way way = way_of(s, ST_PHASE_PREFILL);
    memset(shadows, 0, ST_N_SUBGRAPHS);
    int last = st_config_blocks(&s->model->config, layer) ? ST_UNIT_FFN : ST_UNIT_O;
    for (int unit = ST_UNIT_QKV; unit <= last; unit++) {
        const struct st_op *op = op_of(s, layer, (enum st_unit)unit, &way);
        if (op->apart) shadows[kinds[unit]] = op->apart(s->model, layer, roles[unit]);
    }
}
