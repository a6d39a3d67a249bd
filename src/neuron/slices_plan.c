// SPDX-License-Identifier: Apache-2.0
#include "neuron/slices_plan.h"

#include "base/size.h"

enum {
    STEP_BYTES = 16 << 10,
    MAX_BYTES = 2 << 20,
    READ_BYTES = 32 << 10, // what one more read costs, in bytes of room
};

// ---- The pieces of a model

bool st_slice_by_chance(const struct st_config *c, struct st_linear_id id) {
    return st_int8_is_ffn(id.role) && st_config_is_routed(c, id.layer, id.expert);
}

static bool steps_take(unsigned steps, enum st_int8_role role) {
    return steps & (st_int8_is_ffn(role) ? ST_STEPS_FFN : ST_STEPS_REST);
}

// Pieces that INT8 weights are made of are like those that have them.
static bool is_nested(const struct st_file_piece *p) {
    return p->bits && p->bits != ST_NESTED_STORED;
}

uint32_t st_slice_region(const struct st_config *c, unsigned steps, const struct st_file_piece *p) {
    bool taken = is_nested(p) || steps_take(steps, p->linear.role);
    return taken && !st_slice_by_chance(c, p->linear) ? ST_REGION_FIXED : ST_REGION_STREAM;
}

// A prompt takes the head once, after its last pass.
unsigned st_slice_passes(unsigned steps, const struct st_file_piece *p) {
    enum st_int8_role role = p->linear.role;
    if (is_nested(p)) return st_pass_nested(p->bits) | p->also;
    return (role == ST_INT8_HEAD ? 0 : ST_PASS_PROMPT) |
           (steps_take(steps, role) ? ST_PASS_STEP : 0);
}

// ---- Sizes

struct sizing {
    const struct st_slices_source *source;
    uint32_t region;
    size_t least; // bytes of an entry that any group fits
    uint64_t bytes;
    uint32_t max_strips;
};

static bool is_of(const struct sizing *s, const struct st_file_piece *p) {
    return p->n_strips &&
           st_slice_region(&s->source->model->config, s->source->steps, p) == s->region;
}

// Each strip of a slice begins with the block that it begins in, and ends with a whole one.
static size_t slack_of(const struct st_file_piece *p) {
    bool aligned = true;
    for (uint32_t i = 0; i < p->n_strips; i++)
        aligned = aligned && p->strips[i].offset % ST_LOAD_BLOCK == 0 &&
                  p->strips[i].group_bytes % ST_LOAD_BLOCK == 0;
    return aligned ? 0 : (2 * (size_t)p->n_strips - 1) * ST_LOAD_BLOCK;
}

static void measure(struct sizing *s) {
    const struct st_file_pieces *all = s->source->pieces;
    s->bytes = 0;
    for (const struct st_file_piece *p = all->at; p < all->at + all->n; p++) {
        if (!is_of(s, p)) continue;
        s->least = st_max(s->least, st_file_piece_group_bytes(p) + slack_of(p));
        s->max_strips = (uint32_t)st_max(s->max_strips, p->n_strips);
        for (uint32_t i = 0; i < p->n_strips; i++) s->bytes += p->strips[i].bytes;
    }
}

uint32_t st_slice_groups(const struct st_file_piece *p, size_t entry_bytes) {
    return (uint32_t)((entry_bytes - slack_of(p)) / st_file_piece_group_bytes(p));
}

size_t st_slice_bytes(const struct st_file_piece *p, uint32_t slice_groups, uint32_t slice) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < p->n_strips; i++) {
        size_t whole = slice_groups * p->strips[i].group_bytes, begin = slice * whole;
        bytes += st_min(p->strips[i].bytes - begin, whole);
    }
    return bytes;
}

static uint64_t count_slices(const struct sizing *s, size_t entry_bytes) {
    const struct st_file_pieces *all = s->source->pieces;
    uint64_t n = 0;
    for (const struct st_file_piece *p = all->at; p < all->at + all->n; p++)
        if (is_of(s, p)) n += st_ceil_div(st_file_piece_groups(p), st_slice_groups(p, entry_bytes));
    return n;
}

// Much room is lost in entries that slices do not fill, much time in reads that are small.
static void plan_region(struct sizing *s, size_t first, size_t last, struct st_slices_plan *plan) {
    uint64_t best = UINT64_MAX;
    uint32_t r = s->region;
    plan->bytes[r] = s->bytes;
    plan->least_bytes[r] = first;
    plan->max_strips[r] = s->max_strips;
    for (size_t bytes = first; bytes <= last; bytes += STEP_BYTES) {
        uint64_t n = count_slices(s, bytes), score = n * (bytes + READ_BYTES);
        if (score >= best) continue;
        best = score;
        plan->entry_bytes[r] = bytes;
        plan->n_ids[r] = (uint32_t)n;
    }
}

void st_slices_plan(const struct st_slices_source *source, const struct st_slices_plan *within,
                    struct st_slices_plan *plan) {
    *plan = (struct st_slices_plan){0};
    for (uint32_t r = 0; r < ST_N_REGIONS; r++) {
        struct sizing s = {.source = source, .region = r};
        measure(&s);
        if (s.least == 0) continue; // nothing is in this region
        size_t first = st_round_up(s.least, STEP_BYTES);
        size_t last = within ? within->entry_bytes[r] : st_max(first, MAX_BYTES);
        plan_region(&s, first, last, plan);
    }
}

struct st_slices_used st_slices_of_pass(const struct st_slices_source *source,
                                        const struct st_slices_plan *plan, uint32_t region,
                                        unsigned pass, uint32_t *bytes) {
    struct sizing s = {.source = source, .region = region};
    struct st_slices_used used = {0};
    const struct st_file_pieces *all = source->pieces;
    for (const struct st_file_piece *p = all->at; p < all->at + all->n; p++) {
        if (!is_of(&s, p) || !(st_slice_passes(source->steps, p) & pass)) continue;
        uint32_t groups = st_slice_groups(p, plan->entry_bytes[region]);
        uint32_t n = (uint32_t)st_ceil_div(st_file_piece_groups(p), groups);
        for (uint32_t i = 0; i < n && bytes; i++) *bytes++ = (uint32_t)st_slice_bytes(p, groups, i);
        used.slices += n;
        used.reads += (double)n * p->n_strips;
        for (uint32_t i = 0; i < p->n_strips; i++) used.bytes += (double)p->strips[i].bytes;
    }
    return used;
}
