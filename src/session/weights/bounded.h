// SPDX-License-Identifier: Apache-2.0
// A session under a bound of memory (`--memory`): what of the model is resident, and how the rest
// comes when it is needed (PowerInfer-2, sections 4 and 5; docs/MEMORY.md).
#ifndef ST_SESSION_RESIDENT_H
#define ST_SESSION_RESIDENT_H

#include "device/mirror.h"
#include "neuron/neurons.h"
#include "neuron/slices.h"
#include "session/weights/pinned.h"
#include "session/precision/schedule.h"

struct st_run;

// Where the bound goes, in bytes.
struct st_budget {
    uint64_t bound;
    uint64_t process; // the program itself, threads, what opening the model took
    uint64_t kv, scratch;
    uint64_t nested; // weights that are kept
    uint64_t tables; // of the caches; scales, sums and norms in the file
    uint64_t regions[ST_N_REGIONS];
    uint64_t hot, cold; // neurons
};

// What names the neurons of a block (session/weights/predict.c).
struct st_naming {
    struct st_graph *(*graphs)[2]; // [n_layers]; NULL where a layer has no predictor
    struct st_device_weights *(*weights)[2];
    struct st_device *device;
    struct st_mirror mirror; // of the arena
    float *input;            // [ST_NEURON_TOKENS, hidden]
    uint8_t *quantized;      // room for the input, and for the ranks
    float *ranks;            // [ST_NEURON_TOKENS, widest rank]
    float *scores;           // [ST_NEURON_TOKENS, neurons]
    float *guess; // [ST_NEURON_TOKENS, hidden] the next block's input, as far as it is known
};

struct st_resident {
    struct st_budget budget;
    struct st_slices_plan plan;
    struct st_loader *loader;
    struct st_slices slices;
    struct st_needs needs;
    struct st_pinned pinned;
    struct st_arena arena; // what follows
    struct st_cache rows;  // of the embedding
    uint32_t leave_out;    // STINT_LEAVE_*
    bool sparse;           // a model with neurons; what follows is unset without
    struct st_neurons neurons;
    struct st_sparse block;
    struct st_naming naming;
    uint64_t peak_bytes;
    struct st_slice *parts;    // [slices of a stage]
    struct st_mirror streamed; // of the slices' memory
};

struct st_resident_options {
    uint64_t bound, kv, scratch; // bytes; of the session's own
    size_t n_threads;
    uint32_t leave_out; // STINT_LEAVE_*
    struct st_needs needs;
};

// Plans alone: where the bound goes (budget, plan and neurons.plan of *planned), with nothing
// opened and so nothing to close. STINT_E_LIMIT says the smallest bound that works.
stint_status st_resident_plan(const struct stint_model *model,
                              const struct st_resident_options *options,
                              struct st_resident *planned);
// Plans and opens what a session needs. STINT_E_LIMIT says the smallest bound that works.
stint_status st_resident_open(const struct stint_model *model,
                              const struct st_resident_options *options,
                              struct st_resident **resident);
void st_resident_close(struct st_resident *resident); // accepts NULL

// What of the bound is there all the time.
static inline uint64_t st_budget_fixed(const struct st_budget *b) {
    return b->process + b->scratch + b->tables + b->nested;
}

// predict.c: room for a sparse block; its predictors' graphs, on the session's device.
void st_naming_lay_out(const struct stint_model *model, struct st_naming *naming,
                       struct st_arena *arena);
// Lets a device on the host's cores see the streamed weights and compute predictors; and not.
stint_status st_resident_attach(struct st_resident *resident, struct st_device *device);
void st_resident_detach(struct st_resident *resident);
// The neurons of a block that are active, of its input x [n_tokens, hidden], into
// run->s->resident->block, which has begun.
stint_status st_resident_block(const struct st_run *run, const float *x, size_t n_tokens);

// After a block: begins to read what the next layer's will need, as far as that can be told from
// here.
stint_status st_resident_look_ahead(const struct st_run *run);

#endif
