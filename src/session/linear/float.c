// SPDX-License-Identifier: Apache-2.0
// Linears over float weights.
#include "base/size.h"
#include "session/linear/paths.h"
#include "session/linear/stored_run.h"

// The number of tokens that a path is selected for. A step of sequences has the same path whatever
// their number, so that a sequence does not notice when others come or leave: not the one for a
// single token, which sums in another order, nor those for many tokens.
static size_t selecting_tokens(const struct st_run *r, size_t n_tokens) {
    return r->phase == ST_PHASE_DECODE && r->batch && r->batch->places ? 2 : n_tokens;
}

// Prompts of quantized blocks, unless they are to be exact, may be rounded.
static bool may_round(const struct st_run *r) {
    return r->phase == ST_PHASE_PREFILL && r->s->model->fast;
}

// The best path that takes all of them.
static const struct st_linear_path *select_path(const struct st_run *r, size_t n_tokens,
                                                const struct st_linear_weight *const *weights,
                                                size_t n_linears) {
    const struct stint_session *s = r->s;
    const struct st_linear_path *path =
        r->nearly_exact ? st_linear_int16_path(s->kernels.cpu_flags, weights[0]->n_in) : NULL;
    if (path) return path;
    path = st_linear_paths;
    for (size_t i = 0; i < n_linears;) {
        const struct st_linear_weight *w = weights[i];
        bool fits = st_linear_path_fits(path, s->kernels.cpu_flags, may_round(r), w->dtype, w->n_in,
                                        n_tokens);
        i = fits ? i + 1 : 0;
        path += !fits;
    }
    return path;
}

// Whether all rows are in place, and what they give is their sums alone.
static bool is_plain(const struct st_linear_weight *w) {
    return !w->piece && !w->bias && w->scale == 0.0f;
}

// Whether what one of two linears gates can stay packed for the next one: nobody else sees it.
static bool stays_packed(const struct st_path_product *p) {
    const struct st_run *r = p->run;
    const struct st_gating *gating = p->operands->gating;
    if (!gating || !p->path->gated || p->n_linears != 2) return false;
    if (r->s->observe || r->s->stored.device) return false;
    // Packed tokens are padded, and the gate's buffer has those of a chunk.
    bool has_room = st_tile_padded(r->s->kernels.tile, p->n_tokens) <= r->s->chunk_len;
    return has_room && is_plain(p->weights[0]) && is_plain(p->weights[1]) &&
           select_path(r, p->selecting, &gating->next, 1) == p->path;
}

static uint32_t run_on_device(const struct st_path_product *p) {
    const struct st_stored_input input = {
        .form = ST_STORED_FLOATS, .x = p->x, .n = p->operands->n, .k = p->k};
    return st_stored_multiply(p->run, p->operands, 0, p->weights, p->n_linears, &input);
}

stint_status st_float_linears(const struct st_run *r, const struct st_operands *o,
                              const struct st_linear_weight *const *weights, size_t n_linears) {
    // A prompt's chunk, however short, does without the path for few tokens. Rows past the batch
    // are scratch: what they give is not used.
    bool prompt = r->phase == ST_PHASE_PREFILL;
    size_t n_tokens = prompt ? st_max(o->n, ST_LINEAR_FEW_TOKENS + 1) : o->n;
    size_t selecting = selecting_tokens(r, n_tokens);
    struct st_path_product product = {.run = r,
                                      .path = select_path(r, selecting, weights, n_linears),
                                      .operands = o,
                                      .x = o->x,
                                      .n_tokens = n_tokens,
                                      .k = weights[0]->n_in,
                                      .weights = weights,
                                      .n_linears = n_linears,
                                      .selecting = selecting};
    product.on_device = run_on_device(&product);
    st_path_begin(&product);
    if (stays_packed(&product)) {
        st_path_gated(&product);
        return STINT_OK;
    }
    return st_rows_each(r, weights, n_linears, st_path_rows, &product);
}

// Of the model. Weights of a method that is only compared may be wider.
static size_t input_width(const struct st_config *c, enum st_int8_role role, uint32_t layer,
                          uint32_t block) {
    const size_t widths[ST_INT8_ROLES] = {c->hidden, st_config_mixer(c, layer).out, c->hidden,
                                          st_config_ffn(c, layer, block), c->embed};
    return widths[role];
}

const float *st_float_input(const struct st_run *r, const struct st_operands *o) {
    struct st_linear_input input = {r->layer,
                                    o->expert,
                                    o->role,
                                    o->x,
                                    o->n,
                                    input_width(&r->s->model->config, o->role,
                                                o->role == ST_INT8_HEAD ? 0 : r->layer, o->expert)};
    return st_session_observe(r->s, &input);
}

static stint_status run(const struct st_run *r, const struct st_operands *o) {
    const struct st_linear_weight *weights[ST_MAX_LINEARS];
    size_t n = st_operands_linears(r, o, weights);
    struct st_operands seen = *o;
    seen.x = st_float_input(r, o);
    return st_float_linears(r, &seen, weights, n);
}

const struct st_op st_op_float = {.name = "float", .run = run};
