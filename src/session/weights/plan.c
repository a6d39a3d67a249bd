// SPDX-License-Identifier: Apache-2.0
// Predicts the effect of a memory bound on a package before a session is opened: which pieces are
// in memory (as weights/bounded.c decides), what a token misses (neuron/expect.h), and how long a
// token takes with the measured speeds of a machine (docs/MEMORY.md).
#include "base/cpu.h"
#include "base/json.h"
#include "model/step_weights.h"
#include "neuron/expect.h"
#include "neuron/keep.h"
#include "neuron/storage.h"
#include "session/weights/bounded.h"
#include "session/session.h"

#include <math.h>
#include <string.h>

struct forecast {
    const struct stint_model *model;
    struct st_bounded bounded; // planned, not opened
    stint_storage storage;     // zeros: unknown
    stint_memory_plan out;
    struct st_arena arena;
    const json_t *linears; // what `stint prepare` found of shadow execution; or NULL
    // For a sparse model.
    const json_t *notes; // [n_layers] what `stint prepare` found; or NULL
    struct st_neurons neurons;
    float *rates;     // [n_layers, n_entries] how often a token uses each
    uint32_t *first;  // [n_layers] entries in hot clusters
    double *misses;   // [n_layers]
    double *computed; // [n_layers] neurons per token,
    double *on_npu;   // [n_layers] those of the second processor, which computes clusters whole
    double *rid;      // [n_layers] and those that the host is rid of for that
    float npu_hot;
    bool hot_only; // the second processor is threads
    stint_memory_layer *layers;
    struct st_slices_used fixed, experts; // that a token may use
    uint32_t *slices;                     // [slices of the fixed region] bytes
    uint8_t *slices_kept;
    double missed_bytes, slice_misses, expert_misses, dense_bytes;
    // For shadow execution: the shares of channels for which `prepare` says how much they cover;
    // the time of the reads, and how much of it a token waits.
    const json_t *shares;
    double column_read_seconds, column_wait_seconds;
};

// ---- Slices

static double slice_bytes(const struct st_slices_used *used) {
    return used->slices > 0.0 ? used->bytes / used->slices : 0.0;
}

// The precision of the nested weights of steps, 0 if they run INT8 or float ones.
static unsigned step_bits(const struct forecast *f) {
    const struct st_needs *needs = &f->bounded.needs;
    return needs->int8_steps ? 0 : st_pins_highest(needs->precisions);
}

// Linears that every token needs are used in turn. The largest slices stay, the others take turns
// in what is left, as far as it is not held for those that come next. A token uses some of a
// mixture's experts, all with the same probability, so that it does not matter which ones are
// evicted.
static void forecast_slices(struct forecast *f) {
    const struct st_slices_plan *p = &f->bounded.plan;
    const struct st_config *c = &f->model->config;
    unsigned bits = step_bits(f), pass = bits ? st_pass_nested(bits) : ST_PASS_STEP;
    f->fixed = st_slices_of_pass(&f->bounded.source, p, ST_REGION_FIXED, pass, f->slices);
    f->experts = st_slices_of_pass(&f->bounded.source, p, ST_REGION_STREAM, pass, NULL);
    uint32_t lent[ST_N_REGIONS]; // by prompts; that of texts is taken for theirs
    st_bounded_lent(&f->bounded, f->bounded.budget.prompt, bits, lent);
    size_t slices = (size_t)f->fixed.slices;
    size_t entries = p->n_entries[ST_REGION_FIXED] + lent[ST_REGION_FIXED];
    size_t stay = entries < slices ? st_slices_staying(entries) : slices;
    double n = f->fixed.slices, all = n;
    f->out.slices = (uint32_t)n;
    f->out.resident_slices = (uint32_t)stay;
    double others = n - (double)stay, ahead = ST_SLICES_AHEAD * others / fmax(n, 1.0);
    double bytes =
        f->fixed.bytes - (double)st_keep_largest(f->slices, slices, stay, f->slices_kept);
    f->slice_misses = st_expect_cyclic(others, (double)(st_min(entries, slices) - stay),
                                       fmin(ahead, ST_SLICES_DEPTH));
    f->missed_bytes = f->slice_misses * bytes / fmax(others, 1.0);
    if (c->n_experts) {
        double used = (double)c->n_experts_used / c->n_experts, ids = f->experts.slices;
        double there = fmin(ids, p->n_entries[ST_REGION_STREAM] + lent[ST_REGION_STREAM]);
        f->out.expert_slices = (uint32_t)ids;
        f->out.resident_expert_slices = (uint32_t)there;
        f->expert_misses = used * (ids - there);
        all += used * ids;
    }
    f->out.hit_rate = 1.0 - (f->slice_misses + f->expert_misses) / fmax(all, 1.0);
    f->out.reads_per_token = f->slice_misses * f->fixed.reads / fmax(n, 1.0) +
                             f->expert_misses * f->experts.reads / fmax(f->experts.slices, 1.0);
    f->out.bytes_per_token = f->missed_bytes + f->expert_misses * slice_bytes(&f->experts);
}

// ---- Neurons

static void lay_out(struct forecast *f, struct st_arena *a) {
    size_t layers = f->model->config.n_layers, slices = f->bounded.plan.n_ids[ST_REGION_FIXED];
    f->layers = ST_TAKE(a, stint_memory_layer, layers);
    f->slices = ST_TAKE(a, uint32_t, slices);
    f->slices_kept = ST_TAKE(a, uint8_t, slices);
    if (!f->bounded.sparse) return;
    f->neurons.hot_clusters = ST_TAKE(a, uint32_t, ST_NEURON_RATES * layers);
    f->neurons.elsewhere = ST_TAKE(a, uint32_t, ST_NEURON_RATES * layers);
    f->neurons.kept = ST_TAKE(a, uint32_t, layers);
    f->rates = ST_TAKE(a, float, layers * f->model->neurons.layout.n_entries);
    f->first = ST_TAKE(a, uint32_t, layers);
    f->misses = ST_TAKE(a, double, layers);
    f->computed = ST_TAKE(a, double, layers);
    f->on_npu = ST_TAKE(a, double, layers);
    f->rid = ST_TAKE(a, double, layers);
}

static bool predicts(const struct forecast *f, uint32_t layer) {
    return f->model->neurons.layers[layer].predicted &&
           !(f->bounded.leave_out & STINT_LEAVE_PREDICTOR);
}

// The average over the layer's neurons; -1 if the package does not state it.
static double noted_share(const struct forecast *f, uint32_t layer) {
    const json_t *named = json_object_get(json_array_get(f->notes, layer), "named");
    return json_is_number(named) ? fmin(fmax(json_number_value(named), 0.0), 1.0) : -1.0;
}

// Computes how often a token uses each entry, and how many of its neurons are computed.
static void want_entries(struct forecast *f, uint32_t layer, stint_memory_layer *out) {
    const struct st_neuron_layout *l = &f->model->neurons.layout;
    const float *rates = f->model->neurons.layers[layer].rates;
    double share = noted_share(f, layer), exponent = 1.0, active = 0.0, named = 0.0;
    bool predicted = predicts(f, layer);
    if (predicted && share >= 0.0) exponent = st_expect_exponent(rates, l->n, share);
    uint32_t hot = f->neurons.hot_clusters[layer] * f->neurons.plan.cluster_entries;
    uint32_t on_npu = f->neurons.elsewhere[layer] * f->neurons.plan.cluster_entries;
    f->computed[layer] = f->rid[layer] = 0.0;
    for (uint32_t e = 0; e < l->n_entries; e++) {
        double none = 1.0; // the probability that none of its neurons is used
        for (size_t i = e * (size_t)l->per_entry; i < st_min(l->n, (e + 1) * (size_t)l->per_entry);
             i++) {
            double one = predicted ? st_expect_predicted((double)rates[i], exponent) : 1.0;
            none *= 1.0 - one;
            named += one;
            active += fmin(fmax((double)rates[i], 0.0), 1.0);
            f->computed[layer] += e < hot ? 1.0 : one;
            if (e < on_npu) f->rid[layer] += e < hot ? 1.0 : one;
        }
        f->rates[(size_t)layer * l->n_entries + e] = (float)(1.0 - none);
    }
    out->active = active / l->n;
    out->predicted = named / l->n;
}

static void forecast_layer(struct forecast *f, uint32_t layer, const struct st_cold_region *cold,
                           stint_memory_layer *out) {
    double n = cold->n_entries, wanted = st_expect_wanted(cold, layer), hot = f->first[layer];
    out->hot = hot / n;
    out->cold = (cold->kept[layer] - st_min(cold->kept[layer], f->first[layer])) / n;
    out->wanted = wanted / n;
    out->misses = f->misses[layer] / n;
    out->hit_rate = hot + wanted > 0.0 ? 1.0 - f->misses[layer] / (hot + wanted) : 1.0;
}

// The clusters that a session would give to a second processor with the same measured times.
static stint_status assign(struct forecast *f) {
    const stint_storage *s = &f->storage;
    struct st_hybrid_rates rates[ST_HYBRID_BATCHES]; // a step of one row is what counts here
    for (int b = 0; b < ST_HYBRID_BATCHES; b++)
        rates[b] = (struct st_hybrid_rates){s->npu_block_seconds, s->npu_neuron_seconds,
                                            s->cpu_neuron_seconds};
    if (!(rates[0].host_neuron > 0.0) || f->npu_hot < 0.0f) return STINT_OK;
    ST_TRY(st_hybrid_assign(&f->neurons, rates, f->npu_hot, f->hot_only));
    st_neurons_keep(&f->neurons);
    for (uint32_t i = 0; i < f->model->config.n_layers; i++) {
        size_t first;
        struct st_clusters part = {0, f->neurons.elsewhere[i]};
        f->on_npu[i] = st_dense_neurons(&f->neurons, part, &first);
    }
    return STINT_OK;
}

// As the session counts it, whose second processor computes clusters whole.
static double share_on_npu(const struct forecast *f) {
    double on_npu = 0.0, host = 0.0;
    for (uint32_t i = 0; i < f->model->config.n_layers; i++) {
        on_npu += f->on_npu[i];
        host += f->computed[i] - f->rid[i];
    }
    return on_npu > 0.0 ? on_npu / (on_npu + host) : 0.0;
}

// The longer of what both processors take for a layer.
static double neurons_seconds(const struct forecast *f, uint32_t layer) {
    const stint_storage *s = &f->storage;
    double host = (f->computed[layer] - f->rid[layer]) * s->neuron_seconds;
    double device = s->npu_block_seconds + f->on_npu[layer] * s->npu_neuron_seconds;
    return f->on_npu[layer] > 0.0 ? fmax(host, device) : host;
}

static stint_status forecast_neurons(struct forecast *f) {
    const struct st_neuron_layout *l = &f->model->neurons.layout;
    const struct st_neurons_plan *p = &f->neurons.plan;
    uint32_t n_layers = f->model->config.n_layers;
    double taken = 0.0, missed = 0.0, computed = 0.0;
    st_neurons_divide(&f->neurons);
    ST_TRY(assign(f));
    struct st_cold_region cold = {f->rates, n_layers, l->n_entries, f->first, f->neurons.kept};
    for (uint32_t i = 0; i < n_layers; i++) {
        f->first[i] = st_neurons_first_cold(&f->neurons, i);
        f->neurons.kept[i] = (uint32_t)st_min(l->n_entries, f->neurons.kept[i]);
        want_entries(f, i, &f->layers[i]);
    }
    st_expect_cold(&cold, p->n_cold, f->misses);
    for (uint32_t i = 0; i < n_layers; i++) {
        forecast_layer(f, i, &cold, &f->layers[i]);
        taken += f->first[i] + st_expect_wanted(&cold, i);
        missed += f->misses[i];
        computed += f->computed[i];
    }
    stint_memory_plan *out = &f->out;
    out->hot_clusters = p->n_hot;
    out->cluster_neurons = p->cluster_entries * l->per_entry;
    out->neurons = (uint64_t)n_layers * l->n;
    out->cold_neurons = st_min(out->neurons, (uint64_t)p->n_cold * l->per_entry);
    out->hit_rate = taken > 0.0 ? 1.0 - missed / taken : 1.0;
    out->computed = computed / (double)out->neurons;
    out->reads_per_token += missed;
    out->bytes_per_token += missed * (double)l->entry_bytes;
    out->on_npu = share_on_npu(f);
    return STINT_OK;
}

// ---- Speeds

static double random_seconds(const stint_storage *s, uint32_t depth, double bytes) {
    size_t d = 0;
    while (d + 1 < STINT_STORAGE_DEPTHS && s->random_depth[d] < depth) d++;
    return st_storage_seconds(s->random_block, s->random_per_second[d], STINT_STORAGE_BLOCKS,
                              bytes);
}

static double sequential_seconds(const stint_storage *s, double bytes) {
    return st_storage_seconds(s->sequential_block, s->sequential_per_second, STINT_STORAGE_BLOCKS,
                              bytes);
}

// ---- Shadow columns

static const json_t *find_noted(const json_t *linears, const char *name) {
    size_t i;
    const json_t *noted;
    json_array_foreach(linears, i, noted) {
        const char *of = json_string_value(json_object_get(noted, "linear"));
        if (of && strcmp(of, name) == 0) return noted;
    }
    return NULL;
}

// The average over the tokens of the calibration text.
static double noted_number(const json_t *noted, const char *key) {
    return fmax(json_number_value(json_object_get(noted, key)), 0.0);
}

// The part of a linear's outliers that its n most used channels have, between the points that are
// noted.
static double covered_by(const struct forecast *f, const json_t *noted, double n, double n_in) {
    const json_t *covers = json_object_get(noted, "cover");
    double share = 0.0, cover = 0.0;
    for (size_t i = 0; i < json_array_size(f->shares); i++) {
        double next = json_number_value(json_array_get(f->shares, i));
        double then = json_number_value(json_array_get(covers, i));
        if (next * n_in >= n)
            return next > share ? cover + (then - cover) * (n / n_in - share) / (next - share)
                                : then;
        share = next;
        cover = then;
    }
    return cover;
}

// The columns that a token needs and finds neither among the hot ones nor among those that stay:
// about the most used ones.
static double missed_columns(const struct forecast *f, const json_t *noted,
                             const struct st_int8_weight *w) {
    double columns = fmin(noted_number(noted, "cold_per_token"), w->n_in);
    double cold = st_columns_cold(w), room = st_columns_room(&f->bounded.columns, w);
    double hot = w->n_in - cold, rest = 1.0 - covered_by(f, noted, hot, w->n_in);
    if (room >= cold || rest <= 0.0) return room >= cold ? 0.0 : columns;
    double stays = 1.0 - covered_by(f, noted, hot + room, w->n_in);
    return columns * fmin(1.0, stays / rest);
}

// The columns of a linear are read while it is computed. This ends long before the reads do, and
// few reads progress while all cores are busy. So all of the reading time counts as waiting.
static stint_status forecast_columns_of(void *context, struct st_linear_id id) {
    struct forecast *f = context;
    const struct st_config *c = &f->model->config;
    const struct st_int8_weight *w =
        &st_int8_linear_op(&f->model->int8, id.role, id.layer, id.expert)->weight;
    const stint_storage *s = &f->storage;
    char name[ST_INT8_NAME_BYTES];
    unsigned step = st_int8_is_ffn(id.role) ? ST_STEPS_FFN : ST_STEPS_REST;
    if (!w->shadowed || !(f->bounded.columns.steps & step)) return STINT_OK;
    st_int8_name(id.role, c, id.layer, id.expert, name);
    size_t rows = (size_t)w->n_panels * ST_INT8_PANEL;
    const json_t *noted = find_noted(f->linears, name);
    double columns = missed_columns(f, noted, w);
    double used = st_int8_is_ffn(id.role) && st_config_is_routed(c, id.layer, id.expert)
                      ? (double)c->n_experts_used / c->n_experts
                      : 1.0;
    struct st_expected_reads one = st_expect_columns(rows, columns / w->n_in);
    double reads = one.reads * w->n_in, bytes = one.bytes * w->n_in;
    if (reads <= 0.0) return STINT_OK;
    f->out.shadow_columns += used * columns;
    f->out.reads_per_token += used * reads;
    f->out.bytes_per_token += used * bytes;
    if (s->dense_bytes_per_second <= 0.0) return STINT_OK;
    double first = -expm1(-reads) * random_seconds(s, 1, bytes / reads);
    double all =
        reads * random_seconds(s, (uint32_t)fmin(ceil(reads), ST_LOADER_THREADS), bytes / reads);
    f->column_read_seconds += used * all;
    f->column_wait_seconds += used * fmax(first, all);
    return STINT_OK;
}

static void forecast_columns(struct forecast *f) {
    const struct st_config *c = &f->model->config;
    if (!f->model->int8.layers) return;
    st_linears_each(c, (uint32_t)st_max(1, c->n_experts), forecast_columns_of, f);
}

// ---- Time

// Each predictor runs twice: ahead of its layer, and for it.
static double predictor_bytes(const struct forecast *f) {
    double bytes = 0.0;
    for (uint32_t i = 0; i < f->model->config.n_layers; i++) {
        const struct st_layer_neurons *l = &f->model->neurons.layers[i];
        if (predicts(f, i))
            bytes += (double)(st_int8_packed_bytes(&l->predict_in.weight) +
                              st_int8_packed_bytes(&l->predict_out.weight));
    }
    return bytes;
}

// The bytes that a step reads from memory. Neurons are counted separately.
static void add_dense(void *context, const struct st_weight_piece *piece) {
    struct forecast *f = context;
    bool neurons =
        f->bounded.sparse && piece->kind == ST_WEIGHT_INT8 && st_int8_is_ffn(piece->linear.role);
    if (!neurons) f->dense_bytes += (double)piece->bytes;
}

static void forecast_time(struct forecast *f) {
    const stint_storage *s = &f->storage;
    stint_memory_plan *out = &f->out;
    double entry = (double)f->model->neurons.layout.entry_bytes, missed = 0.0, bytes;
    if (s->dense_bytes_per_second <= 0.0) return;
    double missed_slice = f->missed_bytes / fmax(f->slice_misses, 1.0);
    out->read_seconds = f->slice_misses * sequential_seconds(s, missed_slice) +
                        f->expert_misses * sequential_seconds(s, slice_bytes(&f->experts));
    st_step_weights_each(f->model, step_bits(f), add_dense, f);
    bytes = f->dense_bytes;
    if (f->bounded.sparse) {
        const struct st_neurons_plan *p = &f->neurons.plan;
        bool all_there = p->n_cold >= st_neurons_single(f->model, p);
        for (uint32_t i = 0; i < f->model->config.n_layers; i++) {
            missed += f->misses[i];
            out->wait_seconds += -expm1(-f->misses[i]) * random_seconds(s, 1, entry);
            out->compute_seconds += neurons_seconds(f, i);
        }
        out->read_seconds += missed * random_seconds(s, ST_LOADER_THREADS, entry);
        bytes += predictor_bytes(f) * (all_there ? 1 : 2);
    }
    out->compute_seconds += bytes / s->dense_bytes_per_second;
    // Slices are read while a thread waits for columns.
    out->read_seconds += f->column_read_seconds;
    double seconds =
        fmax(out->read_seconds, out->compute_seconds + f->column_wait_seconds) + out->wait_seconds;
    out->wait_seconds += f->column_wait_seconds;
    if (seconds > 0.0) out->tokens_per_second = 1.0 / seconds;
    if (!f->bounded.needs.drafts) return;
    struct st_byte_seconds speed = {.file = out->read_seconds / fmax(out->bytes_per_token, 1.0),
                                    .memory = 1.0 / s->dense_bytes_per_second};
    out->drafted_per_second =
        out->tokens_per_second * st_bounded_draft_gain(f->model, &f->bounded, &speed);
}

// ---- The whole plan

static void forecast_budget(struct forecast *f) {
    const struct st_budget *b = &f->bounded.budget;
    f->out.budget_bytes = b->bound;
    f->out.fixed_bytes = st_budget_fixed(b) + b->prompt + b->regions[ST_REGION_FIXED];
    f->out.hot_bytes = b->regions[ST_REGION_STREAM] + b->hot;
    f->out.cold_bytes = b->cold;
    f->out.kv_bytes = b->kv;
    f->out.scratch_bytes = b->scratch + b->prompt;
}

static stint_status forecast_all(struct forecast *f) {
    struct st_arena measure = st_arena_measure();
    size_t bytes = 0;
    const char *text = stint_model_notes(f->model, &bytes);
    json_t *notes = NULL;
    stint_status status = STINT_OK;
    lay_out(f, &measure);
    ST_TRY(st_arena_check(&measure, "a plan"));
    ST_TRY(st_arena_open(&f->arena, measure.used));
    lay_out(f, &f->arena);
    if (text) ST_TRY(st_json_parse(ST_PACKAGE_META, text, bytes, &notes));
    f->linears = json_object_get(notes, "linears");
    f->shares = json_object_get(notes, "cover_shares");
    forecast_budget(f);
    forecast_slices(f);
    if (f->bounded.sparse) {
        f->neurons.model = f->model;
        f->neurons.plan = f->bounded.neurons.plan;
        f->notes = json_object_get(notes, "neurons");
        status = forecast_neurons(f);
    }
    if (status == STINT_OK) {
        forecast_columns(f);
        forecast_time(f);
    }
    json_decref(notes);
    f->notes = f->linears = f->shares = NULL;
    return status;
}

static stint_status check(const stint_model *model, const stint_session_options *o,
                          const stint_memory_plan *plan) {
    if (!model || !plan || plan->size == 0)
        return st_fail(STINT_E_ARG, "plan->size must be set to sizeof(stint_memory_plan)");
    if (!model->checkpoint.lazy || o->memory == 0)
        return st_fail(STINT_E_ARG, "a memory plan needs a bound, and a model that was opened with "
                                    "`lazy`");
    return STINT_OK;
}

static stint_status plan_session(const stint_model *model, stint_session_options o,
                                 const stint_storage *storage, stint_memory_plan *plan,
                                 stint_memory_layer *layers) {
    struct forecast f = {.model = model};
    struct st_session_bytes bytes;
    ST_TRY(st_session_measure(model, &o, &bytes));
    struct st_bounded_options bound = {.bound = o.memory,
                                       .bytes = bytes,
                                       .n_threads = o.n_threads ? o.n_threads : st_cpu_cores(),
                                       .leave_out = o.leave_out};
    struct st_precision_schedule schedule;
    ST_TRY(st_schedule_load(model, o.schedule, &schedule));
    bound.needs = st_schedule_needs(model, &schedule.precision, schedule.learned);
    // Sessions with neurons do not draft.
    if (o.n_drafts && !model->neurons.layers)
        st_precision_needs_of_drafts(model, &schedule.precision, o.draft_bits, &bound.needs);
    st_schedule_close(&schedule);
    ST_TRY(st_bounded_plan(model, &bound, &f.bounded));
    if (storage) memcpy(&f.storage, storage, st_min(storage->size, sizeof f.storage));
    f.npu_hot = o.npu_hot;
    f.hot_only = o.npu_threads || o.cpu_threads;
    f.out.size = plan->size;
    stint_status status = forecast_all(&f);
    if (status == STINT_OK) memcpy(plan, &f.out, st_min(plan->size, sizeof f.out));
    if (status == STINT_OK && layers)
        memcpy(layers, f.layers, model->config.n_layers * sizeof *layers);
    st_arena_close(&f.arena);
    st_bounded_plan_close(&f.bounded);
    return status;
}

stint_status stint_session_plan(const stint_model *model, const stint_session_options *options,
                                const stint_storage *storage, stint_memory_plan *plan,
                                stint_memory_layer *layers) {
    stint_session_options o = {.size = sizeof o};
    if (options) memcpy(&o, options, st_min(options->size, sizeof o));
    o.size = sizeof o;
    ST_TRY(check(model, &o, plan));
    stint_status status = plan_session(model, o, storage, plan, layers);
    if (status != STINT_E_LIMIT || !o.n_drafts) return status;
    o.n_drafts = 0; // as a session opens where its bound is too small for drafts
    return plan_session(model, o, storage, plan, layers);
}
