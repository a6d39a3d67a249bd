// SPDX-License-Identifier: Apache-2.0
// Runs the package before it is finished, to measure its loss: the linears that are in the file
// already, layer by layer, on the held-out part of the text.
#include "prepare/job.h"

#include "base/log.h"
#include "base/size.h"
#include "device/weight_set.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEARCH_STEPS = 5, TRIED_TOKENS = 512 };

static const double max_pruned = 0.85, loss_allowed = 0.003, loss_alarming = 0.01,
                    loss_of_rows = 0.0005, shadow_gain = 0.75;

// ---- The package as a model

struct unfinished {
    struct st_prepare_job *job;
    struct st_map map;
};

// The section `.input` of a planned linear; NULL for any other.
static const float *planned_input(const struct st_plan *plan, const char *name) {
    char linear[ST_INT8_NAME_BYTES];
    size_t n = strlen(name), ending = strlen(ST_INT8_INPUT);
    if (n < ending || n - ending >= sizeof linear || strcmp(name + n - ending, ST_INT8_INPUT) != 0)
        return NULL;
    memcpy(linear, name, n - ending);
    linear[n - ending] = 0;
    const struct st_planned *l = st_plan_find(plan, linear);
    return l ? l->input : NULL;
}

static stint_status find(void *context, const char *name, bool required,
                         struct st_section *section) {
    struct unfinished *u = context;
    section->data = planned_input(&u->job->plan, name);
    if (section->data) return STINT_OK;
    ST_TRY(st_package_look(u->job->writer, &u->map, name, section));
    if (section->data || !required) return STINT_OK;
    return st_fail(STINT_E_INTERNAL, "section '%s' is not written yet", name);
}

static bool is_shadowed(void *context, const char *linear) {
    const struct unfinished *u = context;
    return st_plan_find(&u->job->plan, linear)->shadowed;
}

static stint_status bind_on(const struct st_int8_source *source, struct stint_model *m) {
    ST_TRY(st_weights_int8_bind(source, &m->config, &m->arena, &m->int8));
    return st_weight_sets_bind(source, &m->config, true, &m->arena, &m->int8);
}

// Runs twice, as for every arena; the first time also maps all sections that are written.
static stint_status bind(struct unfinished *u, struct stint_model *m) {
    struct st_int8_source source = {.find = find, .context = u, .shadowed = is_shadowed};
    m->arena = st_arena_measure();
    ST_TRY(bind_on(&source, m));
    ST_TRY(st_arena_open(&m->arena, m->arena.used));
    ST_TRY(bind_on(&source, m));
    return st_arena_check(&m->arena, "scales");
}

static void forget_weight(const struct st_int8_weight *w) {
    if (w->panels) st_map_forget(w->panels, st_int8_packed_bytes(w));
    for (uint32_t i = 0; w->set && i < w->set->n_parts; i++) {
        const struct st_nested_weight *n = &w->set->codes[i];
        st_map_forget(n->codes, st_nested_code_bytes(n->n_out, n->n_in, n->stored));
    }
}

// Releases the memory of a layer's weights.
static void forget_layer(const struct stint_model *m, uint32_t i) {
    const struct st_layer_int8 *l = &m->int8.layers[i];
    const struct st_int8_weight *w[4] = {&l->qkv.weight, &l->o.weight};
    for (uint32_t e = 0; e < st_config_blocks(&m->config, i); e++) {
        w[2] = &l->ffn[e].up.weight;
        w[3] = &l->ffn[e].down.weight;
        for (size_t j = 0; j < 4; j++) forget_weight(w[j]);
    }
}

static stint_status predict(struct st_prepare_job *job, size_t n_ids, struct st_predictions *p) {
    struct unfinished u = {.job = job};
    struct stint_model *m = malloc(sizeof *m);
    if (!m) return st_fail(STINT_E_NOMEM, "no memory for a model");
    *m = *job->model; // the config points into the original, which outlives the copy
    if (m->config.tied) m->weights.embed.data = NULL; // as in the package
    stint_status status = bind(&u, m);
    if (status == STINT_OK) status = st_prepare_predict(job, m, n_ids, 0, forget_layer, p);
    st_arena_close(&m->arena);
    st_map_close(&u.map);
    free(m);
    return status;
}

// ---- How much can be pruned

struct search {
    struct st_prepare_job *job;
    size_t n_ids; // of the held-out text, to measure on
    struct st_predictions got;
    double loss; // mean divergence from the source: about the perplexity's relative increase
};

static stint_status measure(struct search *s, double pruned) {
    st_plan_prune(&s->job->plan, pruned);
    ST_TRY(st_prepare_write_columns(s->job));
    ST_TRY(predict(s->job, s->n_ids, &s->got));
    s->loss = expm1(s->got.divergence / (double)s->got.n);
    s->job->summary.pruned = pruned;
    st_log(STINT_LOG_DEBUG, "%.0f %% pruned: divergence %.2f %%", 100 * pruned, 100 * s->loss);
    return STINT_OK;
}

static stint_status use_row_scales(struct search *s, bool row_scales) {
    s->job->plan.row_scales = row_scales;
    return st_plan_rank(&s->job->plan);
}

// The largest share with a small loss, between 0 and `high`.
static stint_status search_share(struct search *s, double high, double max_loss, double *best) {
    double low = 0.0;
    *best = 0.0;
    for (int i = 0; i < SEARCH_STEPS; i++) {
        double middle = (low + high) / 2;
        ST_TRY(measure(s, middle));
        bool enough = s->loss <= max_loss;
        if (enough) *best = middle;
        *(enough ? &low : &high) = middle;
    }
    return STINT_OK;
}

// Shadow execution: if there is no share with a small loss, that with the least loss. The loss of
// 4-bit weights is not counted, as shadow execution cannot reduce it.
static stint_status search_shadow(struct search *s) {
    ST_TRY(measure(s, max_pruned));
    if (s->loss <= loss_allowed) return STINT_OK;
    double loss_of_max = s->loss;
    ST_TRY(measure(s, 0.0));
    bool coarse = s->job->neurons && st_neurons_levels(s->job->neurons);
    double max_loss = coarse ? s->loss + loss_allowed : fmax(loss_allowed, s->loss);
    if (loss_of_max <= max_loss) return measure(s, max_pruned);
    double best;
    ST_TRY(search_share(s, max_pruned, max_loss, &best));
    return measure(s, best);
}

// One term: everywhere, or in as many o as add little to what two terms lose, which is the loss of
// the weights. Where it costs something elsewhere, it costs most for tokens that are rare in a text
// as short as the one held out.
static stint_status search_rows(struct search *s, double two_terms) {
    double best = 1.0, most = two_terms + loss_of_rows, o = st_plan_share_of_o(&s->job->plan);
    ST_TRY(measure(s, best));
    if (s->loss <= most) return STINT_OK;
    best = o;
    ST_TRY(measure(s, best));
    if (s->loss > most) ST_TRY(search_share(s, o, most, &best));
    s->job->summary.pruned = best;
    return STINT_OK;
}

// Shadow execution can be better than two terms, as its columns have scales of their own.
static stint_status search_terms(struct search *s) {
    size_t all = s->n_ids;
    s->n_ids = st_min(all, TRIED_TOKENS);
    ST_TRY(measure(s, 0.0));
    double two_terms = s->loss;
    if (two_terms > loss_allowed) {
        ST_TRY(use_row_scales(s, false));
        ST_TRY(measure(s, 0.0));
        if (s->loss < shadow_gain * two_terms) {
            s->n_ids = all;
            return search_shadow(s);
        }
        ST_TRY(use_row_scales(s, true));
    }
    ST_TRY(search_rows(s, two_terms));
    s->n_ids = all;
    return measure(s, s->job->summary.pruned);
}

static stint_status search_plan(struct search *s) {
    const stint_prepare_options *o = s->job->options;
    if (o->outliers == STINT_OUTLIERS_NONE) return measure(s, 1.0);
    if (o->outliers == STINT_OUTLIERS_SHARE) return measure(s, (double)o->outlier_prune);
    return s->job->plan.row_scales ? search_terms(s) : search_shadow(s);
}

static void report(struct search *s) {
    stint_prepare_summary *out = &s->job->summary;
    out->held_out_tokens = (uint32_t)s->job->exact.n;
    out->float_perplexity = st_predictions_perplexity(&s->job->exact);
    out->perplexity = st_predictions_perplexity(&s->got);
    out->top1_agreement = (double)s->got.n_same / (double)s->got.n;
    out->divergence = fmin(s->got.divergence / (double)s->got.n, 1e300);
    if (s->loss <= loss_alarming) return;
    st_log(
        STINT_LOG_WARNING,
        "on held-out text the package's predictions are %.1f %% worse than the source's: calibrate "
        "on more text, or on text like that which it will read (--calib FILE), or prune less "
        "(--outlier-prune 0)",
        100 * s->loss);
}

stint_status st_prepare_select(struct st_prepare_job *job) {
    size_t n = st_prepare_held_out(job);
    struct search s = {.job = job, .n_ids = n};
    if (n < 2) { // too short a text to hold a part out: shadow execution is safe
        job->summary.pruned = job->options->outliers == STINT_OUTLIERS_NONE
                                  ? 1.0
                                  : (double)job->options->outlier_prune;
        st_plan_prune(&job->plan, job->summary.pruned);
        return st_prepare_write_columns(job);
    }
    job->exact.at = calloc(n, sizeof *job->exact.at);
    s.got.at = calloc(n, sizeof *s.got.at);
    s.got.exact = &job->exact;
    stint_status status = STINT_OK;
    if (!job->exact.at || !s.got.at)
        status = st_fail(STINT_E_NOMEM, "no memory for %zu predictions", n);
    if (status == STINT_OK)
        status = st_calibration_predict(&job->calibration, job->n_observed, &job->exact);
    if (status == STINT_OK) status = search_plan(&s);
    if (status == STINT_OK) report(&s);
    free(s.got.at);
    return status;
}
