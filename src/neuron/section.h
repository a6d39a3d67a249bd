// SPDX-License-Identifier: Apache-2.0
// Sections of a package that stay in memory while the rest of it is read on demand.
#ifndef ST_NEURON_SECTION_H
#define ST_NEURON_SECTION_H

#include "base/arena.h"
#include "base/loader.h"
#include "model/model.h"

// Room for `bytes` of one, as st_section_keep() wants it; NULL while measuring.
unsigned char *st_section_room(struct st_arena *arena, size_t bytes);
// STINT_E_FORMAT that names the package and the section.
stint_status st_section_damaged(const char *path, const char *name);
// Reads the beginning of a section, `bytes` of it, to `to`, which is a multiple of ST_LOAD_BLOCK
// and has room for `bytes` rounded up to one. What follows is read too, for the hash is the whole
// section's. STINT_E_IO, E_FORMAT where the hash differs, E_NOMEM.
stint_status st_section_keep(const struct stint_model *model, struct st_loader *loader,
                             const char *name, size_t bytes, unsigned char *to);

// Parts of a section that have hashes of their own, one behind the other from its beginning on.
struct st_section_part {
    size_t bytes;
    uint64_t hash;
};
// The same of a section's first n parts: only they are read.
stint_status st_section_keep_parts(const struct stint_model *model, struct st_loader *loader,
                                   const char *name, const struct st_section_part *parts, size_t n,
                                   unsigned char *to);

// What is done with a part's bytes as they come, from the first on.
typedef void st_section_fn(void *context, const unsigned char *data, size_t bytes);
// Reads a part that begins at `offset` of the file, and keeps nothing of it. *same: it has its
// hash. STINT_E_IO, E_NOMEM.
stint_status st_section_pass(struct st_loader *loader, uint64_t offset,
                             const struct st_section_part *part, st_section_fn *fn, void *context,
                             bool *same);

// The first `bytes` of a part, in pieces of one size, the last of which may be smaller: gives the
// XXH3 of each.
struct st_section_pieces {
    size_t bytes, piece_bytes;
    void (*fn)(void *context, size_t piece, uint64_t hash);
    void *context;
};
// As st_section_pass().
stint_status st_section_pass_pieces(struct st_loader *loader, uint64_t offset,
                                    const struct st_section_part *part,
                                    const struct st_section_pieces *pieces, bool *same);

#endif
