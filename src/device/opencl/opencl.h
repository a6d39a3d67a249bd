// SPDX-License-Identifier: Apache-2.0
// A GPU, or whatever else OpenCL 1.2 reaches (docs/OPENCL.md). Jobs are put into an in-order queue
// when they are submitted; a thread waits for the last of a job's commands and ends it, in the same
// order. A second queue moves buffers, so that mapping waits for no job; a third has programs.
//
// Settings, separated by commas. device=N: the N-th of all OpenCL devices, GPUs first; items=N,
// tokens=N: in place of the device file's (share/opencl); copy=1: weights are copied even where the
// device reads the host's memory; steps=1: division in software; host_norms=1: the CPU normalises
// inputs; attention=0 or 1, decode=0 or 1, decode_items=N: in place of the device file's;
// timeout=MS: how long a waiter waits. For tests: error=N, lose=N: the N-th call of OpenCL fails,
// or finds no device any more; hang=N: the N-th job never ends.
#ifndef ST_DEVICE_OPENCL_OPENCL_H
#define ST_DEVICE_OPENCL_OPENCL_H

#include "device/list.h"
#include "device/opencl/args.h"
#include "device/opencl/opencl_api.h"

#include <stdatomic.h>

#define OPENCL_UNSET UINT32_MAX // of a setting whose 0 says something

enum {
    ST_OPENCL_CANCEL_MS = 500, // a canceled job ends in this time, or the device is lost
    ST_OPENCL_MAX_ITEMS = 1024,
    ST_OPENCL_MAX_TOKENS = 64,
    ST_OPENCL_MAX_LANES = 32, // items that share a row of a stored linear
};

struct opencl_settings {
    uint32_t device, items, tokens, copy, steps, host_norms, attention, decode, decode_items;
    uint32_t timeout;
    uint32_t error, lose, hang;
};

enum opencl_kernel {
    OPENCL_QUANTIZE_STATIC,
    OPENCL_QUANTIZE_ROWS,
    OPENCL_NORM_ROWS,
    OPENCL_LINEAR_FLOAT,
    OPENCL_LINEAR_ACTIVATED,
    OPENCL_ATTEND, // and one for each other type of the cache
    OPENCL_MULTIPLY_NESTED = OPENCL_ATTEND + ST_N_KV_TYPES,
    OPENCL_MULTIPLY, // and one for each other type of floats and blocks
    OPENCL_N_KERNELS = OPENCL_MULTIPLY + ST_N_DTYPES
};

// A job in the queue; it has the same index as the job among the device's.
struct opencl_ticket {
    struct opencl_device *device;
    struct st_job *job;
    cl_event first, last; // commands; NULL: there are none
    cl_uint n_clipped;    // the last command writes it
    // Guarded:
    enum st_job_failure failure;
    bool ended;
};

struct opencl_device {
    struct st_device base;
    struct opencl_settings settings;
    struct opencl_api cl;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue, transfers, programs;
    cl_program program;
    cl_kernel kernels[OPENCL_N_KERNELS];
    cl_mem counters;     // [ST_DEVICE_JOBS]
    bool exact_acts;     // the host's activations have the program's bits
    bool unified;        // the device reads the host's memory in place
    bool dp4a;           // NVIDIA's instruction for INT8
    bool stored;         // groups are large enough for stored linears
    uint32_t lanes;      // of these
    uint32_t norm_lanes; // of the host's vectors, in whose order norms add; 0: no norms
    uint64_t max_allocation, local_memory;
    size_t alignment; // of parts of a buffer
    atomic_uint n_calls;
    pthread_t waiter;
    bool has_waiter;
    pthread_mutex_t submitting; // kernels' arguments, and the order in the queue
    // Guarded by base.mutex:
    struct opencl_ticket tickets[ST_DEVICE_JOBS];
    struct opencl_ticket *order[ST_DEVICE_JOBS]; // pending, oldest first
    unsigned n_pending;
    bool ending;            // a thread ends jobs
    bool waiting, stopping; // the waiter waits; is to end
    bool closing;
    cl_event hold; // what a job that is to hang waits for
};

struct opencl_buffer {
    struct st_buffer base;
    cl_mem memory;
    cl_mem staging;      // of a device with a memory of its own, else NULL
    unsigned char *host; // and where it is mapped; or the host memory that was borrowed
};

struct opencl_weights {
    struct st_device_weights base;
    cl_mem panels, values;
    bool has_bias;
};

struct opencl_stored {
    struct st_device_stored base;
    cl_mem rows; // of floats and blocks from `offset` on; or the floats of nested rows
    size_t offset;
    cl_mem planes[ST_NESTED_HIGHEST + 1], groups[ST_NESTED_HIGHEST + 1]; // of nested codes
    cl_mem whole; // what they and their `rows` are parts of, from here on; or NULL, and all are 0
    struct {
        size_t planes[ST_NESTED_HIGHEST + 1], groups[ST_NESTED_HIGHEST + 1], rows;
    } at;
};

struct opencl_graph {
    struct st_graph base;
    const struct opencl_weights *weights[2];
    cl_mem norm; // of what lies between them; or NULL
};

// opencl_call.c. Every call of OpenCL that an open device makes goes through one of these two; both
// may fail on request. The second is for calls that return an object, and write their error last.
cl_int st_opencl_fault(struct opencl_device *d);
#define OPENCL_CALL(d, fn, ...)                                                                    \
    ({                                                                                             \
        cl_int fault_ = st_opencl_fault(d);                                                        \
        fault_ == CL_SUCCESS ? (d)->cl.fn(__VA_ARGS__) : fault_;                                   \
    })
#define OPENCL_MAKE(d, error, fn, ...)                                                             \
    ((*(error) = st_opencl_fault(d)) != CL_SUCCESS ? NULL : (d)->cl.fn(__VA_ARGS__, error))
// Returns when the event's command has ended, also with an error.
cl_int st_opencl_wait_for(struct opencl_device *d, cl_event event);
// What an error means for a job; a device that is gone is lost from then on.
enum st_job_failure st_opencl_failure(struct opencl_device *d, cl_int error);
// The status for everything else, with the call's name. STINT_OK where there is no error.
stint_status st_opencl_status(struct opencl_device *d, cl_int error, const char *call);

// opencl_platform.c
bool st_opencl_present(void);
// Selects a device and sets what it can do, its limits, and where the settings say nothing the
// tuning. STINT_E_ARG, E_DEVICE.
stint_status st_opencl_select(struct opencl_device *d);
// opencl_tuning.c: of a device with these names. STINT_E_FORMAT: a file is wrong.
struct opencl_tuning {
    uint32_t items, tokens;
    uint32_t attention; // 1: prompts attend here
    uint32_t decode;    // 1: steps are programs
    uint32_t decode_items; // of a group that attends in one
};
stint_status st_opencl_tuning(const char *platform, const char *device,
                              struct opencl_tuning *tuning);
// opencl_program.c: context, queues and kernels. What was made before a failure is the caller's.
stint_status st_opencl_build(struct opencl_device *d);

// opencl_buffers.c
stint_status st_opencl_allocate(struct st_device *device, size_t bytes, struct st_buffer **buffer);
stint_status st_opencl_borrow(struct st_device *device, void *data, size_t bytes,
                              struct st_buffer **buffer);
void st_opencl_free_buffer(struct st_buffer *buffer);
stint_status st_opencl_map(struct st_mapping *mapping);
stint_status st_opencl_unmap(struct st_mapping *mapping);

// opencl_weights.c
size_t st_opencl_weights_bytes(const struct st_device *device, const struct st_int8_weight *weight);
stint_status st_opencl_import_weights(struct st_device *device, const struct st_int8_weight *weight,
                                      bool in_parts, struct st_device_weights **weights);
void st_opencl_free_weights(struct st_device_weights *weights);

// opencl_graph.c
bool st_opencl_supports(const struct st_device *device, const struct st_device_subgraph *subgraph);
stint_status st_opencl_compile(struct st_device *device, const struct st_device_subgraph *subgraph,
                               struct st_device_weights *const *weights, struct st_graph **graph);
void st_opencl_free_graph(struct st_graph *graph);
size_t st_opencl_graph_bytes(const struct st_graph *graph);

// opencl_stored.c
bool st_opencl_takes_stored(const struct st_device *device, const struct st_stored_linear *linear);
size_t st_opencl_stored_bytes(const struct st_stored_linear *linear);
stint_status st_opencl_import_stored(struct st_device *device,
                                     const struct st_stored_linear *linear,
                                     struct st_device_stored **stored);
void st_opencl_free_stored(struct st_device_stored *stored);
// The commands of such a job.
cl_int st_opencl_multiply(struct opencl_ticket *ticket);

// opencl_attend.c
bool st_opencl_attends(const struct st_device *device, const struct st_device_attention *attention);
// The commands of such a job.
cl_int st_opencl_attend(struct opencl_ticket *ticket);
// Without n and position.
struct ocl_attend st_opencl_attention(const struct st_device_attention *shape,
                                      const struct st_slice *q, const struct st_slice *out,
                                      const struct st_slice *keys, const struct st_slice *values);

// opencl_steps.c
bool st_opencl_attends_steps(const struct st_device *device,
                             const struct st_device_attention *attention);
// Floats of values that a group which attends holds twice; a power of two.
uint32_t st_opencl_step_tile(const struct opencl_device *device);
stint_status st_opencl_compile_program(struct st_device *device,
                                       const struct st_program_options *options,
                                       struct st_program **program);
void st_opencl_free_program(struct st_program *program);
// The commands of such a job.
cl_int st_opencl_run_program(struct opencl_ticket *ticket);

// opencl_job.c: puts a job's commands into the queue. With `submitting` held. CL_SUCCESS, or the
// error that ended it early: the commands before it still run.
cl_int st_opencl_enqueue(struct opencl_ticket *ticket);
static inline cl_command_queue st_opencl_queue_of(const struct opencl_ticket *t) {
    return t->job->kind == ST_JOB_PROGRAM ? t->device->programs : t->device->queue;
}
// Puts one kernel into it.
struct opencl_argument {
    size_t bytes;
    const void *value;
};
#define OPENCL_VALUE(variable)                                                                     \
    { sizeof(variable), &(variable) }
struct opencl_launch {
    unsigned kernel; // enum opencl_kernel
    size_t group;    // items of a group
    size_t groups, rows;
};
cl_int st_opencl_launch(struct opencl_ticket *ticket, const struct opencl_launch *launch,
                        const struct opencl_argument *arguments, cl_uint n);

// opencl_queue.c
void st_opencl_start(struct st_device *device, struct st_job *job);
void st_opencl_cancel(struct st_device *device, struct st_job *job);
// The waiter's thread. Takes the device.
void *st_opencl_wait(void *device);
// Waits until no command is left, and ends the waiter. False: the device keeps some.
bool st_opencl_drain(struct opencl_device *d);

// The texts of the program in their order, and the device files, as the build embeds them; each
// ends with a NULL name.
struct st_opencl_text {
    const char *name, *text;
};
extern const struct st_opencl_text st_opencl_program[], st_opencl_device_files[];

#endif
