// SPDX-License-Identifier: Apache-2.0
#include "session/weights/pinned.h"

#include "base/size.h"
#include "neuron/section.h"

#include <stdio.h>

struct keeping {
    const struct stint_model *model;
    struct st_pinned *pinned;
    struct st_arena *arena;
    struct st_loader *loader; // NULL while measuring
};

static stint_status keep_section(const struct keeping *k, const struct st_nested_place *place,
                                 const char *ending, size_t bytes, unsigned char **data) {
    char name[ST_INT8_NAME_BYTES + 32];
    *data = st_section_room(k->arena, bytes);
    if (!*data || !k->loader) return STINT_OK;
    snprintf(name, sizeof name, "%s%s", place->name, ending);
    return st_section_keep(k->model, k->loader, name, bytes, *data);
}

static stint_status keep(void *context, const struct st_nested_place *place) {
    const struct keeping *k = context;
    const struct st_nested_range *range = &k->model->nested;
    unsigned char *codes, *tables;
    size_t code_bytes = st_nested_code_bytes(place->n_out, place->n_in, k->pinned->bits);
    size_t table_bytes = st_nested_tables_bytes(place->n_out, range->low, range->high);
    ST_TRY(keep_section(k, place, ST_NESTED_CODES, code_bytes, &codes));
    ST_TRY(keep_section(k, place, ST_NESTED_TABLES, table_bytes, &tables));
    if (!codes || !tables) return STINT_OK;
    struct st_nested_weight *w = &k->pinned->weights[place->index];
    *w = *place->linear->nested;
    w->codes = codes;
    w->tables = (const int8_t *)tables;
    return STINT_OK;
}

static stint_status count(void *context, const struct st_nested_place *place) {
    uint32_t *n = context;
    *n = place->index + 1;
    return STINT_OK;
}

static stint_status each(const struct stint_model *m, st_nested_place_fn *fn, void *context) {
    return st_weights_nested_each(&m->config, &m->weights, !m->neurons.layers, fn, context);
}

static stint_status keep_all(struct keeping *k) {
    uint32_t n = 0;
    ST_TRY(each(k->model, count, &n));
    k->pinned->weights = ST_TAKE(k->arena, struct st_nested_weight, n);
    return each(k->model, keep, k);
}

uint64_t st_pinned_bytes(const struct stint_model *model, unsigned bits) {
    struct st_pinned pinned = {.bits = bits};
    struct st_arena measure = st_arena_measure();
    struct keeping k = {model, &pinned, &measure, NULL};
    if (bits) keep_all(&k);
    return measure.used;
}

stint_status st_pinned_open(const struct stint_model *model, unsigned bits,
                            struct st_loader *loader, struct st_pinned *pinned) {
    *pinned = (struct st_pinned){.bits = bits};
    if (!bits) return STINT_OK;
    struct keeping k = {model, pinned, &pinned->arena, loader};
    ST_TRY(st_arena_open(&pinned->arena, st_pinned_bytes(model, bits)));
    ST_TRY(keep_all(&k));
    return st_arena_check(&pinned->arena, "nested weights");
}

void st_pinned_close(struct st_pinned *pinned) {
    st_arena_close(&pinned->arena);
    *pinned = (struct st_pinned){0};
}
