// SPDX-License-Identifier: Apache-2.0
#include "session/linear/columns.h"

#include "base/size.h"
#include "neuron/slices.h"

#include <string.h>

enum { NOT_THERE = -1, ALIGNMENT = 64 };

// ---- Sizes

struct walk {
    const struct stint_model *model;
    unsigned steps;
    uint64_t tables, bytes; // of all linears; of all their cold columns
    struct st_columns *columns;
    struct st_arena *arena;
};

static size_t rows_of(const struct st_int8_weight *w) {
    return (size_t)w->n_panels * ST_INT8_PANEL;
}

uint32_t st_columns_cold(const struct st_int8_weight *w) {
    uint32_t n = w->shadowed ? w->n_in : 0;
    for (uint32_t c = 0; c < w->n_in && w->shadowed && w->hot; c++) n -= w->hot[c] >= 0;
    return n;
}

uint32_t st_columns_room(const struct st_columns *columns, const struct st_int8_weight *w) {
    return (uint32_t)(columns->share * st_columns_cold(w));
}

// The linear of an id, if steps use its columns and there are cold ones.
static const struct st_int8_weight *weight_of(const struct walk *k, struct st_linear_id id) {
    const struct st_int8_weight *w =
        &st_int8_linear_op(&k->model->int8, id.role, id.layer, id.expert)->weight;
    unsigned step = st_int8_is_ffn(id.role) ? ST_STEPS_FFN : ST_STEPS_REST;
    return k->steps & step && st_columns_cold(w) > 0 ? w : NULL;
}

static stint_status add_bytes(void *context, struct st_linear_id id) {
    struct walk *k = context;
    const struct st_int8_weight *w = weight_of(k, id);
    if (!w) return STINT_OK;
    size_t of_one = rows_of(w) + sizeof(uint32_t) + sizeof(uint8_t);
    k->tables += sizeof(struct st_kept) + w->n_in * sizeof(int32_t) + 4 * ALIGNMENT;
    k->bytes += (uint64_t)st_columns_cold(w) * of_one;
    return STINT_OK;
}

static void each(struct walk *k, st_linear_fn *fn) {
    const struct st_config *c = &k->model->config;
    if (!k->model->int8.layers) return;
    (void)st_linears_each(c, (uint32_t)st_max(1, c->n_experts), fn, k);
}

uint64_t st_columns_bytes(const struct stint_model *model, unsigned steps) {
    struct walk k = {.model = model, .steps = steps};
    each(&k, add_bytes);
    return k.tables + k.bytes;
}

void st_columns_plan(const struct stint_model *model, unsigned steps, uint64_t bytes,
                     struct st_columns *columns) {
    struct walk k = {.model = model, .steps = steps};
    each(&k, add_bytes);
    *columns = (struct st_columns){.steps = steps};
    if (k.bytes == 0 || bytes <= k.tables) return;
    columns->share = st_min(bytes - k.tables, k.bytes) / (double)k.bytes;
}

// ---- Memory

static stint_status lay_out_one(void *context, struct st_linear_id id) {
    struct walk *k = context;
    const struct st_int8_weight *w = weight_of(k, id);
    if (!w) return STINT_OK;
    struct st_kept one = {.columns = w->columns,
                          .n_in = w->n_in,
                          .n_room = st_columns_room(k->columns, w),
                          .rows = rows_of(w)};
    one.place = ST_TAKE(k->arena, int32_t, one.n_in);
    one.channel = ST_TAKE(k->arena, uint32_t, one.n_room);
    one.used = ST_TAKE(k->arena, uint8_t, one.n_room);
    one.data = ST_TAKE(k->arena, int8_t, one.n_room * one.rows);
    if (k->columns->linears) {
        struct st_kept *all = k->columns->linears;
        uint32_t at = k->columns->n_linears;
        for (; at > 0 && all[at - 1].columns > one.columns; at--) all[at] = all[at - 1];
        all[at] = one;
        memset(one.place, 0xff, one.n_in * sizeof *one.place); // NOT_THERE
    }
    k->columns->n_linears++;
    return STINT_OK;
}

static stint_status count_one(void *context, struct st_linear_id id) {
    struct walk *k = context;
    k->bytes += weight_of(k, id) != NULL;
    return STINT_OK;
}

void st_columns_lay_out(struct st_columns *columns, const struct stint_model *model,
                        struct st_arena *arena) {
    struct walk k = {.model = model, .steps = columns->steps, .columns = columns, .arena = arena};
    columns->n_linears = 0;
    if (columns->share <= 0.0) return;
    each(&k, count_one);
    columns->linears = ST_TAKE(arena, struct st_kept, k.bytes);
    each(&k, lay_out_one);
}

// ---- Use

struct st_kept *st_columns_of(const struct st_columns *columns, const struct st_int8_weight *w) {
    uint32_t low = 0, high = columns->n_linears;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        struct st_kept *kept = &columns->linears[middle];
        if (kept->columns == w->columns) return kept;
        if (kept->columns < w->columns)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const int8_t *st_columns_find(struct st_kept *k, uint32_t channel) {
    int32_t place = k->place[channel];
    if (place == NOT_THERE) return NULL;
    k->used[place] = 1;
    return k->data + (size_t)place * k->rows;
}

// A place that was not used since the hand came by; n_room: every one is held.
static uint32_t make_room(struct st_kept *k, const uint8_t *held) {
    if (k->n_taken < k->n_room) return k->n_taken++;
    for (uint32_t i = 0; i < 2 * k->n_room; i++) {
        uint32_t at = k->hand++ % k->n_room;
        if (held[k->channel[at]]) continue;
        if (!k->used[at]) {
            k->place[k->channel[at]] = NOT_THERE;
            return at;
        }
        k->used[at] = 0;
    }
    return k->n_room;
}

void st_columns_keep(struct st_kept *k, uint32_t channel, const int8_t *column,
                     const uint8_t *held) {
    uint32_t at = make_room(k, held);
    if (at == k->n_room) return;
    k->place[channel] = (int32_t)at;
    k->channel[at] = channel;
    k->used[at] = 0;
    memcpy(k->data + (size_t)at * k->rows, column, k->rows);
}
