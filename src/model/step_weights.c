// SPDX-License-Identifier: Apache-2.0
#include "model/step_weights.h"

#include "base/size.h"
#include "device/weight_set.h"

struct walk {
    const struct stint_model *model;
    struct st_nested_range range; // of nested weights; high 0: none of them
    st_weight_piece_fn *fn;
    void *context;
};

static void give(const struct walk *w, struct st_linear_id id, enum st_weight_kind kind,
                 const void *data, uint64_t bytes, uint64_t n_weights) {
    struct st_weight_piece piece = {
        .kind = kind, .linear = id, .data = data, .bytes = bytes, .n_weights = n_weights};
    w->fn(w->context, &piece);
}

static void give_float(const struct walk *w, struct st_linear_id id, bool pinned,
                       const struct st_linear_weight *linear) {
    struct st_weight_piece piece = {.kind = ST_WEIGHT_FLOAT,
                                    .linear = id,
                                    .pinned = pinned,
                                    .data = linear->data,
                                    .bytes = (uint64_t)linear->n_out * linear->row_bytes,
                                    .n_weights = (uint64_t)linear->n_out * linear->n_in};
    if (linear->data) w->fn(w->context, &piece);
}

// All bits of its codes and their groups; `below`: only the bits that no nested step reads.
static void give_set(const struct walk *w, struct st_linear_id id, const struct st_weight_set *set,
                     bool below) {
    for (uint32_t i = 0; i < set->n_parts; i++) {
        const struct st_nested_weight *n = &set->codes[i];
        size_t from = below ? st_nested_code_bytes(n->n_out, n->n_in, n->high) : 0;
        give(w, id, ST_WEIGHT_INT8, n->codes + from,
             st_nested_code_bytes(n->n_out, n->n_in, n->stored) - from,
             (uint64_t)n->n_out * n->n_in);
        if (!below)
            give(w, id, ST_WEIGHT_INT8, n->groups[n->high],
                 st_nested_group_bytes(n->n_out, n->n_in), 0);
    }
}

static void give_int8(const struct walk *w, struct st_linear_id id, bool below) {
    const struct st_linear_op *linear_op =
        st_int8_linear_op(&w->model->int8, id.role, id.layer, id.expert);
    uint64_t rows = 0;
    for (uint32_t i = 0; i < linear_op->n_parts; i++) rows += linear_op->rows[i];
    if (linear_op->epilogue == ST_EPILOGUE_GATED) rows *= 2;
    const struct st_int8_weight *weight = &linear_op->weight;
    if (weight->set) {
        give_set(w, id, weight->set, below);
        return;
    }
    give(w, id, ST_WEIGHT_INT8, weight->panels, st_int8_packed_bytes(weight), rows * weight->n_in);
}

// The codes of a precision are part of the next one's.
static void give_nested(const struct walk *w, struct st_linear_id id,
                        const struct st_nested_weight *n) {
    unsigned low = n->bits[w->range.low], high = n->bits[w->range.high];
    size_t rows = st_nested_padded_rows(n->n_out), values = (high - low + 1u) * n->n_outliers;
    give(w, id, ST_WEIGHT_NESTED_CODES, n->codes, st_nested_code_bytes(n->n_out, n->n_in, high),
         (uint64_t)n->n_out * n->n_in);
    for (unsigned bits = low; bits <= high; bits++)
        give(w, id, ST_WEIGHT_NESTED_GROUPS, n->groups[bits],
             st_nested_group_bytes(n->n_out, n->n_in), 0);
    give(w, id, ST_WEIGHT_NESTED_ROWS, st_nested_row(n, low, 0),
         (high - low + 1u) * rows * sizeof *n->rows, 0);
    if (n->n_outliers == 0) return;
    give(w, id, ST_WEIGHT_NESTED_OUTLIERS, n->outlier_columns,
         n->n_outliers * sizeof *n->outlier_columns, 0);
    give(w, id, ST_WEIGHT_NESTED_OUTLIERS, n->outliers + (low - n->low) * n->n_outliers,
         values * sizeof *n->outliers, 0);
}

// Linears that stay in float wherever they are.
static stint_status visit_pinned(const struct walk *w, struct st_linear_id id) {
    const struct st_layer *l = id.role == ST_INT8_HEAD ? NULL : &w->model->weights.layers[id.layer];
    if (id.role == ST_INT8_UP && id.expert == 0) give_float(w, id, true, &l->router);
    if (id.role == ST_INT8_UP && id.expert == 0) give_float(w, id, true, &l->shared_gate);
    if (id.role == ST_INT8_O) give_float(w, id, true, &l->input_gate);
    if (id.role == ST_INT8_O) give_float(w, id, true, &l->input_out);
    if (id.role == ST_INT8_O) give_float(w, id, true, &l->laurel_in);
    if (id.role == ST_INT8_O) give_float(w, id, true, &l->laurel_out);
    if (id.role == ST_INT8_O) give_float(w, id, true, &l->streams.router);
    if (id.role != ST_INT8_QKV) return STINT_OK;
    if (id.layer == 0) give_float(w, id, true, &w->model->weights.layer_project);
    for (uint32_t i = 1; i < w->model->config.n_streams && id.layer == 0; i++) {
        give_float(w, id, true, &w->model->weights.stream_in[i - 1]);
        give_float(w, id, true, &w->model->weights.stream_out[i - 1]);
    }
    give_float(w, id, true, &l->state.rate);
    give_float(w, id, true, &l->state.decay);
    give_float(w, id, true, &l->latent.query);
    give_float(w, id, true, &l->latent.keys);
    give_float(w, id, true, &l->latent.values);
    return STINT_OK;
}

// One kind of weights: a linear's parts are all nested, or all of another kind.
static stint_status visit(void *context, struct st_linear_id id) {
    const struct walk *w = context;
    const struct st_linear_weight *parts[ST_LINEAR_OP_PARTS];
    size_t n = st_linear_parts(&w->model->weights, id, parts);
    ST_TRY(visit_pinned(w, id));
    if (w->range.high && parts[0]->nested) {
        for (size_t p = 0; p < n; p++) give_nested(w, id, parts[p]->nested);
    } else if (w->model->int8.layers) {
        give_int8(w, id, false);
    } else {
        for (size_t p = 0; p < n; p++) give_float(w, id, false, parts[p]);
    }
    return STINT_OK;
}

void st_step_weights_each(const struct stint_model *m, unsigned bits, st_weight_piece_fn *fn,
                          void *context) {
    bool nested = st_nested_has(&m->nested, bits);
    struct walk w = {.model = m, .fn = fn, .context = context};
    if (nested) w.range = (struct st_nested_range){(uint8_t)bits, (uint8_t)bits};
    st_linears_each(&m->config, (uint32_t)st_max(1, m->config.n_experts_used), visit, &w);
}

// Those of a package that are stored twice.
static stint_status visit_stored(void *context, struct st_linear_id id) {
    const struct walk *w = context;
    const struct st_linear_weight *parts[ST_LINEAR_OP_PARTS];
    size_t n = st_linear_parts(&w->model->weights, id, parts);
    give_int8(w, id, true);
    for (size_t p = 0; p < n; p++)
        if (parts[p]->nested) give_nested(w, id, parts[p]->nested);
    return STINT_OK;
}

void st_stored_linears_each(const struct stint_model *m, st_weight_piece_fn *fn, void *context) {
    struct walk w = {.model = m, .range = m->nested, .fn = fn, .context = context};
    if (m->int8.layers)
        st_linears_each(&m->config, (uint32_t)st_max(1, m->config.n_experts), visit_stored, &w);
}
