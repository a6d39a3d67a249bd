// SPDX-License-Identifier: Apache-2.0
#include "session/weights/bounded.h"

#include "base/clock.h"
#include "base/cpu.h"
#include "base/process.h"
#include "base/size.h"
#include "session/weights/source.h"

#include <stdlib.h>
#include <string.h>

static void set_up(const struct stint_model *model, const struct st_bounded_options *o,
                   struct st_bounded *r) {
    uint64_t flags = st_cpu_flags();
    r->leave_out = o->leave_out;
    r->needs = o->needs;
    r->sparse = model->neurons.layers != NULL;
    r->block = (struct st_sparse){.kernel = st_neuron_select(flags),
                                  .elementwise = st_elementwise_select(flags),
                                  .layout = model->neurons.layout,
                                  .n_threads = o->n_threads};
    r->budget = (struct st_budget){.bound = o->bound,
                                   .kv = o->bytes.kv,
                                   .prompt = o->bytes.prompt,
                                   .scratch = o->bytes.scratch};
}

stint_status st_bounded_plan(const struct stint_model *model, const struct st_bounded_options *o,
                             struct st_bounded *planned) {
    *planned = (struct st_bounded){0};
    set_up(model, o, planned);
    stint_status status = st_bounded_divide_best(model, planned);
    if (status != STINT_OK) st_bounded_plan_close(planned);
    return status;
}

void st_bounded_plan_close(struct st_bounded *planned) {
    st_arena_close(&planned->table);
}

// Slices have what texts do not take of the KV cache, and prompts of their buffers.
static void lend(struct st_bounded *r) {
    const struct st_budget *b = &r->budget;
    uint64_t left = b->kv - st_min(b->kv, r->kv_touched);
    bool apart = st_bounded_nested_is_apart(r);
    uint32_t lent[ST_N_REGIONS];
    st_bounded_lent(r, left + (r->prompt_touched ? 0 : b->prompt), r->nested_now, lent);
    for (uint32_t i = 0; i < ST_N_REGIONS; i++) {
        bool unused = apart && r->nested_now && i == ST_REGION_STREAM;
        if (r->most_lent[i] || apart)
            st_slices_resize(&r->slices, i, unused ? 0 : r->plan.n_entries[i] + lent[i]);
    }
}

// ---- Opening

static stint_status open_in(const struct stint_model *m, struct st_bounded *r) {
    struct st_arena measure = st_arena_measure();
    ST_TRY(st_bounded_divide_best(m, r));
    st_bounded_lay_out(m, r, &measure);
    ST_TRY(st_arena_open(&r->arena, measure.used));
    st_bounded_lay_out(m, r, &r->arena);
    struct st_loader_options options = {.files = m->checkpoint.files,
                                        .n_files = m->checkpoint.n_maps};
    if (r->leave_out & STINT_LEAVE_BUNDLES) options.max_bytes = m->neurons.layout.row_bytes;
    ST_TRY(st_loader_open(&options, &r->loader));
    ST_TRY(st_token_rows_open(m, r));
    ST_TRY(st_pinned_open(m, &r->pins, r->loader, &r->pinned));
    st_bounded_most_lent(r, r->most_lent);
    struct st_slices_plan with_loan = r->plan;
    for (int i = 0; i < ST_N_REGIONS; i++) with_loan.n_entries[i] += r->most_lent[i];
    ST_TRY(st_slices_open(&r->source, &with_loan, r->loader, &r->slices));
    lend(r);
    const struct st_neurons_plan neurons = r->neurons.plan;
    return r->sparse ? st_neurons_open(m, &neurons, r->loader, &r->neurons) : STINT_OK;
}

stint_status st_bounded_open(const struct stint_model *model, const struct st_bounded_options *o,
                             struct st_bounded **bounded) {
    struct st_bounded *r = calloc(1, sizeof *r);
    if (!r) return st_fail(STINT_E_NOMEM, "no memory for a session");
    set_up(model, o, r);
    stint_status status = open_in(model, r);
    if (status != STINT_OK) {
        st_bounded_close(r);
        return status;
    }
    st_bounded_count_opening(r);
    *bounded = r;
    return STINT_OK;
}

void st_bounded_close(struct st_bounded *r) {
    if (!r) return;
    if (r->loader) st_loader_drain(r->loader);
    st_loader_close(r->loader);
    st_bounded_detach(r);
    st_slices_close(&r->slices);
    st_pinned_close(&r->pinned);
    st_neurons_close(&r->neurons);
    st_arena_close(&r->arena);
    st_arena_close(&r->table);
    free(r);
}

// ---- The source

// What a sequence takes of the KV cache for the first time, slices give back.
static void reach(struct stint_session *s, uint32_t sequence, size_t n_tokens) {
    struct st_bounded *r = s->bounded;
    if (n_tokens <= r->most_tokens[sequence]) return;
    r->most_tokens[sequence] = (uint32_t)n_tokens;
    r->kv_touched = 0;
    for (uint32_t i = 0; i < s->n_sequences; i++)
        r->kv_touched += st_kv_touched(&s->kv, r->most_tokens[i]);
    lend(r);
}

// A prompt gets its buffers before it begins; the first step after it gives them back.
static void borrow(struct stint_session *s, bool nested, size_t n) {
    struct st_bounded *r = s->bounded;
    bool prompt = r->budget.prompt && n > STINT_MAX_STEP_ROWS;
    if (prompt == r->prompt_touched && nested == r->nested_now) return;
    if (r->prompt_touched && !prompt) st_arena_forget(s->chunk_memory, s->chunk_bytes);
    r->prompt_touched = prompt;
    r->nested_now = nested;
    lend(r);
}

static void begin(struct stint_session *s, enum st_phase phase, unsigned bits, size_t n) {
    borrow(s, bits, n);
    unsigned plain = phase == ST_PHASE_PREFILL ? ST_PASS_PROMPT : ST_PASS_STEP;
    s->bounded->steps.now = phase == ST_PHASE_DECODE;
    s->bounded->steps.begun = st_now_ns();
    st_slices_pass(&s->bounded->slices, bits ? st_pass_nested(bits) : plain);
}

static stint_status take(struct st_bounded *r, size_t piece, uint32_t slice) {
    const unsigned char *panels[ST_PIECE_STRIPS];
    ST_TRY(st_slices_take(&r->slices, piece, slice, panels));
    r->parts[slice] = st_mirror_slice(&r->streamed, panels[0], 0);
    return STINT_OK;
}

// Waits for one slice, and takes the slices after it that are in memory already.
static stint_status acquire(const struct st_run *run, struct st_linear_id id,
                            struct st_linear_op_part *part) {
    struct st_bounded *r = run->s->bounded;
    if (r->made.panels) return st_made_acquire(run, id, part);
    size_t piece = st_file_piece_place(run->s->model, id);
    const struct st_sliced *g = &r->slices.pieces[piece];
    uint32_t first = part->group / g->slice_groups, end = first + 1;
    ST_TRY(take(r, piece, first));
    for (; end < g->n && st_slices_has(&r->slices, piece, end); end++) ST_TRY(take(r, piece, end));
    part->slices = r->parts;
    part->slice_groups = g->slice_groups;
    part->n_groups = (uint32_t)st_min(g->n_groups, end * g->slice_groups) - part->group;
    return STINT_OK;
}

static void release(const struct st_run *run, struct st_linear_id id,
                    const struct st_linear_op_part *part) {
    struct st_bounded *r = run->s->bounded;
    if (r->made.panels) {
        st_made_release(run, id, part);
        return;
    }
    uint32_t first = part->group / part->slice_groups;
    uint32_t end = (uint32_t)st_ceil_div(part->group + part->n_groups, part->slice_groups);
    size_t piece = st_file_piece_place(run->s->model, id);
    for (uint32_t i = first; i < end; i++) st_slices_give(&r->slices, piece, i);
}

// Slices of a float linear.
static const struct st_sliced *sliced(const struct st_run *run,
                                      const struct st_linear_weight *weight) {
    return &run->s->bounded->slices.pieces[weight->piece - 1];
}

static uint32_t slice_of(const struct st_sliced *g, const struct st_rows *rows) {
    return (uint32_t)(rows->first / ((size_t)g->slice_groups * ST_PIECE_ROWS));
}

static stint_status acquire_rows(const struct st_run *run, const struct st_linear_weight *weight,
                                 struct st_rows *rows) {
    const struct st_sliced *g = sliced(run, weight);
    const unsigned char *strips[ST_PIECE_STRIPS];
    rows->n = st_min((size_t)g->slice_groups * ST_PIECE_ROWS, weight->n_out - rows->first);
    ST_TRY(st_slices_take(&run->s->bounded->slices, weight->piece - 1, slice_of(g, rows), strips));
    rows->data = strips[0];
    return STINT_OK;
}

static void release_rows(const struct st_run *run, const struct st_linear_weight *weight,
                         const struct st_rows *rows) {
    uint32_t slice = slice_of(sliced(run, weight), rows);
    st_slices_give(&run->s->bounded->slices, weight->piece - 1, slice);
}

static void count_step(struct st_bounded *r) {
    struct st_loader_counts counts;
    st_loader_count(r->loader, &counts);
    if (r->steps.now) {
        r->steps.bytes += counts.bytes - r->steps.counted;
        r->steps.n++;
    }
    r->steps.counted = counts.bytes;
    r->steps.now = false;
}

static void end(struct stint_session *s, stint_status status) {
    struct st_bounded *r = s->bounded;
    if (r->steps.now && status == STINT_OK)
        st_trial_note(&r->expecting, (double)(st_now_ns() - r->steps.begun) * 1e-9);
    count_step(r);
    if (status != STINT_OK) {
        st_slices_reset(&r->slices);
        if (r->sparse) st_neurons_reset(&r->neurons);
        for (int i = 0; i < ST_N_TABLES; i++) st_cache_give_all(&r->rows[i]);
        r->made.holds = false;
    }
    r->peak_bytes = st_max(r->peak_bytes, st_process_anonymous_bytes());
}

const struct st_weight_source st_source_bounded = {.name = "memory-bounded",
                                                   .embed = st_token_rows,
                                                   .nested = st_bounded_nested,
                                                   .acquire_panels = st_bounded_acquire_panels,
                                                   .release_panels = st_bounded_release_panels,
                                                   .acquire = acquire,
                                                   .release = release,
                                                   .acquire_rows = acquire_rows,
                                                   .release_rows = release_rows,
                                                   .expect = st_bounded_expect,
                                                   .look_ahead = st_bounded_look_ahead,
                                                   .reach = reach,
                                                   .begin = begin,
                                                   .end = end};
