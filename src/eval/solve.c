// SPDX-License-Identifier: Apache-2.0
// The static precision scheduler (PMPD, sections 4.1 and 4.3): first the precisions of the prompt
// and of the steps, as a grid; then the steps at which lower ones begin, or, with a signal, the
// thresholds above which a token gets more bits.
#include "eval/schedule_points.h"
#include "session/precision/signal.h"

#include "base/buffer.h"
#include "base/size.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES = 3 }; // precisions among which a signal selects

// ---- What is tried

// INT8, then the nested precisions from the highest on; 0 behind the last one.
static unsigned precision_of(const struct st_points *s, unsigned i) {
    const struct st_nested_range *r = &s->run.model->nested;
    if (i == 0) return ST_PRECISION_INT8;
    return i <= r->high - r->low + 1u ? r->high + 1u - i : 0;
}

// Every precision of the prompt with every one of the steps; the first pair is INT8 throughout.
// Where the caller says at which precision steps begin, only that one is tried, behind INT8.
static void add_pairs(struct st_points *s) {
    unsigned prefill, bits, only = s->run.options.high;
    for (unsigned i = 0; (prefill = precision_of(s, i)) != 0; i++)
        for (unsigned k = 0; (bits = precision_of(s, k)) != 0; k++) {
            stint_precision p = st_precision_uniform(prefill, bits);
            bool known = s->points->rule == ST_BY_PRECISION && i == 0 && k == 0;
            if (only && (prefill != ST_PRECISION_INT8 || (bits != only && k > 0))) continue;
            if (!known) st_points_add(s, "pair", ST_BY_PRECISION, &p);
        }
}

// Adds all schedules that begin at precision p->steps[0] and reach each lower precision at a
// candidate step. The next precision to place is `bits`, at candidate `min` or later.
static void add_schedules(struct st_points *s, const stint_precision *p, unsigned bits,
                          unsigned min) {
    if (bits < s->run.model->nested.low) {
        if (p->n_steps > 1) st_points_add(s, "schedule", ST_BY_PRECISION, p);
        return;
    }
    for (unsigned c = min; c < s->run.n_candidates; c++) {
        stint_precision next = *p;
        uint32_t start = (uint32_t)((uint64_t)c * s->run.n_tokens / (s->run.n_candidates - 1));
        if (c + 1 < s->run.n_candidates) { // at the end: neither it nor lower ones are used
            // A precision that begins at the same step as the next one is skipped.
            if (next.steps[next.n_steps - 1].start == start) next.n_steps--;
            next.steps[next.n_steps].bits = bits;
            next.steps[next.n_steps++].start = start;
            add_schedules(s, &next, bits - 1, c);
        } else {
            add_schedules(s, &next, s->run.model->nested.low - 1u, c);
        }
    }
}

// Drops new schedules that do not begin at precision `first`: they belong to another allocation.
static void drop_others(struct st_points *s, unsigned first) {
    size_t n = s->from;
    for (size_t i = s->from; i < s->n; i++)
        if (s->points[i].out.precision.steps[0].bits == first) s->points[n++] = s->points[i];
    s->n = n;
}

// ---- Thresholds

static int falling(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

// The signals of all steps that a point takes, in falling order. *values is the caller's.
static stint_status read_signals(struct st_points *s, struct st_point *p, float **values,
                                 size_t *n) {
    *n = 0;
    *values = calloc(s->items.n * s->run.n_tokens, sizeof **values);
    if (!*values) return st_fail(STINT_E_NOMEM, "no memory for thresholds");
    s->fork.watches = true;
    for (size_t i = 0; i < s->items.n; i++) {
        ST_TRY(st_points_answer(s, p, i));
        const float *signals = s->fork.signals[s->run.options.signal];
        for (size_t k = 0; k < st_fork_steps(&s->fork); k++) (*values)[(*n)++] = signals[k];
    }
    qsort(*values, *n, sizeof **values, falling);
    return STINT_OK;
}

// Adds a schedule in which the most uncertain [0, parts[0]) of N - 1 parts of all steps get the
// first precision, those up to parts[1] the second one, and the others the third.
static void add_thresholds(struct st_points *s, const stint_precision *start, const float *values,
                           size_t n, const unsigned parts[CLASSES]) {
    stint_precision p = *start;
    unsigned bits = start->steps[0].bits, from = 0;
    p.signal = s->run.options.signal;
    p.n_steps = 0;
    for (unsigned i = 0; i < CLASSES; i++) {
        if (parts[i] > from) {
            size_t last = (size_t)parts[i] * n / (s->run.n_candidates - 1);
            if (from > 0) p.n_steps++;
            p.steps[p.n_steps].bits = bits;
            p.steps[p.n_steps].start = 0;
            p.thresholds[p.n_steps] = last > 0 ? values[last - 1] : values[0];
            from = parts[i];
        }
        bits = st_precision_below(s->run.model, ST_PRECISION_INT8, bits);
    }
    p.thresholds[p.n_steps++] = 0.0f;
    if (p.n_steps > 1) st_points_add(s, "signal", ST_BY_PRECISION, &p);
}

static stint_status add_signals(struct st_points *s, struct st_point *best) {
    stint_precision start = best->schedule.precision;
    unsigned below = st_precision_below(s->run.model, ST_PRECISION_INT8, start.steps[0].bits);
    unsigned third = below ? st_precision_below(s->run.model, ST_PRECISION_INT8, below) : 0;
    unsigned all = s->run.n_candidates - 1;
    float *values = NULL;
    size_t n;
    if (!below) return STINT_OK;
    stint_status status = read_signals(s, best, &values, &n);
    for (unsigned i = 0; i <= all && status == STINT_OK && n > 0; i++)
        for (unsigned k = third ? i : all; k <= all; k++)
            add_thresholds(s, &start, values, n, (const unsigned[CLASSES]){i, k, all});
    free(values);
    return status;
}

// ---- What is selected

static double cost_of(const struct st_points *s, const struct st_point *p) {
    const stint_precision *precision = &p->schedule.precision;
    if (!s->run.by_bits) return p->out.seconds;
    return p->out.average_bits + (double)precision->prefill * 1e-6; // the prompt's decide ties
}

// The cheapest good one; INT8 throughout if there is none.
static struct st_point *cheapest(struct st_points *s) {
    size_t first = s->points->rule == ST_BY_REFERENCE ? 1 : 0;
    struct st_point *best = &s->points[first];
    bool good = st_point_is_good(s, best);
    for (size_t i = first + 1; i < s->n; i++) {
        struct st_point *p = &s->points[i];
        if (!st_point_is_good(s, p)) continue;
        if (good && cost_of(s, p) >= cost_of(s, best)) continue;
        best = p;
        good = true;
    }
    return best;
}

static stint_status add_lower(struct st_points *s, struct st_point *best) {
    stint_precision start = best->schedule.precision;
    unsigned first = start.steps[0].bits, high = s->run.model->nested.high;
    if (s->run.options.signal != STINT_SIGNAL_NONE) return add_signals(s, best);
    add_schedules(s, &start, first > high ? high : first - 1, 0);
    if (s->too_many)
        return st_fail(STINT_E_ARG,
                       "more than %d schedules of %u candidates and precisions %u to %u: try fewer "
                       "candidates",
                       ST_POINTS, s->run.n_candidates, s->run.model->nested.low, first);
    drop_others(s, first);
    return STINT_OK;
}

static stint_status solve(struct st_points *s, stint_schedule_result *out) {
    stint_precision begun = st_precision_uniform(ST_PRECISION_INT8, s->run.high);
    if (s->run.options.high) ST_TRY(st_precision_check(s->run.model, &begun));
    add_pairs(s);
    ST_TRY(st_points_try(s, true));
    ST_TRY(add_lower(s, s->run.options.high ? &s->points[s->n - 1] : cheapest(s)));
    ST_TRY(st_points_try(s, true));
    const struct st_point *best = cheapest(s);
    out->selected = best->schedule.precision;
    out->quality = best->out.quality;
    out->average_bits = best->out.average_bits;
    out->answer_seconds = best->out.seconds;
    out->reference = s->points->out.quality;
    if (!s->run.options.output) return STINT_OK;
    return st_schedule_write(s->run.model, &out->selected, s->run.options.output);
}

stint_status stint_schedule_solve(const stint_model *model, const stint_schedule_options *options,
                                  stint_schedule_result *result) {
    return st_points_run(model, options, result, solve);
}
