// SPDX-License-Identifier: Apache-2.0
// The linear ops, which compute the linears of a layer (float, blocks, INT8, two-term INT8,
// nested), and the table that says which op computes which linear. The pass (session/pass.c) only
// uses the table. A new linear op is one more op and a row in linear/table.c.
#ifndef ST_SESSION_LINEAR_OP_H
#define ST_SESSION_LINEAR_OP_H

#include "session/session.h"

// The units of the table.
enum st_unit {
    ST_UNIT_QKV,
    ST_UNIT_O,
    ST_UNIT_FFN,    // a feed-forward block, or a routed mixture of them
    ST_UNIT_EXPERT, // one block of a mixture
    ST_UNIT_HEAD,
    ST_N_UNITS
};

// y[1] gates y[0], and act(y[1]) * y[0] is the input of `next`, and of nothing else. An op may
// leave it packed in the place of y[1], as its path packs it for `next`, and y[0] undefined.
struct st_gating {
    enum st_act act;
    const struct st_linear_weight *next;
    const float *packed; // NULL: y has both
};

// Linears that share the input x [n, inputs]: y[i][t * y_row[i] + row]. A feed-forward block counts
// as its first linear, ST_INT8_UP, and has the block's output.
struct st_operands {
    enum st_int8_role role;
    uint32_t expert;
    const float *x;
    size_t n;
    float *y[ST_LINEAR_OP_PARTS];
    size_t y_row[ST_LINEAR_OP_PARTS];
    struct st_gating *gating; // of these linears; or NULL
    const float *packed;      // from gating: in place of x; or NULL
};

typedef stint_status st_op_fn(const struct st_run *run, const struct st_operands *operands);

// The steps of a unit, in order. NULL: there is nothing to do.
struct st_op {
    const char *name;
    st_op_fn *prepare; // once x is known: quantizes it
    // The same before it is known: x, which is buffers->normed, is this norm of buffers->x. NULL:
    // the op wants x.
    stint_status (*prepare_normed)(const struct st_run *run, const struct st_operands *operands,
                                   const struct st_norm_weight *norm);
    st_op_fn *before; // shadow execution of a linear that is followed by an activation
    st_op_fn *run;
    st_op_fn *finish; // shadow execution of the last linear
    // Of `before` and `finish`, those that have work in this layer and can be subgraphs of their
    // own while prompts are split: ST_SHADOW_BEFORE, ST_SHADOW_AFTER.
    uint8_t (*apart)(const struct stint_model *model, uint32_t layer, enum st_int8_role role);
};

// linear/float.c
extern const struct st_op st_op_float;
// Those of the operands' weights that are given: y[i] is theirs.
stint_status st_float_linears(const struct st_run *run, const struct st_operands *operands,
                              const struct st_linear_weight *const *weights, size_t n_linears);
// What the linears get: who observes a session sees the input first, and says.
const float *st_float_input(const struct st_run *run, const struct st_operands *operands);
// linear/blocks.c, over quantized blocks in integers.
extern const struct st_op st_op_blocks;
static inline bool st_runs_in_blocks(const struct stint_model *model, enum st_phase phase) {
    return model->fast && !model->int8.layers && phase == ST_PHASE_DECODE;
}
// Linears of no unit, which no package quantizes: routers, latents, projections of embeddings. In
// blocks where this phase runs in blocks, else in float. y [n, y_row], or [n, outputs].
stint_status st_lone_linears(const struct st_run *run, const struct st_operands *operands,
                             const struct st_linear_weight *const *weights, size_t n_linears);
stint_status st_lone_linear(const struct st_run *run, const float *x, size_t n,
                            const struct st_linear_weight *weight, float *y);
stint_status st_lone_linear_rows(const struct st_run *run, const float *x, size_t n,
                                 const struct st_linear_weight *weight, float *y, size_t y_row);
// linear/nested.c, at precision run->bits.
enum { ST_ONE_TERM_BITS = 3 }; // weights of at most these bits get inputs in one term
extern const struct st_op st_op_nested;
// linear/int8.c, on the device; and with inputs in two terms.
extern const struct st_op st_op_int8, st_op_int8_head, st_op_int8_ffn;
extern const struct st_op st_op_two_term, st_op_two_term_head, st_op_two_term_ffn;
// linear/sparse.c: of blocks whose neurons are predicted.
extern const struct st_op st_op_sparse_ffn;
// linear/ffn.c: linears with an activation between them; a mixture of ST_UNIT_EXPERT.
extern const struct st_op st_op_float_ffn, st_op_blocks_ffn, st_op_nested_ffn, st_op_mixture;
// Two INT8 linears, on the device each by itself, since gates between them have a cutoff.
extern const struct st_op st_op_cut_ffn;

// linear/route.c

// Routes tokens by the layer's router: buffers->route [n, n_experts] gets the weight of each expert
// for each token, 0 where it has none. x [n, hidden]: the input of the layer's block.
stint_status st_route(const struct st_run *run, const float *x, size_t n);
// Rows [n, hidden] times factors of each column, where a part of a mixture has some; x may be `to`.
void st_scale_rows(const struct st_run *run, const float *factors, const float *x, size_t n,
                   float *to);
// Whether one of the n tokens was routed to an expert; with at least half the weight of its first.
bool st_route_has(const struct st_run *run, size_t n, uint32_t expert);
bool st_route_favours(const struct st_run *run, size_t n, uint32_t expert);

// Room in a chunk's buffers for inputs of blocks, which have at most `widest` elements.
void st_blocks_lay_out(size_t widest, struct st_chunk_buffers *buffers, struct st_arena *arena);
// Room in a chunk's buffers for nested inputs, and in the session for those of sparse blocks, which
// only models with neurons have.
void st_nested_lay_out(const struct stint_session *s, struct st_chunk_buffers *buffers,
                       struct st_arena *arena);
void st_two_term_lay_out(struct stint_session *s, struct st_arena *arena);

// linear/table.c

// Fills the session's table, by the model's weights and where they are.
void st_op_table_fill(struct stint_session *s);
size_t st_op_table_size(const struct stint_model *model); // ops
const struct st_op *st_op_of(const struct st_run *run, enum st_unit unit);
enum st_int8_role st_unit_role(enum st_unit unit);
// ST_SHADOW_* of the subgraphs of a layer, of prompts at the precision of INT8.
void st_op_shadows(const struct stint_session *s, uint32_t layer, uint8_t shadows[ST_N_SUBGRAPHS]);

// The float or nested linears of operands, up to ST_MAX_LINEARS; returns how many.
static inline size_t st_operands_linears(const struct st_run *run,
                                         const struct st_operands *operands,
                                         const struct st_linear_weight *weights[ST_MAX_LINEARS]) {
    struct st_linear_id id = {operands->role, run->layer, operands->expert};
    return st_linear_parts(&run->s->model->weights, id, weights);
}

// Linears whose parts (rows, panels) lie one after another in one range that threads share: linear
// i has [first[i], first[i + 1]). Calls `fn` for each with its part of [from, to), counted from its
// own beginning.
typedef void st_linear_part_fn(const void *context, size_t i, size_t from, size_t to);
static inline void st_linears_between(const size_t *first, size_t n_linears, size_t from, size_t to,
                                      st_linear_part_fn *fn, const void *context) {
    for (size_t i = 0; i < n_linears; i++) {
        size_t begin = st_max(from, first[i]), end = st_min(to, first[i + 1]);
        if (begin < end) fn(context, i, begin - first[i], end - first[i]);
    }
}

// All steps of a unit, one after another.
static inline stint_status st_op_all(const struct st_op *op, const struct st_run *run,
                                     const struct st_operands *operands) {
    if (op->prepare) ST_TRY(op->prepare(run, operands));
    if (op->before) ST_TRY(op->before(run, operands));
    ST_TRY(op->run(run, operands));
    return op->finish ? op->finish(run, operands) : STINT_OK;
}

#endif
