// SPDX-License-Identifier: Apache-2.0
#include "session/weights/made.h"

#include "base/cpu.h"
#include "base/thread.h"
#include "session/linear/int8.h"
#include "session/weights/bounded.h"
#include "session/weights/source.h"

enum {
    MADE_BYTES = 1 << 20, // that lie side by side, unless a group has more
    HALVES = ST_INT8_PANEL / ST_NESTED_PANEL,
    GROUP_HALVES = ST_DEVICE_GROUP / ST_NESTED_PANEL,
    MIN_HALVES = 2, // that a worker makes at a time
};

// ---- Room

static size_t n_groups_of(const struct st_linear_op *linear_op) {
    return st_max(1, MADE_BYTES / st_linear_op_group_bytes(linear_op));
}

struct room {
    const struct stint_model *model;
    size_t bytes, n_slices;
};

static stint_status measure(void *context, struct st_linear_id id) {
    struct room *room = context;
    const struct st_linear_op *linear_op =
        st_int8_linear_op(&room->model->int8, id.role, id.layer, id.expert);
    size_t n = n_groups_of(linear_op);
    room->bytes = st_max(room->bytes, n * st_linear_op_group_bytes(linear_op));
    room->n_slices = st_max(room->n_slices, st_ceil_div(st_linear_op_groups(linear_op), n));
    return STINT_OK;
}

void st_made_lay_out(const struct stint_model *m, struct st_made *made, struct st_arena *arena) {
    struct room room = {.model = m};
    if (!st_model_has_sets(m)) return;
    st_linears_each(&m->config, (uint32_t)st_max(1, m->config.n_experts), measure, &room);
    made->panels = ST_TAKE(arena, int8_t, room.bytes);
    made->slices = ST_TAKE(arena, struct st_slice, room.n_slices);
}

// ---- Codes

const unsigned char *const *st_made_panels(const struct st_bounded *r,
                                           const struct st_nested_weight *weight,
                                           unsigned precision, const unsigned char *const *strips,
                                           struct st_panels *panels) {
    const struct st_nested_weight *pinned = &r->pinned.weights[weight->index];
    unsigned top = st_pins_top(weight, precision);
    panels->weight = st_nested_panels(pinned, top, panels->first, panels->n);
    unsigned grid = panels->weight.high;
    for (unsigned bit = 2; bit <= top; bit++)
        if (!pinned->planes[bit]) panels->weight.planes[bit] = *strips++;
    if (pinned->groups[grid] == weight->groups[grid]) panels->weight.groups[grid] = *strips++;
    return strips;
}

static void give(struct st_bounded *r) {
    if (r->made.holds) st_slices_give(&r->slices, r->made.piece, r->made.slice);
    r->made.holds = false;
}

// The piece of a part. Gate and up are one.
static size_t piece_of(const struct st_run *run, const struct st_linear_op *linear_op,
                       uint32_t part) {
    const struct st_bounded *r = run->s->bounded;
    if (linear_op->epilogue == ST_EPILOGUE_GATED) part = 0;
    return st_pins_place(run->s->model, &r->pins, linear_op->weight.set->codes[part].index,
                         ST_NESTED_STORED);
}

// Where rows of a half of a packed panel come from; `there` false: from nowhere, they are padding.
struct origin {
    bool there;
    size_t piece;
    uint32_t slice; // 0 where all is pinned
};

static struct origin origin_of(const struct st_run *run, const struct st_linear_op *linear_op,
                               size_t half) {
    uint32_t part;
    size_t row;
    struct origin at = {0};
    at.there = st_linear_op_find_row(linear_op, half * ST_NESTED_PANEL, &part, &row);
    if (!at.there) return at;
    at.piece = piece_of(run, linear_op, part);
    const struct st_sliced *g = &run->s->bounded->slices.pieces[at.piece];
    if (g->n) at.slice = (uint32_t)(row / ST_NESTED_PANEL) / g->slice_groups;
    return at;
}

// Waits for a slice, and sets what is there then of the linear.
static stint_status hold(const struct st_run *run, const struct st_linear_op *linear_op,
                         const struct origin *at) {
    struct st_bounded *r = run->s->bounded;
    struct st_made *made = &r->made;
    const struct st_weight_set *all = linear_op->weight.set;
    const struct st_sliced *g = &r->slices.pieces[at->piece];
    const unsigned char *strips[ST_PIECE_STRIPS], *const *next = strips;
    if (made->holds && made->piece == at->piece && made->slice == at->slice) return STINT_OK;
    give(r);
    if (g->n) ST_TRY(st_slices_take(&r->slices, at->piece, at->slice, strips));
    made->holds = g->n > 0;
    made->piece = at->piece;
    made->slice = at->slice;
    for (uint32_t i = 0; i < all->n_parts; i++) {
        if (piece_of(run, linear_op, i) != at->piece) continue;
        size_t first = at->slice * (size_t)g->slice_groups;
        size_t n_panels = st_ceil_div(all->codes[i].n_out, ST_NESTED_PANEL);
        struct st_panels panels = {
            .first = first, .n = g->n ? st_min(g->slice_groups, n_panels - first) : n_panels};
        next = st_made_panels(r, &all->codes[i], ST_NESTED_STORED, next, &panels);
        made->set.codes[i] = panels.weight;
        made->set.rows[i] = all->rows[i] + first * ST_NESTED_PANEL;
        made->set.first[i] = (uint32_t)first;
    }
    return STINT_OK;
}

// ---- Packed rows

struct making {
    const struct st_linear_op *linear_op;
    const struct st_weight_set *set;
    const struct st_nested_int8_kernel *kernel;
    size_t half;        // the first that is made
    size_t first_panel; // at `panels`
    int8_t *panels;
};

static void make_range(void *context, size_t from, size_t to, size_t worker) {
    (void)worker;
    const struct making *m = context;
    size_t half = m->half + from, panel = half / HALVES - m->first_panel;
    st_weight_set_halves(m->linear_op, m->set, m->kernel, half, to - from,
                         m->panels + panel * st_int8_panel_bytes(m->linear_op->weight.n_in));
}

// Halves from one slice on, up to `end`: padding belongs to the slice before it.
static size_t count_halves(const struct st_run *run, const struct st_linear_op *linear_op,
                           const struct origin *at, size_t half, size_t end) {
    size_t n = 1;
    for (; half + n < end; n++) {
        struct origin next = origin_of(run, linear_op, half + n);
        if (next.there && (!at->there || next.piece != at->piece || next.slice != at->slice)) break;
    }
    return n;
}

stint_status st_made_acquire(const struct st_run *run, struct st_linear_id id,
                             struct st_linear_op_part *part) {
    struct st_made *made = &run->s->bounded->made;
    const struct st_linear_op *linear_op = st_run_linear_op(run, id.role, id.expert);
    size_t most = n_groups_of(linear_op), n;
    part->n_groups = (uint32_t)st_min(most, st_linear_op_groups(linear_op) - part->group);
    size_t first = (size_t)part->group * GROUP_HALVES;
    size_t end = st_min(first + (size_t)part->n_groups * GROUP_HALVES,
                        (size_t)linear_op->weight.n_panels * HALVES);
    struct making m = {.linear_op = linear_op,
                       .set = &made->set,
                       .kernel = st_nested_int8_select(st_cpu_flags()),
                       .first_panel = first / HALVES,
                       .panels = made->panels};
    for (m.half = first; m.half < end; m.half += n) {
        struct origin at = origin_of(run, linear_op, m.half);
        n = count_halves(run, linear_op, &at, m.half, end);
        if (at.there) ST_TRY(hold(run, linear_op, &at));
        st_pool_run_ranges(run->group->pool, make_range, &m, n, MIN_HALVES);
    }
    part->slices = made->slices;
    part->slice_groups = (uint32_t)most;
    made->slices[part->group / most] = st_mirror_slice(&made->mirror, made->panels, 0);
    return STINT_OK;
}

void st_made_release(const struct st_run *run, struct st_linear_id id,
                     const struct st_linear_op_part *part) {
    const struct st_linear_op *linear_op = st_run_linear_op(run, id.role, id.expert);
    if (part->group + part->n_groups == st_linear_op_groups(linear_op)) give(run->s->bounded);
}
