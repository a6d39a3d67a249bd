// SPDX-License-Identifier: Apache-2.0
// A session under a bound of memory (`--memory`): what of the model is resident, and how the rest
// comes when it is needed (PowerInfer-2, sections 4 and 5; docs/MEMORY.md).
#ifndef ST_SESSION_RESIDENT_H
#define ST_SESSION_RESIDENT_H

#include "device/device.h"
#include "neuron/neurons.h"
#include "neuron/slices.h"
#include "session/weights/pinned.h"
#include "session/precision/schedule.h"

struct st_run;
struct st_npu;

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
    const struct st_device_type *type;
    uint8_t *in, *middle; // [ST_NEURON_TOKENS, in_row], [.., middle_row] quantized
    size_t in_row, middle_row;
    float *ranks;  // [ST_NEURON_TOKENS, widest rank]
    float *scores; // [ST_NEURON_TOKENS, neurons]
    float *guess;  // [ST_NEURON_TOKENS, hidden] the next block's input, as far as it is known
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
    const int8_t **panels; // [slices of a stage]
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
stint_status st_naming_open(struct st_resident *resident, const struct st_npu *npu);
void st_naming_close(struct st_resident *resident);
// A feed-forward block from the neurons that are active: io->n_tokens tokens, whose inputs take
// ST_TWO_TERMS rows each.
stint_status st_resident_block(const struct st_run *run, const struct st_graph_io *io);

// After a block: begins to read what the next layer's will need, as far as that can be told from
// here.
stint_status st_resident_look_ahead(const struct st_run *run);

#endif
