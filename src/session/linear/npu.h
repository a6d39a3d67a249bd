// SPDX-License-Identifier: Apache-2.0
// The devices of a session with the model's static subgraphs, compiled once (llm.npu, section 3.1).
// A group of workers has two: the one that acts as the NPU, and the host's own, which takes over
// what the first has no room for (`--npu-memory`), does not support, or fails at. Where the first
// one runs on the host's cores they are the same.
#ifndef ST_SESSION_LINEAR_NPU_H
#define ST_SESSION_LINEAR_NPU_H

#include "base/arena.h"
#include "device/device.h"
#include "device/mirror.h"
#include "model/weights_int8.h"

#include <stdatomic.h>

struct stint_session;
struct st_run;
struct st_worker_group;

enum st_npu_kind { ST_NPU_DEVICE, ST_NPU_HOST, ST_N_NPUS };

enum { ST_NPU_OUTSIDE_ROWS = 16 }; // of outputs outside the session's memory, at a time

struct st_npu {
    struct st_device *device;           // NULL: not open
    struct st_mirror mirror;            // of the session's scratch
    struct st_buffer *outside;          // stands for outputs in the caller's memory
    struct st_device_weights **weights; // [n_linears]; NULL: this one runs no graphs
    struct st_graph **graphs;           // [2, n_units]: with inputs in one term, in two
};

// What they have in common.
struct st_npus {
    size_t n_units, n_linears;
    uint8_t *placed; // [n_units] enum st_npu_kind
    double compile_seconds;
    atomic_size_t clipped; // elements that did not fit INT8, since the session was opened
    atomic_size_t faults;  // jobs that the host took over
};

// Room for the graphs of the session's groups.
void st_npu_lay_out(struct stint_session *s, struct st_arena *arena);

struct st_npu_options {
    const char *device;          // NULL: the best there is
    uint64_t memory;             // bytes of the device's own; 0: no limit
    bool quantizes;              // needs no graphs
    struct st_worker_group *one; // whose device this group uses too, if it has its own processor
};
// Opens the group's devices and compiles the model's subgraphs.
stint_status st_npu_open(struct stint_session *s, const struct st_npu_options *options,
                         struct st_worker_group *group);
void st_npu_close(const struct stint_session *s, struct st_worker_group *group);

// Where the unit that begins with this linear runs now.
enum st_npu_kind st_npu_select(const struct st_run *run, enum st_int8_role role, uint32_t expert);
// True if the host is to do again what a device failed at; counts it.
bool st_npu_takes_over(const struct st_run *run, enum st_npu_kind kind, stint_status status);
struct st_graph *st_npu_graph(const struct st_run *run, const struct st_npu *npu,
                              enum st_int8_role role, uint32_t expert, bool two_term);

#endif
