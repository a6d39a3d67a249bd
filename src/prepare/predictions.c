// SPDX-License-Identifier: Apache-2.0
#include "prepare/predictions.h"

#include "base/log_sum.h"

#include <math.h>
#include <stdbool.h>

enum { LOGITS_TOGETHER = 32 };

// Whether one of the logits is above the last one that is kept. No branch: compilers make vectors.
static bool any_beats(const float logits[LOGITS_TOGETHER], float last) {
    int beats = 0;
    for (size_t i = 0; i < LOGITS_TOGETHER; i++) beats |= !(logits[i] <= last);
    return beats;
}

// Sorted insertion: few tokens of a vocabulary beat the last one.
static void keep_likeliest(const float *logits, size_t n, double log_all,
                           struct st_predicted *out) {
    size_t kept = 0;
    float last = -INFINITY; // logit
    for (size_t v = 0; v < n; v++) {
        bool together = v % LOGITS_TOGETHER == 0 && v + LOGITS_TOGETHER <= n;
        if (together && kept == ST_PREDICTED && !any_beats(logits + v, last)) {
            v += LOGITS_TOGETHER - 1;
            continue;
        }
        float log_p = (float)((double)logits[v] - log_all);
        if (kept == ST_PREDICTED && log_p <= out->log_p[kept - 1]) continue;
        size_t at = kept < ST_PREDICTED ? kept++ : kept - 1;
        for (; at > 0 && out->log_p[at - 1] < log_p; at--) {
            out->id[at] = out->id[at - 1];
            out->log_p[at] = out->log_p[at - 1];
        }
        out->id[at] = (int32_t)v;
        out->log_p[at] = log_p;
        last = logits[out->id[kept - 1]];
    }
    for (; kept < ST_PREDICTED; kept++) out->log_p[kept] = -INFINITY;
}

static double divergence(const struct st_predicted *exact, const float *logits, double log_all) {
    double sum = 0.0, rest_p = 1.0, rest_q = 1.0;
    for (size_t i = 0; i < ST_PREDICTED && isfinite(exact->log_p[i]); i++) {
        double log_p = (double)exact->log_p[i], log_q = (double)logits[exact->id[i]] - log_all;
        sum += exp(log_p) * (log_p - log_q);
        rest_p -= exp(log_p);
        rest_q -= exp(log_q);
    }
    rest_p = fmax(rest_p, 1e-9);
    rest_q = fmax(rest_q, 1e-9);
    return sum + rest_p * log(rest_p / rest_q);
}

void st_predictions_add(struct st_predictions *p, const float *logits, size_t vocab,
                        int32_t wanted) {
    double log_all = st_log_sum(logits, vocab);
    keep_likeliest(logits, vocab, log_all, &p->at[p->n]);
    p->loss += log_all - (double)logits[wanted];
    if (p->exact) {
        p->divergence += divergence(&p->exact->at[p->n], logits, log_all);
        p->n_same += p->exact->at[p->n].id[0] == p->at[p->n].id[0];
    }
    p->n++;
}

double st_predictions_perplexity(const struct st_predictions *p) {
    return fmin(exp(p->loss / (double)p->n), 1e300);
}
