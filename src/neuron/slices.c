// SPDX-License-Identifier: Apache-2.0
#include "neuron/slices.h"

#include "base/size.h"
#include "neuron/keep.h"
#include "neuron/section.h"
#include "neuron/slices_plan.h"

#include <string.h>
#include <xxhash.h>

enum {
    HASH_BYTES = 640, // of a hash under way
    DRAFTS = 4,       // passes that draft, for each that verifies what they drafted
};

// ---- Opening

static size_t n_seen(const struct st_slices_plan *plan) {
    size_t n = 0;
    for (int r = 0; r < ST_N_REGIONS; r++) n += (size_t)plan->n_ids[r] * plan->max_strips[r];
    return n;
}

static void lay_out(const struct st_slices_plan *plan, struct st_slices *s, struct st_arena *a) {
    s->pieces = ST_TAKE(a, struct st_sliced, s->n_pieces);
    s->seen = ST_TAKE(a, struct st_slice_seen, n_seen(plan));
    s->bytes = ST_TAKE(a, uint32_t, plan->n_ids[ST_REGION_FIXED]);
    s->kept = ST_TAKE(a, uint8_t, plan->n_ids[ST_REGION_FIXED]);
    for (int r = 0; r < ST_N_REGIONS; r++) {
        s->regions[r].entry_bytes = plan->entry_bytes[r];
        s->regions[r].n_entries = plan->n_entries[r];
        s->regions[r].n_ids = plan->n_ids[r];
        s->regions[r].max_loads = plan->max_strips[r];
        s->regions[r].counts_uses = r == ST_REGION_STREAM;
        st_cache_lay_out(&s->regions[r], a);
    }
}

size_t st_slices_table_bytes(const struct st_slices_source *source,
                             const struct st_slices_plan *plan) {
    const struct st_file_pieces *all = source->pieces;
    struct st_slices s = {.n_pieces = all->n};
    struct st_arena arena = st_arena_measure();
    size_t content = 0, hashed = 0;
    lay_out(plan, &s, &arena);
    for (int r = 0; r < ST_N_REGIONS; r++) content += plan->n_entries[r] * plan->entry_bytes[r];
    for (const struct st_file_piece *p = all->at; p < all->at + all->n; p++)
        for (uint32_t i = 0; i < p->n_strips; i++) hashed += p->strips[i].hashed;
    return arena.used - content + hashed * HASH_BYTES;
}

// What the pieces before one have taken.
struct taken {
    uint32_t ids[ST_N_REGIONS], seen;
};

static stint_status bind_piece(const struct st_slices_source *source,
                               const struct st_slices_plan *plan, const struct st_file_piece *piece,
                               struct taken *taken, struct st_sliced *s) {
    const struct st_config *c = &source->model->config;
    *s = (struct st_sliced){.piece = piece,
                            .n_groups = (uint32_t)st_file_piece_groups(piece),
                            .region = st_slice_region(c, source->steps, piece),
                            .passes = piece->n_strips ? st_slice_passes(source->steps, piece) : 0,
                            .by_chance = st_slice_by_chance(c, piece->linear)};
    for (uint32_t i = 0; i < piece->n_strips; i++)
        if (piece->strips[i].hashed && !(s->states[i] = XXH3_createState()))
            return st_fail(STINT_E_NOMEM, "no memory to check the weights");
    if (!piece->n_strips) return STINT_OK;
    s->slice_groups = st_slice_groups(piece, plan->entry_bytes[s->region]);
    s->n = (uint32_t)st_ceil_div(s->n_groups, s->slice_groups);
    s->first = taken->ids[s->region];
    s->first_seen = taken->seen;
    taken->ids[s->region] += s->n;
    taken->seen += s->n * piece->n_strips;
    return STINT_OK;
}

// ---- What stays

size_t st_slices_staying(size_t n_entries) {
    size_t passing = 1 + ST_SLICES_DEPTH; // one in use, the others on their way
    return n_entries - st_min(n_entries, passing);
}

static enum st_evict when_to_evict(const struct st_slices *s, const struct st_sliced *g,
                                   uint32_t slice) {
    bool stays = g->by_chance || (g->region == ST_REGION_FIXED && s->kept[g->first + slice]);
    return stays ? ST_EVICT_LAST : ST_EVICT_FIRST;
}

// What a slice that stays saves between two passes of the kind.
static uint32_t saves(const struct st_slices *s, const struct st_sliced *g, uint32_t slice) {
    unsigned passes = s->staying == ST_PASS_PROMPT ? ST_PASS_PROMPT | ST_PASS_STEP : s->staying;
    uint32_t bytes = (uint32_t)st_slice_bytes(g->piece, g->slice_groups, slice);
    if (g->passes & s->drafts) return DRAFTS * bytes;
    return g->passes & passes ? bytes : 0;
}

// Decides which slices stay until there are passes of another kind; a step takes all that a prompt
// does.
static void keep(struct st_slices *s) {
    struct st_cache *cache = &s->regions[ST_REGION_FIXED];
    if (cache->n_ids == 0) return;
    memset(s->bytes, 0, cache->n_ids * sizeof *s->bytes);
    for (const struct st_sliced *g = s->pieces; g < s->pieces + s->n_pieces; g++)
        for (uint32_t i = 0; i < g->n && g->region == ST_REGION_FIXED; i++)
            s->bytes[g->first + i] = saves(s, g, i);
    st_keep_largest(s->bytes, cache->n_ids, st_slices_staying(cache->n_entries), s->kept);
    for (uint32_t e = 0; e < cache->n_used; e++)
        st_cache_reorder(cache, (int32_t)e,
                         cache->id_of[e] != ST_CACHE_NONE && s->kept[cache->id_of[e]]
                             ? ST_EVICT_LAST
                             : ST_EVICT_FIRST);
}

struct beginning {
    struct st_slice_seen *first; // of the first slice
    size_t step;                 // from one slice to the next
};

static void note_slice(void *context, size_t slice, uint64_t hash) {
    const struct beginning *b = context;
    b->first[slice * b->step] = (struct st_slice_seen){.hash = hash, .known = true};
}

// Of a strip that is the beginning of a part whose hash is that of the whole, the whole goes by
// once, and each slice is then what it was.
static stint_status check_beginnings(struct st_slices *s, const struct st_sliced *g,
                                     struct st_loader *loader) {
    for (uint32_t i = 0; i < g->piece->n_strips; i++) {
        const struct st_file_strip *strip = &g->piece->strips[i];
        const struct st_section_part part = {strip->part_bytes, strip->hash};
        struct beginning b = {s->seen + g->first_seen + i, g->piece->n_strips};
        const struct st_section_pieces slices = {strip->bytes, g->slice_groups * strip->group_bytes,
                                                 note_slice, &b};
        bool same = true;
        if (strip->part_bytes)
            ST_TRY(st_section_pass_pieces(loader, strip->offset, &part, &slices, &same));
        if (!same) return st_section_damaged(s->model->checkpoint.path, strip->section);
    }
    return STINT_OK;
}

stint_status st_slices_open(const struct st_slices_source *source,
                            const struct st_slices_plan *plan, struct st_loader *loader,
                            struct st_slices *s) {
    struct taken taken = {{0}, 0};
    *s = (struct st_slices){.model = source->model,
                            .n_pieces = source->pieces->n,
                            .pass = ST_PASS_PROMPT,
                            .drafts = source->drafts,
                            .staying = ST_PASS_PROMPT};
    struct st_arena arena = st_arena_measure();
    lay_out(plan, s, &arena);
    ST_TRY(st_arena_check(&arena, "the weights' cache"));
    ST_TRY(st_arena_open(&s->arena, arena.used));
    lay_out(plan, s, &s->arena);
    ST_TRY(st_arena_check(&s->arena, "the weights' cache"));
    for (int r = 0; r < ST_N_REGIONS; r++) st_cache_open(&s->regions[r], loader);
    for (size_t i = 0; i < s->n_pieces; i++) {
        ST_TRY(bind_piece(source, plan, &source->pieces->at[i], &taken, &s->pieces[i]));
        ST_TRY(check_beginnings(s, &s->pieces[i], loader));
    }
    keep(s);
    return STINT_OK;
}

void st_slices_close(struct st_slices *s) {
    for (size_t i = 0; i < s->n_pieces && s->pieces; i++)
        for (int j = 0; j < ST_PIECE_STRIPS; j++) XXH3_freeState(s->pieces[i].states[j]);
    st_arena_close(&s->arena);
    *s = (struct st_slices){0};
}

// ---- Before their turn

static struct st_cache *region(struct st_slices *s, size_t piece) {
    return &s->regions[s->pieces[piece].region];
}

// Where a slice lies in the file, strip by strip, and in its entry from `at` on.
struct strip_place {
    uint64_t offset;
    size_t bytes, at;
};

static struct strip_place strip_of(const struct st_sliced *g, uint32_t slice, uint32_t strip) {
    struct strip_place place = {0};
    for (uint32_t i = 0; i <= strip; i++) {
        const struct st_file_strip *s = &g->piece->strips[i];
        size_t begin = (size_t)slice * g->slice_groups * s->group_bytes;
        place.at = st_round_up(place.at + place.bytes, ST_LOAD_BLOCK);
        place.offset = s->offset + begin;
        place.bytes = st_min(s->bytes - begin, g->slice_groups * s->group_bytes);
        place.at += (size_t)(place.offset % ST_LOAD_BLOCK);
    }
    return place;
}

static struct st_slice_seen *seen_of(struct st_slices *s, const struct st_sliced *g,
                                     uint32_t slice) {
    return s->seen + g->first_seen + (size_t)slice * g->piece->n_strips;
}

static int32_t take_entry(struct st_slices *s, size_t piece, uint32_t slice) {
    const struct st_sliced *g = &s->pieces[piece];
    struct st_extent extents[ST_PIECE_STRIPS];
    for (uint32_t i = 0; i < g->piece->n_strips; i++) {
        struct strip_place place = strip_of(g, slice, i);
        size_t skip = (size_t)(place.offset % ST_LOAD_BLOCK);
        extents[i] = (struct st_extent){.offset = place.offset - skip,
                                        .bytes = place.bytes + skip,
                                        .file = g->piece->file,
                                        .at = place.at - skip};
    }
    return st_cache_take_all(region(s, piece), g->first + slice, extents, g->piece->n_strips);
}

// A slice that is needed now.
static int32_t take_needed(struct st_slices *s, size_t piece, uint32_t slice) {
    const struct st_sliced *g = &s->pieces[piece];
    struct st_cache *cache = region(s, piece);
    struct st_slice_seen *seen = seen_of(s, g, slice);
    int32_t before = cache->entry_of[g->first + slice];
    bool there = before != ST_CACHE_NONE, held = there && cache->held[before];
    int32_t entry = take_entry(s, piece, slice);
    if (entry == ST_CACHE_NONE || !g->by_chance) return entry;
    if (held && seen->foreseen == ST_NOT_FORESEEN) return entry; // not for the first time
    cache->hits += seen->foreseen == ST_FORESEEN;
    s->foresight.used += seen->foreseen == ST_FORESEEN_READ;
    s->foresight.late += !there && s->pass != ST_PASS_PROMPT;
    seen->foreseen = ST_NOT_FORESEEN;
    st_cache_use(cache, g->first + slice);
    return entry;
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
        if (entry != ST_CACHE_NONE)
            st_cache_give(region(s, at.piece), entry,
                          when_to_evict(s, &s->pieces[at.piece], at.slice));
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

// Its turn has come, which may be before that of others. False: it is not among them.
static bool leave_ahead(struct st_slices *s, struct st_slice_place at) {
    size_t i = 0;
    while (i < s->n_ahead && (ahead(s, i)->piece != at.piece || ahead(s, i)->slice != at.slice))
        i++;
    if (i == s->n_ahead) return false;
    s->n_read_ahead -= ahead(s, i)->read;
    for (; i > 0; i--) *ahead(s, i) = *ahead(s, i - 1);
    s->first_ahead++;
    s->n_ahead--;
    return true;
}

// ---- Their turn

static stint_status damaged(const struct st_slices *s, const struct st_sliced *g, uint32_t strip) {
    const struct st_file_piece *p = g->piece;
    const char *path = s->model->checkpoint.files[p->file].name;
    if (p->strips[strip].section) return st_section_damaged(path, p->strips[strip].section);
    return st_fail(STINT_E_FORMAT, "%s: tensor '%s' was changed while in use: open the model again",
                   path, st_file_piece_tensor(s->model, p));
}

// Of a damaged piece nothing is kept: which of its slices is wrong is not known. Where there are no
// hashes in the file, it must become again what it was.
static void forget_piece(struct st_slices *s, struct st_sliced *g) {
    struct st_cache *cache = &s->regions[g->region];
    bool hashed = false;
    for (uint32_t i = 0; i < g->piece->n_strips; i++) hashed |= g->piece->strips[i].hashed;
    g->checked = 0;
    if (hashed) memset(seen_of(s, g, 0), 0, (size_t)g->n * g->piece->n_strips * sizeof *s->seen);
    for (uint32_t i = g->first; i < g->first + g->n; i++)
        if (cache->entry_of[i] != ST_CACHE_NONE) st_cache_discard(cache, cache->entry_of[i]);
}

// While a piece goes by for the first time its bytes go into its strips' hashes; later a slice is
// what it was then.
static bool is_same(const struct st_sliced *g, uint32_t slice, uint32_t strip,
                    const unsigned char *data, struct st_slice_seen *seen) {
    size_t bytes = strip_of(g, slice, strip).bytes;
    uint64_t now = XXH3_64bits(data, bytes);
    bool same = !seen->known || now == seen->hash;
    if (same) *seen = (struct st_slice_seen){.hash = now, .known = true};
    if (!g->states[strip] || slice != g->checked) return same;
    if (slice == 0) XXH3_64bits_reset(g->states[strip]);
    XXH3_64bits_update(g->states[strip], data, bytes);
    bool complete = slice + 1 == g->n;
    return same &&
           (!complete || XXH3_64bits_digest(g->states[strip]) == g->piece->strips[strip].hash);
}

static stint_status check(struct st_slices *s, struct st_sliced *g, uint32_t slice,
                          const unsigned char *strips[ST_PIECE_STRIPS]) {
    for (uint32_t i = 0; i < g->piece->n_strips; i++) {
        if (is_same(g, slice, i, strips[i], seen_of(s, g, slice) + i)) continue;
        forget_piece(s, g);
        return damaged(s, g, i);
    }
    g->checked += slice == g->checked;
    return STINT_OK;
}

stint_status st_slices_take(struct st_slices *s, size_t piece, uint32_t slice,
                            const unsigned char *strips[ST_PIECE_STRIPS]) {
    struct st_slice_place at = {(uint32_t)piece, slice, false};
    struct st_cache *cache = region(s, piece);
    bool fresh;
    if (!leave_ahead(s, at) && !s->pieces[piece].by_chance) drop_ahead(s);
    int32_t entry = take_needed(s, piece, slice);
    if (entry == ST_CACHE_NONE)
        return st_fail(STINT_E_INTERNAL, "the weights' cache holds %u slices too few",
                       cache->n_entries);
    if (!s->pieces[piece].by_chance) look_ahead(s, at);
    ST_TRY(st_cache_wait(cache, entry, &fresh));
    st_slices_strips(s, piece, slice, strips);
    return fresh ? check(s, &s->pieces[piece], slice, strips) : STINT_OK;
}

void st_slices_strips(const struct st_slices *s, size_t piece, uint32_t slice,
                      const unsigned char *strips[ST_PIECE_STRIPS]) {
    const struct st_sliced *g = &s->pieces[piece];
    const struct st_cache *cache = &s->regions[g->region];
    int32_t entry = cache->entry_of[g->first + slice];
    for (uint32_t i = 0; i < g->piece->n_strips; i++)
        strips[i] = st_cache_data(cache, entry) + strip_of(g, slice, i).at;
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
    if (entry != ST_CACHE_NONE)
        st_cache_give(cache, entry, when_to_evict(s, &s->pieces[piece], slice));
}

void st_slices_expect(struct st_slices *s, size_t piece) {
    if (!(s->pieces[piece].passes & s->pass)) return;
    for (uint32_t i = 0; i < s->pieces[piece].n; i++)
        if (take_needed(s, piece, i) == ST_CACHE_NONE) return;
}

static bool foresee(struct st_slices *s, size_t piece, uint32_t slice) {
    const struct st_sliced *g = &s->pieces[piece];
    struct st_cache *cache = region(s, piece);
    struct st_slice_seen *seen = seen_of(s, g, slice);
    if (s->n_foreseen == st_min(ST_SLICES_FORESEEN, cache->n_entries / 2)) return false;
    if (st_cache_hold(cache, g->first + slice)) {
        seen->foreseen = ST_FORESEEN;
    } else {
        if (take_entry(s, piece, slice) == ST_CACHE_NONE) return false;
        seen->foreseen = ST_FORESEEN_READ;
        s->foresight.read++;
    }
    s->foreseen[s->n_foreseen++] = (struct st_slice_place){(uint32_t)piece, slice, false};
    return true;
}

bool st_slices_foresee(struct st_slices *s, size_t piece) {
    if (!(s->pieces[piece].passes & s->pass)) return true;
    for (uint32_t i = 0; i < s->pieces[piece].n; i++)
        if (!foresee(s, piece, i)) return false;
    return true;
}

void st_slices_let_go(struct st_slices *s) {
    for (; s->n_foreseen; s->n_foreseen--) {
        struct st_slice_place at = s->foreseen[s->n_foreseen - 1];
        struct st_slice_seen *seen = seen_of(s, &s->pieces[at.piece], at.slice);
        int32_t entry = held_entry(s, at);
        if (seen->foreseen == ST_NOT_FORESEEN || entry == ST_CACHE_NONE) continue;
        seen->foreseen = ST_NOT_FORESEEN;
        st_cache_give(region(s, at.piece), entry, ST_EVICT_LAST);
    }
}

void st_slices_pass(struct st_slices *s, unsigned pass) {
    if (s->regions[ST_REGION_STREAM].uses) st_cache_age(&s->regions[ST_REGION_STREAM]);
    st_slices_let_go(s);
    if (s->pass == pass) return;
    s->pass = pass;
    drop_ahead(s);
    if (pass & s->drafts || s->staying == pass) return;
    s->staying = pass;
    keep(s);
}

void st_slices_resize(struct st_slices *s, uint32_t r, uint32_t n_entries) {
    if (n_entries == s->regions[r].n_entries) return;
    drop_ahead(s);
    st_slices_let_go(s);
    st_cache_resize(&s->regions[r], n_entries);
    if (r == ST_REGION_FIXED) keep(s);
}

void st_slices_reset(struct st_slices *s) {
    st_slices_let_go(s);
    s->n_ahead = s->n_read_ahead = 0;
    for (int r = 0; r < ST_N_REGIONS; r++)
        if (s->regions[r].n_entries) st_cache_give_all(&s->regions[r]);
}
