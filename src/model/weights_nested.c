// SPDX-License-Identifier: Apache-2.0
#include "model/weights_nested.h"

#include "device/weight_set.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void st_nested_name(enum st_int8_role role, uint32_t part, const struct st_config *config,
                    uint32_t layer, uint32_t expert, char name[ST_INT8_NAME_BYTES]) {
    static const char *const names[ST_INT8_ROLES][ST_LINEAR_OP_PARTS] = {
        [ST_INT8_QKV] = {"q", "k", "v"}, [ST_INT8_O] = {"o"},       [ST_INT8_UP] = {"gate", "up"},
        [ST_INT8_DOWN] = {"down"},       [ST_INT8_HEAD] = {"head"},
    };
    bool ffn = st_int8_is_ffn(role);
    if (role == ST_INT8_UP && !(config->flags & ST_ARCH_GATED)) part = 1;
    const char *last = names[role][part];
    if (role == ST_INT8_HEAD)
        snprintf(name, ST_INT8_NAME_BYTES, "%s", last);
    else if (ffn && config->n_experts && !config->dense[layer])
        snprintf(name, ST_INT8_NAME_BYTES, "layers.%u.experts.%u.%s", layer, expert, last);
    else
        snprintf(name, ST_INT8_NAME_BYTES, "layers.%u.%s", layer, last);
}

void st_nested_groups_name(const char *linear, unsigned bits, char name[ST_INT8_NAME_BYTES + 32]) {
    snprintf(name, ST_INT8_NAME_BYTES + 32, "%s%s%u", linear, ST_NESTED_GROUPS_OF, bits);
}

size_t st_linear_parts(const struct st_weights *weights, struct st_linear_id id,
                       const struct st_linear_weight *parts[ST_LINEAR_OP_PARTS]) {
    const struct st_layer *l = &weights->layers[id.layer];
    const struct st_ffn_weight *ffn = &l->ffn[id.expert];
    const struct st_linear_weight *const of[ST_INT8_ROLES][ST_LINEAR_OP_PARTS] = {
        [ST_INT8_QKV] = {&l->q, l->k.n_out ? &l->k : NULL, l->v.n_out ? &l->v : NULL},
        [ST_INT8_O] = {&l->o},
        [ST_INT8_UP] = {&ffn->up, st_linear_exists(&ffn->gate) ? &ffn->gate : NULL},
        [ST_INT8_DOWN] = {&ffn->down},
        [ST_INT8_HEAD] = {&weights->head},
    };
    size_t n = 0;
    for (; n < ST_LINEAR_OP_PARTS && of[id.role][n]; n++) parts[n] = of[id.role][n];
    return n;
}

stint_status st_nested_check_range(int64_t low, int64_t high, stint_status otherwise) {
    if (low >= ST_NESTED_LOWEST && low <= high && high <= ST_NESTED_HIGHEST) return STINT_OK;
    return st_fail(otherwise, "nested weights of %lld to %lld bits: expected %d to %d, ascending",
                   (long long)low, (long long)high, ST_NESTED_LOWEST, ST_NESTED_HIGHEST);
}

size_t st_nested_widest(const struct st_config *c) {
    return st_max(st_max(c->hidden, c->embed),
                  st_max(st_config_widest_ffn(c), st_config_widest_mixer(c).out));
}

// ---- All of a model

struct walk {
    const struct st_config *config;
    const struct st_weights *weights; // layers NULL: they are only counted
    bool ffn;
    st_nested_place_fn *fn;
    void *context;
    struct st_nested_place place;
};

// Gate and up have one width.
static stint_status visit(struct walk *w, struct st_linear_id id, uint32_t part,
                          const struct st_linear_weight *linear) {
    struct st_linear_op linear_op;
    st_int8_shape(id.role, w->config, id.layer, id.expert, &linear_op);
    if (id.role == ST_INT8_QKV && part >= linear_op.n_parts) return STINT_OK;
    st_nested_name(id.role, part, w->config, id.layer, id.expert, w->place.name);
    w->place.id = id;
    w->place.part = part;
    w->place.linear = w->weights->layers ? linear : NULL;
    w->place.n_out = linear_op.rows[id.role == ST_INT8_UP ? 0 : part];
    w->place.n_in = linear_op.weight.n_in;
    ST_TRY(w->fn(w->context, &w->place));
    w->place.index++;
    return STINT_OK;
}

static stint_status visit_parts(void *context, struct st_linear_id id) {
    static const struct st_layer none;
    static const struct st_ffn_weight no_ffn;
    struct walk *w = context;
    const struct st_weights *all = w->weights;
    const struct st_layer *l = all->layers ? &all->layers[id.layer] : &none;
    const struct st_ffn_weight *ffn = all->layers ? &l->ffn[id.expert] : &no_ffn;
    const struct st_linear_weight *const parts[ST_INT8_ROLES][ST_LINEAR_OP_PARTS] = {
        [ST_INT8_QKV] = {&l->q, &l->k, &l->v}, [ST_INT8_O] = {&l->o},
        [ST_INT8_UP] = {&ffn->gate, &ffn->up}, [ST_INT8_DOWN] = {&ffn->down},
        [ST_INT8_HEAD] = {&all->head},
    };
    if (st_int8_is_ffn(id.role) && !w->ffn) return STINT_OK;
    bool gated = w->config->flags & ST_ARCH_GATED;
    for (uint32_t p = id.role == ST_INT8_UP && !gated; p < ST_LINEAR_OP_PARTS && parts[id.role][p];
         p++)
        ST_TRY(visit(w, id, p, parts[id.role][p]));
    return STINT_OK;
}

stint_status st_weights_nested_each(const struct st_config *config,
                                    const struct st_weights *weights, bool ffn,
                                    st_nested_place_fn *fn, void *context) {
    struct walk w = {
        .config = config, .weights = weights, .ffn = ffn, .fn = fn, .context = context};
    return st_linears_each(config, (uint32_t)st_max(1, config->n_experts), visit_parts, &w);
}

// ---- Binding

struct binder {
    const struct st_int8_source *source;
    const struct st_config *config;
    struct st_arena *arena;
    struct st_nested_range range;
    const int32_t *bits; // [precisions, n_linears] or NULL
    uint64_t n_linears;
    unsigned stored; // bits of the codes that INT8 weights are made of; 0: none
    struct st_weights_int8 *int8;
};

static stint_status find_named(const struct binder *b, const char *name, bool required,
                               struct st_section *section, const void **data) {
    section->name = name;
    for (uint32_t d = section->n_dims; d < ST_MAX_DIMS; d++) section->dims[d] = 1;
    ST_TRY(b->source->find(b->source->context, name, required, section));
    *data = section->data;
    return STINT_OK;
}

static stint_status find(const struct binder *b, const char *linear, const char *ending,
                         bool required, struct st_section *section, const void **data) {
    char name[ST_INT8_NAME_BYTES + 32];
    snprintf(name, sizeof name, "%s%s", linear, ending);
    return find_named(b, name, required, section, data);
}

static stint_status check_rows(const char *linear, const struct st_nested_row *rows, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!(rows[i].scale > 0.0f) || !isfinite(rows[i].scale) || !isfinite(rows[i].minimum))
            return st_fail(STINT_E_FORMAT,
                           "section '%s%s'[%zu]: a scale must be positive and both be finite",
                           linear, ST_NESTED_ROWS, i);
    return STINT_OK;
}

static stint_status check_outliers(const char *linear, const struct st_nested_weight *w) {
    int32_t last = 0;
    for (uint32_t r = 0; r <= w->n_out; last = w->outlier_rows[r++])
        if (w->outlier_rows[r] < last || (r == 0 && w->outlier_rows[0] != 0))
            return st_fail(STINT_E_FORMAT, "section '%s%s'[%u] is %d, after %d", linear,
                           ST_NESTED_OUTLIER_ROWS, r, w->outlier_rows[r], last);
    for (size_t i = 0; i < w->n_outliers; i++)
        if ((uint32_t)w->outlier_columns[i] >= w->n_in) // negative ones are too
            return st_fail(STINT_E_FORMAT, "section '%s%s'[%zu] is %d: there are %u columns",
                           linear, ST_NESTED_OUTLIER_COLUMNS, i, w->outlier_columns[i], w->n_in);
    return STINT_OK;
}

static stint_status bind_outliers(const struct binder *b, const char *name,
                                  struct st_nested_weight *w) {
    const void *rows, *columns, *values;
    struct st_section s = {.type = ST_SECTION_I32, .n_dims = 1, .dims = {w->n_out + 1u}};
    ST_TRY(find(b, name, ST_NESTED_OUTLIER_ROWS, false, &s, &rows));
    if (!rows) return STINT_OK;
    int32_t n = ((const int32_t *)rows)[w->n_out];
    if (n <= 0)
        return st_fail(STINT_E_FORMAT, "section '%s%s' ends with %d outliers", name,
                       ST_NESTED_OUTLIER_ROWS, n);
    s = (struct st_section){.type = ST_SECTION_I32, .n_dims = 1, .dims = {(uint64_t)n}};
    ST_TRY(find(b, name, ST_NESTED_OUTLIER_COLUMNS, true, &s, &columns));
    s = (struct st_section){
        .type = ST_SECTION_F32, .n_dims = 2, .dims = {w->high - w->low + 1u, (uint64_t)n}};
    ST_TRY(find(b, name, ST_NESTED_OUTLIERS, true, &s, &values));
    w->outlier_rows = rows;
    w->outlier_columns = columns;
    w->outliers = values;
    w->n_outliers = (size_t)n;
    return check_outliers(name, w);
}

static stint_status bind_groups(const struct binder *b, const char *name,
                                struct st_nested_weight *w) {
    for (unsigned bits = w->low; bits <= w->high; bits++) {
        char full[ST_INT8_NAME_BYTES + 32];
        const void *data;
        struct st_section s = {
            .type = ST_SECTION_I8, .n_dims = 1, .dims = {st_nested_group_bytes(w->n_out, w->n_in)}};
        st_nested_groups_name(name, bits, full);
        ST_TRY(find_named(b, full, true, &s, &data));
        w->groups[bits] = data;
    }
    return STINT_OK;
}

static int32_t bits_at(const struct binder *b, unsigned precision, uint64_t linear) {
    return b->bits[(precision - b->range.low) * b->n_linears + linear];
}

static void set_bits(const struct binder *b, struct st_nested_weight *w) {
    for (unsigned at = b->range.low; at <= b->range.high; at++)
        w->bits[at] = (uint8_t)(b->bits ? bits_at(b, at, w->index) : (int32_t)at);
    w->low = w->bits[b->range.low];
    w->high = w->bits[b->range.high];
    w->stored = (uint8_t)b->stored;
}

static stint_status bind_codes(const struct binder *b, const struct st_nested_place *p,
                               struct st_nested_weight *bound) {
    const void *codes, *checks, *rows;
    uint64_t padded = st_nested_padded_rows(p->n_out);
    unsigned bits = b->stored ? b->stored : bound->high;
    struct st_section s = {
        .type = ST_SECTION_NESTED, .n_dims = 3, .dims = {p->n_out, p->n_in, bits}};
    ST_TRY(find(b, p->name, ST_NESTED_CODES, true, &s, &codes));
    s = (struct st_section){.type = ST_SECTION_I32, .n_dims = 2, .dims = {bits - 1u, 2}};
    ST_TRY(find(b, p->name, ST_NESTED_CHECKS, false, &s, &checks));
    s = (struct st_section){
        .type = ST_SECTION_F32, .n_dims = 3, .dims = {bound->high - bound->low + 1u, padded, 2}};
    ST_TRY(find(b, p->name, ST_NESTED_ROWS, true, &s, &rows));
    bound->codes = codes;
    bound->checks = checks;
    bound->rows = rows;
    return STINT_OK;
}

static stint_status bind(void *context, const struct st_nested_place *p) {
    const struct binder *b = context;
    const void *bias;
    size_t rows = st_nested_padded_rows(p->n_out);
    struct st_nested_weight bound = {.n_out = p->n_out, .n_in = p->n_in, .index = p->index};
    set_bits(b, &bound);
    ST_TRY(bind_codes(b, p, &bound));
    ST_TRY(bind_groups(b, p->name, &bound));
    struct st_section s = {.type = ST_SECTION_F32, .n_dims = 1, .dims = {p->n_out}};
    ST_TRY(find(b, p->name, ST_NESTED_BIAS, false, &s, &bias));
    struct st_nested_weight *w = ST_TAKE(b->arena, struct st_nested_weight, 1);
    struct st_linear_weight *linear = (struct st_linear_weight *)(uintptr_t)p->linear;
    if (!w || !linear || !bound.codes) return STINT_OK;
    *w = bound;
    linear->nested = w;
    linear->bias = bias;
    ST_TRY(check_rows(p->name, w->rows, (bound.high - bound.low + 1u) * rows));
    return bind_outliers(b, p->name, w);
}

// Sections of packages that older versions wrote, by which they are refused.
static const struct {
    const char *name, *what;
    uint64_t columns;
} old_sections[] = {
    {"nested.range", "a table for each row", 0},
    {"nested.extra", "one bit more for some linears", 2},
};

static stint_status refuse_old(const struct binder *b) {
    for (size_t i = 0; i < sizeof old_sections / sizeof *old_sections; i++) {
        uint64_t n = old_sections[i].columns;
        struct st_section s = {.name = old_sections[i].name,
                               .type = ST_SECTION_I32,
                               .n_dims = n ? 2 : 1,
                               .dims = {n ? b->n_linears : 2, n ? n : 1, 1, 1}};
        ST_TRY(b->source->find(b->source->context, s.name, false, &s));
        if (s.data)
            return st_fail(STINT_E_UNSUPPORTED,
                           "its nested weights have %s, which older versions wrote and this one "
                           "does not read: make the package again with 'stint prepare'",
                           old_sections[i].what);
    }
    return STINT_OK;
}

static stint_status find_range(struct binder *b) {
    const void *data;
    struct st_section s = {.type = ST_SECTION_I32, .n_dims = 1, .dims = {2}};
    ST_TRY(find_named(b, ST_NESTED_PRECISIONS, false, &s, &data));
    if (!data) return STINT_OK;
    const int32_t *range = data;
    if (st_nested_check_range(range[0], range[1], STINT_E_FORMAT) != STINT_OK)
        return st_fail_prefix("section '%s': ", ST_NESTED_PRECISIONS);
    b->range = (struct st_nested_range){(uint8_t)range[0], (uint8_t)range[1]};
    return STINT_OK;
}

static stint_status count(void *context, const struct st_nested_place *p) {
    uint64_t *n = context;
    *n = p->index + 1u;
    return STINT_OK;
}

static stint_status find_bits(struct binder *b) {
    const void *data;
    uint64_t precisions = b->range.high - b->range.low + 1u;
    struct st_section s = {.type = ST_SECTION_I32, .n_dims = 2, .dims = {precisions, b->n_linears}};
    ST_TRY(find_named(b, ST_NESTED_BITS, false, &s, &data));
    b->bits = data;
    for (uint64_t i = 0; i < b->n_linears && data; i++) {
        int32_t last = ST_NESTED_LOWEST;
        for (unsigned at = b->range.low; at <= b->range.high; at++) {
            int32_t bits = bits_at(b, at, i);
            if (bits < last || bits > ST_NESTED_HIGHEST)
                return st_fail(STINT_E_FORMAT,
                               "section '%s'[%u, %llu] is %d: expected %d to %d, ascending",
                               ST_NESTED_BITS, at - b->range.low, (unsigned long long)i, bits, last,
                               ST_NESTED_HIGHEST);
            last = bits;
        }
    }
    return STINT_OK;
}

stint_status st_weights_nested_bind(const struct st_int8_source *source,
                                    const struct st_config *config, bool ffn,
                                    struct st_arena *arena, struct st_weights *weights,
                                    struct st_nested_range *range) {
    struct binder b = {.source = source, .config = config, .arena = arena};
    ST_TRY(find_range(&b));
    *range = b.range;
    ST_TRY(st_weights_nested_each(config, weights, ffn, count, &b.n_linears));
    ST_TRY(refuse_old(&b));
    if (!b.range.high) return STINT_OK;
    ST_TRY(find_bits(&b));
    ST_TRY(st_int8_stored_bits(source, &b.stored));
    return st_weights_nested_each(config, weights, ffn, bind, &b);
}

// ---- Sets

// Of a part, from the scales of the packed rows.
static void set_rows(const struct st_linear_op *linear_op, uint32_t part,
                     const struct st_nested_weight *w, struct st_nested_int8_row *rows) {
    for (size_t packed = 0; packed < st_linear_op_rows(linear_op); packed++) {
        uint32_t of;
        size_t row;
        if (!st_linear_op_find_row(linear_op, packed, &of, &row) || of != part) continue;
        rows[row] = st_nested_int8_row_of(st_nested_row(w, w->high, row), w->high,
                                          linear_op->weight.scale[packed]);
    }
}

static stint_status bind_set(void *context, const struct st_nested_place *p) {
    const struct binder *b = context;
    struct st_nested_weight bound = {.n_out = p->n_out, .n_in = p->n_in, .index = p->index};
    size_t padded = st_nested_padded_rows(p->n_out);
    char name[ST_INT8_NAME_BYTES + 32];
    const void *groups;
    set_bits(b, &bound);
    ST_TRY(bind_codes(b, p, &bound));
    st_nested_groups_name(p->name, bound.high, name);
    struct st_section s = {
        .type = ST_SECTION_I8, .n_dims = 1, .dims = {st_nested_group_bytes(p->n_out, p->n_in)}};
    ST_TRY(find_named(b, name, true, &s, &groups));
    bound.groups[bound.high] = groups;
    struct st_weight_set *new = ST_TAKE(b->arena, struct st_weight_set, 1);
    struct st_nested_int8_row *rows = ST_TAKE(b->arena, struct st_nested_int8_row, padded);
    if (!new || !rows || !b->int8->layers) return STINT_OK; // measuring
    ST_TRY(check_rows(p->name, bound.rows, (bound.high - bound.low + 1u) * padded));
    const struct st_linear_op *linear_op =
        st_int8_linear_op(b->int8, p->id.role, p->id.layer, p->id.expert);
    struct st_int8_weight *weight = (struct st_int8_weight *)(uintptr_t)&linear_op->weight;
    if (!weight->set) {
        *new = (struct st_weight_set){0};
        weight->set = new;
    }
    struct st_weight_set *set = (struct st_weight_set *)(uintptr_t)weight->set;
    memset(rows, 0, padded * sizeof *rows);
    set_rows(linear_op, set->n_parts, &bound, rows);
    set->codes[set->n_parts] = bound;
    set->rows[set->n_parts++] = rows;
    return STINT_OK;
}

stint_status st_weight_sets_bind(const struct st_int8_source *source,
                                 const struct st_config *config, bool ffn, struct st_arena *arena,
                                 struct st_weights_int8 *weights) {
    const struct st_weights none = {0};
    struct binder b = {.source = source, .config = config, .arena = arena, .int8 = weights};
    ST_TRY(st_int8_stored_bits(source, &b.stored));
    if (!b.stored) return STINT_OK;
    ST_TRY(find_range(&b));
    if (!b.range.high || !ffn)
        return st_fail(STINT_E_FORMAT, "section '%s': there are no nested weights for it",
                       ST_NESTED_STORED_BITS);
    ST_TRY(st_weights_nested_each(config, &none, ffn, count, &b.n_linears));
    ST_TRY(find_bits(&b));
    return st_weights_nested_each(config, &none, ffn, bind_set, &b);
}
