// SPDX-License-Identifier: Apache-2.0
// What layers with recurrent state keep of the sequences. A convolution has its inputs of the last
// few tokens; a layer whose state is a matrix (kernels/recurrence.h) has that too. Attention
// forgets the end of a text at will, because the keys and values of every token are there. A state
// is that of one length, so states of other lengths are kept too:
//
//  - the rows of the last tokens, in a ring: inputs of convolutions, and what a token added to the
//    matrix. Together with a matrix of some tokens ago, the base, they give the state of every
//    length since. So drafts may be rejected, and a truncation by a few tokens costs little;
//  - the state at one border in each stretch of some hundred tokens. Matrices are large, so a
//    sequence has ST_STATE_MATRICES of these stretches at most.
//
// A sequence that is truncated further gets the newest border that is not beyond its end, and the
// tokens from there on are computed again (session/replay.c), each as it was computed at first, so
// that the bits do not depend on what was forgotten. That happens when the sequence is next used.
#ifndef ST_SESSION_KV_STATE_H
#define ST_SESSION_KV_STATE_H

#include "base/arena.h"
#include "kernels/recurrence.h"

#include <stdint.h>

struct stint_session;
struct st_run;

enum {
    ST_STATE_STRIDE = 256, // tokens between borders, at least
    ST_STATE_MATRICES = 8, // borders of a sequence whose states are matrices, about
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
    size_t base;     // length whose matrices are the bases; ST_STATE_NONE: there are none
    size_t live;     // length whose matrices are those that go on; or ST_STATE_NONE
    size_t *borders; // [n_borders] lengths whose states are held; 0: none
    uint8_t *ways;   // [n_context] ST_WAY_* of each token
};

#define ST_STATE_NONE SIZE_MAX

// A ring's row: `inputs` of a convolution, then what a token adds to a matrix: keys [groups,
// n_keys], values [heads, n_values], decays [heads].
struct st_state_cache {
    size_t n_layers;    // it has room for; 0: no layer has a state, and nothing here is used
    size_t inputs;      // of a convolution
    size_t row;         // floats of a ring's row
    size_t n_before;    // rows of inputs that are a state
    size_t matrix;      // floats of a layer's matrices; 0: it has none
    size_t head;        // of one of them
    size_t floats;      // of a layer's state: [n_before, inputs], matrices
    size_t stride_min;  // tokens between borders
    size_t n_borders;   // of each sequence
    size_t text_bytes;  // of a sequence, with all that all sequences share
    float *recent;      // [sequences, n_layers, ST_STATE_RECENT, row]
    float *borders;     // [sequences, n_borders, n_layers, floats]
    float *live, *base; // [sequences, n_layers, matrix]
    float *begun;       // [n_layers, n_before, inputs] inputs before the chunks that are under way
    size_t first, end;  // positions of these chunks
    size_t rebase;      // length within them whose matrices become the bases; or ST_STATE_NONE
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

// Within a layer: the inputs `back` tokens before the batch's t-th, of which rows of the same chunk
// of a prompt are not here; NULL before the text's beginning.
const float *st_state_row(const struct st_run *run, size_t t, size_t back);
// Keeps the inputs of the batch's t-th token.
void st_state_keep(const struct st_run *run, size_t t, const float *inputs);
// What a head's matrix meets from the batch's t-th token on, one row after another; all but
// n_tokens and state.
typedef struct st_recurrence_run st_state_tokens_fn(const struct st_run *run, size_t t,
                                                    size_t head);
// Within a layer: passes the batch's tokens through the matrices of their sequences.
void st_state_pass(const struct st_run *run, st_state_tokens_fn *tokens_of);

// Whether a sequence has its state.
bool st_state_is_current(const struct stint_session *s, uint32_t sequence);
// Gives a sequence the newest state that is held of its beginning, and returns that one's length.
size_t st_state_restore(struct stint_session *s, uint32_t sequence);

// ---- Saved sequences

// The i-th length whose state is held of a sequence, ascending; 0: there are no more. One at most
// in each ST_STATE_STRIDE tokens, and the sequence's own.
size_t st_state_held(const struct stint_session *s, uint32_t sequence, size_t i);
// The state of such a length, `floats` of one layer; inputs before the text's beginning are zeros.
void st_state_read(const struct stint_session *s, uint32_t sequence, size_t length, size_t slot,
                   float *to);
// Holds that state; the last one that is written may be the sequence's own.
void st_state_write(struct stint_session *s, uint32_t sequence, size_t length, size_t slot,
                    const float *from);
// Forgets all states; the sequence holds so many tokens, computed in these ways.
void st_state_reset(struct stint_session *s, uint32_t sequence, size_t length, const void *ways);

#endif
