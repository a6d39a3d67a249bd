// SPDX-License-Identifier: Apache-2.0
// The devices of a session with the model's static subgraphs, compiled once (llm.npu, section 3.1).
// A group of workers has the one that acts as the NPU, perhaps a second one beside it, and the
// host's own, which takes over what the others have no room for (`--npu-memory`), do not support,
// or fail at. Where the first one runs on the host's cores they are the same. Two devices each take
// all that they have room for, so that a prompt's subgraphs can run on either (session/split.c).
#ifndef ST_SESSION_LINEAR_NPU_H
#define ST_SESSION_LINEAR_NPU_H

#include "base/arena.h"
#include "device/device.h"
#include "device/mirror.h"
#include "model/graph.h"
#include "model/weights_int8.h"

#include <stdatomic.h>

struct stint_session;
struct st_run;
struct st_worker_group;

enum st_npu_kind { ST_NPU_DEVICE, ST_NPU_SECOND, ST_NPU_HOST, ST_N_NPUS };

enum { ST_NPU_OUTSIDE_ROWS = 16 }; // of outputs outside the session's memory, at a time

struct st_npu {
    struct st_device *device;           // NULL: not open
    struct st_mirror mirror;            // of the session's scratch
    struct st_buffer *outside;          // stands for outputs in the caller's memory
    struct st_buffer *norms;            // [n_layers, 2, hidden] (input_norm.h); or NULL
    struct st_device_weights **weights; // [n_linears]; NULL: this one runs no graphs
    struct st_graph **graphs;           // [2, n_units]: with inputs in one term, in two
    float sync_seconds; // of a job's submit and end, where the device has a virtual clock; 0: not
                        // measured
};

// What they have in common.
struct st_npus {
    size_t n_units, n_linears;
    uint8_t *placed; // [n_units] enum st_npu_kind
    uint8_t *held;   // [n_units] bit k: the device of enum st_npu_kind k has the unit; the host all
    double compile_seconds;
    atomic_size_t clipped;       // elements that did not fit INT8, since the session was opened
    atomic_size_t faults;        // jobs that the host took over
    atomic_bool told[ST_N_NPUS]; // a warning said so of this device
};

// Room for the graphs of the session's groups.
void st_npu_lay_out(struct stint_session *s, struct st_arena *arena);

enum { ST_NPU_NAME_BYTES = 128 };

struct st_npu_options {
    const char *device;          // NULL: the best there is
    const char *second;          // NULL: there is one device
    uint64_t memory;             // bytes of the device's own; 0: no limit
    bool quantizes;              // its host needs no graphs
    struct st_worker_group *one; // whose device this group uses too, if it has its own processor
};
// Divides "A+B" into two names, in `buffer`. STINT_E_ARG.
stint_status st_npu_read_names(const char *names, char buffer[ST_NPU_NAME_BYTES],
                               struct st_npu_options *options);
// Opens the group's devices and compiles the model's subgraphs.
stint_status st_npu_open(struct stint_session *s, const struct st_npu_options *options,
                         struct st_worker_group *group);
// Measures sync_seconds with jobs of one row. Failures are left to the jobs that come.
void st_npu_measure_sync(struct st_npu *npu);
void st_npu_close(const struct stint_session *s, struct st_worker_group *group);

// Where the unit that begins with this linear runs now.
enum st_npu_kind st_npu_select(const struct st_run *run, enum st_int8_role role, uint32_t expert);
// Bit p: enum st_processor p can run this static subgraph, or of a mixture some of it.
uint8_t st_npu_processors(const struct stint_session *s, uint32_t layer,
                          enum st_subgraph_kind kind);
// Counts a job that the host takes over; the first of a device is a warning.
void st_npu_count_failure(struct stint_session *s, enum st_npu_kind kind);
// True if the host is to do again what a device failed at; counts it.
bool st_npu_takes_over(const struct st_run *run, enum st_npu_kind kind, stint_status status);
struct st_graph *st_npu_graph(const struct st_run *run, const struct st_npu *npu,
                              enum st_int8_role role, uint32_t expert, bool two_term);

#endif
