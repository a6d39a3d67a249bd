// SPDX-License-Identifier: Apache-2.0
#include "model/weights_int8.h"

#include "kernels/nested.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

void st_int8_name(enum st_int8_role role, const struct st_config *config, uint32_t layer,
                  uint32_t expert, char name[ST_INT8_NAME_BYTES]) {
    static const char *const names[ST_INT8_ROLES] = {
        [ST_INT8_QKV] = "qkv",   [ST_INT8_O] = "o",       [ST_INT8_UP] = "up",
        [ST_INT8_DOWN] = "down", [ST_INT8_HEAD] = "head",
    };
    bool ffn = st_int8_is_ffn(role);
    if (role == ST_INT8_HEAD)
        snprintf(name, ST_INT8_NAME_BYTES, "%s", names[role]);
    else if (ffn && config->n_experts && !config->dense[layer])
        snprintf(name, ST_INT8_NAME_BYTES, "layers.%u.experts.%u.%s", layer, expert, names[role]);
    else
        snprintf(name, ST_INT8_NAME_BYTES, "layers.%u.%s", layer, names[role]);
}

bool st_int8_shape(enum st_int8_role role, const struct st_config *c, uint32_t layer,
                   uint32_t expert, struct st_linear_op *linear_op) {
    struct st_mixer_widths widths = st_config_mixer(c, layer);
    bool gated = (c->flags & ST_ARCH_GATED) != 0, bias = (c->flags & ST_ARCH_BIAS) != 0;
    struct st_linear_op s = {.n_parts = 1, .act = c->act};
    switch (role) {
    case ST_INT8_QKV:
        s = (struct st_linear_op){.n_parts = 3, .rows = {widths.q, widths.k, widths.v}};
        while (s.rows[s.n_parts - 1] == 0) s.n_parts--;
        s.weight.n_in = c->hidden;
        bias = st_config_mixer_bias(c, layer, true);
        break;
    case ST_INT8_O:
        s.rows[0] = c->hidden;
        s.weight.n_in = widths.out;
        bias = st_config_mixer_bias(c, layer, false);
        break;
    case ST_INT8_UP:
        s.epilogue = gated ? ST_EPILOGUE_GATED : ST_EPILOGUE_ACT;
        s.rows[0] = st_config_ffn(c, layer, expert);
        s.weight.n_in = c->hidden;
        if (!st_config_is_cut(c, layer)) break;
        s.epilogue = ST_EPILOGUE_FLOAT; // a cutoff needs whole rows of gates
        s.rows[s.n_parts++] = s.rows[0];
        break;
    case ST_INT8_DOWN:
        s.rows[0] = c->hidden;
        s.weight.n_in = st_config_ffn(c, layer, expert);
        break;
    case ST_INT8_HEAD:
    case ST_INT8_ROLES:
        s.rows[0] = c->vocab;
        s.weight.n_in = c->embed;
        bias = (c->flags & ST_ARCH_HEAD_BIAS) != 0;
        break;
    }
    size_t rows = st_linear_op_packed_rows(s.epilogue, s.n_parts, s.rows);
    s.weight.n_panels = (uint32_t)(rows / ST_INT8_PANEL);
    *linear_op = s;
    return bias;
}

stint_status st_int8_find_in_package(void *context, const char *name, bool required,
                                     struct st_section *section) {
    const struct st_section *s = st_package_find(context, name);
    if (!s && !required) return STINT_OK;
    if (!s) return st_fail(STINT_E_FORMAT, "section '%s' is missing", name);
    bool same = s->type == section->type && s->n_dims == section->n_dims;
    for (uint32_t d = 0; d < section->n_dims; d++) same = same && s->dims[d] == section->dims[d];
    if (!same)
        return st_fail(STINT_E_FORMAT,
                       "section '%s' has not the type and shape that the config says", name);
    section->data = s->data;
    section->bytes = s->bytes;
    return STINT_OK;
}

struct binder {
    const struct st_int8_source *source;
    const struct st_config *config;
    struct st_arena *arena;
};

// One section of a linear; NULL where it is absent and that is allowed.
static stint_status find(const struct binder *b, const char *linear, const char *ending,
                         enum st_section_type type, uint64_t rows, uint64_t k, bool required,
                         const void **data) {
    char name[ST_INT8_NAME_BYTES + 16];
    snprintf(name, sizeof name, "%s%s", linear, ending);
    struct st_section s = {
        .name = name, .type = type, .n_dims = k ? 2 : 1, .dims = {rows, k ? k : 1, 1, 1}};
    ST_TRY(b->source->find(b->source->context, name, required, &s));
    *data = s.data;
    return STINT_OK;
}

static stint_status check_scales(const char *linear, const char *ending, const float *scales,
                                 size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!(scales[i] > 0.0f) || !isfinite(scales[i]))
            return st_fail(STINT_E_FORMAT, "section '%s%s'[%zu]: a scale must be a positive number",
                           linear, ending, i);
    return STINT_OK;
}

bool st_int8_column_is_whole(const struct st_int8_weight *w, uint32_t c, const void *column,
                             size_t rows) {
    if (!w->column_checks) return true;
    uint32_t low = (uint32_t)w->column_checks[2 * (size_t)c];
    uint32_t high = (uint32_t)w->column_checks[2 * (size_t)c + 1];
    return XXH3_64bits(column, rows) == ((uint64_t)high << 32 | low);
}

// The columns of hot channels, side by side in memory.
static stint_status bind_hot(const struct binder *b, const char *linear, size_t rows,
                             struct st_int8_weight *w) {
    const void *data = NULL;
    int32_t n_hot = 0;
    ST_TRY(find(b, linear, ST_INT8_HOT, ST_SECTION_I32, w->n_in, 0, true, &data));
    const int32_t *hot = data;
    for (uint32_t c = 0; c < w->n_in; c++) {
        if (hot[c] == -1) continue;
        if (hot[c] != n_hot)
            return st_fail(STINT_E_FORMAT, "section '%s%s'[%u] is %d, expected -1 or %d", linear,
                           ST_INT8_HOT, c, hot[c], n_hot);
        n_hot++;
    }
    int8_t *columns = ST_TAKE(b->arena, int8_t, (size_t)n_hot * rows);
    w->hot = hot;
    w->hot_columns = columns;
    for (uint32_t c = 0; c < w->n_in && columns; c++) {
        if (hot[c] < 0) continue;
        memcpy(columns + hot[c] * rows, w->columns + c * rows, rows);
        if (!st_int8_column_is_whole(w, c, columns + hot[c] * rows, rows))
            return st_fail(STINT_E_FORMAT,
                           "section '%s%s' is damaged: the hash of channel %u differs; copy or "
                           "prepare the package again",
                           linear, ST_INT8_COLUMNS, c);
    }
    st_map_forget(w->columns, w->n_in * rows); // the others are read when they are needed
    return STINT_OK;
}

static stint_status bind_shadow(const struct binder *b, const char *linear, size_t rows,
                                struct st_int8_weight *w) {
    const void *columns = NULL, *scales = NULL, *checks = NULL;
    if (b->source->shadowed && !b->source->shadowed(b->source->context, linear)) return STINT_OK;
    ST_TRY(find(b, linear, ST_INT8_COLUMN_CHECKS, ST_SECTION_I32, w->n_in, 2, false, &checks));
    ST_TRY(find(b, linear, ST_INT8_COLUMNS, checks ? ST_SECTION_COLUMNS : ST_SECTION_I8, w->n_in,
                rows, false, &columns));
    if (!columns) return STINT_OK;
    ST_TRY(find(b, linear, ST_INT8_COLUMN_SCALES, ST_SECTION_F32, w->n_in, 0, true, &scales));
    w->shadowed = true;
    w->columns = columns;
    w->column_checks = checks;
    w->column_scales = scales;
    ST_TRY(check_scales(linear, ST_INT8_COLUMN_SCALES, w->column_scales, w->n_in));
    return bind_hot(b, linear, rows, w);
}

// Each row of input has a scale of its own: the factor is the scale of the weights.
static stint_status bind_row_scales(const char *linear, const float *inputs, size_t n,
                                    struct st_int8_weight *w) {
    w->factor = w->scale;
    w->two_term = inputs[0] >= 2.0f;
    if (inputs[0] < 1.0f || inputs[0] > 2.0f || inputs[0] != rintf(inputs[0]))
        return st_fail(STINT_E_FORMAT, "section '%s%s' says %g terms; 1 and 2 are possible", linear,
                       ST_INT8_INPUT, (double)inputs[0]);
    return w->scale ? check_scales(linear, ST_INT8_SCALE, w->scale, n) : STINT_OK;
}

// Weight and activation scales come as one factor.
static stint_status bind_factor(const struct binder *b, const char *linear, const float *inputs,
                                size_t n, struct st_int8_weight *w) {
    if (inputs && fpclassify(inputs[1]) == FP_ZERO) {
        if (!w->shadowed) return bind_row_scales(linear, inputs, n, w);
        return st_fail(STINT_E_FORMAT,
                       "section '%s%s' gives each token a scale, but there is '%s%s': prepare the "
                       "package again",
                       linear, ST_INT8_INPUT, linear, ST_INT8_COLUMNS);
    }
    float *factor = ST_TAKE(b->arena, float, n);
    const float *scale = w->scale;
    w->factor = factor;
    if (!factor || !scale || !inputs) return STINT_OK; // measuring
    w->input_scale = inputs[w->shadowed ? 0 : 1];
    ST_TRY(check_scales(linear, ST_INT8_INPUT, &w->input_scale, 1));
    for (size_t i = 0; i < n; i++) factor[i] = w->input_scale * scale[i];
    ST_TRY(check_scales(linear, ST_INT8_SCALE, scale, n));
    return check_scales(linear, ST_INT8_SCALE, factor, n);
}

stint_status st_int8_stored_bits(const struct st_int8_source *source, unsigned *bits) {
    struct st_section s = {
        .name = ST_NESTED_STORED_BITS, .type = ST_SECTION_I32, .n_dims = 1, .dims = {1, 1, 1, 1}};
    ST_TRY(source->find(source->context, s.name, false, &s));
    *bits = 0;
    if (!s.data) return STINT_OK;
    int32_t stored = *(const int32_t *)s.data;
    if (stored != ST_NESTED_STORED && stored != ST_NESTED_STORED - 1)
        return st_fail(STINT_E_FORMAT, "section '%s' is %d: expected 7 or 8", s.name, stored);
    *bits = (unsigned)stored;
    return STINT_OK;
}

stint_status st_int8_bind_linear_op(const struct st_int8_source *source, struct st_arena *arena,
                                    const char *name, bool must_bias,
                                    struct st_linear_op *linear_op) {
    const struct binder b = {source, NULL, arena};
    const void *panels, *scale, *sums, *input, *bias = NULL;
    struct st_int8_weight *w = &linear_op->weight;
    size_t rows = (size_t)w->n_panels * ST_INT8_PANEL;
    if (w->n_in > ST_INT8_MAX_K)
        return st_fail(STINT_E_UNSUPPORTED, "'%s' has %u inputs, INT8 sums hold %d", name, w->n_in,
                       ST_INT8_MAX_K);
    unsigned stored;
    ST_TRY(st_int8_stored_bits(source, &stored));
    ST_TRY(
        find(&b, name, ST_INT8_WEIGHT, ST_SECTION_INT8_N16K4, rows, w->n_in, stored == 0, &panels));
    ST_TRY(find(&b, name, ST_INT8_SCALE, ST_SECTION_F32, rows, 0, true, &scale));
    ST_TRY(find(&b, name, ST_INT8_SUMS, ST_SECTION_I32, rows, 0, true, &sums));
    ST_TRY(find(&b, name, ST_INT8_INPUT, ST_SECTION_F32, 2, 0, true, &input));
    ST_TRY(find(&b, name, ST_INT8_BIAS, ST_SECTION_F32, rows, 0, must_bias, &bias));
    w->panels = panels;
    w->row_sums = sums;
    w->bias = bias;
    w->scale = scale;
    ST_TRY(bind_shadow(&b, name, rows, w));
    return bind_factor(&b, name, input, rows, w);
}

static stint_status bind(const struct binder *b, enum st_int8_role role, uint32_t layer,
                         uint32_t expert, struct st_linear_op *out) {
    char name[ST_INT8_NAME_BYTES];
    struct st_linear_op linear_op;
    bool must_bias = st_int8_shape(role, b->config, layer, expert, &linear_op);
    st_int8_name(role, b->config, layer, expert, name);
    ST_TRY(st_int8_bind_linear_op(b->source, b->arena, name, must_bias, &linear_op));
    if (out) *out = linear_op;
    return STINT_OK;
}

static stint_status bind_layer(const struct binder *b, uint32_t i, struct st_layer_int8 *layer) {
    size_t n_ffn = st_config_blocks(b->config, i);
    struct st_ffn_int8 *ffn = ST_TAKE(b->arena, struct st_ffn_int8, n_ffn);
    if (layer) layer->ffn = ffn;
    ST_TRY(bind(b, ST_INT8_QKV, i, 0, layer ? &layer->qkv : NULL));
    ST_TRY(bind(b, ST_INT8_O, i, 0, layer ? &layer->o : NULL));
    for (uint32_t e = 0; e < n_ffn; e++) {
        ST_TRY(bind(b, ST_INT8_UP, i, e, ffn ? &ffn[e].up : NULL));
        ST_TRY(bind(b, ST_INT8_DOWN, i, e, ffn ? &ffn[e].down : NULL));
    }
    return STINT_OK;
}

stint_status st_linears_each(const struct st_config *config, uint32_t n_experts, st_linear_fn *fn,
                             void *context) {
    for (uint32_t i = 0; i < config->n_layers; i++) {
        ST_TRY(fn(context, (struct st_linear_id){ST_INT8_QKV, i, 0}));
        ST_TRY(fn(context, (struct st_linear_id){ST_INT8_O, i, 0}));
        for (uint32_t e = 0; e < st_config_blocks(config, i); e++) {
            if (st_config_is_routed(config, i, e) && e >= n_experts) continue;
            ST_TRY(fn(context, (struct st_linear_id){ST_INT8_UP, i, e}));
            ST_TRY(fn(context, (struct st_linear_id){ST_INT8_DOWN, i, e}));
        }
    }
    return fn(context, (struct st_linear_id){ST_INT8_HEAD, 0, 0});
}

static void note_linear_op(const struct st_linear_op *linear_op, bool middle,
                           struct st_weights_int8 *w) {
    bool row_scales = st_int8_row_scales(&linear_op->weight);
    w->row_scales = w->row_scales || row_scales;
    w->row_scaled_middle = w->row_scaled_middle || (middle && row_scales);
    w->two_term = w->two_term || linear_op->weight.two_term;
}

static void note_row_scales(const struct st_config *config, struct st_weights_int8 *w) {
    for (uint32_t i = 0; i < config->n_layers; i++) {
        note_linear_op(&w->layers[i].qkv, false, w);
        note_linear_op(&w->layers[i].o, false, w);
        for (uint32_t e = 0; e < st_config_blocks(config, i) && w->layers[i].ffn; e++) {
            note_linear_op(&w->layers[i].ffn[e].up, false, w);
            note_linear_op(&w->layers[i].ffn[e].down, true, w);
        }
    }
    note_linear_op(&w->head, false, w);
}

stint_status st_weights_int8_bind(const struct st_int8_source *source,
                                  const struct st_config *config, struct st_arena *arena,
                                  struct st_weights_int8 *weights) {
    struct binder b = {source, config, arena};
    struct st_weights_int8 w = {.layers = ST_TAKE(arena, struct st_layer_int8, config->n_layers)};
    for (uint32_t i = 0; i < config->n_layers; i++)
        ST_TRY(bind_layer(&b, i, w.layers ? &w.layers[i] : NULL));
    ST_TRY(bind(&b, ST_INT8_HEAD, 0, 0, &w.head));
    if (w.layers) note_row_scales(config, &w);
    *weights = w;
    return STINT_OK;
}
