// SPDX-License-Identifier: Apache-2.0
// The host's side of a Hexagon DSP (docs/HEXAGON.md). Buffers, weights and graphs lie in one memory
// that host and DSP share, so mapping a buffer copies nothing. Jobs go through the queue of wire.h;
// one thread takes their ends from it and watches the program. What the program writes is checked
// before it is believed.
//
// Settings, separated by commas. patience=MS (600): how long the program may get nowhere;
// timeout=MS: how long a waiter waits. host_norms=1: the CPU normalises inputs. For tests: fail=N,
// die=N, spin=N, sleep=N, garbage=N, list=N: what the program does in place of the N-th job
// (wire.h).
#ifndef ST_DEVICE_HEXAGON_HEXAGON_H
#define ST_DEVICE_HEXAGON_HEXAGON_H

#include "device/hexagon/transport.h"
#include "device/hexagon/wire.h"
#include "device/list.h"

#include <stdatomic.h>

enum {
    ST_HEXAGON_PATIENCE_MS = 600,
    ST_HEXAGON_TICK_MS = 100,   // how often the program is looked after while it works
    ST_HEXAGON_CANCEL_MS = 500, // a canceled job ends in this time, or the device is lost
};

// Most of the DSP's memory that models may use: its addresses have 32 bits, and hold the program,
// its stack and VTCM too.
#define ST_HEXAGON_MAX_BYTES (UINT64_C(1) << 31)

// A part of the shared memory that is in use.
struct hexagon_range {
    uint32_t offset, bytes;
    struct hexagon_range *next; // ascending
};

struct hexagon_device {
    struct st_device base;
    struct st_hexagon_transport *transport;
    struct wire_queue *queue;
    bool exact_acts; // the host's activations have the program's bits
    uint32_t memory_bytes, patience_ms;
    struct hexagon_range *ranges; // one thread at a time, as buffers and weights
    pthread_t thread;
    bool started;
    pthread_cond_t work;  // guarded by base.mutex: there are jobs, or the end
    atomic_uint rung_for; // 1 + wakes of the program when the bell was last rung
    atomic_uint n_bells;
    // Guarded:
    struct st_job *running[WIRE_SLOTS]; // by the job's place among the device's
    uint32_t n_running;
    uint64_t cancel_until_ns; // 0: nothing is to end
    bool closing, gone;
};

struct hexagon_buffer {
    struct st_buffer base;
    struct hexagon_range *range;
};

struct hexagon_weights {
    struct st_device_weights base;
    struct hexagon_range *range;
    struct wire_linear linear;
};

struct hexagon_graph {
    struct st_graph base;
    struct hexagon_range *range;
};

// hexagon_memory.c: STINT_E_NOMEM.
stint_status st_hexagon_take(struct hexagon_device *d, size_t bytes, struct hexagon_range **range);
void st_hexagon_give(struct hexagon_device *d, struct hexagon_range *range); // accepts NULL
unsigned char *st_hexagon_at(const struct hexagon_device *d, const struct hexagon_range *range);

// hexagon_weights.c
size_t st_hexagon_weights_bytes(const struct st_device *device,
                                const struct st_int8_weight *weight);
stint_status st_hexagon_import_weights(struct st_device *device,
                                       const struct st_int8_weight *weight, bool in_parts,
                                       struct st_device_weights **weights);
void st_hexagon_free_weights(struct st_device_weights *weights);

// hexagon_graph.c
bool st_hexagon_supports(const struct st_device *device, const struct st_device_subgraph *subgraph);
stint_status st_hexagon_compile(struct st_device *device, const struct st_device_subgraph *subgraph,
                                struct st_device_weights *const *weights, struct st_graph **graph);
void st_hexagon_free_graph(struct st_graph *graph);
size_t st_hexagon_graph_bytes(const struct st_graph *graph);

// hexagon_job.c: a job as the program reads it; whether what it says of a job that has ended can
// be true.
void st_hexagon_write_job(const struct hexagon_device *d, const struct st_job *job,
                          struct wire_job *to);
bool st_hexagon_job_is_sane(const struct hexagon_device *d, const struct st_job *job,
                            const struct wire_result *result);

// hexagon_queue.c
void st_hexagon_start(struct st_device *device, struct st_job *job);
void st_hexagon_cancel(struct st_device *device, struct st_job *job);
void *st_hexagon_thread(void *device);

#endif
