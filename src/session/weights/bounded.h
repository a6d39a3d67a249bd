// SPDX-License-Identifier: Apache-2.0
// A session under a memory bound (`--memory`): which parts of the model stay in memory, and how the
// others are read on demand (PowerInfer-2, sections 4 and 5; docs/MEMORY.md).
#ifndef ST_SESSION_WEIGHTS_BOUNDED_H
#define ST_SESSION_WEIGHTS_BOUNDED_H

#include "model/embedding.h"
#include "device/mirror.h"
#include "neuron/neurons.h"
#include "neuron/slices.h"
#include "session/linear/columns.h"
#include "session/weights/hybrid.h"
#include "session/weights/made.h"
#include "session/weights/pinned.h"
#include "session/weights/trial.h"
#include "session/precision/schedule.h"
#include "session/session.h"

struct st_run;

// How the bound is divided, in bytes.
struct st_budget {
    uint64_t bound;
    uint64_t process; // the program itself, threads, the open model
    uint64_t kv, scratch;
    uint64_t prompt;  // of the session's buffers, what steps do not use
    uint64_t nested;  // pinned weights
    uint64_t columns; // of shadow execution, that stay
    uint64_t tables;  // of the caches; scales, sums and norms in the file
    uint64_t regions[ST_N_REGIONS];
    uint64_t hot, cold; // neurons
};

// Predicts the active neurons of a block (session/weights/predict.c).
struct st_prediction {
    struct st_graph *(*graphs)[2]; // [n_layers]; NULL for a layer without a predictor
    struct st_device_weights *(*weights)[2];
    struct st_device *device;
    struct st_mirror mirror; // of the arena
    float *input;            // [ST_NEURON_TOKENS, hidden]
    uint8_t *quantized;      // the input, or the ranks
    float *ranks;            // [ST_NEURON_TOKENS, widest rank]
    float *scores;           // [ST_NEURON_TOKENS, neurons]
    float *guess;            // [ST_NEURON_TOKENS, hidden] an estimate of the next block's input
};

struct st_bounded {
    struct st_budget budget;
    struct st_pins pins;
    // What is cut into slices: the model's pieces, and in `table` those of nested weights.
    struct st_slices_source source;
    struct st_file_pieces pieces;
    struct st_arena table;
    struct st_slices_plan plan;
    // Entries that may be on loan: from the KV cache until texts grow, from prompts between them,
    // and, in passes over nested weights, from the other region.
    uint32_t most_lent[ST_N_REGIONS];
    uint32_t most_tokens[STINT_MAX_SEQUENCES]; // that each sequence has held
    uint64_t kv_touched;                       // bytes that they took
    bool prompt_touched;                       // prompts have their buffers back
    bool nested_now;                           // such a pass
    struct st_loader *loader;
    struct st_slices slices;
    struct st_needs needs;
    struct st_pinned pinned;
    struct st_arena arena; // what follows
    struct st_cache rows[ST_N_TABLES];
    uint64_t *row_checks[ST_N_TABLES]; // [entries, strips] the hash of each; 0: not known yet
    struct st_made made;
    struct st_columns columns;
    uint32_t leave_out; // STINT_LEAVE_*
    bool sparse;        // a model with neurons; what follows is unset without
    struct st_neurons neurons;
    struct st_sparse block;
    struct st_prediction prediction;
    struct st_trial expecting; // whether neurons are foreseen for the next block
    struct st_hybrid hybrid;
    uint64_t peak_bytes;
    struct {
        bool now;                   // the batch is one, not a prompt's
        uint64_t begun;             // ns
        uint64_t n, bytes, counted; // bytes read by steps; read by all that has ended
    } steps;
    struct st_slice *parts;    // [slices of a linear op]
    struct st_mirror streamed; // of the slices' memory
};

struct st_bounded_options {
    uint64_t bound; // bytes
    struct st_session_bytes bytes;
    size_t n_threads;
    uint32_t leave_out; // STINT_LEAVE_*
    struct st_needs needs;
};

// Only plans how the bound is divided (budget, plan and neurons.plan of *planned). The text of
// STINT_E_LIMIT names the smallest bound that works.
stint_status st_bounded_plan(const struct stint_model *model,
                             const struct st_bounded_options *options, struct st_bounded *planned);
void st_bounded_plan_close(struct st_bounded *planned);
// Entries of each region, beside those planned, that such bytes of texts and prompts lend, and, if
// the pass is over nested weights, a region that it does not use.
void st_bounded_lent(const struct st_bounded *planned, uint64_t bytes, bool nested,
                     uint32_t lent[ST_N_REGIONS]);
// As many as that can ever be of a region. What all bytes lend is not that: a region has what is
// left by the one before, which may be less of more bytes.
void st_bounded_most_lent(const struct st_bounded *planned, uint32_t most[ST_N_REGIONS]);
// Plans and opens what a session needs. The text of STINT_E_LIMIT names the smallest bound that
// works.
stint_status st_bounded_open(const struct stint_model *model,
                             const struct st_bounded_options *options, struct st_bounded **bounded);
void st_bounded_close(struct st_bounded *bounded); // accepts NULL
// What was read so far is no step's.
static inline void st_bounded_count_opening(struct st_bounded *bounded) {
    struct st_loader_counts counts;
    st_loader_count(bounded->loader, &counts);
    bounded->steps.counted = counts.bytes;
}

// The bytes that are always in use.
static inline uint64_t st_budget_fixed(const struct st_budget *b) {
    return b->process + b->scratch + b->tables + b->nested + b->columns;
}

// budget.c: divides the bound, and lays out what a session has of its own in `arena`; whether
// passes over nested weights use the fixed region alone.
stint_status st_bounded_divide(const struct stint_model *model, struct st_bounded *bounded);
bool st_bounded_nested_is_apart(const struct st_bounded *planned);
void st_bounded_lay_out(const struct stint_model *model, struct st_bounded *bounded,
                        struct st_arena *arena);
// token_cost.c: what a token costs as planned, with the drafts that are planned: a number to
// compare plans by.
double st_bounded_token_cost(const struct stint_model *model, const struct st_bounded *planned);
// How long a byte of the file and one of memory takes.
struct st_byte_seconds {
    double file, memory;
};
// How many times as many tokens a second the planned drafts are expected to give; 1: none.
double st_bounded_draft_gain(const struct stint_model *model, const struct st_bounded *planned,
                             const struct st_byte_seconds *speed);
// Divides the bound with and without the weights that only draft, and takes what costs less.
stint_status st_bounded_divide_best(const struct stint_model *model, struct st_bounded *bounded);

// predict.c: memory for a sparse block, and for the graphs of the predictors on the session's
// device.
void st_prediction_lay_out(const struct stint_model *model, struct st_prediction *prediction,
                           struct st_arena *arena);
// Maps the streamed weights for a device on the host's cores, which also runs the predictors;
// second->device runs hot clusters if it is another processor. The second call ends this.
stint_status st_bounded_attach(struct st_bounded *bounded, struct st_device *device,
                               const struct st_hybrid_options *second);
void st_bounded_detach(struct st_bounded *bounded);
// Computes the active neurons of a block from its input x [n_tokens, hidden] into
// run->s->bounded->block. pre: the block has begun.
stint_status st_bounded_block(const struct st_run *run, const float *x, size_t n_tokens);

// token_rows.c: rows of the embedding, and of the layers' inputs, read one by one and checked.
void st_token_rows_lay_out(const struct stint_model *model, struct st_bounded *bounded,
                           struct st_arena *arena);
// Of a package: reads the tables once, for their hashes. STINT_E_IO, E_FORMAT, E_NOMEM.
stint_status st_token_rows_open(const struct stint_model *model, struct st_bounded *bounded);
// Of a weight source: rows [batch, width] of these tokens. STINT_E_IO, E_FORMAT.
stint_status st_token_rows(const struct st_run *run, enum st_table table, const int32_t *ids,
                           float *rows);

// experts.c: of a weight source. The second is called after a layer, and begins to read what the
// next block will probably need.
void st_bounded_expect(const struct st_run *run, uint32_t expert);
stint_status st_bounded_look_ahead(const struct st_run *run);
// panels.c: of a weight source.
const struct st_nested_weight *st_bounded_nested(const struct st_run *run,
                                                 const struct st_nested_weight *weight);
stint_status st_bounded_acquire_panels(const struct st_run *run,
                                       const struct st_nested_weight *weight,
                                       struct st_panels *panels);
void st_bounded_release_panels(const struct st_run *run, const struct st_nested_weight *weight,
                               const struct st_panels *panels);
// The piece of what a run takes of a nested linear.
size_t st_bounded_nested_piece(const struct st_run *run, const struct st_nested_weight *weight);

// predict.c: the input of the block of the run's layer if x [n, hidden] were the state in front of
// it: x, or what is written `to`.
const float *st_bounded_guess(const struct st_run *run, const float *x, size_t n, float *to);
// Begins to read the neurons that are predicted for the block of the run's layer, from the present
// state.
stint_status st_bounded_expect_neurons(const struct st_run *run);

#endif
