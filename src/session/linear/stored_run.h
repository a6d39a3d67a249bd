// SPDX-License-Identifier: Apache-2.0
// Products of linears that a device has as they are stored (session/linear/stored.h): instead of
// the host, or beside it.
#ifndef ST_SESSION_LINEAR_STORED_RUN_H
#define ST_SESSION_LINEAR_STORED_RUN_H

#include "session/linear/op.h"

// Inputs of linears, quantized where `form` says so.
struct st_stored_input {
    enum st_stored_form form;
    const float *x;                       // [n, k]
    const struct st_blocks_chunk *chunks; // [n, chunks of k]
    const struct st_nested_input *nested; // of n * terms tokens
    size_t n, k;
    const unsigned *bits; // of nested codes: of each linear
};
// Computes those of the operands' linears that the device has in this form: y[i] gets products
// without bias and outliers, from row `first` on. Returns a set of bits: of the linears that are
// done.
uint32_t st_stored_multiply(const struct st_run *run, const struct st_operands *operands,
                            size_t first, const struct st_linear_weight *const *weights,
                            size_t n_linears, const struct st_stored_input *input);

// Linears of operands that the device has; their outputs lie one after another in its buffer.
struct st_stored_call {
    const struct st_run *run;
    const struct st_operands *operands;
    const struct st_stored_input *input;
    size_t terms;
    size_t first; // row of the operands' outputs
    size_t n_linears;
    struct st_device_stored *stored[ST_MAX_LINEARS];
    size_t place[ST_MAX_LINEARS]; // of the operands
    size_t rows[ST_MAX_LINEARS];  // that it computes, from the first on
    size_t others;                // rows of the same linears, which the host computes
    struct st_job *jobs[ST_MAX_LINEARS];
    size_t n_jobs;
    uint64_t begun; // ns
};
// Starts the device on its share of these nested linears. Where n_linears is not 0 then,
// st_stored_end() must follow once the host has computed the other rows, and nothing else on this
// device before.
void st_stored_begin(const struct st_run *run, const struct st_operands *operands,
                     const struct st_linear_weight *const *weights, size_t n_linears,
                     const struct st_stored_input *input, struct st_stored_call *call);
// Waits for it and writes its products, without bias and outliers. False: it failed, and the host
// has to compute them.
bool st_stored_end(struct st_stored_call *call);

#endif
