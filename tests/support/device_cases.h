// SPDX-License-Identifier: Apache-2.0
// Random subgraphs and inputs for devices, what they must give by the formulas of docs/NUMERICS.md
// as plain loops over row-major weights, and what a device gives.
#ifndef TESTS_DEVICE_CASES_H
#define TESTS_DEVICE_CASES_H

#include "device/mirror.h"

// A linear as the formulas see it, and packed as the package holds it.
struct ts_linear {
    int8_t *w;    // [all rows, n_in]: part after part, gate before up
    float *scale; // [all rows]
    float *bias;  // [all rows]
    struct st_linear_op linear_op;
    int8_t *panels;
    int32_t *row_sums;
    float *factor, *packed_bias; // [packed rows]
};

struct ts_linear ts_linear_make(enum st_epilogue epilogue, uint32_t n_parts, const uint32_t *rows,
                                uint32_t n_in, enum st_act act, bool bias, float input_scale);
void ts_linear_drop(struct ts_linear *linear);

// A subgraph and its input.
struct ts_case {
    struct ts_linear linears[2];
    struct st_device_subgraph subgraph;
    size_t n_rows;
    float *x;         // [n_rows, n_in]
    float *add;       // [n_rows, packed rows of the first] or NULL
    int32_t *add_row; // [n_rows]
    bool list_in;     // outliers of the input are asked for; of the middle
    bool list_middle;
};

struct ts_case_options {
    size_t n_rows;
    uint32_t n_in, n_middle;                    // n_middle 0: one linear
    uint32_t n_parts, rows[ST_LINEAR_OP_PARTS]; // of the last
    enum st_epilogue epilogue;                  // of the first of two
    enum st_act act;
    bool bias, two_term, add, lists;
    bool row_scales[2]; // of the input of each linear; no lists then
};

struct ts_case ts_case_make(const struct ts_case_options *options);
struct ts_case ts_case_random(bool row_scales); // some have them
struct ts_case ts_case_small(void);             // a gated block with lists and an addend
void ts_case_drop(struct ts_case *c);

// What a run gives.
struct ts_result {
    float *out[ST_LINEAR_OP_PARTS]; // [n_rows, rows[i]]
    size_t clipped_in, clipped_middle;
    struct st_outlier *in, *middle; // sorted; [clipped_in], [clipped_middle] where asked for
};

// relu(x), or silu in plain C.
struct ts_result ts_case_expect(const struct ts_case *c);
void ts_result_drop(const struct ts_case *c, struct ts_result *result);
// Fails the test where two results differ in a bit.
void ts_result_compare(const struct ts_case *c, const struct ts_result *a,
                       const struct ts_result *b, const char *what);

// A case on a device, with all that it needs.
struct ts_bench {
    const struct ts_case *c;
    struct st_device *device;
    void *block; // host memory that the device sees
    struct st_mirror mirror;
    struct st_device_weights *weights[2];
    struct st_graph *graph;
    // Inside the block:
    float *x, *add, *out[ST_LINEAR_OP_PARTS];
    size_t x_row, out_row[ST_LINEAR_OP_PARTS]; // floats
    int32_t *add_row;
    uint8_t *quantized, *middle;
    float *floats;
    struct st_outliers *in_list, *middle_list;
    size_t capacity[2]; // of the lists
};

stint_status ts_bench_open(struct st_device *device, const struct ts_case *c,
                           struct ts_bench *bench);
void ts_bench_close(struct ts_bench *bench); // also after a failure
struct st_quantize_args ts_bench_quantize_args(const struct ts_bench *bench);
struct st_graph_args ts_bench_graph_args(const struct ts_bench *bench);
// Quantizes, multiplies, and takes the result, which is to be dropped where this is STINT_OK.
stint_status ts_bench_run(struct ts_bench *bench, struct ts_result *result);
// Opens, runs, closes.
stint_status ts_case_run(struct st_device *device, const struct ts_case *c,
                         struct ts_result *result);

#endif
