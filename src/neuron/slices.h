// SPDX-License-Identifier: Apache-2.0
// The linears of a model that need not all be in memory: their pieces (model/file_pieces.h) are cut
// into slices of whole groups of rows, read when their turn comes, and before it, as far as there
// is room. Two regions of the cache hold them: one for what every token needs, one for what only
// some do: experts, which are clusters like any other, and what prompts alone use: the dense
// feed-forward blocks of a sparse model, and all where steps run nested weights. What of nested
// weights is not pinned (session/weights/pinned.h) are pieces like others, one for each precision.
#ifndef ST_NEURON_SLICES_H
#define ST_NEURON_SLICES_H

#include "model/model.h"
#include "neuron/cache.h"

enum { ST_REGION_FIXED, ST_REGION_STREAM, ST_N_REGIONS };
enum {
    ST_SLICES_FEWEST = 4,     // entries of a region: one in use, the others under way
    ST_SLICES_AHEAD = 64,     // most slices that are taken before their turn,
    ST_SLICES_DEPTH = 8,      // and of them, those that must be read
    ST_SLICES_FORESEEN = 256, // most slices of experts that are foreseen for a layer
};

// Passes through the layers; those over nested weights have a bit for each precision.
enum { ST_PASS_PROMPT = 1, ST_PASS_STEP = 2 };
static inline unsigned st_pass_nested(unsigned bits) {
    return 1u << bits; // from ST_NESTED_LOWEST on
}
// What the tokens after a prompt take of them.
enum { ST_STEPS_FFN = 1, ST_STEPS_REST = 2 };

// One piece.
struct st_sliced {
    const struct st_file_piece *piece;
    uint32_t region, n_groups, slice_groups;
    uint32_t first, n;   // ids of its slices in the region's cache; n 0: there is no such piece
    unsigned passes;     // ST_PASS_* that it is of, in this order
    bool by_chance;      // an expert: nobody knows before whether it is needed
    uint32_t checked;    // slices whose bytes have gone into the hashes
    uint32_t first_seen; // of its slices' strips
    struct XXH3_state_s *states[ST_PIECE_STRIPS]; // of strips that have a hash
};

// What a strip of a slice was when it was first read.
struct st_slice_seen {
    uint64_t hash;
    bool known;
    // Of the first strip: held because the slice may be needed, which was there or is read.
    enum { ST_NOT_FORESEEN, ST_FORESEEN, ST_FORESEEN_READ } foreseen;
};

// Slices of experts in steps.
struct st_foresight {
    uint64_t read, used; // that were foreseen; of these, that were needed
    uint64_t late;       // that were needed, not in memory, and not foreseen
};

struct st_slices {
    struct st_arena arena; // all below
    const struct stint_model *model;
    struct st_sliced *pieces; // [n_pieces], in the order of a pass
    size_t n_pieces;
    struct st_cache regions[ST_N_REGIONS];
    struct st_slice_seen *seen; // [strips of all slices]
    unsigned pass;              // ST_PASS_*
    unsigned drafts, staying;   // passes that only draft; the last one that did not
    // Slices of the fixed region: the bytes that passes take of them; whether they stay.
    uint32_t *bytes;
    uint8_t *kept;
    struct st_foresight foresight;
    // What is taken before its turn, in order.
    struct st_slice_place {
        uint32_t piece, slice;
        bool read; // it was not there
    } ahead[ST_SLICES_AHEAD];
    size_t n_ahead, first_ahead, n_read_ahead;
    struct st_slice_place foreseen[ST_SLICES_FORESEEN]; // [n_foreseen] the last ones
    size_t n_foreseen;
};

// What the regions of a model are made of.
struct st_slices_plan {
    size_t entry_bytes[ST_N_REGIONS];
    size_t least_bytes[ST_N_REGIONS]; // of an entry
    uint32_t max_strips[ST_N_REGIONS];
    uint64_t bytes[ST_N_REGIONS];     // of the pieces
    uint32_t n_ids[ST_N_REGIONS];     // slices there are
    uint32_t n_entries[ST_N_REGIONS]; // that fit; set by who plans
};

// What is cut into slices: the pieces, and which of them steps take (ST_STEPS_*).
struct st_slices_source {
    const struct stint_model *model;
    const struct st_file_pieces *pieces;
    unsigned steps;
    unsigned drafts; // ST_PASS_* that only draft: several come for each of the others
};

// The size of the entries that suits the pieces best, and how many slices they make. `within`: the
// plan of a superset of the pieces, whose entries are not exceeded; or NULL.
void st_slices_plan(const struct st_slices_source *source, const struct st_slices_plan *within,
                    struct st_slices_plan *plan);
// Bytes of all but the entries' content.
size_t st_slices_table_bytes(const struct st_slices_source *source,
                             const struct st_slices_plan *plan);
// What one pass takes of a region, in slices, reads and bytes; and the bytes of each slice, if
// `bytes` [slices of the region] is not NULL.
struct st_slices_used {
    double slices, reads, bytes;
};
struct st_slices_used st_slices_of_pass(const struct st_slices_source *source,
                                        const struct st_slices_plan *plan, uint32_t region,
                                        unsigned pass, uint32_t *bytes);
// Entries of the fixed region in which slices stay; through the others the rest passes.
size_t st_slices_staying(size_t n_entries);

// Borrows what `source` points to, and the loader, until close. Reads what can be checked only as a
// whole. STINT_E_NOMEM, E_IO, E_FORMAT.
stint_status st_slices_open(const struct st_slices_source *source,
                            const struct st_slices_plan *plan, struct st_loader *loader,
                            struct st_slices *slices);
void st_slices_close(struct st_slices *slices); // accepts a zeroed one

// A pass begins, of these pieces.
void st_slices_pass(struct st_slices *slices, unsigned pass);

// The rows of a slice, in each strip, checked: against the strips' hashes, if they have them, as
// far as the piece was read in order for the first time, later against what was read then. It stays
// until it is given back. `piece`: its place in the table. STINT_E_IO, E_FORMAT.
stint_status st_slices_take(struct st_slices *slices, size_t piece, uint32_t slice,
                            const unsigned char *strips[ST_PIECE_STRIPS]);
// True if it could be taken without waiting.
bool st_slices_has(const struct st_slices *slices, size_t piece, uint32_t slice);
void st_slices_give(struct st_slices *slices, size_t piece, uint32_t slice);
// The strips of one that was taken and not given back.
void st_slices_strips(const struct st_slices *slices, size_t piece, uint32_t slice,
                      const unsigned char *strips[ST_PIECE_STRIPS]);
// Begins to read a piece of an expert that will be needed, if passes of this kind take it.
void st_slices_expect(struct st_slices *slices, size_t piece);
// The same of one that may be needed. Slices are held until they are needed and given back, or let
// go; they are at most half of the region. False: there is no room for more.
bool st_slices_foresee(struct st_slices *slices, size_t piece);
void st_slices_let_go(struct st_slices *slices);
// A region has so many entries from now on (st_cache_resize()). pre: none is held but those that
// were taken ahead.
void st_slices_resize(struct st_slices *slices, uint32_t region, uint32_t n_entries);
// After a failure: gives back all that is held.
void st_slices_reset(struct st_slices *slices);

#endif
