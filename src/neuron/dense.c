// SPDX-License-Identifier: Apache-2.0
#include "neuron/dense.h"

#include "base/size.h"
#include "neuron/section.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

uint32_t st_dense_neurons(const struct st_neurons *n, struct st_clusters clusters, size_t *first) {
    const struct st_neuron_layout *l = &n->model->neurons.layout;
    size_t step = (size_t)n->plan.cluster_entries * l->per_entry;
    *first = clusters.first * step;
    return (uint32_t)(st_min(l->n, clusters.end * step) - st_min(l->n, *first));
}

// ---- Bundles, as they lie in the package

struct bundles {
    const struct st_neurons *neurons;
    uint32_t layer;
    size_t first, n_entries;   // entries
    unsigned char *room;       // what was read; the entries begin at `data`
    const unsigned char *data; // inside
};

static stint_status check(const struct bundles *b) {
    const struct st_neurons *n = b->neurons;
    size_t bytes = n->model->neurons.layout.entry_bytes;
    for (size_t e = 0; e < b->n_entries; e++) {
        uint64_t wanted;
        memcpy(&wanted, n->model->neurons.layers[b->layer].checks + 2 * (b->first + e),
               sizeof wanted);
        if (XXH3_64bits(b->data + e * bytes, bytes) == wanted) continue;
        char name[ST_INT8_NAME_BYTES];
        st_neurons_name(b->layer, ST_NEURONS_BUNDLES, name);
        return st_section_damaged(n->path, name);
    }
    return STINT_OK;
}

static stint_status read_bundles(struct bundles *b, struct st_loader *loader) {
    const struct stint_model *m = b->neurons->model;
    size_t bytes = m->neurons.layout.entry_bytes;
    const unsigned char *bundles = m->neurons.layers[b->layer].bundles + b->first * bytes;
    uint64_t offset = (uint64_t)(bundles - (const unsigned char *)m->checkpoint.maps->data);
    size_t skip = (size_t)(offset % ST_LOAD_BLOCK), all = skip + b->n_entries * bytes;
    b->room = aligned_alloc(ST_LOAD_BLOCK, st_round_up(all, ST_LOAD_BLOCK));
    if (!b->room) return st_fail(STINT_E_NOMEM, "no memory to read neurons");
    struct st_load load = {.offset = offset - skip, .bytes = all, .to = b->room};
    st_loader_prefetch(loader, &load);
    ST_TRY(st_loader_wait(loader, &load));
    b->data = b->room + skip;
    return check(b);
}

// Row `row` of a neuron's bundle as INT8; the last one is its column of `down`.
static void bundle_row(const struct bundles *b, size_t neuron, size_t row, int8_t *w) {
    const struct st_neuron_layout *l = &b->neurons->model->neurons.layout;
    const unsigned char *entry = b->data + neuron / l->per_entry * l->entry_bytes;
    const unsigned char *at = entry + neuron % l->per_entry * l->bundle_bytes + row * l->row_bytes;
    if (l->code == ST_NEURON_INT8) {
        unsigned char change = row + 1 == l->parts ? 128 : 0;
        for (size_t i = 0; i < l->k; i++) w[i] = (int8_t)(at[i] ^ change);
        return;
    }
    for (size_t k = 0; k < l->k; k += ST_NEURON_K) st_neuron_dequantize(at, l->k, k, w + k);
}

// ---- Linears

// Where a linear's arrays lie.
struct arrays {
    int8_t *panels, *rows; // rows: of one panel, [ST_INT8_PANEL, k]
    int32_t *row_sums;
    float *factor, *bias;
};

static void lay_out_one(struct st_arena *a, const struct st_int8_weight *w, bool values,
                        struct arrays *to) {
    size_t rows = (size_t)w->n_panels * ST_INT8_PANEL;
    to->panels = ST_TAKE(a, int8_t, w->n_panels * st_int8_panel_bytes(w->n_in));
    to->rows = ST_TAKE(a, int8_t, (size_t)ST_INT8_PANEL * st_int8_padded_k(w->n_in));
    to->row_sums = ST_TAKE(a, int32_t, rows);
    if (!values) return;
    to->factor = ST_TAKE(a, float, rows);
    to->bias = w->bias ? ST_TAKE(a, float, rows) : NULL;
}

struct packing {
    struct st_dense *dense;
    const struct bundles *bundles;
    const struct st_ffn_int8 *ffn;
    struct arrays up, down;
    int8_t *columns; // [n, k] of `down`
    int8_t *row;     // [k]
};

static void lay_out(struct packing *p, struct st_arena *a) {
    size_t k = p->bundles->neurons->model->neurons.layout.k;
    lay_out_one(a, &p->dense->up.weight, true, &p->up);
    lay_out_one(a, &p->dense->down.weight, false, &p->down);
    p->columns = ST_TAKE(a, int8_t, p->dense->n * k);
    p->row = ST_TAKE(a, int8_t, k);
}

static void shape(struct packing *p) {
    struct st_dense *d = p->dense;
    d->up = p->ffn->up;
    d->up.rows[0] = d->n;
    size_t rows = st_linear_op_packed_rows(d->up.epilogue, 1, d->up.rows);
    d->up.weight = (struct st_int8_weight){.n_in = p->ffn->up.weight.n_in,
                                           .n_panels = (uint32_t)(rows / ST_INT8_PANEL),
                                           .bias = p->ffn->up.weight.bias,
                                           .fleeting = true,
                                           .input_scale = p->ffn->up.weight.input_scale};
    d->down = p->ffn->down;
    d->down.epilogue = ST_EPILOGUE_SUMS;
    d->down.weight = (struct st_int8_weight){.n_in = d->n,
                                             .fleeting = true,
                                             .n_panels = p->ffn->down.weight.n_panels,
                                             .factor = p->ffn->down.weight.factor,
                                             .input_scale = p->ffn->down.weight.input_scale};
}

// Packed row `packed` of a panel of `up`; zeros where it is padding.
static void up_row(struct packing *p, size_t packed, int8_t *to) {
    const struct st_int8_weight *from = &p->ffn->up.weight;
    size_t neuron, n_in = from->n_in;
    uint32_t part;
    memset(to, 0, n_in);
    p->up.factor[packed] = 0.0f;
    if (p->up.bias) p->up.bias[packed] = 0.0f;
    if (!st_linear_op_find_row(&p->dense->up, packed, &part, &neuron)) return;
    bundle_row(p->bundles, neuron, part, p->row);
    memcpy(to, p->row, n_in);
    size_t whole = st_sparse_packed_row(&p->ffn->up, (uint32_t)p->dense->order[neuron], part);
    p->up.factor[packed] = from->factor[whole];
    if (p->up.bias) p->up.bias[packed] = from->bias[whole];
}

static void pack_up(struct packing *p) {
    struct st_int8_weight *w = &p->dense->up.weight;
    for (size_t panel = 0; panel < w->n_panels; panel++) {
        size_t first = panel * ST_INT8_PANEL;
        for (size_t i = 0; i < ST_INT8_PANEL; i++) up_row(p, first + i, p->up.rows + i * w->n_in);
        st_int8_pack_panel(p->up.rows, ST_INT8_PANEL, w->n_in,
                           p->up.panels + panel * st_int8_panel_bytes(w->n_in),
                           p->up.row_sums + first);
    }
    w->panels = p->up.panels;
    w->row_sums = p->up.row_sums;
    w->factor = p->up.factor;
    w->bias = p->up.bias;
}

static void pack_down(struct packing *p) {
    struct st_int8_weight *w = &p->dense->down.weight;
    const struct st_neuron_layout *l = &p->bundles->neurons->model->neurons.layout;
    for (size_t i = 0; i < p->dense->n; i++)
        bundle_row(p->bundles, i, l->parts - 1, p->columns + i * l->k);
    for (size_t panel = 0; panel < w->n_panels; panel++) {
        size_t first = panel * ST_INT8_PANEL, rows = p->dense->down.rows[0];
        size_t n = st_min(ST_INT8_PANEL, rows - st_min(rows, first));
        for (size_t row = 0; row < n; row++)
            for (size_t i = 0; i < w->n_in; i++)
                p->down.rows[row * w->n_in + i] = p->columns[i * l->k + first + row];
        st_int8_pack_panel(p->down.rows, n, w->n_in,
                           p->down.panels + panel * st_int8_panel_bytes(w->n_in),
                           p->down.row_sums + first);
    }
    w->panels = p->down.panels;
    w->row_sums = p->down.row_sums;
}

static stint_status pack(struct packing *p) {
    struct st_arena measure = st_arena_measure(), arena = measure;
    shape(p);
    lay_out(p, &measure);
    ST_TRY(st_arena_check(&measure, "hot clusters"));
    ST_TRY(st_arena_open(&arena, measure.used));
    lay_out(p, &arena);
    pack_up(p);
    pack_down(p);
    p->dense->memory = arena;
    return STINT_OK;
}

stint_status st_dense_read(const struct st_neurons *n, struct st_loader *loader, uint32_t layer,
                           struct st_clusters clusters, struct st_dense *dense) {
    size_t first;
    struct st_dense d = {.n = st_dense_neurons(n, clusters, &first)};
    const struct st_neuron_layout *l = &n->model->neurons.layout;
    struct bundles b = {.neurons = n, .layer = layer, .first = first / l->per_entry};
    struct packing p = {.dense = &d, .bundles = &b, .ffn = n->model->int8.layers[layer].ffn};
    b.n_entries = st_ceil_div(d.n, l->per_entry);
    d.order = n->model->neurons.layers[layer].order + first;
    stint_status status = read_bundles(&b, loader);
    if (status == STINT_OK) status = pack(&p);
    free(b.room);
    if (status == STINT_OK) *dense = d;
    return status;
}

void st_dense_close(struct st_dense *dense) {
    st_arena_close(&dense->memory);
    *dense = (struct st_dense){0};
}
