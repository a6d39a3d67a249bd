// SPDX-License-Identifier: Apache-2.0
#include "neuron/slices.h"

#include "base/size.h"
#include "neuron/section.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum {
    STEP_BYTES = 64 << 10,
    MAX_BYTES = 2 << 20,
    READ_BYTES = 32 << 10, // what one more read costs, in bytes of room
    HASH_BYTES = 640,      // of a hash under way
};

// ---- The linears of a model

static stint_status for_linears(const struct st_config *c, st_linear_fn *fn, void *context) {
    return st_linears_each(c, (uint32_t)st_max(1, c->n_experts), fn, context);
}

size_t st_slices_linear_op(const struct st_config *c, enum st_int8_role role, uint32_t layer,
                           uint32_t expert) {
    size_t per_layer = 2 + 2 * st_max(1, c->n_experts);
    if (role == ST_INT8_HEAD) return per_layer * c->n_layers;
    size_t at = role == ST_INT8_QKV ? 0 : role == ST_INT8_O ? 1 : 2 + 2 * expert;
    return per_layer * layer + at + (role == ST_INT8_DOWN);
}

static bool by_chance(const struct st_config *c, enum st_int8_role role) {
    return st_int8_is_ffn(role) && c->n_experts;
}

static bool steps_take(unsigned steps, enum st_int8_role role) {
    return steps & (st_int8_is_ffn(role) ? ST_STEPS_FFN : ST_STEPS_REST);
}

static uint32_t region_of(const struct st_config *c, unsigned steps, enum st_int8_role role) {
    return steps_take(steps, role) && !by_chance(c, role) ? ST_REGION_FIXED : ST_REGION_STREAM;
}

// A prompt takes the head once, after its last pass.
static unsigned passes_of(unsigned steps, enum st_int8_role role) {
    return (role == ST_INT8_HEAD ? 0 : ST_PASS_PROMPT) |
           (steps_take(steps, role) ? ST_PASS_STEP : 0);
}

// ---- Sizes

struct sizing {
    const struct st_config *config;
    unsigned steps;
    uint32_t region;
    size_t entry_bytes, widest; // widest: group of the region
    uint64_t n_slices, bytes;
};

static stint_status size_linear(void *context, struct st_linear_id id) {
    struct sizing *s = context;
    struct st_linear_op linear_op;
    if (region_of(s->config, s->steps, id.role) != s->region) return STINT_OK;
    st_int8_shape(id.role, s->config, &linear_op);
    size_t group = st_linear_op_group_bytes(&linear_op);
    s->widest = st_max(s->widest, group);
    s->bytes += st_int8_packed_bytes(&linear_op.weight);
    if (s->entry_bytes >= group)
        s->n_slices += st_ceil_div(st_linear_op_groups(&linear_op), s->entry_bytes / group);
    return STINT_OK;
}

// Much room is lost in entries that slices do not fill, much time in reads that are small.
void st_slices_plan(const struct stint_model *model, unsigned steps, struct st_slices_plan *plan) {
    *plan = (struct st_slices_plan){0};
    for (uint32_t r = 0; r < ST_N_REGIONS; r++) {
        struct sizing s = {.config = &model->config, .steps = steps, .region = r};
        uint64_t best = UINT64_MAX;
        for_linears(&model->config, size_linear, &s);
        if (s.widest == 0) continue; // nothing is in this region
        plan->bytes[r] = s.bytes;
        size_t first = st_round_up(s.widest, STEP_BYTES);
        for (size_t bytes = first; bytes <= st_max(first, MAX_BYTES); bytes += STEP_BYTES) {
            s.entry_bytes = bytes;
            s.n_slices = 0;
            for_linears(&model->config, size_linear, &s);
            uint64_t score = s.n_slices * (bytes + READ_BYTES);
            if (score >= best) continue;
            best = score;
            plan->entry_bytes[r] = bytes;
            plan->n_ids[r] = (uint32_t)s.n_slices;
        }
    }
}

// ---- Opening

static void lay_out(const struct st_slices_plan *plan, struct st_slices *s, struct st_arena *a) {
    s->linear_ops = ST_TAKE(a, struct st_sliced, s->n_linear_ops);
    for (int r = 0; r < ST_N_REGIONS; r++) {
        s->regions[r].entry_bytes = plan->entry_bytes[r];
        s->regions[r].n_entries = plan->n_entries[r];
        s->regions[r].n_ids = plan->n_ids[r];
        st_cache_lay_out(&s->regions[r], a);
        s->hashes[r] = ST_TAKE(a, uint64_t, plan->n_ids[r]);
        s->known[r] = ST_TAKE(a, uint8_t, plan->n_ids[r]);
    }
}

static size_t count_linear_ops(const struct st_config *c) {
    return st_slices_linear_op(c, ST_INT8_HEAD, 0, 0) + 1;
}

size_t st_slices_table_bytes(const struct stint_model *model, const struct st_slices_plan *plan) {
    struct st_slices s = {.n_linear_ops = count_linear_ops(&model->config)};
    struct st_arena measure = st_arena_measure();
    lay_out(plan, &s, &measure);
    size_t content = 0;
    for (int r = 0; r < ST_N_REGIONS; r++) content += plan->n_entries[r] * plan->entry_bytes[r];
    return measure.used - content + s.n_linear_ops * HASH_BYTES;
}

struct binding {
    const struct stint_model *model;
    unsigned steps;
    struct st_slices *slices;
    uint32_t n_ids[ST_N_REGIONS];
};

static stint_status bind_linear(void *context, struct st_linear_id id) {
    struct binding *b = context;
    const struct stint_model *m = b->model;
    char linear[ST_INT8_NAME_BYTES], name[ST_INT8_NAME_BYTES + 16];
    struct st_linear_op linear_op;
    st_int8_name(id.role, &m->config, id.layer, id.expert, linear);
    snprintf(name, sizeof name, "%s%s", linear, ST_INT8_WEIGHT);
    st_int8_shape(id.role, &m->config, &linear_op);
    const struct st_section *section = st_package_find(m->checkpoint.package, name);
    struct st_sliced *s =
        &b->slices->linear_ops[st_slices_linear_op(&m->config, id.role, id.layer, id.expert)];
    *s = (struct st_sliced){.name = section->name,
                            .offset = st_package_offset(m->checkpoint.package, section),
                            .bytes = section->bytes,
                            .hash = st_package_section_hash(m->checkpoint.package, section),
                            .group_bytes = st_linear_op_group_bytes(&linear_op),
                            .n_groups = (uint32_t)st_linear_op_groups(&linear_op),
                            .region = region_of(&m->config, b->steps, id.role),
                            .passes = passes_of(b->steps, id.role),
                            .by_chance = by_chance(&m->config, id.role),
                            .state = XXH3_createState()};
    s->slice_groups = (uint32_t)(b->slices->regions[s->region].entry_bytes / s->group_bytes);
    s->n = (uint32_t)st_ceil_div(s->n_groups, s->slice_groups);
    s->first = b->n_ids[s->region];
    b->n_ids[s->region] += s->n;
    return s->state ? STINT_OK
                    : st_fail(STINT_E_NOMEM, "%s: no memory to check it", b->slices->path);
}

stint_status st_slices_open(const struct stint_model *model, unsigned steps,
                            const struct st_slices_plan *plan, struct st_loader *loader,
                            struct st_slices *s) {
    *s = (struct st_slices){.loader = loader,
                            .path = model->checkpoint.path,
                            .n_linear_ops = count_linear_ops(&model->config),
                            .pass = ST_PASS_PROMPT};
    struct st_arena measure = st_arena_measure();
    lay_out(plan, s, &measure);
    ST_TRY(st_arena_check(&measure, "the weights' cache"));
    ST_TRY(st_arena_open(&s->arena, measure.used));
    lay_out(plan, s, &s->arena);
    ST_TRY(st_arena_check(&s->arena, "the weights' cache"));
    for (int r = 0; r < ST_N_REGIONS; r++) st_cache_open(&s->regions[r], loader);
    struct binding b = {.model = model, .steps = steps, .slices = s};
    return for_linears(&model->config, bind_linear, &b);
}

void st_slices_close(struct st_slices *s) {
    for (size_t i = 0; i < s->n_linear_ops && s->linear_ops; i++)
        XXH3_freeState(s->linear_ops[i].state);
    st_arena_close(&s->arena);
    *s = (struct st_slices){0};
}

// ---- Before their turn

static struct st_cache *region(struct st_slices *s, size_t linear_op) {
    return &s->regions[s->linear_ops[linear_op].region];
}

static size_t slice_bytes(const struct st_sliced *g, uint32_t slice) {
    size_t begin = (size_t)slice * g->slice_groups * g->group_bytes;
    return st_min(g->bytes - begin, g->slice_groups * g->group_bytes);
}

static int32_t take_entry(struct st_slices *s, size_t linear_op, uint32_t slice) {
    const struct st_sliced *g = &s->linear_ops[linear_op];
    uint64_t begin = (uint64_t)slice * g->slice_groups * g->group_bytes;
    return st_cache_take(region(s, linear_op), g->first + slice, g->offset + begin,
                         slice_bytes(g, slice));
}

static bool is_passed_over(const struct st_slices *s, size_t linear_op) {
    const struct st_sliced *g = &s->linear_ops[linear_op];
    return g->by_chance || !(g->passes & s->pass);
}

// The slice that follows in this kind of pass, or in the next pass; the same where nothing does.
static struct st_slice_place following(const struct st_slices *s, struct st_slice_place at) {
    if (at.slice + 1 < s->linear_ops[at.linear_op].n)
        return (struct st_slice_place){at.linear_op, at.slice + 1, false};
    for (size_t i = 1; i <= s->n_linear_ops; i++) {
        uint32_t linear_op = (uint32_t)((at.linear_op + i) % s->n_linear_ops);
        if (!is_passed_over(s, linear_op)) return (struct st_slice_place){linear_op, 0, false};
    }
    return at;
}

static struct st_slice_place *ahead(struct st_slices *s, size_t i) {
    return &s->ahead[(s->first_ahead + i) % ST_SLICES_AHEAD];
}

static int32_t held_entry(struct st_slices *s, struct st_slice_place at) {
    return region(s, at.linear_op)->entry_of[s->linear_ops[at.linear_op].first + at.slice];
}

static void drop_ahead(struct st_slices *s) {
    for (; s->n_ahead; s->n_ahead--) {
        struct st_slice_place at = *ahead(s, s->n_ahead - 1);
        int32_t entry = held_entry(s, at);
        if (entry != ST_CACHE_NONE) st_cache_give(region(s, at.linear_op), entry, ST_EVICT_FIRST);
    }
    s->n_read_ahead = 0;
}

static void look_ahead(struct st_slices *s, struct st_slice_place at) {
    if (s->n_ahead) at = *ahead(s, s->n_ahead - 1);
    while (s->n_ahead < ST_SLICES_AHEAD) {
        struct st_slice_place next = following(s, at);
        const struct st_cache *c = region(s, next.linear_op);
        int32_t entry = held_entry(s, next);
        if (entry != ST_CACHE_NONE && c->held[entry]) return; // once round
        next.read = entry == ST_CACHE_NONE;
        if (next.read && s->n_read_ahead == ST_SLICES_DEPTH) return;
        if (take_entry(s, next.linear_op, next.slice) == ST_CACHE_NONE) return;
        s->n_read_ahead += next.read;
        s->n_ahead++;
        *ahead(s, s->n_ahead - 1) = at = next;
    }
}

// ---- Their turn

// Of a damaged section nothing is kept: which of its slices is wrong is not known.
static void forget_linear_op(struct st_slices *s, struct st_sliced *g) {
    struct st_cache *cache = &s->regions[g->region];
    g->checked = 0;
    memset(s->known[g->region] + g->first, 0, g->n);
    for (uint32_t i = g->first; i < g->first + g->n; i++)
        if (cache->entry_of[i] != ST_CACHE_NONE) st_cache_discard(cache, cache->entry_of[i]);
}

// While a linear goes by for the first time its bytes go into its section's hash; later a slice is
// what it was then.
static stint_status check(struct st_slices *s, size_t linear_op, uint32_t slice,
                          const unsigned char *data) {
    struct st_sliced *g = &s->linear_ops[linear_op];
    size_t bytes = slice_bytes(g, slice);
    uint64_t *hash = &s->hashes[g->region][g->first + slice];
    uint8_t *known = &s->known[g->region][g->first + slice];
    uint64_t now = XXH3_64bits(data, bytes);
    bool same = !*known || now == *hash;
    *hash = now;
    *known = true;
    if (slice == g->checked) {
        if (slice == 0) XXH3_64bits_reset(g->state);
        XXH3_64bits_update(g->state, data, bytes);
        g->checked++;
        if (g->checked == g->n) same = same && XXH3_64bits_digest(g->state) == g->hash;
    }
    if (same) return STINT_OK;
    forget_linear_op(s, g);
    return st_section_damaged(s->path, g->name);
}

stint_status st_slices_take(struct st_slices *s, size_t linear_op, uint32_t slice,
                            const int8_t **panels) {
    struct st_slice_place at = {(uint32_t)linear_op, slice, false};
    struct st_cache *cache = region(s, linear_op);
    bool fresh;
    if (s->n_ahead) {
        struct st_slice_place next = *ahead(s, 0);
        if (next.linear_op == at.linear_op && next.slice == at.slice) {
            s->first_ahead++;
            s->n_ahead--;
            s->n_read_ahead -= next.read;
        } else if (!s->linear_ops[linear_op].by_chance) {
            drop_ahead(s);
        }
    }
    int32_t entry = take_entry(s, linear_op, slice);
    if (entry == ST_CACHE_NONE)
        return st_fail(STINT_E_INTERNAL, "the weights' cache holds %u slices too few",
                       cache->n_entries);
    if (!s->linear_ops[linear_op].by_chance) look_ahead(s, at);
    ST_TRY(st_cache_wait(cache, entry, &fresh));
    *panels = (const int8_t *)st_cache_data(cache, entry);
    stint_status status =
        fresh ? check(s, linear_op, slice, st_cache_data(cache, entry)) : STINT_OK;
    return status;
}

bool st_slices_has(const struct st_slices *s, size_t linear_op, uint32_t slice) {
    const struct st_sliced *g = &s->linear_ops[linear_op];
    const struct st_cache *cache = &s->regions[g->region];
    int32_t entry = cache->entry_of[g->first + slice];
    return entry != ST_CACHE_NONE && st_cache_is_there(cache, entry);
}

void st_slices_give(struct st_slices *s, size_t linear_op, uint32_t slice) {
    struct st_cache *cache = region(s, linear_op);
    int32_t entry = cache->entry_of[s->linear_ops[linear_op].first + slice];
    enum st_evict when = s->linear_ops[linear_op].by_chance ? ST_EVICT_LAST : ST_EVICT_FIRST;
    if (entry != ST_CACHE_NONE) st_cache_give(cache, entry, when);
}

void st_slices_expect(struct st_slices *s, size_t linear_op) {
    for (uint32_t i = 0; i < s->linear_ops[linear_op].n; i++)
        if (take_entry(s, linear_op, i) == ST_CACHE_NONE) return;
}

void st_slices_pass(struct st_slices *s, unsigned pass) {
    if (s->pass == pass) return;
    s->pass = pass;
    drop_ahead(s);
}

void st_slices_reset(struct st_slices *s) {
    s->n_ahead = s->n_read_ahead = 0;
    for (int r = 0; r < ST_N_REGIONS; r++)
        if (s->regions[r].n_entries) st_cache_give_all(&s->regions[r]);
}
