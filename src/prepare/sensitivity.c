// SPDX-License-Identifier: Apache-2.0
#include "prepare/sensitivity.h"

#include "base/size.h"
#include "prepare/rounding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOKENS = 96,      // of the text, measured
    BANDS = 10,       // of layers, at most: the first and the last one are bands of their own
    ROUNDED_BITS = 3, // of what is measured
    STRIDE = 8,       // of so many rows one shows what rounding to a number of bits costs
};

// A loss that is not seen in so short a text.
static const double least_loss = 1e-9;

// Linears that are measured together.
enum kind { KIND_QK, KIND_V, KIND_O, KIND_UP, KIND_DOWN, KIND_HEAD, N_KINDS };

struct linear {
    struct st_linear_weight *weight, source; // where the model has it, and what it has there
    struct st_linear_id id;
    enum kind kind;
    float *importance;                   // [n_in], owned
    uint16_t *rounded;                   // what the model has meanwhile, in F16; or NULL
    double error[ST_NESTED_HIGHEST + 1]; // of rounding to [b] bits, as a share of its energy
};

struct survey {
    struct st_prepare_job *job;
    struct st_pool *pool;
    struct st_rounder *rounder;
    struct linear *linears; // [n]
    uint32_t n;
    size_t n_tokens;
    struct st_calibration c;
    float *starts; // [bands + 1, states, n_tokens, hidden] what comes into each band, and into the
                   // head
    struct st_predictions exact, got;
};

// ---- Bands of layers

static uint32_t n_bands(const struct survey *s) {
    return (uint32_t)st_min(BANDS, s->job->model->config.n_layers);
}

// The first layer of a band.
static uint32_t band_start(const struct survey *s, uint32_t band) {
    uint32_t n = s->job->model->config.n_layers, bands = n_bands(s);
    if (band == 0 || band >= bands - 1) return band == 0 ? 0 : band == bands ? n : n - 1;
    return 1 + (uint32_t)((uint64_t)(n - 2) * (band - 1) / (bands - 2));
}

static size_t hidden_floats(const struct survey *s) {
    return st_calibration_floats(s->job->model, s->n_tokens);
}

static float *start_of(const struct survey *s, uint32_t band) {
    return s->starts + band * hidden_floats(s);
}

// ---- The linears

static enum kind kind_of(const struct st_nested_place *p) {
    static const enum kind kinds[ST_INT8_ROLES] = {[ST_INT8_QKV] = KIND_QK,
                                                   [ST_INT8_O] = KIND_O,
                                                   [ST_INT8_UP] = KIND_UP,
                                                   [ST_INT8_DOWN] = KIND_DOWN,
                                                   [ST_INT8_HEAD] = KIND_HEAD};
    return p->id.role == ST_INT8_QKV && p->part == 2 ? KIND_V : kinds[p->id.role];
}

static stint_status count(void *context, const struct st_nested_place *place) {
    struct survey *s = context;
    s->n = place->index + 1;
    return STINT_OK;
}

static stint_status note(void *context, const struct st_nested_place *p) {
    struct survey *s = context;
    struct st_linear_weight *weight = (struct st_linear_weight *)(uintptr_t)p->linear;
    float *importance = malloc(weight->n_in * sizeof *importance);
    s->linears[p->index] = (struct linear){.weight = weight,
                                           .source = *weight,
                                           .id = p->id,
                                           .kind = kind_of(p),
                                           .importance = importance};
    return importance ? STINT_OK : st_fail(STINT_E_NOMEM, "no memory to measure '%s'", p->name);
}

static stint_status for_each(struct survey *s, st_nested_place_fn *fn) {
    const stint_model *m = s->job->model;
    return st_weights_nested_each(&m->config, &m->weights, !s->job->neurons, fn, s);
}

static bool is_in(const struct linear *l, bool head, uint32_t layer) {
    return head ? l->kind == KIND_HEAD : l->kind != KIND_HEAD && l->id.layer == layer;
}

static unsigned most_bits(const struct survey *s) {
    return st_allocation_most(s->job->options->bits_high);
}

// ---- Rounded ones in their places

static stint_status put_rounded(struct survey *s, struct linear *l) {
    size_t n_in = l->source.n_in;
    l->rounded = malloc(l->source.n_out * n_in * sizeof *l->rounded);
    if (!l->rounded) return st_fail(STINT_E_NOMEM, "no memory to measure few bits");
    st_round_linear(s->rounder, &l->source, l->importance, ROUNDED_BITS, 1, l->rounded);
    l->weight->data = l->rounded;
    l->weight->dtype = ST_DTYPE_F16;
    l->weight->scale = 0.0f; // it is in them
    l->weight->row_bytes = n_in * sizeof *l->rounded;
    return STINT_OK;
}

static void put_back(struct linear *l) {
    if (!l->rounded) return;
    *l->weight = l->source;
    free(l->rounded);
    l->rounded = NULL;
}

static stint_status put_kind(struct survey *s, enum kind kind, bool head, uint32_t layer) {
    for (uint32_t i = 0; i < s->n; i++)
        if (s->linears[i].kind == kind && is_in(&s->linears[i], head, layer))
            ST_TRY(put_rounded(s, &s->linears[i]));
    return STINT_OK;
}

static void put_all_back(struct survey *s) {
    for (uint32_t i = 0; i < s->n; i++) put_back(&s->linears[i]);
}

// ---- Runs

// Of the linears that the last run observed.
static void measure_errors(struct survey *s, bool head, uint32_t layer) {
    for (uint32_t i = 0; i < s->n; i++) {
        struct linear *l = &s->linears[i];
        if (!is_in(l, head, layer)) continue;
        st_nested_importance(st_calibration_stats(&s->c, l->id.role, l->id.expert), l->importance);
        for (unsigned b = ST_NESTED_LOWEST; b <= most_bits(s); b++)
            l->error[b] = st_round_linear(s->rounder, &l->source, l->importance, b, STRIDE, NULL);
        st_checkpoint_forget(&s->job->model->checkpoint, l->source.data,
                             l->source.n_out * l->source.row_bytes);
    }
}

// Runs the layers from a band on with linears of that kind rounded in the band; N_KINDS: in float.
static stint_status run_layers(struct survey *s, enum kind kind, uint32_t band) {
    uint32_t n_layers = s->job->model->config.n_layers;
    for (uint32_t i = band_start(s, band); i < n_layers; i++) {
        if (i < band_start(s, band + 1)) ST_TRY(put_kind(s, kind, false, i));
        ST_TRY(st_calibration_layer(&s->c, i));
        put_all_back(s);
    }
    return STINT_OK;
}

static stint_status run_in_float(struct survey *s) {
    for (uint32_t band = 0; band < n_bands(s); band++) {
        memcpy(start_of(s, band), s->c.hidden, hidden_floats(s) * sizeof(float));
        for (uint32_t i = band_start(s, band); i < band_start(s, band + 1); i++) {
            ST_TRY(st_calibration_layer(&s->c, i));
            measure_errors(s, false, i);
        }
    }
    memcpy(start_of(s, n_bands(s)), s->c.hidden, hidden_floats(s) * sizeof(float));
    ST_TRY(st_calibration_head(&s->c));
    measure_errors(s, true, 0);
    return st_calibration_predict(&s->c, 0, &s->exact);
}

// The divergence with linears of a kind rounded in a band; the head has a band of its own.
static stint_status run_rounded(struct survey *s, enum kind kind, uint32_t band, double *loss) {
    memcpy(s->c.hidden, start_of(s, band), hidden_floats(s) * sizeof(float));
    ST_TRY(run_layers(s, kind, band));
    ST_TRY(put_kind(s, kind, true, 0));
    ST_TRY(st_calibration_predict(&s->c, 0, &s->got));
    put_all_back(s);
    *loss = s->got.n ? fmax(s->got.divergence / (double)s->got.n, least_loss) : 1.0;
    return STINT_OK;
}

// ---- Losses

static bool is_of(const struct survey *s, const struct linear *l, enum kind kind, uint32_t band) {
    if (l->kind != kind || kind == KIND_HEAD) return l->kind == kind;
    return l->id.layer >= band_start(s, band) && l->id.layer < band_start(s, band + 1);
}

// Shares the loss of linears that were measured together out: it grows with their errors.
static void share_out(const struct survey *s, enum kind kind, uint32_t band, double loss,
                      struct st_allocation *out) {
    double all = 0.0;
    for (uint32_t i = 0; i < s->n; i++)
        if (is_of(s, &s->linears[i], kind, band)) all += s->linears[i].error[ROUNDED_BITS];
    for (uint32_t i = 0; i < s->n; i++) {
        const struct linear *l = &s->linears[i];
        if (!is_of(s, l, kind, band)) continue;
        out[i].n_weights = (uint64_t)l->source.n_out * l->source.n_in;
        for (unsigned b = ST_NESTED_LOWEST; b <= most_bits(s); b++)
            out[i].loss[b] = all > 0.0 ? loss * l->error[b] / all : 0.0;
    }
}

static stint_status measure_all(struct survey *s, struct st_allocation *out) {
    double loss;
    for (enum kind kind = 0; kind < N_KINDS; kind++) {
        bool head = kind == KIND_HEAD;
        for (uint32_t band = head ? n_bands(s) : 0; band < n_bands(s) + head; band++) {
            ST_TRY(run_rounded(s, kind, band, &loss));
            share_out(s, kind, band, loss, out);
        }
    }
    return STINT_OK;
}

static stint_status measure(struct survey *s, struct st_allocation *out) {
    const struct st_prepare_job *job = s->job;
    const struct st_config *config = &job->model->config;
    size_t widest = st_nested_widest(config), tallest = 0;
    ST_TRY(for_each(s, note));
    for (uint32_t i = 0; i < s->n; i++) tallest = st_max(tallest, s->linears[i].source.n_out);
    ST_TRY(st_pool_open(job->options->n_threads, &s->pool));
    ST_TRY(st_rounder_open(tallest, widest, s->pool, &s->rounder));
    s->c.roughly = true; // 3 bits lose hundreds of times as much
    s->c.stop = st_prepare_is_canceled;
    s->c.stop_context = (void *)(uintptr_t)job->options;
    ST_TRY(st_calibration_open(job->model, job->ids.data, s->n_tokens, s->n_tokens,
                               job->options->n_threads, &s->c));
    ST_TRY(run_in_float(s));
    s->c.n_observed = 0;
    s->got.exact = &s->exact;
    return measure_all(s, out);
}

static void close_all(struct survey *s) {
    if (s->linears) put_all_back(s);
    st_calibration_close(&s->c);
    free(s->starts);
    for (uint32_t i = 0; i < s->n && s->linears; i++) free(s->linears[i].importance);
    st_rounder_close(s->rounder);
    st_pool_close(s->pool);
    free(s->linears);
    free(s->exact.at);
    free(s->got.at);
}

stint_status st_sensitivity_measure(struct st_prepare_job *job, struct st_allocation **linears,
                                    uint32_t *n) {
    struct survey s = {.job = job, .n_tokens = st_min(TOKENS, job->n_observed)};
    ST_TRY(for_each(&s, count));
    s.linears = calloc(s.n, sizeof *s.linears);
    s.exact.at = calloc(s.n_tokens, sizeof *s.exact.at);
    s.got.at = calloc(s.n_tokens, sizeof *s.got.at);
    s.starts = malloc((n_bands(&s) + 1) * hidden_floats(&s) * sizeof *s.starts);
    *linears = calloc(s.n, sizeof **linears);
    *n = s.n;
    stint_status status = STINT_OK;
    if (!s.linears || !s.exact.at || !s.got.at || !s.starts || !*linears)
        status = st_fail(STINT_E_NOMEM, "no memory to measure %u linears", s.n);
    if (status == STINT_OK) status = measure(&s, *linears);
    close_all(&s);
    return status;
}
