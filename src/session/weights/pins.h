// SPDX-License-Identifier: Apache-2.0
// Which parts of nested weights a memory-bounded session pins, and which it streams. A part is the
// groups of a precision, or a region of the codes (a plane), of one linear. Parts have an order:
// what the lowest precision of the session takes comes first, for each higher one the rest follows,
// and what runs take a part of comes last: experts, and the head where steps only draft. All parts
// before a limit are pinned. So what a step streams is spread over
// the layers, and reading does not stop while others are computed.
#ifndef ST_SESSION_PINS_H
#define ST_SESSION_PINS_H

#include "model/model.h"

struct st_pins {
    // Of the session's runs: bit b for b bits; 0: no nested weights. ST_NESTED_STORED: runs in INT8
    // whose weights are made of the codes.
    unsigned precisions;
    unsigned drafts; // of these, those that only draft: with the head's first rows
    uint64_t limit;  // ranks below are pinned
};
#define ST_PINS_ALL UINT64_MAX

// Calls `fn` for each nested linear of the model.
stint_status st_pins_each(const struct stint_model *model, st_nested_place_fn *fn, void *context);

// Whether the groups of a number of bits, or the region of a bit, of a linear are pinned.
bool st_pins_groups(const struct st_pins *pins, const struct stint_model *model,
                    const struct st_nested_place *place, unsigned bits);
bool st_pins_plane(const struct st_pins *pins, const struct stint_model *model,
                   const struct st_nested_place *place, unsigned bit);

// The bits of its codes that runs of a precision take.
unsigned st_pins_top(const struct st_nested_weight *weight, unsigned precision);
// Rows of up alternate with rows of gate in a packed linear: with ST_NESTED_STORED both are one
// piece, that of gate, whose strips come first.
static inline bool st_pins_is_second(const struct stint_model *model,
                                     const struct st_nested_place *place) {
    return place->id.role == ST_INT8_UP && place->part == 1 &&
           model->config.flags & ST_ARCH_GATED &&
           !st_config_is_cut(&model->config, place->id.layer);
}

// Older packages cannot be streamed: they have no hashes of planes.
bool st_pins_may_stream(const struct stint_model *model);
// The limit whose parts take up to `room` bytes. Of those that come last either all are pinned or
// none: they are not all used, so a cache suits them better.
uint64_t st_pins_fit(const struct stint_model *model, const struct st_pins *pins, uint64_t room);

// The model's pieces, and behind them, of each nested linear, a piece for each precision from the
// lowest on: the parts that are not pinned. What steps that only draft take of a linear is the
// piece of theirs alone, which higher precisions take, too; but not of the head. Runs twice on
// `arena` (base/arena.h).
void st_pins_pieces(const struct stint_model *model, const struct st_pins *pins,
                    struct st_arena *arena, struct st_file_pieces *pieces);
// The place there of a nested linear's piece for runs of a precision.
size_t st_pins_place(const struct stint_model *model, const struct st_pins *pins, uint32_t index,
                     unsigned bits);

static inline unsigned st_pins_lowest(unsigned precisions) {
    unsigned bits = 0;
    while (precisions && !(precisions >> bits & 1)) bits++;
    return bits;
}
static inline unsigned st_pins_highest(unsigned precisions) {
    unsigned bits = 0;
    for (; precisions > 1; precisions >>= 1) bits++;
    return bits;
}

#endif
