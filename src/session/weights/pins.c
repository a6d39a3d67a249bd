// SPDX-License-Identifier: Apache-2.0
#include "session/weights/pins.h"

#include "base/loader.h"
#include "base/size.h"
#include "session/precision/precision.h"

#include <stdio.h>

// Parts of a linear: its groups, and the regions of the codes, of which the first is that of bit 2.
enum { N_CLASSES = 2, N_SIZES = 2, N_BITS = ST_NESTED_STORED + 1, GROUPS = 0, FIRST_REGION = 2 };

stint_status st_pins_each(const struct stint_model *m, st_nested_place_fn *fn, void *context) {
    return st_weights_nested_each(&m->config, &m->weights, !m->neurons.layers, fn, context);
}

// ---- The order

// Whether runs of a precision take some of a linear's rows only, or the linear now and then.
static bool is_taken_in_part(const struct stint_model *m, const struct st_pins *pins,
                             const struct st_nested_place *p, unsigned precision) {
    bool drafts = pins->drafts >> precision & 1;
    return (m->config.n_experts && st_int8_is_ffn(p->id.role)) ||
           (drafts && p->id.role == ST_INT8_HEAD);
}

unsigned st_pins_top(const struct st_nested_weight *w, unsigned precision) {
    return precision == ST_NESTED_STORED ? w->stored : w->bits[precision];
}

// Whose groups runs of a precision take.
static unsigned grid_of(const struct st_nested_weight *w, unsigned precision) {
    return st_min(st_pins_top(w, precision), w->high);
}

// Whether runs of a precision take a part: GROUPS of `bits`, or the region of bit `part`.
static bool takes(const struct st_nested_place *p, unsigned precision, unsigned part,
                  unsigned bits) {
    const struct st_nested_weight *w = p->linear->nested;
    return part == GROUPS ? grid_of(w, precision) == bits : st_pins_top(w, precision) >= part;
}

// Parts of attention's linears are smaller than the entries of a cache.
static unsigned is_large(const struct st_nested_place *p) {
    return p->id.role != ST_INT8_QKV && p->id.role != ST_INT8_O;
}

static uint64_t rank_of(unsigned class, unsigned precision, unsigned large, unsigned part,
                        uint32_t index) {
    unsigned of_run = (class * N_BITS + precision) * N_SIZES + large;
    return (uint64_t)(of_run * N_BITS + part) << 32 | index;
}

// The first of what runs give it. Parts that no run takes come after all others.
static uint64_t rank(const struct stint_model *m, const struct st_pins *pins,
                     const struct st_nested_place *p, unsigned part, unsigned bits) {
    uint64_t first = UINT64_MAX;
    for (unsigned precision = ST_NESTED_LOWEST; precision < N_BITS; precision++) {
        if (!(pins->precisions >> precision & 1) || !takes(p, precision, part, bits)) continue;
        unsigned class = is_taken_in_part(m, pins, p, precision);
        first = st_min(first, rank_of(class, precision, is_large(p), part, p->index));
    }
    return first;
}

bool st_pins_groups(const struct st_pins *pins, const struct stint_model *m,
                    const struct st_nested_place *p, unsigned bits) {
    return rank(m, pins, p, GROUPS, bits) < pins->limit;
}

bool st_pins_plane(const struct st_pins *pins, const struct stint_model *m,
                   const struct st_nested_place *p, unsigned bit) {
    return rank(m, pins, p, bit, 0) < pins->limit;
}

// ---- The limit

static stint_status find_unchecked(void *context, const struct st_nested_place *p) {
    bool *found = context;
    *found = *found || !p->linear->nested->checks;
    return STINT_OK;
}

bool st_pins_may_stream(const struct stint_model *m) {
    bool unchecked = false;
    st_pins_each(m, find_unchecked, &unchecked);
    return !unchecked;
}

struct fitting {
    const struct stint_model *model;
    const struct st_pins *pins;
    unsigned class, precision, large, part;
    uint64_t left, limit;
};

// As in st_section_room(): the codes of a linear are one piece of memory.
static uint64_t part_bytes(const struct st_nested_place *p, unsigned part) {
    size_t panels = st_nested_padded_rows(p->n_out) / ST_NESTED_PANEL;
    size_t room = part <= FIRST_REGION ? 2 * ST_LOAD_BLOCK + 64 : 0;
    if (part == GROUPS) return st_nested_group_bytes(p->n_out, p->n_in) + room;
    return panels * st_nested_plane_panel_bytes(p->n_in, part) + room;
}

static stint_status fit(void *context, const struct st_nested_place *p) {
    struct fitting *f = context;
    unsigned bits = grid_of(p->linear->nested, f->precision);
    uint64_t own = rank_of(f->class, f->precision, f->large, f->part, p->index);
    if (f->limit != ST_PINS_ALL || is_large(p) != f->large ||
        is_taken_in_part(f->model, f->pins, p, f->precision) != f->class ||
        rank(f->model, f->pins, p, f->part, bits) != own)
        return STINT_OK;
    uint64_t bytes = part_bytes(p, f->part);
    if (bytes > f->left) f->limit = own;
    f->left -= st_min(bytes, f->left);
    return STINT_OK;
}

static void fit_precision(struct fitting *f) {
    for (f->large = 0; f->large < N_SIZES; f->large++)
        for (f->part = GROUPS; f->part < N_BITS; f->part = st_max(f->part + 1, FIRST_REGION))
            st_pins_each(f->model, fit, f);
}

uint64_t st_pins_fit(const struct stint_model *m, const struct st_pins *pins, uint64_t room) {
    struct fitting f = {.model = m, .pins = pins, .left = room, .limit = ST_PINS_ALL};
    for (f.class = 0; f.class < N_CLASSES; f.class ++)
        for (f.precision = ST_NESTED_LOWEST; f.precision < N_BITS; f.precision++)
            if (pins->precisions >> f.precision & 1) fit_precision(&f);
    return f.limit == ST_PINS_ALL ? f.limit : st_min(f.limit, rank_of(1, 0, 0, 0, 0));
}

// ---- Pieces

struct binder {
    const struct stint_model *model;
    const struct st_pins *pins;
    unsigned precision;
    struct st_file_piece *pieces; // of the precision; NULL while strips are counted
    struct st_file_strip *strips; // the next ones
    size_t n_strips, n_linears, n_precisions;
};

// The precision whose piece of a linear runs of another one take, too; 0: none.
static unsigned base_of(const struct binder *b, const struct st_nested_place *p,
                        unsigned precision) {
    unsigned base = st_pins_lowest(b->pins->drafts);
    if (!base || precision <= base || precision == ST_NESTED_STORED) return 0;
    return is_taken_in_part(b->model, b->pins, p, base) ? 0 : base;
}

static void add_strip(struct binder *b, struct st_file_piece *piece,
                      const struct st_file_strip *strip) {
    b->n_strips++;
    if (!b->pieces) return;
    *b->strips++ = *strip;
    piece->n_strips++;
}

static const struct st_section *section_of(const struct binder *b, const char *name) {
    return st_package_find(b->model->checkpoint.package, name);
}

// The panels that runs of the precision take.
static size_t panels_of(const struct binder *b, const struct st_nested_place *p) {
    size_t rows = p->n_out;
    if (p->id.role == ST_INT8_HEAD && b->pins->drafts >> b->precision & 1)
        rows = st_draft_head_rows(&b->model->config);
    return st_nested_padded_rows(rows) / ST_NESTED_PANEL;
}

// Planes up to bit `base` are in another piece.
static void add_planes(struct binder *b, const struct st_nested_place *p, unsigned base,
                       unsigned own, struct st_file_piece *piece) {
    const struct st_nested_weight *w = p->linear->nested;
    char name[ST_INT8_NAME_BYTES + 32];
    snprintf(name, sizeof name, "%s%s", p->name, ST_NESTED_CODES);
    const struct st_section *s = section_of(b, name);
    size_t whole = st_nested_padded_rows(p->n_out) / ST_NESTED_PANEL, at = 0;
    size_t panels = panels_of(b, p);
    for (unsigned bit = 2; bit <= own; bit++) {
        const int32_t *check = w->checks ? w->checks + 2 * (size_t)(bit - 2) : (int32_t[2]){0, 0};
        struct st_file_strip strip = {.section = s->name,
                                      .offset = st_package_offset(b->model->checkpoint.package, s),
                                      .group_bytes = st_nested_plane_panel_bytes(p->n_in, bit),
                                      .hash =
                                          (uint64_t)(uint32_t)check[1] << 32 | (uint32_t)check[0],
                                      .hashed = panels == whole};
        strip.bytes = panels * strip.group_bytes;
        if (!strip.hashed) strip.part_bytes = whole * strip.group_bytes;
        strip.offset += at;
        at += whole * strip.group_bytes;
        if (bit > base && !st_pins_plane(b->pins, b->model, p, bit)) add_strip(b, piece, &strip);
    }
}

static void add_groups(struct binder *b, const struct st_nested_place *p, unsigned own,
                       struct st_file_piece *piece) {
    const struct st_package *package = b->model->checkpoint.package;
    char name[ST_INT8_NAME_BYTES + 32];
    st_nested_groups_name(p->name, own, name);
    const struct st_section *s = section_of(b, name);
    struct st_file_strip strip = {.section = s->name,
                                  .offset = st_package_offset(package, s),
                                  .group_bytes = st_nested_group_panel_bytes(p->n_in),
                                  .hash = st_package_section_hash(package, s)};
    strip.bytes = panels_of(b, p) * strip.group_bytes;
    strip.hashed = strip.bytes == s->bytes;
    if (!strip.hashed) strip.part_bytes = s->bytes;
    if (!st_pins_groups(b->pins, b->model, p, own)) add_strip(b, piece, &strip);
}

static stint_status bind(void *context, const struct st_nested_place *p) {
    struct binder *b = context;
    const struct st_nested_weight *w = p->linear->nested;
    unsigned base = base_of(b, p, b->precision), grid = grid_of(w, b->precision);
    struct st_file_piece piece = {.linear = p->id, .strips = b->strips, .bits = b->precision};
    struct st_file_piece *at = &piece;
    for (unsigned bits = b->precision + 1; bits < ST_NESTED_STORED; bits++)
        if (b->pins->precisions >> bits & 1 && base_of(b, p, bits) == b->precision)
            piece.also |= 1u << bits;
    if (b->pieces) *(at = &b->pieces[p->index * b->n_precisions]) = piece;
    if (b->pieces && b->precision == ST_NESTED_STORED && st_pins_is_second(b->model, p))
        at -= b->n_precisions;
    add_planes(b, p, base ? st_pins_top(w, base) : 0, st_pins_top(w, b->precision), at);
    if (!base || grid_of(w, base) != grid) add_groups(b, p, grid, at);
    b->n_linears = p->index + 1u;
    return STINT_OK;
}

static size_t count_precisions(unsigned precisions) {
    size_t n = 0;
    for (; precisions; precisions >>= 1) n += precisions & 1;
    return n;
}

static void bind_all(struct binder *b, struct st_file_piece *pieces) {
    for (b->precision = ST_NESTED_LOWEST; b->precision < N_BITS; b->precision++) {
        if (!(b->pins->precisions >> b->precision & 1)) continue;
        b->pieces = pieces;
        st_pins_each(b->model, bind, b);
        if (pieces) pieces++;
    }
}

void st_pins_pieces(const struct stint_model *m, const struct st_pins *pins, struct st_arena *arena,
                    struct st_file_pieces *pieces) {
    struct binder b = {
        .model = m, .pins = pins, .n_precisions = count_precisions(pins->precisions)};
    bind_all(&b, NULL);
    pieces->n = m->pieces.n + b.n_precisions * b.n_linears;
    pieces->at = ST_TAKE(arena, struct st_file_piece, pieces->n);
    b.strips = ST_TAKE(arena, struct st_file_strip, b.n_strips);
    if (!pieces->at || !b.strips) return;
    for (size_t i = 0; i < m->pieces.n; i++) pieces->at[i] = m->pieces.at[i];
    bind_all(&b, pieces->at + m->pieces.n);
}

size_t st_pins_place(const struct stint_model *m, const struct st_pins *pins, uint32_t index,
                     unsigned bits) {
    size_t before = count_precisions(pins->precisions & ((1u << bits) - 1));
    return m->pieces.n + index * count_precisions(pins->precisions) + before;
}
