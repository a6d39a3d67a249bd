// SPDX-License-Identifier: Apache-2.0
#include "session/precision/precision.h"

#include "session/weights/bounded.h"
#include "session/session.h"

#include <string.h>

static stint_status check_bits(const struct stint_model *m, uint32_t bits) {
    if (st_nested_has(&m->nested, bits)) return STINT_OK;
    if (bits == ST_PRECISION_INT8 && m->int8.layers) return STINT_OK;
    if (!m->nested.high)
        return st_fail(STINT_E_UNSUPPORTED,
                       "precision %u: this model has no nested weights; make a package that has "
                       "them with 'stint prepare SRC -o OUT.stint --bits 2..4'",
                       bits);
    return st_fail(STINT_E_ARG,
                   "precision %u: this package has %u to %u bits, and 8 for its INT8 weights", bits,
                   m->nested.low, m->nested.high);
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
    return STINT_OK;
}

// Under a bound of memory a session keeps what the schedule runs that it was opened with.
static stint_status check_kept(const stint_session *s, const stint_precision *p) {
    unsigned bits = st_schedule_needs(s->model, p, NULL).bits;
    if (!s->resident || bits <= s->resident->pinned.bits) return STINT_OK;
    return st_fail(STINT_E_UNSUPPORTED,
                   "precision %u: under its bound of memory this session keeps nested weights of "
                   "%u bits (0: none); open it with the schedule that it is to run",
                   bits, s->resident->pinned.bits);
}

unsigned st_precision_at(const stint_precision *p, size_t step) {
    unsigned bits = p->steps[0].bits;
    for (uint32_t i = 1; i < p->n_steps && p->steps[i].start <= step; i++) bits = p->steps[i].bits;
    return bits;
}

stint_status stint_session_set_precision(stint_session *session, const stint_precision *precision) {
    stint_precision p = st_precision_uniform(ST_PRECISION_INT8, ST_PRECISION_INT8);
    if (!session) return st_fail(STINT_E_ARG, "session may not be NULL");
    if (precision) {
        memcpy(&p, precision, st_min(precision->size, sizeof p));
        ST_TRY(st_precision_check(session->model, &p));
        ST_TRY(check_kept(session, &p));
    }
    st_learned_close(session->learned);
    session->learned = NULL;
    session->precision = p;
    session->newest_bits = session->model->int8.layers ? p.prefill : 0;
    return STINT_OK;
}

uint32_t stint_session_bits(const stint_session *session) {
    return session->newest_bits;
}

bool stint_session_precision(const stint_session *session, stint_precision *precision) {
    size_t size = precision->size;
    memcpy(precision, &session->precision, st_min(size, sizeof *precision));
    precision->size = size;
    return session->learned != NULL;
}
