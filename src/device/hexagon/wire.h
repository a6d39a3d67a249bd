// SPDX-License-Identifier: Apache-2.0
// What the host and the DSP program share: one memory that both see, which begins with the queue.
// Freestanding, fixed widths, little-endian; every address is an offset from the memory's begin, 0
// where there is none. Each word has one writer. Jobs run in the order of the ring.
//
// The host fills jobs[slot], puts the slot into the ring and moves `head`. It rings the bell only
// if the program sleeps, and once until it wakes, so one bell may stand for any number of jobs. The
// program writes results[slot], whose sequence is written last, and rings back only if the host
// waits.
#ifndef ST_DEVICE_HEXAGON_WIRE_H
#define ST_DEVICE_HEXAGON_WIRE_H

#include <stddef.h>
#include <stdint.h>

enum {
    WIRE_MAGIC = 0x68787374,
    WIRE_READY = 0x64737021, // what the program writes when it has read the host's part
    WIRE_VERSION = 5,
    WIRE_SLOTS = 64,
    WIRE_AFTER = 8,
    WIRE_PARTS = 3,
    WIRE_MEMORY = 1 << 16, // offset of what is allocated; the queue lies before it
    WIRE_ALIGNMENT = 128,  // of what is allocated: one vector
};

enum wire_kind { WIRE_QUANTIZE, WIRE_GRAPH };

// For tests: what the program does in place of the job with this number.
enum wire_fault {
    WIRE_NO_FAULT,
    WIRE_FAIL,    // the job fails, the program goes on
    WIRE_DIE,     // the program ends
    WIRE_SPIN,    // it computes for ever
    WIRE_SLEEP,   // it waits for ever
    WIRE_GARBAGE, // it overwrites all of its part of the queue, and goes on
    WIRE_LIST,    // of this job or the next that lists outliers: it writes some that are nowhere
};

enum wire_status { WIRE_DONE = 1, WIRE_FAILED, WIRE_CANCELED, WIRE_N_STATUS };

struct wire_slice {
    uint32_t offset, row_bytes;
};

struct wire_outliers {
    uint32_t offset, capacity, append;
};

// A linear as the program keeps it: groups of 64 packed rows; in a group, for every 4 elements of
// k, the 4 of row 0, those of row 1, ... row 63, as unsigned bytes w + 128.
struct wire_linear {
    uint32_t groups, factor, bias; // offsets; factor and bias: [packed rows] floats
    uint32_t n_in, packed_rows;
    float input_scale;
    uint32_t epilogue, act; // enum st_epilogue, st_act
    uint32_t n_parts, rows[WIRE_PARTS];
    uint32_t two_term;
    // Of the second linear: RMSNorm of its input, [n_in] floats
    uint32_t norm;
    float norm_epsilon;
};

struct wire_graph {
    uint32_t n_linears;
    struct wire_linear linears[2];
};

struct wire_job {
    uint32_t sequence; // its number, which no other job has
    uint32_t kind;     // enum wire_kind
    uint32_t graph;    // offset of a struct wire_graph
    uint32_t n_rows, n;
    float scale; // of WIRE_QUANTIZE
    uint32_t two_term;
    uint32_t n_after, after[WIRE_AFTER]; // slots
    struct wire_slice in;                // floats of WIRE_QUANTIZE, else quantized
    struct wire_slice quantized;         // the result of WIRE_QUANTIZE, else the middle
    struct wire_slice floats;            // of WIRE_QUANTIZE what the norm gives, else the middle's
    struct wire_slice add, add_row, out[WIRE_PARTS];
    struct wire_outliers outliers;
    // Of WIRE_QUANTIZE: RMSNorm of its input, [n] floats, or 0
    uint32_t norm;
    float norm_epsilon;
};

struct wire_result {
    uint32_t status, n_clipped;
    uint32_t sequence; // of the job that has ended
    uint32_t ticks;    // that it took by the program's clock
};

// Written by the host.
struct wire_host {
    uint32_t magic, version, queue_bytes, memory_bytes;
    uint32_t vtcm_bytes;
    uint32_t fault, fault_at;
    uint32_t head;       // jobs that were put into the ring
    uint32_t waits;      // it wants a bell when a job ends
    uint32_t norm_lanes; // of its vectors, which say in what order norms add; 0: no norms
    uint32_t unused[6];
    uint32_t ring[WIRE_SLOTS];
    uint32_t canceled[WIRE_SLOTS]; // sequences
    struct wire_job jobs[WIRE_SLOTS];
    uint32_t rest[16]; // no line of a cache holds words of both writers
};

// Written by the program.
struct wire_dsp {
    uint32_t ready;    // WIRE_READY
    uint32_t tail;     // jobs taken from the ring
    uint32_t sleeps;   // it wants a bell when there is a job
    uint32_t progress; // moves on with every block of a job
    uint32_t wakes;    // how often a bell has woken it
    uint32_t clock_hz; // ticks of its clock a second, at most 1e9
    uint32_t unused[10];
    struct wire_result results[WIRE_SLOTS];
};

struct wire_queue {
    struct wire_host host;
    struct wire_dsp dsp;
};

_Static_assert(sizeof(struct wire_linear) == 60 && sizeof(struct wire_graph) == 124, "wire layout");
_Static_assert(sizeof(struct wire_job) == 148 && sizeof(struct wire_result) == 16, "wire layout");
_Static_assert(offsetof(struct wire_host, ring) == 64, "wire layout");
_Static_assert(offsetof(struct wire_host, jobs) == 576, "wire layout");
_Static_assert(offsetof(struct wire_queue, dsp) == 10112, "wire layout");
_Static_assert(offsetof(struct wire_dsp, results) == 64, "wire layout");
_Static_assert(sizeof(struct wire_queue) == 11200, "wire layout");
_Static_assert(sizeof(struct wire_queue) <= WIRE_MEMORY, "the queue lies before the memory");

#endif
