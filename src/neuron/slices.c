// SPDX-License-Identifier: Apache-2.0
#include "neuron/slices.h"

#include "base/size.h"
#include "neuron/section.h"

#include <string.h>
#include <xxhash.h>

enum {
    STEP_BYTES = 64 << 10,
    MAX_BYTES = 2 << 20,
    READ_BYTES = 32 << 10, // what one more read costs, in bytes of room
    HASH_BYTES = 640,      // of a hash under way
};

// ---- The pieces of a model

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
    const struct stint_model *model;
    unsigned steps;
    uint32_t region;
    size_t widest, slack; // group of the region; of an entry
    uint64_t bytes;
};

static bool is_of(const struct sizing *s, const struct st_file_piece *p) {
    return p->bytes && region_of(&s->model->config, s->steps, p->linear.role) == s->region;
}

static bool is_aligned(const struct st_file_piece *p) {
    return p->offset % ST_LOAD_BLOCK == 0 && p->group_bytes % ST_LOAD_BLOCK == 0;
}

static void measure(struct sizing *s) {
    const struct st_file_pieces *all = &s->model->pieces;
    s->bytes = 0;
    for (const struct st_file_piece *p = all->at; p < all->at + all->n; p++) {
        if (!is_of(s, p)) continue;
        s->widest = st_max(s->widest, p->group_bytes);
        s->bytes += p->bytes;
        if (!is_aligned(p)) s->slack = ST_LOAD_BLOCK;
    }
}

static uint64_t count_slices(const struct sizing *s, size_t entry_bytes) {
    const struct st_file_pieces *all = &s->model->pieces;
    uint64_t n = 0;
    for (const struct st_file_piece *p = all->at; p < all->at + all->n; p++)
        if (is_of(s, p))
            n += st_ceil_div(st_file_piece_groups(p), (entry_bytes - s->slack) / p->group_bytes);
    return n;
}

// Much room is lost in entries that slices do not fill, much time in reads that are small.
void st_slices_plan(const struct stint_model *model, unsigned steps, struct st_slices_plan *plan) {
    *plan = (struct st_slices_plan){0};
    for (uint32_t r = 0; r < ST_N_REGIONS; r++) {
        struct sizing s = {.model = model, .steps = steps, .region = r};
        uint64_t best = UINT64_MAX;
        measure(&s);
        if (s.widest == 0) continue; // nothing is in this region
        plan->bytes[r] = s.bytes;
        plan->slack_bytes[r] = s.slack;
        size_t first = st_round_up(s.widest + s.slack, STEP_BYTES);
        for (size_t bytes = first; bytes <= st_max(first, MAX_BYTES); bytes += STEP_BYTES) {
            uint64_t n = count_slices(&s, bytes), score = n * (bytes + READ_BYTES);
            if (score >= best) continue;
            best = score;
            plan->entry_bytes[r] = bytes;
            plan->n_ids[r] = (uint32_t)n;
        }
    }
}

// ---- Opening

static void lay_out(const struct st_slices_plan *plan, struct st_slices *s, struct st_arena *a) {
    s->pieces = ST_TAKE(a, struct st_sliced, s->n_pieces);
    for (int r = 0; r < ST_N_REGIONS; r++) {
        s->regions[r].entry_bytes = plan->entry_bytes[r];
        s->regions[r].n_entries = plan->n_entries[r];
        s->regions[r].n_ids = plan->n_ids[r];
        st_cache_lay_out(&s->regions[r], a);
        s->hashes[r] = ST_TAKE(a, uint64_t, plan->n_ids[r]);
        s->known[r] = ST_TAKE(a, uint8_t, plan->n_ids[r]);
    }
}

size_t st_slices_table_bytes(const struct stint_model *model, const struct st_slices_plan *plan) {
    struct st_slices s = {.n_pieces = model->pieces.n};
    struct st_arena arena = st_arena_measure();
    size_t content = 0, hashed = 0;
    lay_out(plan, &s, &arena);
    for (int r = 0; r < ST_N_REGIONS; r++) content += plan->n_entries[r] * plan->entry_bytes[r];
    for (size_t i = 0; i < model->pieces.n; i++) hashed += model->pieces.at[i].hashed;
    return arena.used - content + hashed * HASH_BYTES;
}

static stint_status bind_piece(const struct st_slices_plan *plan, unsigned steps,
                               const struct st_file_piece *piece, uint32_t n_ids[ST_N_REGIONS],
                               const struct st_config *c, struct st_sliced *s) {
    enum st_int8_role role = piece->linear.role;
    *s = (struct st_sliced){.piece = piece,
                            .n_groups = (uint32_t)st_file_piece_groups(piece),
                            .region = region_of(c, steps, role),
                            .passes = piece->bytes ? passes_of(steps, role) : 0,
                            .by_chance = by_chance(c, role)};
    if (piece->hashed && !(s->state = XXH3_createState()))
        return st_fail(STINT_E_NOMEM, "no memory to check the weights");
    if (!piece->bytes) return STINT_OK;
    s->slice_groups = (uint32_t)((plan->entry_bytes[s->region] - plan->slack_bytes[s->region]) /
                                 piece->group_bytes);
    s->n = (uint32_t)st_ceil_div(s->n_groups, s->slice_groups);
    s->first = n_ids[s->region];
    n_ids[s->region] += s->n;
    return STINT_OK;
}

stint_status st_slices_open(const struct stint_model *model, unsigned steps,
                            const struct st_slices_plan *plan, struct st_loader *loader,
                            struct st_slices *s) {
    uint32_t n_ids[ST_N_REGIONS] = {0};
    *s = (struct st_slices){.model = model, .n_pieces = model->pieces.n, .pass = ST_PASS_PROMPT};
    struct st_arena arena = st_arena_measure();
    lay_out(plan, s, &arena);
    ST_TRY(st_arena_check(&arena, "the weights' cache"));
    ST_TRY(st_arena_open(&s->arena, arena.used));
    lay_out(plan, s, &s->arena);
    ST_TRY(st_arena_check(&s->arena, "the weights' cache"));
    for (int r = 0; r < ST_N_REGIONS; r++) st_cache_open(&s->regions[r], loader);
    for (size_t i = 0; i < s->n_pieces; i++)
        ST_TRY(bind_piece(plan, steps, &model->pieces.at[i], n_ids, &model->config, &s->pieces[i]));
    return STINT_OK;
}

void st_slices_close(struct st_slices *s) {
    for (size_t i = 0; i < s->n_pieces && s->pieces; i++) XXH3_freeState(s->pieces[i].state);
    st_arena_close(&s->arena);
    *s = (struct st_slices){0};
}

// ---- Before their turn

static struct st_cache *region(struct st_slices *s, size_t piece) {
    return &s->regions[s->pieces[piece].region];
}

static size_t slice_begin(const struct st_sliced *g, uint32_t slice) {
    return (size_t)slice * g->slice_groups * g->piece->group_bytes;
}

static size_t slice_bytes(const struct st_sliced *g, uint32_t slice) {
    return st_min(g->piece->bytes - slice_begin(g, slice), g->slice_groups * g->piece->group_bytes);
}

// Its bytes in an entry, which begins with the block that they begin in.
static size_t skip_of(const struct st_sliced *g, uint32_t slice) {
    return (size_t)((g->piece->offset + slice_begin(g, slice)) % ST_LOAD_BLOCK);
}

static int32_t take_entry(struct st_slices *s, size_t piece, uint32_t slice) {
    const struct st_sliced *g = &s->pieces[piece];
    size_t skip = skip_of(g, slice);
    struct st_extent extent = {g->piece->offset + slice_begin(g, slice) - skip,
                               skip + slice_bytes(g, slice), g->piece->file};
    return st_cache_take(region(s, piece), g->first + slice, extent);
}

static bool is_passed_over(const struct st_slices *s, size_t piece) {
    const struct st_sliced *g = &s->pieces[piece];
    return g->by_chance || !(g->passes & s->pass);
}

// The slice that follows in this kind of pass, or in the next pass; the same where nothing does.
static struct st_slice_place following(const struct st_slices *s, struct st_slice_place at) {
    if (at.slice + 1 < s->pieces[at.piece].n)
        return (struct st_slice_place){at.piece, at.slice + 1, false};
    for (size_t i = 1; i <= s->n_pieces; i++) {
        uint32_t piece = (uint32_t)((at.piece + i) % s->n_pieces);
        if (!is_passed_over(s, piece)) return (struct st_slice_place){piece, 0, false};
    }
    return at;
}

static struct st_slice_place *ahead(struct st_slices *s, size_t i) {
    return &s->ahead[(s->first_ahead + i) % ST_SLICES_AHEAD];
}

static int32_t held_entry(struct st_slices *s, struct st_slice_place at) {
    return region(s, at.piece)->entry_of[s->pieces[at.piece].first + at.slice];
}

static void drop_ahead(struct st_slices *s) {
    for (; s->n_ahead; s->n_ahead--) {
        struct st_slice_place at = *ahead(s, s->n_ahead - 1);
        int32_t entry = held_entry(s, at);
        if (entry != ST_CACHE_NONE) st_cache_give(region(s, at.piece), entry, ST_EVICT_FIRST);
    }
    s->n_read_ahead = 0;
}

static void look_ahead(struct st_slices *s, struct st_slice_place at) {
    if (s->n_ahead) at = *ahead(s, s->n_ahead - 1);
    while (s->n_ahead < ST_SLICES_AHEAD) {
        struct st_slice_place next = following(s, at);
        const struct st_cache *c = region(s, next.piece);
        int32_t entry = held_entry(s, next);
        if (entry != ST_CACHE_NONE && c->held[entry]) return; // once round
        next.read = entry == ST_CACHE_NONE;
        if (next.read && s->n_read_ahead == ST_SLICES_DEPTH) return;
        if (take_entry(s, next.piece, next.slice) == ST_CACHE_NONE) return;
        s->n_read_ahead += next.read;
        s->n_ahead++;
        *ahead(s, s->n_ahead - 1) = at = next;
    }
}

// ---- Their turn

static stint_status damaged(const struct st_slices *s, const struct st_file_piece *p) {
    const char *path = s->model->checkpoint.files[p->file].name;
    if (p->section) return st_section_damaged(path, p->section);
    return st_fail(STINT_E_FORMAT, "%s: tensor '%s' was changed while in use: open the model again",
                   path, st_file_piece_tensor(s->model, p));
}

// Of a damaged piece nothing is kept: which of its slices is wrong is not known.
static void forget_piece(struct st_slices *s, struct st_sliced *g) {
    struct st_cache *cache = &s->regions[g->region];
    g->checked = 0;
    memset(s->known[g->region] + g->first, 0, g->n);
    for (uint32_t i = g->first; i < g->first + g->n; i++)
        if (cache->entry_of[i] != ST_CACHE_NONE) st_cache_discard(cache, cache->entry_of[i]);
}

// While a piece goes by for the first time its bytes go into its hash; later a slice is what it was
// then.
static stint_status check(struct st_slices *s, struct st_sliced *g, uint32_t slice,
                          const unsigned char *data) {
    size_t bytes = slice_bytes(g, slice);
    uint64_t *hash = &s->hashes[g->region][g->first + slice];
    uint8_t *known = &s->known[g->region][g->first + slice];
    uint64_t now = XXH3_64bits(data, bytes);
    bool same = !*known || now == *hash;
    *hash = now;
    *known = true;
    if (g->state && slice == g->checked) {
        if (slice == 0) XXH3_64bits_reset(g->state);
        XXH3_64bits_update(g->state, data, bytes);
        g->checked++;
        if (g->checked == g->n) same = same && XXH3_64bits_digest(g->state) == g->piece->hash;
    }
    if (same) return STINT_OK;
    forget_piece(s, g);
    return damaged(s, g->piece);
}

stint_status st_slices_take(struct st_slices *s, size_t piece, uint32_t slice,
                            const unsigned char **rows) {
    struct st_slice_place at = {(uint32_t)piece, slice, false};
    struct st_cache *cache = region(s, piece);
    bool fresh;
    if (s->n_ahead) {
        struct st_slice_place next = *ahead(s, 0);
        if (next.piece == at.piece && next.slice == at.slice) {
            s->first_ahead++;
            s->n_ahead--;
            s->n_read_ahead -= next.read;
        } else if (!s->pieces[piece].by_chance) {
            drop_ahead(s);
        }
    }
    int32_t entry = take_entry(s, piece, slice);
    if (entry == ST_CACHE_NONE)
        return st_fail(STINT_E_INTERNAL, "the weights' cache holds %u slices too few",
                       cache->n_entries);
    if (!s->pieces[piece].by_chance) look_ahead(s, at);
    ST_TRY(st_cache_wait(cache, entry, &fresh));
    *rows = st_cache_data(cache, entry) + skip_of(&s->pieces[piece], slice);
    return fresh ? check(s, &s->pieces[piece], slice, *rows) : STINT_OK;
}

bool st_slices_has(const struct st_slices *s, size_t piece, uint32_t slice) {
    const struct st_sliced *g = &s->pieces[piece];
    const struct st_cache *cache = &s->regions[g->region];
    int32_t entry = cache->entry_of[g->first + slice];
    return entry != ST_CACHE_NONE && st_cache_is_there(cache, entry);
}

void st_slices_give(struct st_slices *s, size_t piece, uint32_t slice) {
    struct st_cache *cache = region(s, piece);
    int32_t entry = cache->entry_of[s->pieces[piece].first + slice];
    enum st_evict when = s->pieces[piece].by_chance ? ST_EVICT_LAST : ST_EVICT_FIRST;
    if (entry != ST_CACHE_NONE) st_cache_give(cache, entry, when);
}

void st_slices_expect(struct st_slices *s, size_t piece) {
    for (uint32_t i = 0; i < s->pieces[piece].n; i++)
        if (take_entry(s, piece, i) == ST_CACHE_NONE) return;
}

void st_slices_pass(struct st_slices *s, unsigned pass) {
    if (s->pass == pass) return;
    s->pass = pass;
    drop_ahead(s);
}

void st_slices_shrink(struct st_slices *s, uint32_t r, uint32_t n_entries) {
    if (n_entries >= s->regions[r].n_entries) return;
    drop_ahead(s);
    st_cache_shrink(&s->regions[r], n_entries);
}

void st_slices_reset(struct st_slices *s) {
    s->n_ahead = s->n_read_ahead = 0;
    for (int r = 0; r < ST_N_REGIONS; r++)
        if (s->regions[r].n_entries) st_cache_give_all(&s->regions[r]);
}
