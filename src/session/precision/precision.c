// SPDX-License-Identifier: Apache-2.0
#include "session/precision/precision.h"

#include "base/size.h"
#include "session/precision/signal.h"

static stint_status check_bits(const struct stint_model *m, uint32_t bits) {
    if (st_nested_has(&m->nested, bits)) return STINT_OK;
    if (bits == ST_PRECISION_INT8 && (m->int8.layers || m->nested.high)) return STINT_OK;
    if (!m->nested.high)
        return st_fail(STINT_E_UNSUPPORTED,
                       "precision %u: this model has no nested weights; make a package that has "
                       "them with 'stint prepare SRC -o OUT.stint --bits 2..4'",
                       bits);
    return st_fail(STINT_E_ARG, "precision %u: this package has %u to %u bits, and 8 for %s", bits,
                   m->nested.low, m->nested.high,
                   m->int8.layers ? "its INT8 weights" : "the checkpoint's floats");
}

static stint_status check_signal(const stint_precision *p) {
    if (p->signal == STINT_SIGNAL_NONE) return STINT_OK;
    if ((unsigned)p->signal >= ST_N_SIGNALS)
        return st_fail(STINT_E_ARG, "signal %u is not known", (unsigned)p->signal);
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].start != 0)
            return st_fail(STINT_E_ARG,
                           "precision %u starts at step %u: with a signal all start at 0",
                           p->steps[i].bits, p->steps[i].start);
    for (uint32_t i = 0; i + 1 < p->n_steps; i++)
        if (!(p->thresholds[i] >= 0.0f) || (i && p->thresholds[i] > p->thresholds[i - 1]))
            return st_fail(STINT_E_ARG, "threshold %u is %g: they fall, and none is negative", i,
                           (double)p->thresholds[i]);
    return STINT_OK;
}

stint_status st_precision_check(const struct stint_model *model, const stint_precision *p) {
    if (p->n_steps == 0 || p->n_steps > STINT_PRECISION_STEPS)
        return st_fail(STINT_E_ARG, "a schedule has 1 to %d steps, not %u", STINT_PRECISION_STEPS,
                       p->n_steps);
    ST_TRY(check_bits(model, p->prefill));
    for (uint32_t i = 0; i < p->n_steps; i++) {
        ST_TRY(check_bits(model, p->steps[i].bits));
        if (i == 0 && p->steps[0].start != 0)
            return st_fail(STINT_E_ARG, "the first precision starts at step %u, not 0",
                           p->steps[0].start);
        if (i && p->steps[i].start < p->steps[i - 1].start)
            return st_fail(STINT_E_ARG, "precision %u starts at step %u, before the one above it",
                           p->steps[i].bits, p->steps[i].start);
        if (i && p->steps[i].bits > p->steps[i - 1].bits)
            return st_fail(STINT_E_ARG, "precision rises from %u to %u: it may only fall",
                           p->steps[i - 1].bits, p->steps[i].bits);
    }
    return check_signal(p);
}

static unsigned at_signal(const stint_precision *p, float signal) {
    uint32_t i = 0;
    while (i + 1 < p->n_steps && !(signal >= p->thresholds[i])) i++;
    return p->steps[i].bits;
}

unsigned st_precision_at(const stint_precision *p, size_t step, float signal) {
    unsigned bits = p->steps[0].bits;
    if (p->signal != STINT_SIGNAL_NONE) return at_signal(p, signal);
    for (uint32_t i = 1; i < p->n_steps && p->steps[i].start <= step; i++) bits = p->steps[i].bits;
    return bits;
}

unsigned st_precision_below(const struct stint_model *model, unsigned most, unsigned bits) {
    unsigned below = (unsigned)st_min(most, bits ? bits - 1 : 0);
    below = (unsigned)st_min(below, model->nested.high);
    return st_nested_has(&model->nested, below) ? below : 0;
}

double st_draft_head_saves(const struct stint_model *model, unsigned bits) {
    const struct st_config *c = &model->config;
    double left_out = (double)(c->vocab - st_draft_head_rows(c)) * (double)c->hidden;
    return left_out * bits / 8.0 / (double)stint_model_bytes_per_token(model, bits);
}

static void need(const struct stint_model *model, uint32_t bits, bool step,
                 struct st_needs *needs) {
    if (st_nested_has(&model->nested, bits))
        needs->precisions |= 1u << bits;
    else
        needs->int8_steps |= step;
}

void st_precision_needs(const struct stint_model *model, const stint_precision *p,
                        struct st_needs *needs) {
    need(model, p->prefill, false, needs);
    for (uint32_t i = 0; i < p->n_steps; i++) need(model, p->steps[i].bits, true, needs);
}

void st_precision_needs_of_drafts(const struct stint_model *model, const stint_precision *p,
                                  unsigned most, struct st_needs *needs) {
    const unsigned others = needs->precisions;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        unsigned bits = st_precision_below(model, most, p->steps[i].bits);
        if (bits) need(model, bits, true, needs);
    }
    needs->drafts = needs->precisions & ~others;
}
