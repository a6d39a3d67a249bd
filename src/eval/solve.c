// SPDX-License-Identifier: Apache-2.0
// The static precision scheduler (PMPD, sections 4.1 and 4.3), and the comparison of schedules.
#include "eval/quality.h"
#include "eval/schedule_run.h"
#include "session/precision/schedule.h"

#include "base/random.h"
#include "base/size.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    PROMPT_TOKENS = 2048,
    MAX_POINTS = 256,
    MAX_SCHEDULES = 16,
    ITEMS_BEFORE_PRUNING = 16,
};
static const double certain = 3.0; // standard errors

enum rule { BY_PRECISION, BY_LEARNED, AT_RANDOM, IN_TURN, IN_PART };

// A candidate: how precisions are selected.
struct point {
    stint_schedule_point out;
    enum rule rule;
    struct st_precision_schedule schedule;
    unsigned part; // of three, for IN_PART
    struct st_quality quality;
    bool dropped;
};

struct solver {
    struct st_schedule_run run;
    enum st_quality_metric metric;
    struct st_items items;
    char **own;        // [items] the answers of INT8, for ST_AGREEMENT
    double *reference; // [items] their scores
    struct st_fork fork;
    struct point points[MAX_POINTS]; // 0: INT8 throughout, the reference
    size_t n_points, from;           // points[from, n_points) are being tried
    bool too_many;
};

static struct point *add_point(struct solver *s, const char *name, enum rule rule,
                               const stint_precision *precision) {
    if (s->n_points == MAX_POINTS) {
        s->too_many = true;
        return NULL;
    }
    struct point *p = &s->points[s->n_points++];
    *p = (struct point){.rule = rule};
    p->out.name = name;
    p->out.precision = *precision;
    p->schedule.precision = *precision;
    if (rule != BY_PRECISION) p->out.precision.n_steps = 0;
    return p;
}

// ---- One item

static void fill_bits(struct solver *s, const struct point *p, size_t item) {
    uint8_t *bits = s->fork.wanted;
    size_t n = s->run.n_tokens, third = st_max(1, n / 3);
    double draw = st_random_draw(s->run.options.seed, item);
    size_t start = (size_t)(draw * s->run.n_candidates) * n / (s->run.n_candidates - 1);
    for (size_t i = 0; i < n; i++) {
        bool high = p->rule == AT_RANDOM ? i < start
                    : p->rule == IN_TURN ? i % 2 == 0
                                         : st_min(i / third, 2) == p->part;
        bits[i] = (uint8_t)(high ? s->run.high : s->run.low);
    }
}

static stint_status answer(struct solver *s, struct point *p, size_t item) {
    stint_precision precision = p->schedule.precision;
    if (p->rule == BY_LEARNED)
        st_learned_select(p->schedule.learned, s->fork.session, 0, &precision);
    if (p->rule == BY_PRECISION || p->rule == BY_LEARNED)
        return st_fork_write_by(&s->fork, &precision);
    fill_bits(s, p, item);
    return st_fork_write(&s->fork, s->fork.wanted);
}

// A learned scheduler needs the state after the prompt, before the first step.
static stint_status read_prompt(struct solver *s, const struct st_item *item, unsigned *held,
                                unsigned bits) {
    if (*held == bits) return STINT_OK;
    *held = bits;
    return st_fork_prompt_text(&s->fork, item->context[0], bits);
}

// True if its difference to the reference certainly exceeds what is allowed.
static bool is_hopeless(const struct solver *s, const struct point *p) {
    const struct st_mean *reference = &s->points->quality.mean, *less = &p->quality.less;
    if (s->metric == ST_BLEU || p->rule != BY_PRECISION || less->n < ITEMS_BEFORE_PRUNING)
        return false;
    double allowed = s->run.epsilon * st_mean_value(reference);
    return st_mean_value(less) - certain * st_mean_error(less) > allowed;
}

// Runs all points that are being tried on one item; each needs the reference.
static stint_status run_item(struct solver *s, size_t i, bool prune) {
    const struct st_item *item = &s->items.items[i];
    unsigned held = 0;
    for (size_t j = s->from; j < s->n_points; j++) {
        struct point *p = &s->points[j];
        if (p->dropped) continue;
        if (p->rule == BY_LEARNED) held = 0;
        ST_TRY(read_prompt(s, item, &held, p->schedule.precision.prefill));
        ST_TRY(answer(s, p, i));
        bool agreement = s->metric == ST_AGREEMENT;
        if (agreement && j == 0) s->own[i] = strdup(s->fork.text);
        if (agreement && !s->own[i]) return st_fail(STINT_E_NOMEM, "no memory for an answer");
        char *const *expected = agreement ? &s->own[i] : item->ending;
        ST_TRY(st_quality_add(&p->quality, s->metric, &s->fork, expected,
                              agreement ? 1 : item->n_choices, s->reference[i]));
        if (j == 0) s->reference[i] = p->quality.last;
        p->dropped = prune && j && is_hopeless(s, p);
        ST_TRY(st_schedule_run_step(&s->run, "answering"));
    }
    return STINT_OK;
}

static void tell(struct solver *s, struct point *p) {
    p->out.quality = st_quality_value(&p->quality, s->metric);
    p->out.average_bits = st_quality_bits(&p->quality);
    p->out.items = (uint64_t)p->quality.mean.n;
    if (s->run.options.point) s->run.options.point(s->run.options.context, &p->out);
}

static stint_status try_points(struct solver *s, bool prune) {
    s->run.total = s->run.done + (s->n_points - s->from) * s->items.n;
    for (size_t i = 0; i < s->items.n; i++) ST_TRY(run_item(s, i, prune));
    for (size_t j = s->from; j < s->n_points; j++) tell(s, &s->points[j]);
    s->from = s->n_points;
    return STINT_OK;
}

static bool is_good(const struct solver *s, const struct point *p) {
    double reference = st_quality_value(&s->points->quality, s->metric);
    return !p->dropped &&
           st_quality_value(&p->quality, s->metric) >= reference * (1.0 - s->run.epsilon);
}

// ---- Open and close

static stint_status open_solver(struct solver *s) {
    const stint_schedule_options *o = &s->run.options;
    if (s->run.n_candidates < 2 || s->run.n_candidates > 16 || s->run.n_tokens < 2 ||
        s->run.n_tokens > 4096)
        return st_fail(STINT_E_ARG, "candidates %u, tokens %u: expected 2 to 16 and 2 to 4096",
                       s->run.n_candidates, s->run.n_tokens);
    ST_TRY(st_quality_find(o->metric, &s->metric));
    ST_TRY(st_items_read_prompts(o->data, o->limit, &s->items));
    if (s->items.n == 0) return st_fail(STINT_E_FORMAT, "%s: holds no items", o->data);
    s->own = calloc(s->items.n, sizeof *s->own);
    s->reference = calloc(s->items.n, sizeof *s->reference);
    if (!s->own || !s->reference)
        return st_fail(STINT_E_NOMEM, "no memory for %zu answers", s->items.n);
    ST_TRY(st_fork_open(s->run.model, o->session, PROMPT_TOKENS, s->run.n_tokens, &s->fork));
    s->fork.line = s->metric != ST_AGREEMENT;
    const stint_precision int8 = st_precision_uniform(ST_PRECISION_INT8, ST_PRECISION_INT8);
    add_point(s, "int8", BY_PRECISION, &int8);
    return STINT_OK;
}

static void close_solver(struct solver *s) {
    for (size_t i = 0; i < s->n_points; i++) st_schedule_close(&s->points[i].schedule);
    st_fork_close(&s->fork);
    for (size_t i = 0; i < s->items.n && s->own; i++) free(s->own[i]);
    free(s->own);
    free(s->reference);
    st_items_free(&s->items);
    free(s);
}

static stint_status run_solver(const struct stint_model *model,
                               const stint_schedule_options *options, stint_schedule_result *result,
                               stint_status (*fn)(struct solver *s, stint_schedule_result *out)) {
    struct st_schedule_run run;
    stint_schedule_result out = {0};
    ST_TRY(st_schedule_run_begin(model, options, result, &run));
    struct solver *s = calloc(1, sizeof *s);
    if (!s) return st_fail(STINT_E_NOMEM, "no memory for a schedule");
    s->run = run;
    stint_status status = open_solver(s);
    if (status == STINT_OK) status = fn(s, &out);
    out.items = s->items.n;
    close_solver(s);
    if (status == STINT_OK) st_schedule_run_finish(&run, &out, result);
    return status;
}

// ---- Solve

// Pairs of precisions for the prompt and for all steps after it. INT8 is the first one for prompts,
// as it is the fastest there; fewer bits are tried to show what they cost.
static void add_pairs(struct solver *s) {
    const struct st_nested_range *r = &s->run.model->nested;
    for (unsigned bits = r->high; bits >= r->low; bits--) {
        stint_precision p = st_precision_uniform(ST_PRECISION_INT8, bits);
        add_point(s, "uniform", BY_PRECISION, &p);
    }
    for (unsigned bits = r->high; bits >= r->low; bits--) {
        stint_precision p = st_precision_uniform(bits, bits);
        add_point(s, "prompt too", BY_PRECISION, &p);
    }
}

// Adds all schedules that begin at precision p->steps[0] and reach each lower precision at a
// candidate step. The next precision to place is `bits`, at candidate `min` or later.
static void add_schedules(struct solver *s, const stint_precision *p, unsigned bits, unsigned min) {
    if (bits < s->run.model->nested.low) {
        if (p->n_steps > 1) add_point(s, "schedule", BY_PRECISION, p);
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
static void drop_others(struct solver *s, unsigned first) {
    size_t n = s->from;
    for (size_t i = s->from; i < s->n_points; i++)
        if (s->points[i].out.precision.steps[0].bits == first) s->points[n++] = s->points[i];
    s->n_points = n;
}

static stint_status solve(struct solver *s, stint_schedule_result *out) {
    add_pairs(s);
    ST_TRY(try_points(s, true));
    const struct point *best = s->points;
    size_t n_uniform = s->run.model->nested.high - s->run.model->nested.low + 1u;
    for (size_t i = 1; i <= n_uniform; i++)
        if (is_good(s, &s->points[i])) best = &s->points[i];
    stint_precision start = best->schedule.precision;
    unsigned first = start.steps[0].bits;
    add_schedules(s, &start,
                  first > s->run.model->nested.high ? s->run.model->nested.high : first - 1, 0);
    if (s->too_many)
        return st_fail(STINT_E_ARG,
                       "more than %d schedules of %u candidates and precisions %u to %u: try fewer "
                       "candidates",
                       MAX_POINTS, s->run.n_candidates, s->run.model->nested.low, first);
    drop_others(s, first);
    ST_TRY(try_points(s, true));
    for (size_t i = 1; i < s->n_points; i++) {
        const struct point *p = &s->points[i];
        bool int8_prompt = p->schedule.precision.prefill == ST_PRECISION_INT8;
        if (int8_prompt && is_good(s, p) && p->out.average_bits < best->out.average_bits) best = p;
    }
    out->selected = best->schedule.precision;
    out->quality = best->out.quality;
    out->average_bits = best->out.average_bits;
    out->reference = s->points->out.quality;
    if (!s->run.options.output) return STINT_OK;
    return st_schedule_write(s->run.model, &out->selected, s->run.options.output);
}

stint_status stint_schedule_solve(const stint_model *model, const stint_schedule_options *options,
                                  stint_schedule_result *result) {
    return run_solver(model, options, result, solve);
}

// ---- Compare

static stint_status add_given(struct solver *s) {
    for (size_t i = 0; i < s->run.options.n_schedules; i++) {
        struct st_precision_schedule schedule = {0};
        const char *name = s->run.options.schedules[i];
        if (i == MAX_SCHEDULES) return st_fail(STINT_E_ARG, "at most %d schedules", MAX_SCHEDULES);
        ST_TRY(st_schedule_load(s->run.model, name, &schedule));
        struct point *p =
            add_point(s, name, schedule.learned ? BY_LEARNED : BY_PRECISION, &schedule.precision);
        p->schedule = schedule;
    }
    return STINT_OK;
}

static stint_status compare(struct solver *s, stint_schedule_result *out) {
    stint_precision p = st_precision_uniform(ST_PRECISION_INT8, s->run.high);
    ST_TRY(st_precision_check(s->run.model, &p));
    if (s->run.low > s->run.high)
        return st_fail(STINT_E_ARG, "low %u is above high %u", s->run.low, s->run.high);
    p.steps[0].bits = s->run.low;
    ST_TRY(st_precision_check(s->run.model, &p));
    for (unsigned bits = s->run.model->nested.high; bits >= s->run.model->nested.low; bits--) {
        p.steps[0].bits = bits;
        add_point(s, "uniform", BY_PRECISION, &p);
    }
    ST_TRY(add_given(s));
    static const char *const parts[] = {"high first", "high in the middle", "high last"};
    add_point(s, "random", AT_RANDOM, &p);
    add_point(s, "in turn", IN_TURN, &p);
    for (unsigned i = 0; i < 3; i++) add_point(s, parts[i], IN_PART, &p)->part = i;
    ST_TRY(try_points(s, false));
    out->reference = s->points->out.quality;
    return STINT_OK;
}

stint_status stint_schedule_compare(const stint_model *model, const stint_schedule_options *options,
                                    stint_schedule_result *result) {
    return run_solver(model, options, result, compare);
}
