// SPDX-License-Identifier: Apache-2.0
// The comparison of precision schedules with each other and with simpler ways of selecting.
#include "eval/schedule_points.h"

enum { MAX_SCHEDULES = 16 };

static stint_status add_given(struct st_points *s) {
    for (size_t i = 0; i < s->run.options.n_schedules; i++) {
        struct st_precision_schedule schedule = {0};
        const char *name = s->run.options.schedules[i];
        if (i == MAX_SCHEDULES) return st_fail(STINT_E_ARG, "at most %d schedules", MAX_SCHEDULES);
        ST_TRY(st_schedule_load(s->run.model, name, &schedule));
        struct st_point *p = st_points_add(
            s, name, schedule.learned ? ST_BY_LEARNED : ST_BY_PRECISION, &schedule.precision);
        p->schedule = schedule;
    }
    return STINT_OK;
}

// At all steps: INT8, where it is not the reference, and the nested precisions.
static void add_uniform(struct st_points *s) {
    const struct st_nested_range *r = &s->run.model->nested;
    stint_precision p = st_precision_uniform(ST_PRECISION_INT8, ST_PRECISION_INT8);
    if (s->points->rule == ST_BY_REFERENCE) st_points_add(s, "int8", ST_BY_PRECISION, &p);
    for (unsigned bits = r->high; bits >= r->low; bits--) {
        p.steps[0].bits = bits;
        st_points_add(s, "uniform", ST_BY_PRECISION, &p);
    }
}

static void add_mixed(struct st_points *s) {
    static const char *const parts[] = {"high first", "high in the middle", "high last"};
    const stint_precision p = st_precision_uniform(ST_PRECISION_INT8, s->run.low);
    st_points_add(s, "random", ST_AT_RANDOM, &p);
    st_points_add(s, "random steps", ST_AT_RANDOM_STEPS, &p);
    st_points_add(s, "in turn", ST_IN_TURN, &p);
    for (unsigned i = 0; i < 3; i++) st_points_add(s, parts[i], ST_IN_PART, &p)->part = i;
}

static stint_status compare(struct st_points *s, stint_schedule_result *out) {
    stint_precision p = st_precision_uniform(ST_PRECISION_INT8, s->run.high);
    ST_TRY(st_precision_check(s->run.model, &p));
    if (s->run.low > s->run.high)
        return st_fail(STINT_E_ARG, "low %u is above high %u", s->run.low, s->run.high);
    p.steps[0].bits = s->run.low;
    ST_TRY(st_precision_check(s->run.model, &p));
    if (s->run.options.only && s->run.options.n_schedules == 0)
        return st_fail(STINT_E_ARG, "nothing to compare: no schedules are given");
    s->keeps_scores = true;
    if (!s->run.options.only) add_uniform(s);
    ST_TRY(add_given(s));
    if (!s->run.options.only) add_mixed(s);
    ST_TRY(st_points_try(s, false));
    out->reference = s->points->out.quality;
    return STINT_OK;
}

stint_status stint_schedule_compare(const stint_model *model, const stint_schedule_options *options,
                                    stint_schedule_result *result) {
    return st_points_run(model, options, result, compare);
}
