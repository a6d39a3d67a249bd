// SPDX-License-Identifier: Apache-2.0
// Panels of nested linears whose codes are not all pinned. A run takes them from the slices of its
// precision's piece, and of the piece that it shares with steps that draft (pins.h).
#include "session/weights/bounded.h"
#include "session/weights/source.h"

enum { MOST_PIECES = 2 };

// In the order of their planes. Returns how many have slices; the last one is the run's own.
static size_t find_pieces(const struct st_run *run, const struct st_nested_weight *weight,
                          size_t pieces[MOST_PIECES]) {
    const struct st_bounded *r = run->s->bounded;
    const struct stint_model *m = run->s->model;
    size_t own = st_bounded_nested_piece(run, weight), n = 0;
    unsigned base = st_pins_lowest(r->pins.drafts);
    if (run->bits && base && base != run->bits) {
        size_t shared = st_pins_place(m, &r->pins, weight->index, base);
        if (r->slices.pieces[shared].passes & st_pass_nested(run->bits)) pieces[n++] = shared;
    }
    if (r->slices.pieces[own].n) pieces[n++] = own;
    return n;
}

const struct st_nested_weight *st_bounded_nested(const struct st_run *run,
                                                 const struct st_nested_weight *weight) {
    size_t pieces[MOST_PIECES];
    return find_pieces(run, weight, pieces) ? NULL
                                            : &run->s->bounded->pinned.weights[weight->index];
}

// A shared piece has groups of its own precision behind its planes, if they are not pinned.
static uint32_t count_planes(const struct st_bounded *r, const struct st_nested_weight *weight,
                             unsigned precision) {
    const struct st_nested_weight *pinned = &r->pinned.weights[weight->index];
    uint32_t n = 0;
    for (unsigned bit = 2; bit <= st_pins_top(weight, precision); bit++) n += !pinned->planes[bit];
    return n;
}

// The slice that has a panel; *before: panels of it in front of that one.
static uint32_t slice_at(const struct st_sliced *g, size_t panel, size_t *before) {
    *before = panel % g->slice_groups;
    return (uint32_t)(panel / g->slice_groups);
}

stint_status st_bounded_acquire_panels(const struct st_run *run,
                                       const struct st_nested_weight *weight,
                                       struct st_panels *panels) {
    struct st_bounded *r = run->s->bounded;
    const unsigned char *strips[MOST_PIECES * ST_PIECE_STRIPS], **next = strips;
    size_t pieces[MOST_PIECES], n = find_pieces(run, weight, pieces), before;
    panels->n = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        const struct st_sliced *g = &r->slices.pieces[pieces[i]];
        uint32_t slice = slice_at(g, panels->first, &before);
        size_t end = st_min((slice + 1) * (size_t)g->slice_groups, g->n_groups);
        if (before == 0)
            ST_TRY(st_slices_take(&r->slices, pieces[i], slice, next));
        else
            st_slices_strips(&r->slices, pieces[i], slice, next);
        for (uint32_t j = 0; j < g->piece->n_strips; j++)
            next[j] += before * g->piece->strips[j].group_bytes;
        bool last = i + 1 == n;
        next += last ? g->piece->n_strips : count_planes(r, weight, g->piece->bits);
        panels->n = st_min(panels->n, end - panels->first);
    }
    st_made_panels(r, weight, run->bits, strips, panels);
    return STINT_OK;
}

// What is left of a slice follows in the next panels.
void st_bounded_release_panels(const struct st_run *run, const struct st_nested_weight *weight,
                               const struct st_panels *panels) {
    struct st_slices *slices = &run->s->bounded->slices;
    size_t pieces[MOST_PIECES], n = find_pieces(run, weight, pieces), end, before;
    end = panels->first + panels->n;
    for (size_t i = 0; i < n; i++) {
        const struct st_sliced *g = &slices->pieces[pieces[i]];
        uint32_t slice = slice_at(g, end - 1, &before);
        if (end == g->n_groups || before + 1 == g->slice_groups)
            st_slices_give(slices, pieces[i], slice);
    }
}
