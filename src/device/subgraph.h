// SPDX-License-Identifier: Apache-2.0
// What a device runs: one static INT8 subgraph, which is one linear or two with an activation
// between them. The weights are described as the package holds them.
#ifndef ST_DEVICE_SUBGRAPH_H
#define ST_DEVICE_SUBGRAPH_H

#include "base/size.h"
#include "kernels/elementwise.h"
#include "kernels/int8.h"

#include <stdbool.h>

enum {
    ST_LINEAR_OP_PARTS = 3,               // outputs of one product, as q, k and v
    ST_DEVICE_GROUP = 4 * ST_INT8_PANEL,  // packed rows that share an epilogue
    ST_GATED_GROUP = ST_DEVICE_GROUP / 2, // gate rows, then as many up rows, of one group
    ST_DEVICE_PAD = 64,                   // bytes between the rows of a quantized buffer
};

struct st_weight_set;

// A W8A8 linear, packed as kernels/int8.h says; all arrays have a value per packed row.
struct st_int8_weight {
    const int8_t *panels;            // NULL: they are made of `set`, or there is no such linear
    const struct st_weight_set *set; // its weights as nested codes (device/weight_set.h); or NULL
    bool fleeting;                   // the panels go away after an import
    const int32_t *row_sums;
    const float *factor; // input scale times weight scale; with row scales the weight scale alone
    const float *bias;   // or NULL
    uint32_t n_in, n_panels;
    float input_scale; // 0: each row of input has its own (st_int8_row_scales)
    bool two_term;     // with row scales: the input is two-term INT8, also in prompts
    // Shadow execution (session/linear/shadow.c); a device knows nothing of it.
    bool shadowed;
    const int8_t *columns;        // [n_in, packed rows] the weights by channel, in the package
    const int32_t *column_checks; // [n_in, 2] the hash of each, low half first; NULL: there is none
    const float *scale;           // [packed rows] times column_scales [n_in]
    const float *column_scales;
    const int32_t *hot;        // [n_in] row of hot_columns that a hot channel has, else -1
    const int8_t *hot_columns; // [hot channels, packed rows]
};

// Each row of input is quantized with a scale of its own: its largest magnitude / 127.
static inline bool st_int8_row_scales(const struct st_int8_weight *weight) {
    return weight->input_scale <= 0.0f;
}

// What becomes of the sums.
enum st_epilogue {
    ST_EPILOGUE_FLOAT, // parts of floats: part i has rows[i] outputs and begins at a new panel
    ST_EPILOGUE_ACT,   // act(y), quantized for the next linear
    ST_EPILOGUE_GATED, // act(gate) * up, quantized; groups of 32 gate rows, then 32 up rows
    ST_EPILOGUE_SUMS,  // as FLOAT, but the exact sums themselves: int32, a row for each term
};

// Whether a subgraph ends in it.
static inline bool st_epilogue_is_last(enum st_epilogue epilogue) {
    return epilogue == ST_EPILOGUE_FLOAT || epilogue == ST_EPILOGUE_SUMS;
}

// One linear of a subgraph.
struct st_linear_op {
    struct st_int8_weight weight;
    // The second linear of two: RMSNorm [n_in] of each row of its input, which has a scale of its
    // own; or NULL.
    const float *norm;
    float norm_epsilon;
    enum st_epilogue epilogue;
    enum st_act act;
    uint32_t n_parts;
    uint32_t rows[ST_LINEAR_OP_PARTS]; // outputs, without padding; rows[0] alone unless FLOAT
};

// Packed rows of a linear, of one with these outputs, and groups of them: the last one may be a
// part of one. Bytes of a whole group's weights in the package.
static inline size_t st_linear_op_rows(const struct st_linear_op *linear_op) {
    return (size_t)linear_op->weight.n_panels * ST_INT8_PANEL;
}
static inline size_t st_linear_op_groups(const struct st_linear_op *linear_op) {
    return st_ceil_div(linear_op->weight.n_panels, ST_DEVICE_GROUP / ST_INT8_PANEL);
}
static inline size_t st_linear_op_group_bytes(const struct st_linear_op *linear_op) {
    return st_int8_padded_k(linear_op->weight.n_in) * ST_DEVICE_GROUP;
}
// An activation with the same bits on every host; plain C takes the others from libm, whose bits no
// device has.
static inline bool st_act_is_exact(enum st_act act) {
    return act == ST_ACT_RELU || act == ST_ACT_RELU2 || act == ST_ACT_DRELU;
}
size_t st_linear_op_packed_rows(enum st_epilogue epilogue, uint32_t n_parts, const uint32_t *rows);
// Finds the part and the row that a packed row stores; false for padding. Parts of a gated linear
// are gate and up.
bool st_linear_op_find_row(const struct st_linear_op *linear_op, size_t packed, uint32_t *part,
                           size_t *row);

#endif
