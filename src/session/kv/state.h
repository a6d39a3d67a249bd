// SPDX-License-Identifier: Apache-2.0
// What layers with recurrent state keep of the sequences: for a short convolution its inputs of the
// last few tokens. Attention forgets the end of a text at will, because the keys and values of
// every token are there. A state is that of one length, so states of other lengths are kept too:
//
//  - the rows of the last tokens, in a ring: drafts may be rejected, and a truncation by a few
//    tokens costs nothing;
//  - the state at one border in each stretch of some hundred tokens.
//
// A sequence that is truncated further gets the newest border that is not beyond its end, and the
// tokens from there on are computed again (session/replay.c), each as it was computed at first, so
// that the bits do not depend on what was forgotten. That happens when the sequence is next used.
#ifndef ST_SESSION_KV_STATE_H
#define ST_SESSION_KV_STATE_H

#include "base/arena.h"

#include <stdint.h>

struct stint_session;
struct st_run;

enum {
    ST_STATE_STRIDE = 256, // tokens between borders, at least
    ST_STATE_RECENT = 32,  // rows of a ring: those of a step, and some before it
};

// How a token was computed: by which kernels, and in the low bits the precision.
enum {
    ST_WAY_PROMPT = 0x00,
    ST_WAY_ONE = 0x40,  // alone
    ST_WAY_STEP = 0x80, // as one of several, or of what may be several
    ST_WAY_PRECISION = 0x0f,
};

// Of one sequence.
struct st_state_text {
    size_t from, to; // the positions whose rows the rings hold
    size_t *borders; // [n_borders] lengths whose states are held; 0: none
    uint8_t *ways;   // [n_context] ST_WAY_* of each token
};

struct st_state_cache {
    size_t n_layers;  // it has room for; 0: no layer has a state, and nothing here is used
    size_t row;       // floats of a row
    size_t n_before;  // rows that are a state
    size_t n_borders; // of each sequence
    size_t text_bytes; // of a sequence, with all that all sequences share
    float *recent;    // [sequences, n_layers, ST_STATE_RECENT, row]
    float *borders;   // [sequences, n_borders, n_layers, n_before, row]
    float *begun;     // [n_layers, n_before, row] the state before the chunks that are under way
    size_t first, end;           // positions of these chunks
    struct st_state_text *texts; // [sequences]
};

// Sets the sizes and takes the memory; runs on a measuring arena too (base/arena.h).
void st_state_lay_out(struct stint_session *s, struct st_arena *arena);

// At most so many bytes of it take memory for a sequence.
size_t st_state_touched(const struct st_state_cache *state);

// Tokens that go through the layers together: one chunk of a prompt or several, or a step's of one
// sequence, which has its state (st_session_settle).
struct st_state_batch {
    uint32_t sequence;
    size_t position, n;
    unsigned way;
};
void st_state_begin(struct stint_session *s, const struct st_state_batch *batch);
// They went through all layers.
void st_state_end(struct stint_session *s, const struct st_state_batch *batch);

// Within a layer: the row `back` tokens before the batch's t-th, of which rows of the same chunk of
// a prompt are not here; NULL before the text's beginning.
const float *st_state_row(const struct st_run *run, size_t t, size_t back);
// Keeps the row of the batch's t-th token.
void st_state_keep(const struct st_run *run, size_t t, const float *row);

// Whether a sequence has its state.
bool st_state_is_current(const struct stint_session *s, uint32_t sequence);
// Gives a sequence the newest state that is held of its beginning, and returns that one's length.
size_t st_state_restore(struct stint_session *s, uint32_t sequence);

// ---- Saved sequences

// The i-th length whose state is held of a sequence, ascending; 0: there are no more. One at most
// in each ST_STATE_STRIDE tokens, and the sequence's own.
size_t st_state_held(const struct stint_session *s, uint32_t sequence, size_t i);
// The state of such a length: [n_before, row] of one layer, zeros before the text's beginning.
void st_state_read(const struct stint_session *s, uint32_t sequence, size_t length, size_t slot,
                   float *to);
// Holds that state; the last one that is written may be the sequence's own.
void st_state_write(struct stint_session *s, uint32_t sequence, size_t length, size_t slot,
                    const float *from);
// Forgets all states; the sequence holds so many tokens, computed in these ways.
void st_state_reset(struct stint_session *s, uint32_t sequence, size_t length, const void *ways);

#endif
