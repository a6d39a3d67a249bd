// SPDX-License-Identifier: Apache-2.0
// What a device implements. device.c, buffers.c, graphs.c and jobs.c stand between it and its
// users: they check every argument, count memory, keep jobs, and turn the limit of memory, the
// time-out and a lost device into errors, the same for every device.
#ifndef ST_DEVICE_DRIVER_H
#define ST_DEVICE_DRIVER_H

#include "device/program.h"

#include <pthread.h>

enum st_job_kind { ST_JOB_QUANTIZE, ST_JOB_GRAPH, ST_JOB_MULTIPLY, ST_JOB_ATTEND, ST_JOB_PROGRAM };

enum st_job_ready { ST_READY_RUN, ST_READY_WAIT, ST_READY_NEVER };

// Guarded by the device's mutex where it says so; the rest is set before the job starts.
struct st_job {
    struct st_device *device;
    uint32_t number; // of this device's submits, from 1
    enum st_job_kind kind;
    union {
        struct st_graph *graph;          // of ST_JOB_GRAPH
        struct st_device_stored *stored; // of ST_JOB_MULTIPLY
        struct st_program *program;      // of ST_JOB_PROGRAM
    };
    union {
        struct st_quantize_args quantize;
        struct st_graph_args args;
        struct st_multiply_args multiply;
        struct st_attend_args attend;
    };
    enum st_job_ready ready; // when it was submitted
    struct st_job *after[ST_JOB_AFTER];
    size_t n_after;
    struct st_job *next;         // guarded: of the free ones, or the device's own
    unsigned n_references;       // guarded: the caller, the device, jobs that come after it
    enum st_job_state state;     // guarded
    enum st_job_failure failure; // guarded
    size_t n_clipped;            // guarded
    uint64_t device_ns;          // set by the device before the job ends, or 0
    uint64_t ended_ns;           // guarded
    bool canceled, timed_out;    // guarded: asked for
};

// A device's own structs begin with these.
struct st_device {
    const struct st_device_ops *ops;
    struct st_device_caps caps;
    uint32_t timeout_ms;
    pthread_mutex_t mutex;
    pthread_cond_t changed; // a job, or the device
    // Guarded:
    bool lost;
    const char *lost_why; // or NULL; lives as long as the program
    uint64_t used_bytes;
    uint32_t n_submits;
    struct st_job *free_jobs;
    struct st_job jobs[ST_DEVICE_JOBS];
};

struct st_buffer {
    struct st_device *device;
    size_t bytes;
    bool imported;
};

struct st_device_weights {
    struct st_device *device;
    uint32_t n_in, n_panels;
    size_t bytes; // counted
    bool in_parts;
};

struct st_device_stored {
    struct st_device *device;
    struct st_stored_linear linear; // its pointers are the host's until it is imported
    size_t bytes;                   // counted
};

// The rows of a product.
static inline size_t st_multiply_rows(const struct st_device_stored *stored,
                                      const struct st_multiply_args *args) {
    return args->n_out ? args->n_out : stored->linear.n_out;
}

struct st_graph {
    struct st_device *device;
    struct st_device_subgraph subgraph; // the weights' pointers are the host's until compile
    size_t max_rows;
};

struct st_program {
    struct st_device *device;
};

// All are called with checked arguments, without the mutex, and not once the device is lost, but
// for close, free_* and cancel. Structs that a function makes get the members above from its
// caller. "(optional)" may be NULL.
struct st_device_ops {
    const char *name, *what;
    bool row_scales; // caps.row_scales
    bool sums;       // caps.sums
    bool norms;      // it has struct st_linear_op's
    // True if this machine has it.
    bool (*present)(void);
    // Makes a device whose caps are set, but for name, what and row_scales; memory_limit is what it
    // has itself, or 0.
    // `settings`: what stands behind the colon of the name, or NULL.
    stint_status (*open)(const struct st_device_ops *ops, const struct st_device_options *options,
                         const char *settings, struct st_device **device);
    // Ends pending jobs as canceled first.
    void (*close)(struct st_device *device);

    stint_status (*allocate)(struct st_device *device, size_t bytes, struct st_buffer **buffer);
    // (optional) The same function takes the buffer's next memory where *buffer is not NULL.
    stint_status (*import)(struct st_device *device, void *data, struct st_buffer **buffer);
    // (optional) In place where caps.reads_host, else a copy; map gives the host memory.
    stint_status (*borrow)(struct st_device *device, void *data, size_t bytes,
                           struct st_buffer **buffer);
    void (*free_buffer)(struct st_buffer *buffer);
    // Sets map->data.
    stint_status (*map)(struct st_mapping *map);
    stint_status (*unmap)(struct st_mapping *map);

    size_t (*weights_bytes)(const struct st_device *device, const struct st_int8_weight *weight);
    stint_status (*import_weights)(struct st_device *device, const struct st_int8_weight *weight,
                                   bool in_parts, struct st_device_weights **weights);
    void (*free_weights)(struct st_device_weights *weights);

    // Of a subgraph that is well formed.
    bool (*supports)(const struct st_device *device, const struct st_device_subgraph *subgraph);
    stint_status (*compile)(struct st_device *device, const struct st_device_subgraph *subgraph,
                            struct st_device_weights *const *weights, struct st_graph **graph);
    void (*free_graph)(struct st_graph *graph);
    size_t (*graph_bytes)(const struct st_graph *graph);

    // (optional) Whether it may take stored linears with these settings; NULL: always, if it has
    // what follows.
    bool (*has_stored)(const char *settings);
    // (optional, all or none) Of a linear that is well formed.
    bool (*takes_stored)(const struct st_device *device, const struct st_stored_linear *linear);
    size_t (*stored_bytes)(const struct st_stored_linear *linear);
    stint_status (*import_stored)(struct st_device *device, const struct st_stored_linear *linear,
                                  struct st_device_stored **stored);
    void (*free_stored)(struct st_device_stored *stored);

    // (optional) Of attention that is well formed.
    bool (*attends)(const struct st_device *device, const struct st_device_attention *attention);

    // (optional, all or none, as caps.programs) Of attention that is well formed; of operations
    // that are right.
    bool (*attends_steps)(const struct st_device *device,
                          const struct st_device_attention *attention);
    stint_status (*compile_program)(struct st_device *device,
                                    const struct st_program_options *options,
                                    struct st_program **program);
    void (*free_program)(struct st_program *program);

    // Starts a job, which ends with one st_job_finish(), maybe before this returns.
    void (*start)(struct st_device *device, struct st_job *job);
    // (optional) A job is to end soon: job->canceled is set. A device that cannot take a job back
    // calls st_device_lose().
    void (*cancel)(struct st_device *device, struct st_job *job);
};

// Best first; ends with NULL.
extern const struct st_device_ops *const st_devices[];

// For ops->open: sets up what stands above; for ops->close the reverse.
void st_device_begin(struct st_device *device, const struct st_device_ops *ops);
void st_device_end(struct st_device *device);

// Whether a job may run. Call with the mutex held.
enum st_job_ready st_job_is_ready(const struct st_job *job);
// Ends a job; takes the mutex. A failure of a device that is lost is ST_FAILURE_LOST.
void st_job_finish(struct st_job *job, enum st_job_failure failure, size_t n_clipped);
// From now on everything fails. Pending jobs end by st_job_finish() as ever. `why` stands in the
// errors; it lives as long as the program, or is NULL.
void st_device_lose(struct st_device *device, const char *why);
// STINT_E_DEVICE, of a device that is lost, with the reason.
stint_status st_device_say_lost(const struct st_device *device);
// The same if the device is lost.
stint_status st_device_check(struct st_device *device);
// STINT_E_INTERNAL: a user of the device broke its rules.
stint_status st_device_broken(const struct st_device *device, const char *what);
// Counts bytes against the limit, or gives them back. STINT_E_LIMIT names `what`.
stint_status st_device_count(struct st_device *device, size_t bytes, const char *what);
void st_device_uncount(struct st_device *device, size_t bytes);
// jobs.c, for graphs.c, stored.c and others: takes a job, which gets a copy of its arguments, and
// starts it. `subject`: the graph, the stored linear, or NULL.
stint_status st_job_start(struct st_device *device, enum st_job_kind kind, void *subject,
                          const void *args, struct st_job *const *after, size_t n_after,
                          struct st_job **job);
// attention.c
bool st_device_attention_is_well_formed(const struct st_device_attention *attention);
// graphs.c: whether n_rows rows of `bytes` each lie in a buffer of the device.
bool st_slice_fits(const struct st_device *device, const struct st_slice *slice, size_t n_rows,
                   size_t bytes, size_t alignment);

#endif
