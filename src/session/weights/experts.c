// SPDX-License-Identifier: Apache-2.0
// What the next feed-forward block will need is foreseen from the present hidden state, which the
// attention in between changes only a little: neurons by the block's predictor (predict.c), experts
// by its router. So the disk reads while attention computes.
#include "session/linear/op.h"
#include "session/pass.h"
#include "session/weights/bounded.h"
#include "session/weights/source.h"

#include "base/size.h"

size_t st_bounded_nested_piece(const struct st_run *run, const struct st_nested_weight *weight) {
    const struct st_bounded *r = run->s->bounded;
    unsigned bits = run->bits ? run->bits : ST_NESTED_STORED;
    return st_pins_place(run->s->model, &r->pins, weight->index, bits);
}

// The first piece of an expert of the run's layer, as the run takes it.
static size_t first_piece(const struct st_run *run, uint32_t expert) {
    const struct stint_model *m = run->s->model;
    const struct st_linear_id up = {ST_INT8_UP, run->layer, expert};
    const struct st_linear_weight *parts[ST_LINEAR_OP_PARTS];
    size_t n = st_linear_parts(&m->weights, up, parts), piece = SIZE_MAX;
    if (!run->bits && !run->s->bounded->made.panels) return st_file_piece_place(m, up);
    for (size_t i = 0; i < n; i++) // in the order of the package
        piece = st_min(piece, st_bounded_nested_piece(run, parts[i]->nested));
    return piece;
}

static bool is_of_expert(const struct st_run *run, size_t piece, uint32_t expert) {
    const struct st_slices *slices = &run->s->bounded->slices;
    if (piece >= slices->n_pieces) return false;
    const struct st_linear_id *at = &slices->pieces[piece].piece->linear;
    return at->layer == run->layer && at->expert == expert && st_int8_is_ffn(at->role);
}

void st_bounded_expect(const struct st_run *run, uint32_t expert) {
    for (size_t i = first_piece(run, expert); is_of_expert(run, i, expert); i++)
        st_slices_expect(&run->s->bounded->slices, i);
}

static stint_status foresee_experts(const struct st_run *run) {
    const struct stint_session *s = run->s;
    struct st_slices *slices = &s->bounded->slices;
    const struct st_chunk_buffers *b = run->buffers;
    const struct st_cache *cache = &slices->regions[ST_REGION_STREAM];
    size_t n = run->batch->n;
    if (!s->model->weights.layers[run->layer].router.data || cache->n_entries >= cache->n_ids)
        return STINT_OK;
    ST_TRY(st_route(run, st_bounded_guess(run, b->x, n, b->expert_in), n));
    for (uint32_t e = 0; e < s->model->config.n_experts; e++) {
        if (!st_route_favours(run, n, e)) continue; // of the others fewer are needed
        for (size_t i = first_piece(run, e); is_of_expert(run, i, e); i++)
            if (!st_slices_foresee(slices, i)) return STINT_OK;
    }
    return STINT_OK;
}

stint_status st_bounded_look_ahead(const struct st_run *run) {
    const struct st_config *c = &run->s->model->config;
    const struct st_bounded *r = run->s->bounded;
    struct st_run next = *run;
    st_slices_let_go(&run->s->bounded->slices);
    if (r->leave_out & STINT_LEAVE_PIPELINE || run->phase != ST_PHASE_DECODE) return STINT_OK;
    do
        if (++next.layer == c->n_layers) return STINT_OK;
    while (st_config_blocks(c, next.layer) == 0);
    return r->sparse ? st_bounded_expect_neurons(&next) : foresee_experts(&next);
}
