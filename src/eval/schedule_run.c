// SPDX-License-Identifier: Apache-2.0
#include "eval/schedule_run.h"

#include "base/clock.h"
#include "base/size.h"
#include "session/precision/signal.h"

#include <string.h>

enum { DEFAULT_TOKENS = 64, DEFAULT_CANDIDATES = 4 };
static const double default_epsilon = 0.01;

static stint_status read_minimize(const char *name, bool *by_bits) {
    *by_bits = name && strcmp(name, "bits") == 0;
    if (!name || *by_bits || strcmp(name, "time") == 0) return STINT_OK;
    return st_fail(STINT_E_ARG, "minimize '%.64s': expected time or bits", name);
}

stint_status st_schedule_run_begin(const struct stint_model *model,
                                   const stint_schedule_options *options,
                                   const stint_schedule_result *result,
                                   struct st_schedule_run *run) {
    if (!model || !options || !result || result->size == 0)
        return st_fail(STINT_E_ARG, "model, options and result may not be NULL");
    *run = (struct st_schedule_run){.model = model, .begun = st_now_ns()};
    stint_schedule_options *o = &run->options;
    memcpy(o, options, st_min(options->size, sizeof *o));
    if ((unsigned)o->signal >= ST_N_SIGNALS)
        return st_fail(STINT_E_ARG, "signal %u is not known", (unsigned)o->signal);
    if (!o->data) return st_fail(STINT_E_ARG, "no data: prompts, or a text to learn from");
    run->n_tokens = o->n_tokens ? o->n_tokens : DEFAULT_TOKENS;
    run->n_candidates = o->n_candidates ? o->n_candidates : DEFAULT_CANDIDATES;
    run->epsilon = o->epsilon > 0.0 ? o->epsilon : default_epsilon;
    run->high = o->high ? o->high : model->nested.high;
    run->low = o->low ? o->low : (unsigned)st_max(model->nested.low, run->high - 1u);
    return read_minimize(o->minimize, &run->by_bits);
}

stint_status st_schedule_run_step(struct st_schedule_run *run, const char *what) {
    const stint_schedule_options *o = &run->options;
    run->done++;
    if (o->progress) o->progress(o->context, what, run->done, run->total);
    return o->canceled && o->canceled(o->context) ? st_fail(STINT_E_CANCELED, "canceled")
                                                  : STINT_OK;
}

void st_schedule_run_finish(const struct st_schedule_run *run, stint_schedule_result *out,
                            stint_schedule_result *result) {
    out->seconds = (double)(st_now_ns() - run->begun) * 1e-9;
    out->size = result->size;
    memcpy(result, out, st_min(result->size, sizeof *out));
}
