// SPDX-License-Identifier: Apache-2.0
// How a memory bound is divided (docs/MEMORY.md).
#include "session/weights/bounded.h"

#include "base/size.h"

enum {
    PROCESS_BYTES = 16 << 20, // program, libraries, page tables, stacks of few pages
    THREAD_BYTES = (64 << 10) + ST_LOAD_ROOM, // per reading thread: stack and buffer
    STREAM_ENTRIES = 12, // for what is read again in each pass, if there is room
    FEWEST_COLD = 64,    // neurons
};
static uint64_t region_bytes(const struct st_bounded *r) {
    const struct st_neurons_plan *n = &r->neurons.plan;
    uint64_t bytes = n->n_hot * n->cluster_bytes + n->n_cold * n->entry_bytes;
    for (int i = 0; i < ST_N_REGIONS; i++)
        bytes += (uint64_t)r->plan.n_entries[i] * r->plan.entry_bytes[i];
    return bytes;
}

// Grows a region by the part of `left` that it can use.
static void grow(struct st_bounded *r, int region, uint64_t most, uint64_t *left) {
    size_t bytes = r->plan.entry_bytes[region];
    if (bytes == 0) return;
    uint64_t more = st_min(*left / bytes, most - st_min(most, r->plan.n_entries[region]));
    r->plan.n_entries[region] += (uint32_t)more;
    *left -= more * bytes;
}

// The bound named in the text also suffices at the next opening, when a few more pages may be in
// use.
static stint_status too_small(const struct st_bounded *r, uint64_t needed) {
    const struct st_budget *b = &r->budget;
    const uint64_t mib = 1 << 20;
    uint64_t enough = (needed + mib / 2 + mib - 1) / mib;
    return st_fail(
        STINT_E_LIMIT,
        "memory: at least %llu MiB are needed (%llu for weights on their way, %llu for "
        "nested ones, %llu for tables and the program, %llu for the KV cache, %llu for "
        "scratch), %llu are allowed; raise the bound, or lower the context, the chunk "
        "or the schedule's precision",
        (unsigned long long)enough, (unsigned long long)(region_bytes(r) >> 20),
        (unsigned long long)(b->nested >> 20), (unsigned long long)((b->process + b->tables) >> 20),
        (unsigned long long)(b->kv >> 20), (unsigned long long)((b->scratch + b->prompt) >> 20),
        (unsigned long long)(b->bound >> 20));
}

void st_bounded_lay_out(const struct stint_model *m, struct st_bounded *r, struct st_arena *a) {
    st_token_rows_lay_out(m, r, a);
    st_made_lay_out(m, &r->made, a);
    st_columns_lay_out(&r->columns, m, a);
    r->parts = ST_TAKE(a, struct st_slice,
                       st_max(r->plan.n_ids[ST_REGION_FIXED], r->plan.n_ids[ST_REGION_STREAM]));
    if (!r->sparse) return;
    st_sparse_lay_out(&r->block, a);
    st_prediction_lay_out(m, &r->prediction, a);
}

static uint64_t own_bytes(const struct stint_model *m, struct st_bounded *r) {
    struct st_arena measure = st_arena_measure();
    st_bounded_lay_out(m, r, &measure);
    return measure.used;
}

// The single neurons that a step takes of one layer, which must pass even where none stay.
static uint64_t passing_bytes(const struct stint_model *m, const struct st_bounded *r) {
    const struct st_neurons_plan *n = &r->neurons.plan;
    return st_neurons_passing(m, n) * n->entry_bytes;
}

// The remaining bytes go to neurons: hot clusters, as many as larger batches use, and single cold
// neurons.
static void grow_neurons(const struct stint_model *m, struct st_bounded *r, uint64_t *left) {
    struct st_neurons_plan *n = &r->neurons.plan;
    uint32_t wanted = st_neurons_hot_clusters(m, n, ST_NEURON_TOKENS);
    uint64_t hot = (*left - st_min(*left, passing_bytes(m, r))) / n->cluster_bytes;
    n->n_hot = r->leave_out & STINT_LEAVE_HOT ? 0 : (uint32_t)st_min(wanted, hot);
    *left -= n->n_hot * n->cluster_bytes;
    uint64_t all = st_neurons_single(m, n);
    if (r->leave_out & STINT_LEAVE_CACHE) all = m->neurons.layout.n_entries;
    uint64_t cold = st_min(*left / n->entry_bytes, all - st_min(all, n->n_cold));
    n->n_cold += (uint32_t)cold;
    *left -= cold * n->entry_bytes;
}

static uint64_t tables_bytes(const struct stint_model *m, struct st_bounded *r) {
    const struct st_neurons_plan most = r->neurons.plan;
    uint64_t bytes = st_slices_table_bytes(&r->source, &r->plan) + own_bytes(m, r) + r->table.used;
    return r->sparse ? bytes + st_neurons_fixed_bytes(m, &most) : bytes;
}

// Which packed linears the steps after a prompt use.
static unsigned steps_of(const struct st_bounded *r) {
    if (!r->needs.int8_steps) return 0;
    return r->sparse ? ST_STEPS_REST : ST_STEPS_REST | ST_STEPS_FFN;
}

// Of which linears steps use the shadow columns: those that run INT8, as single neurons do.
static unsigned shadowed_steps(const struct st_bounded *r) {
    unsigned all = r->needs.int8_steps ? ST_STEPS_REST | ST_STEPS_FFN : 0;
    return r->sparse ? all | ST_STEPS_FFN : all;
}

// Cuts into slices what is not pinned. `within`: as it was with fewer pins, or NULL.
static stint_status cut(const struct stint_model *m, const struct st_slices_plan *within,
                        struct st_bounded *r) {
    struct st_arena measure = st_arena_measure();
    r->source = (struct st_slices_source){m, &m->pieces, steps_of(r), r->pins.drafts};
    if (r->pins.precisions) {
        st_pins_pieces(m, &r->pins, &measure, &r->pieces);
        ST_TRY(st_arena_check(&measure, "a table of the weights"));
        st_arena_close(&r->table);
        ST_TRY(st_arena_open(&r->table, measure.used));
        st_pins_pieces(m, &r->pins, &r->table, &r->pieces);
        r->source.pieces = &r->pieces;
    }
    st_slices_plan(&r->source, within, &r->plan);
    r->budget.nested = st_pinned_bytes(m, &r->pins);
    return STINT_OK;
}

// Every region gets its minimum. Returns what is then needed.
static uint64_t begin(struct st_bounded *r) {
    for (int i = 0; i < ST_N_REGIONS; i++)
        r->plan.n_entries[i] = (uint32_t)st_min(ST_SLICES_FEWEST, r->plan.n_ids[i]);
    return st_budget_fixed(&r->budget) + r->budget.kv + r->budget.prompt + region_bytes(r);
}

// Pins all nested weights if they fit, else as many as do beside the slices that the others pass
// through. *needed: at least.
static stint_status pin(const struct stint_model *m, struct st_bounded *r, uint64_t *needed) {
    struct st_budget *b = &r->budget;
    const struct st_slices_plan streamed = r->plan;
    if (!r->pins.precisions) return STINT_OK;
    bool may_stream = st_pins_may_stream(m);
    r->pins.limit = ST_PINS_ALL;
    ST_TRY(cut(m, &streamed, r));
    uint64_t with_all = begin(r);
    if (with_all <= b->bound || !may_stream) {
        *needed = with_all;
        return STINT_OK;
    }
    r->pins.limit = 0;
    r->plan = streamed;
    b->nested = 0;
    *needed = st_min(with_all, begin(r));
    if (*needed > b->bound) return STINT_OK;
    uint64_t left = b->bound - *needed;
    grow(r, ST_REGION_STREAM, STREAM_ENTRIES, &left);
    grow(r, ST_REGION_FIXED, STREAM_ENTRIES, &left);
    r->pins.limit = st_pins_fit(m, &r->pins, left);
    ST_TRY(cut(m, &streamed, r));
    *needed = begin(r);
    return STINT_OK;
}

// Tables are sized as if everything were in memory. Then every region gets its minimum, and the
// remaining bytes are divided by how often a byte of a region is used. Shadow columns come last:
// with a byte of theirs fewer reads are saved than with one of a neuron.
stint_status st_bounded_divide(const struct stint_model *m, struct st_bounded *r) {
    struct st_budget *b = &r->budget;
    struct st_neurons_plan *n = &r->neurons.plan;
    r->pins = (struct st_pins){.precisions = r->needs.precisions, .drafts = r->needs.drafts};
    if (st_model_has_sets(m)) r->pins.precisions |= 1u << ST_NESTED_STORED;
    ST_TRY(cut(m, NULL, r));
    if (r->sparse) {
        st_neurons_plan(m, n);
        n->no_predictors = r->leave_out & STINT_LEAVE_PREDICTOR;
        n->n_hot = m->config.n_layers * n->n_clusters;
        n->n_cold = m->config.n_layers * m->neurons.layout.n_entries;
    }
    b->process = PROCESS_BYTES + m->held_bytes + ST_LOADER_THREADS * THREAD_BYTES;
    for (int i = 0; i < ST_N_REGIONS; i++) r->plan.n_entries[i] = r->plan.n_ids[i];
    b->tables = tables_bytes(m, r);
    n->n_hot = 0;
    n->n_cold = (uint32_t)st_min(FEWEST_COLD, n->n_cold);
    uint64_t needed = begin(r);
    ST_TRY(pin(m, r, &needed));
    if (needed > b->bound) return too_small(r, needed);
    uint64_t left = b->bound - needed;
    uint64_t kept = r->sparse ? st_min(left / 2, passing_bytes(m, r)) : 0;
    left -= kept;
    grow(r, ST_REGION_STREAM, STREAM_ENTRIES, &left);
    grow(r, ST_REGION_FIXED, r->plan.n_ids[ST_REGION_FIXED], &left);
    left += kept;
    if (r->sparse)
        grow_neurons(m, r, &left);
    else
        grow(r, ST_REGION_STREAM, r->plan.n_ids[ST_REGION_STREAM], &left);
    b->columns = st_min(st_columns_bytes(m, shadowed_steps(r)), left);
    st_columns_plan(m, shadowed_steps(r), b->columns, &r->columns);
    for (int i = 0; i < ST_N_REGIONS; i++)
        b->regions[i] = (uint64_t)r->plan.n_entries[i] * r->plan.entry_bytes[i];
    b->hot = n->n_hot * n->cluster_bytes;
    b->cold = n->n_cold * n->entry_bytes;
    return STINT_OK;
}

// ---- Lent

bool st_bounded_nested_is_apart(const struct st_bounded *r) {
    return r->pins.precisions && !r->sparse && r->source.model->config.n_experts == 0;
}

// Neurons have no use for more memory: their regions do not shrink.
static uint64_t lendable(const struct st_bounded *r, uint64_t bytes, bool nested) {
    const struct st_slices_plan *plan = &r->plan;
    uint64_t unused =
        (uint64_t)plan->n_entries[ST_REGION_STREAM] * plan->entry_bytes[ST_REGION_STREAM];
    return (r->sparse ? 0 : bytes) + (nested && st_bounded_nested_is_apart(r) ? unused : 0);
}

static uint32_t entries_of(const struct st_slices_plan *plan, int region, uint64_t bytes) {
    size_t entry = plan->entry_bytes[region];
    uint64_t outside = plan->n_ids[region] - st_min(plan->n_ids[region], plan->n_entries[region]);
    return entry ? (uint32_t)st_min(bytes / entry, outside) : 0;
}

void st_bounded_lent(const struct st_bounded *r, uint64_t bytes, bool nested,
                     uint32_t lent[ST_N_REGIONS]) {
    uint64_t left = lendable(r, bytes, nested);
    for (int i = 0; i < ST_N_REGIONS; i++) {
        lent[i] = entries_of(&r->plan, i, left);
        left -= (uint64_t)lent[i] * r->plan.entry_bytes[i];
    }
}

void st_bounded_most_lent(const struct st_bounded *r, uint32_t most[ST_N_REGIONS]) {
    uint64_t all = lendable(r, r->budget.kv + r->budget.prompt, true);
    for (int i = 0; i < ST_N_REGIONS; i++) most[i] = entries_of(&r->plan, i, all);
}
