// SPDX-License-Identifier: Apache-2.0
// The device interface (docs/ARCHITECTURE.md): what acts as the NPU. A device compiles static INT8
// subgraphs once and runs them on any number of chunks; input and output lie in memory that it
// shares with the processors around it. Integer results are the same bit for bit on every device.
#ifndef ST_DEVICE_DEVICE_H
#define ST_DEVICE_DEVICE_H

#include "base/thread.h"
#include "device/subgraph.h"

#include <stdatomic.h>

// One static subgraph: a product, or two with an activation between them.
struct st_graph_desc {
    struct st_stage stages[2]; // the last one is FLOAT, one before it is not
    uint32_t n_stages;
};

// What is too large for INT8.
struct st_spilled {
    uint32_t token, channel;
    float x;
};

struct st_spill {
    struct st_spilled *entries;
    size_t capacity; // every element of the buffer fits
    atomic_size_t n;
};

// Moves what quantizing x[0, n) to q with this scale clipped into the spill: q gets the byte zero
// there. `channel` is that of x[0].
void st_spill_row(struct st_spill *spill, const float *x, size_t n, float scale, uint32_t token,
                  uint32_t channel, uint8_t zero, uint8_t *q);

// Groups [group, group + n_groups) of one stage's packed rows, whose weights do not lie where they
// did when the graph was compiled, but in slices of slice_groups groups each: slices[i] holds those
// from i * slice_groups on.
struct st_graph_part {
    uint32_t stage, group, n_groups, slice_groups;
    const int8_t *const *slices;
};

// Shared buffers of one run.
struct st_graph_io {
    size_t n_tokens;   // at most what the graph was compiled for
    const uint8_t *in; // [n_tokens, n_in], rows in_row bytes apart, as st_device_zero() says
    size_t in_row;
    uint8_t *middle; // [n_tokens, rows[0]] between two stages; NULL where there is one
    size_t middle_row;
    float *out[ST_STAGE_PARTS];
    size_t out_row[ST_STAGE_PARTS]; // floats between tokens
    atomic_size_t *clipped;         // counts the elements of `middle` beyond INT8
    struct st_spill *spill;         // takes them, where the second stage is shadowed; or NULL
    // Added to the first stage's outputs before its epilogue: row add_row[t] of add [.., packed
    // rows] for token t, nothing where that is negative. NULL: nothing at all.
    const float *add;
    const int32_t *add_row;
    const struct st_graph_part *part; // runs this alone; NULL: all stages
};

struct st_device;
struct st_graph;

struct st_device_type {
    const char *name, *what;
    // True if this machine has it.
    bool (*present)(void);
    // Borrows `pool` until close.
    stint_status (*open)(const struct st_device_type *type, struct st_pool *pool,
                         struct st_device **device);
    void (*close)(struct st_device *device);
    stint_status (*compile)(struct st_device *device, const struct st_graph_desc *desc,
                            size_t n_tokens, struct st_graph **graph);
    void (*free_graph)(struct st_graph *graph);
    // Starts a run; the buffers belong to the device until wait returns. One run at a time.
    stint_status (*submit)(struct st_graph *graph, const struct st_graph_io *io);
    stint_status (*wait)(struct st_device *device);
    // The byte that stands for 0 in its inputs.
    uint8_t (*zero)(const struct st_device *device);
    // Bytes that a compiled graph holds beside the weights it shares with the package.
    size_t (*graph_bytes)(const struct st_graph *graph);
};

// Best first; ends with NULL.
extern const struct st_device_type *const st_device_types[];

// By name; NULL: the best that is present. STINT_E_ARG lists the known, STINT_E_DEVICE says that
// this machine has none.
stint_status st_device_find(const char *name, const struct st_device_type **type);

// Bytes between the rows of a quantized buffer of n elements: padded as the kernels read it, and
// off the powers of two, whose rows would share cache sets.
static inline size_t st_device_row(size_t n) {
    return st_int8_padded_k(n) + ST_DEVICE_PAD;
}

#endif
