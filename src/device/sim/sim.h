// SPDX-License-Identifier: Apache-2.0
// A device for tests: a second processor in every respect that matters to its users. It has memory
// of its own, which the host sees through copies; weights and quantized inputs in layouts of its
// own; a thread that runs jobs late, and those that do not wait for each other in the reverse
// order; a limit of memory; and faults on request.
//
// Settings, separated by commas: fail=N, oom=N, hang=N, lose=N: the N-th submit, from 1, fails,
// finds no memory, never ends, or loses the device; nomem=N: the N-th allocation fails;
// delay=US: how late jobs run, at least (20). timeout=MS: how long a waiter waits. speed=N: a graph
// takes the time of N million weights a second, or longer if this machine is slower; so that it
// rarely is, its weights then lie as the kernels of this machine want them, and it takes stored
// linears.
#ifndef ST_DEVICE_SIM_SIM_H
#define ST_DEVICE_SIM_SIM_H

#include "device/list.h"
#include "device/epilogue.h"

enum {
    ST_SIM_BLOCK = 8,   // packed rows whose weights lie together, channel by channel
    ST_SIM_TOKENS = 16, // rows of input that meet a group's weights at a time
};

struct sim_settings {
    uint32_t fail, oom, hang, lose, nomem, delay, timeout, speed;
};

struct sim_device {
    struct st_device base;
    struct sim_settings settings;
    const struct st_elementwise *elementwise;
    const struct st_int8_kernel *kernel; // NULL: plain loops
    const struct st_nested_kernel *nested;
    pthread_t thread;
    // Guarded:
    struct st_job *queue; // pending, newest first
    uint32_t n_allocations;
    bool closing;
};

struct sim_buffer {
    struct st_buffer base;
    unsigned char *memory; // the device's
    unsigned char *window; // what the host sees of it while it is mapped
};

// Everything is a copy in the device's memory.
struct sim_weights {
    struct st_device_weights base;
    struct st_int8_weight weight; // without panels: values per packed row
    int8_t *blocks;               // [packed rows / ST_SIM_BLOCK, n_in, ST_SIM_BLOCK], or panels
    float *floats;                // of weight
    int32_t *sums;
};

struct sim_graph {
    struct st_graph base;
    const int8_t *blocks[2]; // of each linear
    uint8_t *x;              // [ST_TWO_TERMS * ST_SIM_TOKENS, padded n_in] for a kernel, or NULL
};

// sim_settings.c. STINT_E_ARG.
stint_status st_sim_read_settings(const char *text, struct sim_settings *settings);

// sim_weights.c
size_t st_sim_weights_bytes(const struct st_device *device, const struct st_int8_weight *weight);
stint_status st_sim_import_weights(struct st_device *device, const struct st_int8_weight *weight,
                                   bool in_parts, struct st_device_weights **weights);
void st_sim_free_weights(struct st_device_weights *weights);

// sim_stored.c. The last function is a job's work; false: it was canceled.
bool st_sim_has_stored(const char *settings);
bool st_sim_takes_stored(const struct st_device *device, const struct st_stored_linear *linear);
size_t st_sim_stored_bytes(const struct st_stored_linear *linear);
stint_status st_sim_import_stored(struct st_device *device, const struct st_stored_linear *linear,
                                  struct st_device_stored **stored);
void st_sim_free_stored(struct st_device_stored *stored);
bool st_sim_multiply(struct sim_device *device, const struct st_job *job);

// sim_run.c: whether a job was canceled, or will never end.
bool st_sim_is_over(struct sim_device *device, const struct st_job *job);
// All of a job's work; counts the elements that were clipped. False if it stopped early
// because the job was canceled.
bool st_sim_run(struct sim_device *device, const struct st_job *job, size_t *n_clipped);
// sim_queue.c: the device's thread.
void st_sim_start(struct st_device *device, struct st_job *job);
void st_sim_cancel(struct st_device *device, struct st_job *job);
void *st_sim_thread(void *device);

// sim_kernel.c: products with the device's kernel. The bytes of a row of input; of n rows from
// `token` on, in the order of sums, and the sums of one group's rows [row, row + n_rows) with them.
size_t st_sim_kernel_row(size_t n_in);
void st_sim_kernel_input(const struct st_int8_kernel *kernel, const struct st_quantized *from,
                         size_t n_in, size_t token, size_t n, uint8_t *x);
void st_sim_kernel_sums(const struct st_int8_kernel *kernel, const int8_t *panels, size_t n_in,
                        size_t row, size_t n_rows, const uint8_t *x, size_t n_x, int32_t *sums);

// The next allocation, which may be the one that is to fail.
stint_status st_sim_allocate(struct sim_device *device, size_t bytes, void **memory);

#endif
