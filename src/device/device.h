// SPDX-License-Identifier: Apache-2.0
// The device interface: the code behind a processor that runs static INT8 subgraphs, and perhaps
// linears as they are stored, and attention. It is made for a second processor with memory of its
// own; the host's cores are one more device behind it (device/pool), and `sim` (device/sim) has
// none of their advantages.
//
// What never crosses it: host pointers in a submit, thread pools (but for the loan at open), the
// byte that stands for zero, the layout of quantized inputs and of weights. Integer results are the
// same bit for bit on every device; so are the floats, which come from one set of operations
// (docs/NUMERICS.md).
//
// Errors. STINT_E_INTERNAL: an argument breaks a rule of this file. STINT_E_DEVICE: the device
// failed or is lost; everything fails at once after that. STINT_E_NOMEM: memory, also the device's.
// STINT_E_LIMIT: the memory limit, or too many jobs. The text names the device.
//
// Threads. Jobs may be submitted, polled, awaited, canceled and released from any thread. A device
// on borrowed workers computes in the submit: one submit at a time. Everything else belongs to one
// thread at a time.
#ifndef ST_DEVICE_DEVICE_H
#define ST_DEVICE_DEVICE_H

#include "base/status.h"
#include "device/attention.h"
#include "device/outliers.h"
#include "device/stored.h"
#include "device/subgraph.h"

struct st_device;
struct st_buffer;
struct st_device_weights;
struct st_device_stored;
struct st_graph;
struct st_job;
struct st_pool;

enum {
    ST_DEVICE_JOBS = 64,          // that are not released, of one device
    ST_JOB_AFTER = 8,             // jobs that one job may wait for
    ST_DEVICE_ALIGNMENT = 64,     // of all offsets but those of floats, which have that of a float
    ST_DEVICE_TIMEOUT_MS = 30000, // default of st_device_options.timeout_ms
};

// ---- Devices

struct st_device_caps {
    const char *name, *what;
    bool host_memory;      // imports host memory, and runs linears in parts from it
    bool own_processor;    // computes beside the host's threads: a submit does not wait
    bool row_scales;       // quantizes each row of an input with a scale of its own
    bool sums;             // runs graphs that end in exact sums (ST_EPILOGUE_SUMS)
    bool row_norms;        // normalises what it quantizes, with the host's bits
    bool host_products;    // its products of stored linears have the bits of the host's kernels
    bool programs;         // runs programs (device/program.h)
    bool reads_host;       // reads borrowed memory where it lies (st_buffer_borrow)
    bool virtual_clock;    // st_job_result.device_ns is time of a processor that is emulated here
    uint64_t memory_limit; // bytes of allocated buffers and weights; 0: none
    size_t max_rows;       // of one submit
};

struct st_device_options {
    // A row's name, or "name:settings" with what the device itself understands, e.g. "sim:fail=3".
    // NULL: the best that is present.
    const char *name;
    // A loan until close for a device that runs on the host's cores; others leave it alone.
    struct st_pool *workers;
    uint64_t memory_limit; // 0: none
    uint32_t timeout_ms;   // of one wait; 0: ST_DEVICE_TIMEOUT_MS
};

// STINT_E_ARG: the name or its settings are not known (the text lists the known). STINT_E_DEVICE:
// this machine has none.
stint_status st_device_open(const struct st_device_options *options, struct st_device **device);
// Cancels what is pending. Buffers, weights and graphs must be gone. Accepts NULL.
void st_device_close(struct st_device *device);
// caps.row_scales of a device that need not be opened, or present. STINT_E_ARG as above.
stint_status st_device_has_row_scales(const char *name, bool *row_scales);
// Likewise whether it may take stored linears.
stint_status st_device_has_stored(const char *name, bool *stored);
// STINT_E_DEVICE: this machine has none. STINT_E_ARG as above.
stint_status st_device_check_present(const char *name);

const struct st_device_caps *st_device_caps(const struct st_device *device);
bool st_device_is_lost(struct st_device *device);
uint64_t st_device_used_bytes(struct st_device *device); // what counts against the limit

// ---- Buffers

// Zeroed memory of the device's own. STINT_E_NOMEM, E_LIMIT, E_DEVICE.
stint_status st_buffer_allocate(struct st_device *device, size_t bytes, struct st_buffer **buffer);
// Host memory as a buffer, without a copy; *borrows* it until the buffer is freed. Needs
// caps.host_memory. Does not count against the limit. Two devices with the same name may import the
// same memory and read each other's quantized inputs.
stint_status st_buffer_import(struct st_device *device, void *data, size_t bytes,
                              struct st_buffer **buffer);
// Host memory that jobs, but for programs, only read, *borrowed* until the buffer is freed: in
// place where the device can, else it has a copy, which counts against the limit. A mapping's data
// is the host memory itself; what the host has written there is the device's once it is mapped for
// writing and unmapped. STINT_E_UNSUPPORTED, E_NOMEM, E_LIMIT.
stint_status st_buffer_borrow(struct st_device *device, void *data, size_t bytes,
                              struct st_buffer **buffer);
// Lets an imported buffer stand for other memory. Allocates nothing.
void st_buffer_rebind(struct st_buffer *buffer, void *data, size_t bytes);
// No job may use it any more. Accepts NULL.
void st_buffer_free(struct st_buffer *buffer);
size_t st_buffer_bytes(const struct st_buffer *buffer);

enum { ST_MAP_READ = 1, ST_MAP_WRITE = 2 };

// A part of a buffer that the host may touch: what `how` says, until it is unmapped.
struct st_mapping {
    struct st_buffer *buffer;
    size_t offset, bytes;
    unsigned how; // ST_MAP_*
    void *data;
};

// Brings the device's content to the host (READ). It waits for no job. After unmapping, what the
// host has written (WRITE: all of the range) is the device's. Maps of one buffer do not overlap.
stint_status st_buffer_map(struct st_buffer *buffer, size_t offset, size_t bytes, unsigned how,
                           struct st_mapping *map);
stint_status st_buffer_unmap(struct st_mapping *map);

// An argument. Rows begin row_bytes apart; 0 where there is one row, or none (quantized inputs).
struct st_slice {
    struct st_buffer *buffer; // NULL: there is none
    size_t offset, row_bytes;
};

// Most bytes that n_rows of n quantized elements take on any device; each device lays them out as
// it likes. Two-term INT8 (device/two_term.h) takes two rows for one.
static inline size_t st_quantized_bytes(size_t n_rows, size_t n, bool two_term) {
    return n_rows * (two_term ? 2 : 1) * (st_int8_padded_k(n) + ST_DEVICE_PAD);
}

// ---- Weights

// Takes a linear's weights into the device's layout. With host memory they stay where they are and
// are *borrowed* until freed; only there they may be a set without panels. in_parts: only graphs
// that run in parts use them, so the panels themselves are neither read nor counted. STINT_E_NOMEM,
// E_LIMIT, E_UNSUPPORTED.
stint_status st_device_import_weights(struct st_device *device, const struct st_int8_weight *weight,
                                      bool in_parts, struct st_device_weights **weights);
// Bytes that this counts against the limit.
size_t st_device_weights_bytes(const struct st_device *device, const struct st_int8_weight *weight);
void st_device_free_weights(struct st_device_weights *weights); // accepts NULL

// ---- Graphs

struct st_device_subgraph {
    struct st_linear_op linear_ops[2]; // the last one is FLOAT or SUMS, one before it neither
    uint32_t n_linear_ops;
    bool two_term[2]; // the input of each linear is two-term INT8
    // runs in parts, from weights that come slice by slice (struct st_linear_op_part)
    bool in_parts;
};

bool st_device_supports(const struct st_device *device, const struct st_device_subgraph *subgraph);
// weights[i] are those of linear_ops[i], and must outlive the graph. STINT_E_UNSUPPORTED, E_NOMEM.
stint_status st_device_compile(struct st_device *device, const struct st_device_subgraph *subgraph,
                               struct st_device_weights *const *weights, size_t max_rows,
                               struct st_graph **graph);
void st_device_free_graph(struct st_graph *graph); // accepts NULL
// Bytes that it holds beside its weights.
size_t st_graph_bytes(const struct st_graph *graph);

// ---- Stored linears (device/stored.h)

// False: the host computes it.
bool st_device_takes_stored(const struct st_device *device, const struct st_stored_linear *linear);
// Takes its weights at all precisions; those of a device that reads the host's memory stay where
// they are, *borrowed* until freed. STINT_E_NOMEM, E_LIMIT, E_UNSUPPORTED.
stint_status st_device_import_stored(struct st_device *device,
                                     const struct st_stored_linear *linear,
                                     struct st_device_stored **stored);
void st_device_free_stored(struct st_device_stored *stored); // accepts NULL

// ---- Attention (device/attention.h)

// False: the host computes it.
bool st_device_attends(const struct st_device *device, const struct st_device_attention *attention);

// ---- Jobs

enum st_job_state { ST_JOB_PENDING, ST_JOB_DONE, ST_JOB_FAILED };

enum st_job_failure {
    ST_FAILURE_NONE,
    ST_FAILURE_FAULT,    // the job alone; the device goes on
    ST_FAILURE_NOMEM,    // the device had no memory for it
    ST_FAILURE_TIMEOUT,  // the waiter lost patience; the device has let go of the job
    ST_FAILURE_CANCELED, // by st_job_cancel, or a job that it came after had failed
    ST_FAILURE_LOST,     // the device, with all that its own memory held
};

struct st_job_result {
    enum st_job_failure failure;
    size_t n_clipped;   // elements beyond INT8 that this job met while it quantized
    uint64_t device_ns; // from its begin to its end by the device's own clock; 0: it has none
    uint64_t ended_ns;  // when it ended, by st_now_ns()
};

// Where outliers go: `capacity` entries of a struct st_outliers, which needs
// st_outliers_bytes(capacity).
struct st_outlier_slice {
    struct st_buffer *buffer; // NULL: none; what is beyond INT8 becomes its nearest value, +-127
    size_t offset;
    size_t capacity;
    bool append; // to what the list holds; false: the job empties it first
};

// x [n_rows, n] floats -> quantized, with one scale, or one for each row, which is stored with it.
struct st_quantize_args {
    struct st_slice x;
    struct st_slice quantized; // st_quantized_bytes(n_rows, n, two_term)
    size_t n_rows, n;
    float scale; // 0: row scales, which need caps.row_scales and clip nothing
    bool two_term;
    struct st_outlier_slice outliers;
    // RMSNorm of each row before it is quantized, which needs caps.row_norms: [n] floats, and where
    // the normalised rows go, [n_rows, n]. No buffer: x is quantized as it stands.
    struct st_slice norm, normed;
    float norm_epsilon;
};

// Groups [group, group + n_groups) of one linear op's packed rows, whose weights lie in slices of
// slice_groups groups each, as the package holds them, in imported memory: slices[i] holds those
// from i * slice_groups on. Slices outside the range are not looked at.
struct st_linear_op_part {
    uint32_t linear_op, group, n_groups, slice_groups;
    const struct st_slice *slices;
};

struct st_graph_args {
    size_t n_rows;      // at most what the graph was compiled for
    struct st_slice in; // quantized [n_rows, n_in of the first linear op], as the graph's terms
    // room for [n_rows, outputs of the first linear op], where there are two
    struct st_slice middle;
    struct st_slice floats; // the same as floats, where the second linear op has row scales
    // Floats [n_rows, rows[i] of the last linear op]; of SUMS int32, in two terms [2 n_rows, ..]:
    // a row's first term, then its second.
    struct st_slice out[ST_LINEAR_OP_PARTS];
    struct st_outlier_slice outliers; // of what lies between two linears
    // Added to the first of two linears before its activation: row add_row[t] (int32 [n_rows]) of
    // add (floats [.., packed rows]) for row t, nothing where that is negative.
    struct st_slice add, add_row;
    // exactly where the graph runs in parts; read by the submit
    const struct st_linear_op_part *part;
};

// y [n, n_out] = W x: sums of integers are exact, and the floats between them are added in the
// order of the scalar kernel of the form, or of the host's (caps.host_products); those of floats in
// any order. Neither bias nor outliers.
struct st_multiply_args {
    struct st_slice x; // st_stored_input_bytes(), one behind the other
    struct st_slice y; // floats
    size_t n;
    size_t terms;  // of a nested input, 1 or 2; else 1
    unsigned bits; // of nested codes
    size_t n_out;  // only the first rows of W, which needs caps.host_products; 0: all
};

// Queries at positions [position, position + n) of a text, rows of [n_heads, dim]; `out` likewise.
struct st_attend_args {
    struct st_device_attention shape;
    struct st_slice q, out;       // floats
    struct st_slice keys, values; // rows of the cache from position 0 on, for each key-value head
    size_t position, n;
};

// Starts a job after the n_after others, which are jobs of this device that have not been
// released. Jobs that do not wait for each other run in any order. The caller owns *job and
// releases it; buffers and graphs must stay until it has ended. STINT_E_DEVICE, E_LIMIT (release
// some), E_INTERNAL.
stint_status st_device_quantize(struct st_device *device, const struct st_quantize_args *args,
                                struct st_job *const *after, size_t n_after, struct st_job **job);
stint_status st_device_submit(struct st_graph *graph, const struct st_graph_args *args,
                              struct st_job *const *after, size_t n_after, struct st_job **job);
stint_status st_device_multiply(struct st_device_stored *stored,
                                const struct st_multiply_args *args, struct st_job *const *after,
                                size_t n_after, struct st_job **job);

// Also STINT_E_UNSUPPORTED.
stint_status st_device_attend(struct st_device *device, const struct st_attend_args *args,
                              struct st_job *const *after, size_t n_after, struct st_job **job);

enum st_job_state st_job_poll(struct st_job *job);
// Returns when the job has ended and the device touches its buffers no more. A job that takes
// longer than the time-out is taken back from the device and has failed. STINT_E_NOMEM, E_CANCELED,
// E_DEVICE for the other failures. `result` is always set; may be NULL.
stint_status st_job_wait(struct st_job *job, struct st_job_result *result);
// Asks the device to stop. The job ends soon, as canceled, or done if it was faster.
void st_job_cancel(struct st_job *job);
// Gives the handle back; a pending job goes on. Accepts NULL.
void st_job_release(struct st_job *job);
// Waits and releases.
stint_status st_job_join(struct st_job *job, struct st_job_result *result);

#endif
