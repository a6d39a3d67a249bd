// SPDX-License-Identifier: Apache-2.0
// Drafts of the checkpoint's own layer that predicts a further token (multi-token prediction,
// Gloeckle et al. 2024; DeepSeek-V3, section 2.2). It computes pairs: the hidden state behind the
// layers at a position, and the token that follows. Its keys and values are one more layer's in the
// cache. A prompt's pairs are computed with it; those of steps wait until the next tokens are to be
// drafted. What the layer says is only proposed, so pairs that were forgotten cost no exactness.
#ifndef ST_SESSION_AHEAD_H
#define ST_SESSION_AHEAD_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct stint_session;
struct st_run;
struct st_eval_request;

enum { ST_AHEAD_ROWS = 32 }; // hidden states of a sequence that wait; older ones are forgotten

// Of one sequence.
struct st_ahead_text {
    size_t from, n; // positions of the hidden states that are here
    size_t filled;  // pairs before it are computed, or forgotten
    int32_t next;   // the token of the last one that is computed
    float *rows;    // [ST_AHEAD_ROWS, hidden]
    float *chain;   // [hidden] what the layer gave for the last token that it drafted
};

struct st_ahead {
    bool on;                     // the model has the layer, and the session drafts with it
    struct st_ahead_text *texts; // [n_sequences]
    float *hidden;               // [STINT_MAX_STEP_ROWS, hidden] of a step's pairs
    float *chunk;                // [chunk_len, hidden] of a prompt's
    float *joined; // [.., 2 hidden] of the pairs at hand: what the layer's input is made of
};

// Whether a session that drafts uses the layer; its `ahead.on`. After the other options.
bool st_ahead_applies(const struct stint_session *s);
void st_ahead_lay_out(struct stint_session *s, struct st_arena *arena);

// run: of ids [done, done + n) of a request, which are held now; their hidden states are in its
// buffers, which are overwritten. STINT_E_CANCELED.
stint_status st_ahead_prompt(const struct st_run *run, const struct st_eval_request *e, size_t done,
                             size_t n);
// Keeps the hidden state x [hidden] of a step's token.
void st_ahead_keep(struct stint_session *s, uint32_t sequence, size_t position, int32_t id,
                   const float *x);

// Whether the hidden state of a sequence's last token is here.
bool st_ahead_is_ready(const struct stint_session *s, uint32_t sequence);
// Appends ids[i] to sequences[i], n of them, without keys and values of the model's layers: the
// caller truncates them afterwards. logits [n, vocab]: of what follows. first: the ids follow what
// was computed; else what was drafted last. STINT_E_CANCELED, STINT_E_FORMAT.
stint_status st_ahead_step(struct stint_session *s, const uint32_t *sequences, const int32_t *ids,
                           size_t n, bool first, float *logits);

#endif
