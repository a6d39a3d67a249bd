// SPDX-License-Identifier: Apache-2.0
#include "prepare/neurons.h"

#include "base/log.h"
#include "base/size.h"
#include "session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { NARROWEST_RANK = 64, WIDTH_PER_RANK = 16 };
static const double min_gain = 0.1; // share of the bytes that a predictor must save

struct st_neuron_packer {
    const struct st_config *config;
    struct st_neuron_layout layout;
    struct st_activity activity;
    struct st_arena arena;
    struct st_pool *pool;
    struct st_predictor predictor;
    struct st_levels levels;
    int8_t *columns; // [ffn, k] of down
    int8_t *row;     // [k]
    unsigned char *entry;
    int32_t *checks; // [n_entries, 2]
    float *rates;    // [ST_NEURON_RATES, ffn] by place
    float *matrix;   // [ffn, rank] the second linear by place
    float *bias;     // [ffn]
    json_t *layers;  // the report of the packed layers
};

static void lay_out(struct st_neuron_packer *p, size_t n_tokens, size_t rank,
                    struct st_arena *arena) {
    const struct st_config *c = p->config;
    st_activity_lay_out(&p->activity, c->hidden, c->ffn, n_tokens, arena);
    p->columns = ST_TAKE(arena, int8_t, c->ffn * p->layout.k);
    p->row = ST_TAKE(arena, int8_t, p->layout.k);
    p->entry = ST_TAKE(arena, unsigned char, p->layout.entry_bytes);
    p->checks = ST_TAKE(arena, int32_t, 2 * (size_t)p->layout.n_entries);
    p->rates = ST_TAKE(arena, float, (size_t)ST_NEURON_RATES * c->ffn);
    p->matrix = ST_TAKE(arena, float, c->ffn *rank);
    p->bias = ST_TAKE(arena, float, c->ffn);
}

static stint_status open_in(struct st_neuron_packer *p, const struct st_predictor_options *options,
                            enum st_neuron_code code, size_t n_tokens, uint32_t n_threads) {
    const struct st_config *c = p->config;
    struct st_predictor_options o = *options;
    struct st_arena measure = st_arena_measure();
    if (c->ffn > ST_NEURON_MAX || c->hidden > ST_NEURON_MAX_K)
        return st_fail(STINT_E_UNSUPPORTED, "neurons: %u of width %u, at most %d of %d", c->ffn,
                       c->hidden, ST_NEURON_MAX, ST_NEURON_MAX_K);
    if (o.rank == 0) o.rank = st_max(NARROWEST_RANK, c->hidden / WIDTH_PER_RANK);
    o.rank = st_min(st_round_up(o.rank, ST_INT8_PANEL), st_round_up(c->hidden, ST_INT8_PANEL));
    p->layout = st_neuron_layout(c->ffn, c->flags & ST_ARCH_GATED ? 3 : 2, c->hidden, code);
    st_levels_fill(&p->levels);
    lay_out(p, n_tokens, o.rank, &measure);
    ST_TRY(st_arena_check(&measure, "neurons"));
    ST_TRY(st_arena_open(&p->arena, measure.used));
    lay_out(p, n_tokens, o.rank, &p->arena);
    ST_TRY(st_pool_open(n_threads, &p->pool));
    return st_predictor_open(c->hidden, c->ffn, &o, p->pool, &p->predictor);
}

stint_status st_neuron_packer_open(const struct st_config *config,
                                   const struct st_predictor_options *options,
                                   enum st_neuron_code code, size_t n_tokens, uint32_t n_threads,
                                   struct st_neuron_packer **packer) {
    struct st_neuron_packer *p = calloc(1, sizeof *p);
    if (!p) return st_fail(STINT_E_NOMEM, "no memory to pack neurons");
    p->config = config;
    p->layers = json_array();
    stint_status status = open_in(p, options, code, n_tokens, n_threads);
    if (status != STINT_OK) {
        st_neuron_packer_close(p);
        return status;
    }
    *packer = p;
    return STINT_OK;
}

void st_neuron_packer_close(struct st_neuron_packer *packer) {
    if (!packer) return;
    json_decref(packer->layers);
    st_predictor_close(&packer->predictor);
    st_pool_close(packer->pool);
    st_arena_close(&packer->arena);
    free(packer);
}

const struct st_levels *st_neurons_levels(const struct st_neuron_packer *p) {
    return p->layout.code == ST_NEURON_LEVELS ? &p->levels : NULL;
}

void st_neurons_see(struct st_neuron_packer *p, const struct st_linear_input *input) {
    if (input->role == ST_INT8_UP) st_activity_see_inputs(&p->activity, input->x, input->n_tokens);
    if (input->role == ST_INT8_DOWN)
        st_activity_see_neurons(&p->activity, input->x, input->n_tokens);
}

// ---- Bundles, from the packed linears

static stint_status look(const struct st_neuron_packer *p, enum st_int8_role role, uint32_t layer,
                         struct st_package_writer *writer, struct st_map *map,
                         const int8_t **panels) {
    char linear[ST_INT8_NAME_BYTES], name[ST_INT8_NAME_BYTES + 16];
    struct st_section section;
    st_int8_name(role, p->config, layer, 0, linear);
    snprintf(name, sizeof name, "%s%s", linear, ST_INT8_WEIGHT);
    ST_TRY(st_package_look(writer, map, name, &section));
    if (!section.data) return st_fail(STINT_E_INTERNAL, "section '%s' is not written yet", name);
    *panels = section.data;
    return STINT_OK;
}

// Four weights of a packed row, from k = 4 i on.
static const int8_t *quad(const int8_t *panels, size_t padded_k, size_t row, size_t i) {
    return panels + row / ST_INT8_PANEL * padded_k * ST_INT8_PANEL + i * 4 * ST_INT8_PANEL +
           row % ST_INT8_PANEL * 4;
}

// Copies the columns of `down` into rows.
static void turn_columns(struct st_neuron_packer *p, const int8_t *panels) {
    size_t ffn = p->config->ffn, k = p->layout.k, padded = st_int8_padded_k(ffn);
    memset(p->columns, 0, ffn * k);
    for (size_t row = 0; row < p->config->hidden; row++)
        for (size_t i = 0; i < ffn; i += 4) {
            const int8_t *four = quad(panels, padded, row, i / 4);
            for (size_t j = i; j < st_min(ffn, i + 4); j++) p->columns[j * k + row] = four[j - i];
        }
}

// A neuron's row of the linear `up`, which holds gate and up.
static void copy_row(const struct st_neuron_packer *p, const int8_t *panels, size_t neuron,
                     uint32_t part, int8_t *to) {
    size_t padded = st_int8_padded_k(p->config->hidden);
    size_t row = p->layout.parts == 3 ? neuron / ST_GATED_GROUP * ST_DEVICE_GROUP +
                                            neuron % ST_GATED_GROUP + part * ST_GATED_GROUP
                                      : neuron;
    for (size_t i = 0; i < p->layout.k; i += 4) memcpy(to + i, quad(panels, padded, row, i / 4), 4);
}

// In the layout of kernels/neuron.h.
static void store(const struct st_neuron_packer *p, const int8_t *w, bool column,
                  unsigned char *to) {
    const struct st_neuron_layout *l = &p->layout;
    if (l->code == ST_NEURON_LEVELS)
        st_levels_store(&p->levels, w, l->width, l->k, to);
    else
        for (size_t i = 0; i < l->k; i++) to[i] = (unsigned char)(w[i] + (column ? 128 : 0));
}

static void store_neuron(const struct st_neuron_packer *p, const int8_t *up, size_t neuron,
                         unsigned char *bundle) {
    const struct st_neuron_layout *l = &p->layout;
    for (uint32_t part = 0; part + 1 < l->parts; part++) {
        copy_row(p, up, neuron, part, p->row);
        store(p, p->row, false, bundle + part * l->row_bytes);
    }
    store(p, p->columns + neuron * l->k, true, bundle + (l->parts - 1) * l->row_bytes);
}

static stint_status write_entries(struct st_neuron_packer *p, const int8_t *up,
                                  struct st_package_writer *writer) {
    const struct st_neuron_layout *l = &p->layout;
    for (uint32_t e = 0; e < l->n_entries; e++) {
        memset(p->entry, 0, l->entry_bytes);
        for (uint32_t i = 0; i < l->per_entry && e * l->per_entry + i < l->n; i++)
            store_neuron(p, up, (size_t)p->activity.order[e * l->per_entry + i],
                         p->entry + i * l->bundle_bytes);
        uint64_t check = XXH3_64bits(p->entry, l->entry_bytes);
        memcpy(p->checks + 2 * e, &check, sizeof check);
        ST_TRY(st_package_append(writer, p->entry, l->entry_bytes));
    }
    return STINT_OK;
}

static stint_status begin_bundles(const struct st_neuron_packer *p, uint32_t layer,
                                  struct st_package_writer *writer) {
    char name[ST_INT8_NAME_BYTES];
    st_neurons_name(layer, ST_NEURONS_BUNDLES, name);
    struct st_section s = {.name = name,
                           .type = ST_SECTION_NEURONS,
                           .n_dims = 3,
                           .dims = {p->layout.n, p->layout.parts, p->config->hidden, 1}};
    if (p->layout.code != ST_NEURON_INT8) s.dims[s.n_dims++] = st_neuron_bits(p->layout.code);
    return st_package_begin(writer, &s);
}

static stint_status write_bundles(struct st_neuron_packer *p, uint32_t layer,
                                  struct st_package_writer *writer) {
    struct st_map up_map = {0}, down_map = {0};
    const int8_t *up, *down;
    stint_status status = look(p, ST_INT8_DOWN, layer, writer, &down_map, &down);
    if (status == STINT_OK) turn_columns(p, down);
    st_map_close(&down_map);
    if (status == STINT_OK) status = look(p, ST_INT8_UP, layer, writer, &up_map, &up);
    if (status == STINT_OK) status = begin_bundles(p, layer, writer);
    if (status == STINT_OK) status = write_entries(p, up, writer);
    st_map_close(&up_map);
    return status;
}

// ---- The report

static stint_status add(const struct st_neuron_packer *p, uint32_t layer, const char *ending,
                        enum st_section_type type, uint64_t rows, uint64_t columns,
                        const void *data, struct st_package_writer *writer) {
    char name[ST_INT8_NAME_BYTES];
    (void)p;
    st_neurons_name(layer, ending, name);
    struct st_section s = {.name = name,
                           .type = type,
                           .n_dims = columns ? 2 : 1,
                           .dims = {rows, columns ? columns : 1, 1, 1},
                           .data = data,
                           .bytes = rows * (columns ? columns : 1) * sizeof(int32_t)};
    return st_package_add(writer, &s);
}

static stint_status write_tables(struct st_neuron_packer *p, uint32_t layer,
                                 struct st_package_writer *writer) {
    size_t n = p->layout.n;
    int32_t bits = (int32_t)st_neuron_bits(p->layout.code);
    if (p->layout.code != ST_NEURON_INT8)
        ST_TRY(add(p, layer, ST_NEURONS_BITS, ST_SECTION_I32, 1, 0, &bits, writer));
    for (size_t b = 0; b < ST_NEURON_RATES; b++)
        for (size_t i = 0; i < n; i++)
            p->rates[b * n + i] = p->activity.rates[b * n + (size_t)p->activity.order[i]];
    ST_TRY(add(p, layer, ST_NEURONS_ORDER, ST_SECTION_I32, n, 0, p->activity.order, writer));
    ST_TRY(add(p, layer, ST_NEURONS_CHECKS, ST_SECTION_I32, p->layout.n_entries, 2, p->checks,
               writer));
    return add(p, layer, ST_NEURONS_RATES, ST_SECTION_F32, ST_NEURON_RATES, n, p->rates, writer);
}

// Bytes of weights that a token needs with the predictor and without it.
static bool pays(const struct st_neuron_packer *p) {
    const struct st_predictor *n = &p->predictor;
    double all = (double)p->layout.n * (double)p->layout.bundle_bytes;
    double own = (double)n->rank * (double)(n->hidden + n->ffn);
    return own + n->share * all < (1.0 - min_gain) * all;
}

static stint_status write_linear(struct st_packer *linears, uint32_t layer, const char *ending,
                                 const struct st_linear_op *linear_op, const float *w,
                                 const float *bias, float input_scale,
                                 struct st_package_writer *writer) {
    char name[ST_INT8_NAME_BYTES];
    float scales[2] = {input_scale, input_scale};
    struct st_linear_weight weight = {.data = w,
                                      .bias = bias,
                                      .row_bytes = linear_op->weight.n_in * sizeof(float),
                                      .n_out = linear_op->rows[0],
                                      .n_in = linear_op->weight.n_in,
                                      .dtype = ST_DTYPE_F32};
    st_neurons_name(layer, ending, name);
    ST_TRY(st_pack_named(linears, name, linear_op, &weight, writer));
    return st_pack_section(writer, name, ST_INT8_INPUT, ST_SECTION_F32, scales, 2);
}

static stint_status write_predictor(struct st_neuron_packer *p, uint32_t layer,
                                    struct st_packer *linears, struct st_package_writer *writer) {
    const struct st_predictor *n = &p->predictor;
    struct st_linear_op in, out;
    int32_t rank = (int32_t)n->rank;
    for (size_t i = 0; i < n->ffn; i++) {
        size_t neuron = (size_t)p->activity.order[i];
        memcpy(p->matrix + i * n->rank, n->out + neuron * n->rank, n->rank * sizeof(float));
        p->bias[i] = n->bias[neuron];
    }
    st_predictor_shape(p->config, (uint32_t)rank, &in, &out);
    ST_TRY(write_linear(linears, layer, ST_NEURONS_PREDICT_IN, &in, n->in, NULL, n->input_scale,
                        writer));
    ST_TRY(write_linear(linears, layer, ST_NEURONS_PREDICT_OUT, &out, p->matrix, p->bias,
                        n->rank_scale, writer));
    return add(p, layer, ST_NEURONS_RANK, ST_SECTION_I32, 1, 0, &rank, writer);
}

static json_t *describe_skew(const struct st_neuron_packer *p, double *active) {
    enum { PARTS = 10 };
    size_t n = p->layout.n;
    double sum = 0.0, part[PARTS] = {0};
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++) {
        sum += (double)p->rates[i];
        part[i * PARTS / n] += (double)p->rates[i];
    }
    for (size_t i = 0; i < PARTS; i++)
        json_array_append_new(array, json_real(sum > 0.0 ? part[i] / sum : 0.0));
    *active = sum / (double)n;
    return array;
}

static void note_layer(struct st_neuron_packer *p, bool predicted) {
    const struct st_predictor *n = &p->predictor;
    double active;
    json_t *skew = describe_skew(p, &active);
    json_array_append_new(
        p->layers, json_pack("{s:f, s:o, s:i, s:b, s:I, s:f, s:f}", "active", active, "skew", skew,
                             "bits", (int)st_neuron_bits(p->layout.code), "predicted", predicted,
                             "rank", (json_int_t)n->rank, "named", n->share, "found", n->found));
}

json_t *st_neurons_describe(const struct st_neuron_packer *packer) {
    return json_incref(packer->layers);
}

stint_status st_neurons_pack(struct st_neuron_packer *p, uint32_t layer, struct st_packer *linears,
                             struct st_package_writer *writer) {
    st_activity_count(&p->activity);
    stint_status status = write_bundles(p, layer, writer);
    if (status == STINT_OK) status = write_tables(p, layer, writer);
    if (status == STINT_OK) status = st_predictor_train(&p->predictor, &p->activity);
    if (status == STINT_OK) status = st_predictor_calibrate(&p->predictor, &p->activity);
    if (status == STINT_OK && pays(p)) status = write_predictor(p, layer, linears, writer);
    if (status == STINT_OK) note_layer(p, pays(p));
    st_log(STINT_LOG_INFO, "layer %u: the predictor names %.1f %% of the neurons, finds %.2f %%",
           layer, 100 * p->predictor.share, 100 * p->predictor.found);
    st_activity_clear(&p->activity);
    return status;
}
