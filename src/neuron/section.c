// SPDX-License-Identifier: Apache-2.0
#include "neuron/section.h"

#include "base/size.h"

#include <stdlib.h>
#include <xxhash.h>

enum { PIECE_BYTES = 1 << 20, DEPTH = 8 };

unsigned char *st_section_room(struct st_arena *arena, size_t bytes) {
    unsigned char *room =
        st_arena_take(arena, st_round_up(bytes, ST_LOAD_BLOCK) + ST_LOAD_BLOCK, 1);
    return room ? room + (-(uintptr_t)room & (ST_LOAD_BLOCK - 1)) : NULL;
}

stint_status st_section_damaged(const char *path, const char *name) {
    return st_fail(STINT_E_FORMAT,
                   "%s: section '%s' is damaged, or was changed while in use: its hash differs; "
                   "copy or prepare the package again",
                   path, name);
}

struct reading {
    struct st_loader *loader;
    uint64_t offset; // in the file
    size_t bytes;
    unsigned char *to; // [bytes], or [DEPTH, PIECE_BYTES] that are used in turn
    bool in_turn;
    struct st_load loads[DEPTH];
    // The hash of the part at hand, which comes next.
    const struct st_section_part *part;
    size_t hashed; // bytes of it
    XXH3_state_t *state;
    bool differs;
    st_section_fn *fn; // or NULL
    void *context;
};

static void prefetch(struct reading *r, size_t piece) {
    size_t at = piece * PIECE_BYTES;
    struct st_load *load = &r->loads[piece % DEPTH];
    if (at >= r->bytes) return;
    *load = (struct st_load){.offset = r->offset + at,
                             .bytes = st_min(PIECE_BYTES, r->bytes - at),
                             .to = r->to + (r->in_turn ? piece % DEPTH * PIECE_BYTES : at),
                             .apart = r->offset % ST_LOAD_BLOCK != 0};
    st_loader_prefetch(r->loader, load);
}

static void hash(struct reading *r, const unsigned char *data, size_t bytes) {
    for (size_t done = 0, n; done < bytes; done += n) {
        n = st_min(bytes - done, r->part->bytes - r->hashed);
        if (r->hashed == 0) XXH3_64bits_reset(r->state);
        XXH3_64bits_update(r->state, data + done, n);
        if (r->fn) r->fn(r->context, data + done, n);
        r->hashed += n;
        if (r->hashed < r->part->bytes) continue;
        r->differs = r->differs || XXH3_64bits_digest(r->state) != r->part->hash;
        r->part++;
        r->hashed = 0;
    }
}

// Into the hash from byte `skip` on.
static stint_status read_all(struct reading *r, size_t skip) {
    size_t n = st_ceil_div(r->bytes, PIECE_BYTES);
    stint_status status = STINT_OK;
    for (size_t i = 0; i < DEPTH; i++) prefetch(r, i);
    for (size_t i = 0; i < n && status == STINT_OK; i++, skip = 0) {
        struct st_load *load = &r->loads[i % DEPTH];
        status = st_loader_wait(r->loader, load);
        if (status != STINT_OK) break;
        hash(r, load->to + skip, load->bytes - skip);
        prefetch(r, i + DEPTH);
    }
    st_loader_drain(r->loader);
    return status;
}

static stint_status read_rest(struct reading *r, size_t skip) {
    r->to = aligned_alloc(ST_LOAD_BLOCK, DEPTH * PIECE_BYTES);
    r->in_turn = true;
    stint_status status = STINT_OK;
    if (!r->to) status = st_fail(STINT_E_NOMEM, "no memory to read a package");
    if (status == STINT_OK) status = read_all(r, skip);
    free(r->to);
    return status;
}

// The first `bytes` to `to`, the rest up to `all` only into the hashes.
static stint_status read_section(const struct stint_model *model, const struct st_section *s,
                                 size_t bytes, size_t all, unsigned char *to, struct reading *r) {
    r->state = XXH3_createState();
    if (!r->state) return st_fail(STINT_E_NOMEM, "no memory to check section '%s'", s->name);
    r->offset = st_package_offset(model->checkpoint.package, s);
    r->bytes = bytes;
    r->to = to;
    stint_status status = read_all(r, 0);
    if (status == STINT_OK && bytes < all) {
        size_t skip = bytes % ST_LOAD_BLOCK;
        r->offset += bytes - skip;
        r->bytes = all - (bytes - skip);
        status = read_rest(r, skip);
    }
    XXH3_freeState(r->state);
    if (status != STINT_OK || !r->differs) return status;
    return st_section_damaged(model->checkpoint.path, s->name);
}

stint_status st_section_keep(const struct stint_model *model, struct st_loader *loader,
                             const char *name, size_t bytes, unsigned char *to) {
    const struct st_package *package = model->checkpoint.package;
    const struct st_section *s = st_package_find(package, name);
    struct st_section_part whole = {s->bytes, st_package_section_hash(package, s)};
    struct reading r = {.loader = loader, .part = &whole};
    return read_section(model, s, bytes, s->bytes, to, &r);
}

stint_status st_section_keep_parts(const struct stint_model *model, struct st_loader *loader,
                                   const char *name, const struct st_section_part *parts, size_t n,
                                   unsigned char *to) {
    const struct st_section *s = st_package_find(model->checkpoint.package, name);
    struct reading r = {.loader = loader, .part = parts};
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) bytes += parts[i].bytes;
    return read_section(model, s, bytes, bytes, to, &r);
}

stint_status st_section_pass(struct st_loader *loader, uint64_t offset,
                             const struct st_section_part *part, st_section_fn *fn, void *context,
                             bool *same) {
    size_t skip = (size_t)(offset % ST_LOAD_BLOCK);
    struct reading r = {.loader = loader,
                        .part = part,
                        .offset = offset - skip,
                        .bytes = part->bytes + skip,
                        .fn = fn,
                        .context = context,
                        .state = XXH3_createState()};
    if (!r.state) return st_fail(STINT_E_NOMEM, "no memory to check a section");
    stint_status status = read_rest(&r, skip);
    XXH3_freeState(r.state);
    if (status == STINT_OK) *same = !r.differs;
    return status;
}

// ---- Pieces

struct piecewise {
    const struct st_section_pieces *pieces;
    size_t piece, hashed, left; // bytes of the piece that are in its hash; of all that are not
    XXH3_state_t *state;
};

static void hash_pieces(void *context, const unsigned char *data, size_t bytes) {
    struct piecewise *p = context;
    while (bytes && p->left) {
        size_t whole = st_min(p->pieces->piece_bytes, p->hashed + p->left);
        size_t n = st_min(bytes, whole - p->hashed);
        if (p->hashed == 0) XXH3_64bits_reset(p->state);
        XXH3_64bits_update(p->state, data, n);
        data += n;
        bytes -= n;
        p->left -= n;
        p->hashed += n;
        if (p->hashed < whole) return;
        p->pieces->fn(p->pieces->context, p->piece++, XXH3_64bits_digest(p->state));
        p->hashed = 0;
    }
}

stint_status st_section_pass_pieces(struct st_loader *loader, uint64_t offset,
                                    const struct st_section_part *part,
                                    const struct st_section_pieces *pieces, bool *same) {
    struct piecewise p = {.pieces = pieces, .left = pieces->bytes, .state = XXH3_createState()};
    if (!p.state) return st_fail(STINT_E_NOMEM, "no memory to check a section");
    stint_status status = st_section_pass(loader, offset, part, hash_pieces, &p, same);
    XXH3_freeState(p.state);
    return status;
}
