// SPDX-License-Identifier: Apache-2.0
#include "model/weights_neurons.h"

#include <stdio.h>

bool st_act_is_sparse(enum st_act act) {
    return act == ST_ACT_RELU || act == ST_ACT_RELU2 || act == ST_ACT_DRELU;
}

void st_neurons_name(uint32_t layer, const char *ending, char name[ST_INT8_NAME_BYTES]) {
    snprintf(name, ST_INT8_NAME_BYTES, "layers.%u%s", layer, ending);
}

static struct st_linear_op linear_op_of(uint32_t n_out, uint32_t n_in) {
    struct st_linear_op s = {.epilogue = ST_EPILOGUE_FLOAT, .n_parts = 1, .rows = {n_out}};
    s.weight.n_in = n_in;
    s.weight.n_panels = (uint32_t)st_ceil_div(n_out, ST_INT8_PANEL);
    return s;
}

void st_predictor_shape(const struct st_config *c, uint32_t rank, struct st_linear_op *in,
                        struct st_linear_op *out) {
    *in = linear_op_of(rank, c->hidden);
    *out = linear_op_of(c->ffn, rank);
}

struct binder {
    const struct st_int8_source *source;
    const struct st_config *config;
    struct st_arena *arena;
    uint32_t layer;
};

static stint_status find(const struct binder *b, const char *ending, bool required,
                         struct st_section s, const void **data) {
    char name[ST_INT8_NAME_BYTES];
    st_neurons_name(b->layer, ending, name);
    for (uint32_t d = s.n_dims; d < ST_MAX_DIMS; d++) s.dims[d] = 1;
    s.name = name;
    s.data = NULL;
    ST_TRY(b->source->find(b->source->context, name, required, &s));
    *data = s.data;
    return STINT_OK;
}

// Every neuron has one place.
static stint_status check_order(const struct binder *b, const int32_t *order) {
    uint32_t n = b->config->ffn;
    uint8_t *seen = ST_TAKE(b->arena, uint8_t, n);
    bool fits = true;
    for (uint32_t i = 0; i < n && seen; i++) {
        fits = fits && order[i] >= 0 && (uint32_t)order[i] < n && !seen[order[i]];
        if (fits) seen[order[i]] = 1;
    }
    if (fits) return STINT_OK;
    return st_fail(STINT_E_FORMAT, "section 'layers.%u%s' is not a permutation of %u neurons",
                   b->layer, ST_NEURONS_ORDER, n);
}

static stint_status bind_predictor(const struct binder *b, struct st_layer_neurons *l) {
    const void *rank = NULL;
    char name[ST_INT8_NAME_BYTES];
    struct st_section one = {.type = ST_SECTION_I32, .n_dims = 1, .dims = {1}};
    ST_TRY(find(b, ST_NEURONS_RANK, false, one, &rank));
    if (!rank) return STINT_OK;
    int32_t r = *(const int32_t *)rank;
    if (r < 1 || r > ST_NEURON_MAX_RANK)
        return st_fail(STINT_E_FORMAT, "section 'layers.%u%s' says rank %d", b->layer,
                       ST_NEURONS_RANK, r);
    st_predictor_shape(b->config, (uint32_t)r, &l->predict_in, &l->predict_out);
    st_neurons_name(b->layer, ST_NEURONS_PREDICT_IN, name);
    ST_TRY(st_int8_bind_linear_op(b->source, b->arena, name, false, &l->predict_in));
    st_neurons_name(b->layer, ST_NEURONS_PREDICT_OUT, name);
    ST_TRY(st_int8_bind_linear_op(b->source, b->arena, name, true, &l->predict_out));
    const struct st_int8_weight *in = &l->predict_in.weight, *out = &l->predict_out.weight;
    if ((in->factor && st_int8_row_scales(in)) || (out->factor && st_int8_row_scales(out)))
        return st_fail(STINT_E_FORMAT, "'%s' or its input has no static scale", name);
    l->predicted = true;
    return STINT_OK;
}

static stint_status bind_layer(const struct binder *b, const struct st_neuron_layout *layout,
                               struct st_layer_neurons *out) {
    const struct st_config *c = b->config;
    struct st_layer_neurons l = {0};
    const void *bundles, *order, *checks, *rates;
    struct st_section s = {
        .type = ST_SECTION_NEURONS, .n_dims = 3, .dims = {c->ffn, layout->parts, c->hidden}};
    if (layout->code != ST_NEURON_INT8) s.dims[s.n_dims++] = st_neuron_bits(layout->code);
    ST_TRY(find(b, ST_NEURONS_BUNDLES, true, s, &bundles));
    s = (struct st_section){.type = ST_SECTION_I32, .n_dims = 1, .dims = {c->ffn}};
    ST_TRY(find(b, ST_NEURONS_ORDER, true, s, &order));
    s = (struct st_section){.type = ST_SECTION_I32, .n_dims = 2, .dims = {layout->n_entries, 2}};
    ST_TRY(find(b, ST_NEURONS_CHECKS, true, s, &checks));
    s = (struct st_section){.type = ST_SECTION_F32, .n_dims = 2, .dims = {ST_NEURON_RATES, c->ffn}};
    ST_TRY(find(b, ST_NEURONS_RATES, true, s, &rates));
    l.bundles = bundles;
    l.order = order;
    l.checks = checks;
    l.rates = rates;
    ST_TRY(check_order(b, l.order));
    ST_TRY(bind_predictor(b, &l));
    if (out) *out = l;
    return STINT_OK;
}

// As the first layer's are.
static stint_status find_code(const struct binder *b, enum st_neuron_code *code) {
    struct st_section one = {.type = ST_SECTION_I32, .n_dims = 1, .dims = {1}};
    const void *bits;
    *code = ST_NEURON_INT8;
    ST_TRY(find(b, ST_NEURONS_BITS, false, one, &bits));
    if (!bits) return STINT_OK;
    *code = ST_NEURON_LEVELS;
    int32_t n = *(const int32_t *)bits;
    if (n == (int32_t)st_neuron_bits(*code)) return STINT_OK;
    return st_fail(STINT_E_FORMAT, "section 'layers.%u%s' says %d; 4 is possible", b->layer,
                   ST_NEURONS_BITS, n);
}

// They are there or not as the first layer's are.
stint_status st_weights_neurons_bind(const struct st_int8_source *source, const struct st_config *c,
                                     struct st_arena *arena, struct st_weights_neurons *neurons) {
    uint32_t parts = c->flags & ST_ARCH_GATED ? 3 : 2;
    struct binder b = {source, c, arena, 0};
    struct st_section s = {.type = ST_SECTION_I32, .n_dims = 1, .dims = {c->ffn}};
    const void *first;
    *neurons = (struct st_weights_neurons){0};
    if (c->n_experts || !st_act_is_sparse(c->act) || c->ffn > ST_NEURON_MAX ||
        c->hidden > ST_NEURON_MAX_K)
        return STINT_OK;
    ST_TRY(find(&b, ST_NEURONS_ORDER, false, s, &first));
    if (!first) return STINT_OK;
    enum st_neuron_code code;
    ST_TRY(find_code(&b, &code));
    neurons->layout = st_neuron_layout(c->ffn, parts, c->hidden, code);
    neurons->layers = ST_TAKE(arena, struct st_layer_neurons, c->n_layers);
    for (; b.layer < c->n_layers; b.layer++)
        ST_TRY(
            bind_layer(&b, &neurons->layout, neurons->layers ? &neurons->layers[b.layer] : NULL));
    return STINT_OK;
}
