// SPDX-License-Identifier: Apache-2.0
#include "session/weights/pinned.h"

#include "base/size.h"
#include "neuron/section.h"

#include <stdio.h>

struct keeping {
    const struct stint_model *model;
    const struct st_pins *pins;
    struct st_pinned *pinned;
    struct st_arena *arena;
    struct st_loader *loader; // NULL while measuring
};

// The codes from the first region on. Of a package without their hashes the whole section is read.
static stint_status read_codes(const struct keeping *k, const char *name,
                               const struct st_nested_weight *w, unsigned top, unsigned char *to) {
    struct st_section_part parts[ST_NESTED_HIGHEST];
    size_t n = 0;
    if (!w->checks)
        return st_section_keep(k->model, k->loader, name,
                               st_nested_code_bytes(w->n_out, w->n_in, top), to);
    for (unsigned bit = 2; bit <= top; bit++, n++) {
        const int32_t *check = w->checks + 2 * n;
        parts[n].bytes = st_nested_padded_rows(w->n_out) / ST_NESTED_PANEL *
                         st_nested_plane_panel_bytes(w->n_in, bit);
        parts[n].hash = (uint64_t)(uint32_t)check[1] << 32 | (uint32_t)check[0];
    }
    return st_section_keep_parts(k->model, k->loader, name, parts, n, to);
}

static stint_status keep_codes(const struct keeping *k, const struct st_nested_place *place,
                               struct st_nested_weight *w) {
    char name[ST_INT8_NAME_BYTES + 32];
    unsigned top = 1, most = (unsigned)st_max(w->high, w->stored);
    while (top < most && st_pins_plane(k->pins, k->model, place, top + 1)) top++;
    if (top < 2) return STINT_OK;
    snprintf(name, sizeof name, "%s%s", place->name, ST_NESTED_CODES);
    unsigned char *kept =
        st_section_room(k->arena, st_nested_code_bytes(place->n_out, place->n_in, top));
    if (!kept || !k->loader) return STINT_OK;
    ST_TRY(read_codes(k, name, w, top, kept));
    for (unsigned bit = 2; bit <= top; bit++)
        w->planes[bit] =
            kept + (bit == 2 ? 0 : st_nested_code_bytes(place->n_out, place->n_in, bit - 1));
    return STINT_OK;
}

static stint_status keep_groups(const struct keeping *k, const struct st_nested_place *place,
                                unsigned bits, struct st_nested_weight *w) {
    char name[ST_INT8_NAME_BYTES + 32];
    size_t bytes = st_nested_group_bytes(place->n_out, place->n_in);
    unsigned char *kept = st_section_room(k->arena, bytes);
    if (!kept || !k->loader) return STINT_OK;
    st_nested_groups_name(place->name, bits, name);
    w->groups[bits] = kept;
    return st_section_keep(k->model, k->loader, name, bytes, kept);
}

static stint_status keep(void *context, const struct st_nested_place *place) {
    const struct keeping *k = context;
    struct st_nested_weight w = *place->linear->nested;
    ST_TRY(keep_codes(k, place, &w));
    for (unsigned bits = w.low; bits <= w.high; bits++)
        if (st_pins_groups(k->pins, k->model, place, bits)) ST_TRY(keep_groups(k, place, bits, &w));
    if (k->pinned->weights) k->pinned->weights[place->index] = w;
    return STINT_OK;
}

static stint_status count(void *context, const struct st_nested_place *place) {
    uint32_t *n = context;
    *n = place->index + 1;
    return STINT_OK;
}

static stint_status keep_all(struct keeping *k) {
    uint32_t n = 0;
    ST_TRY(st_pins_each(k->model, count, &n));
    k->pinned->weights = ST_TAKE(k->arena, struct st_nested_weight, n);
    return st_pins_each(k->model, keep, k);
}

uint64_t st_pinned_bytes(const struct stint_model *model, const struct st_pins *pins) {
    struct st_pinned pinned = {0};
    struct st_arena measure = st_arena_measure();
    struct keeping k = {model, pins, &pinned, &measure, NULL};
    if (pins->precisions) keep_all(&k);
    return measure.used;
}

stint_status st_pinned_open(const struct stint_model *model, const struct st_pins *pins,
                            struct st_loader *loader, struct st_pinned *pinned) {
    *pinned = (struct st_pinned){0};
    if (!pins->precisions) return STINT_OK;
    struct keeping k = {model, pins, pinned, &pinned->arena, loader};
    ST_TRY(st_arena_open(&pinned->arena, st_pinned_bytes(model, pins)));
    ST_TRY(keep_all(&k));
    return st_arena_check(&pinned->arena, "nested weights");
}

void st_pinned_close(struct st_pinned *pinned) {
    st_arena_close(&pinned->arena);
    *pinned = (struct st_pinned){0};
}
