// SPDX-License-Identifier: Apache-2.0
// Where the linears of a model lie in its files, for sessions that read them on demand: one table,
// whatever the files are. A linear of a package is one piece, packed; in a checkpoint each tensor
// of a linear is one (q, k and v; up and gate), as it is stored.
#ifndef ST_MODEL_FILE_PIECES_H
#define ST_MODEL_FILE_PIECES_H

#include "base/arena.h"
#include "model/weights_int8.h"

struct stint_model;

// A run of bytes in a file: groups of rows, the last of which may be smaller.
struct st_file_strip {
    const char *section; // its name, borrowed from the package; NULL: it is of a tensor
    uint64_t offset;     // in the file
    size_t bytes, group_bytes;
    uint64_t hash; // XXH3 of the bytes, where `hashed`
    bool hashed;
    size_t part_bytes; // not 0: `hash` is of so many bytes, of which these are the first
};

// The same groups of rows in each of its strips. Nested codes have a strip for each plane, and one
// for their scales.
struct st_file_piece {
    struct st_linear_id linear;
    const struct st_file_strip *strips;
    uint32_t n_strips; // 0: the linear has no such part
    uint32_t file;     // of the checkpoint's
    // The precision of the steps that take it, ST_NESTED_STORED for INT8; 0: it is not nested.
    uint32_t bits;
    unsigned also; // other precisions whose steps take it, bit b for b bits
};

struct st_file_pieces {
    struct st_file_piece *at; // [n] in the order of a pass
    size_t n;
};

enum { ST_PIECE_ROWS = 16 };   // of a group, where rows are as a checkpoint stores them
enum { ST_PIECE_STRIPS = 16 }; // of a piece, at most: gate and up, 8 bits

// The place of a linear's first part in the table; its other parts follow.
size_t st_file_piece_place(const struct stint_model *model, struct st_linear_id id);
// Sets model->pieces, in the arena, and numbers the float linears (st_linear_weight.piece). Runs
// twice on `arena` (base/arena.h). pre: the model's weights are bound. STINT_E_INTERNAL where a
// linear is in no file.
stint_status st_file_pieces_bind(struct stint_model *model, struct st_arena *arena);
// The name of the tensor that these bytes of the model's files are of, and that of a piece.
const char *st_file_tensor_at(const struct stint_model *model, const void *data);
const char *st_file_piece_tensor(const struct stint_model *model,
                                 const struct st_file_piece *piece);

static inline size_t st_file_piece_groups(const struct st_file_piece *piece) {
    return piece->n_strips ? (piece->strips->bytes - 1) / piece->strips->group_bytes + 1 : 0;
}
// Bytes of a group, in all strips.
static inline size_t st_file_piece_group_bytes(const struct st_file_piece *piece) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < piece->n_strips; i++) bytes += piece->strips[i].group_bytes;
    return bytes;
}

#endif
