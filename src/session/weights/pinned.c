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

static stint_status keep_section(const struct keeping *k, const char *name, size_t bytes,
                                 unsigned char **data) {
    *data = st_section_room(k->arena, bytes);
    if (!*data || !k->loader) return STINT_OK;
    return st_section_keep(k->model, k->loader, name, bytes, *data);
}

static stint_status keep(void *context, const struct st_nested_place *place) {
    const struct keeping *k = context;
    char name[ST_INT8_NAME_BYTES + 32];
    struct st_nested_weight w = *place->linear->nested;
    unsigned high = st_nested_bits(&k->model->nested, &w, k->pinned->bits);
    unsigned char *kept;
    snprintf(name, sizeof name, "%s%s", place->name, ST_NESTED_CODES);
    ST_TRY(keep_section(k, name, st_nested_code_bytes(place->n_out, place->n_in, high), &kept));
    w.codes = kept;
    for (unsigned bits = w.low; bits <= high; bits++) {
        st_nested_groups_name(place->name, bits, name);
        ST_TRY(keep_section(k, name, st_nested_group_bytes(place->n_out, place->n_in), &kept));
        w.groups[bits] = kept;
    }
    if (kept) k->pinned->weights[place->index] = w;
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
