// SPDX-License-Identifier: Apache-2.0
#include "eval/precision_times.h"

#include "base/clock.h"
#include "base/size.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 5, STEPS = 8, PROMPT = 256 };

static bool has(const struct stint_model *model, unsigned bits) {
    return bits == ST_PRECISION_INT8 || st_nested_has(&model->nested, bits);
}

static stint_status check_all(const struct stint_model *model, const struct st_precision_times *t) {
    for (unsigned bits = 1; bits <= ST_PRECISION_INT8; bits++)
        if (has(model, bits) && t->step[bits] <= 0.0)
            return st_fail(STINT_E_ARG, "times: precision %u is missing", bits);
    return STINT_OK;
}

stint_status st_precision_times_read(const struct stint_model *model, const char *text,
                                     struct st_precision_times *times) {
    struct st_precision_times t = {{0}, {0}};
    while (*text) {
        unsigned bits;
        double token, step;
        int end = 0;
        if (sscanf(text, "%1u:%lf:%lf%n", &bits, &token, &step, &end) != 3 || end == 0 ||
            !(token > 0.0) || !(step > 0.0) || !isfinite(token) || !isfinite(step) ||
            !has(model, bits) || (text[end] != ',' && text[end] != '\0'))
            return st_fail(STINT_E_ARG,
                           "times: '%.32s': expected BITS:MS:MS, the times of a prompt's token and "
                           "of a step, for each precision of the package",
                           text);
        t.token[bits] = token;
        t.step[bits] = step;
        text += end + (text[end] == ',');
    }
    ST_TRY(check_all(model, &t));
    *times = t;
    return STINT_OK;
}

// ---- Measured

static stint_status run(struct st_fork *f, const int32_t *ids, size_t n, unsigned bits,
                        double *ms) {
    struct st_eval_request e = st_eval_request_of(f->session, 0, ids, n);
    e.precision = bits;
    e.logits = f->logits;
    uint64_t begun = st_now_ns();
    ST_TRY(st_session_eval(f->session, &e));
    *ms = (double)(st_now_ns() - begun) * 1e-6;
    return STINT_OK;
}

static void keep_least(double ms, double *least) {
    if (*least <= 0.0 || ms < *least) *least = ms;
}

static stint_status measure(struct st_fork *f, const int32_t *ids, size_t n, unsigned bits,
                            struct st_precision_times *t) {
    double ms;
    size_t steps = st_min(STEPS, f->n_tokens);
    ST_TRY(stint_session_truncate(f->session, 0, 0));
    ST_TRY(run(f, ids, n, bits, &ms));
    keep_least(ms / (double)n, &t->token[bits]);
    for (size_t i = 0; i < steps; i++) {
        ST_TRY(run(f, ids, 1, bits, &ms));
        keep_least(ms, &t->step[bits]);
    }
    return STINT_OK;
}

stint_status st_precision_times_measure(struct st_fork *f, const int32_t *ids, size_t n,
                                        struct st_precision_times *times) {
    struct st_precision_times t = {{0}, {0}};
    size_t room = stint_session_context(f->session) - f->n_tokens;
    size_t used = st_min(st_min(n, PROMPT), room);
    for (int i = 0; i < ROUNDS; i++)
        for (unsigned bits = ST_PRECISION_INT8; bits > 0; bits--)
            if (has(f->model, bits)) ST_TRY(measure(f, ids + n - used, used, bits, &t));
    *times = t;
    return stint_session_truncate(f->session, 0, 0);
}

double st_precision_times_answer(const struct st_precision_times *times, const struct st_fork *f,
                                 unsigned prefill) {
    double ms = (double)f->n_prompt * times->token[prefill];
    for (size_t i = 0; i < st_fork_steps(f); i++) ms += times->step[f->bits[i]];
    return ms * 1e-3;
}
