// SPDX-License-Identifier: Apache-2.0
// Which experts of a mixture a token passes through, and how much of each (Mixtral, Jiang et al.
// 2024, section 2.1).
#include "session/linear/op.h"

#include <math.h>
#include <string.h>

// Scores of a token's logits; returns what their shares are of.
static float score_all(const struct st_router *r, const float *logits, size_t n, float *score) {
    float best = -INFINITY, sum = 0.0f;
    for (size_t e = 0; e < n; e++) best = fmaxf(best, logits[e]);
    for (size_t e = 0; e < n; e++) {
        score[e] = r->sigmoid ? 1.0f / (1.0f + expf(-logits[e])) : expf(logits[e] - best);
        sum += score[e];
    }
    return r->sigmoid ? 1.0f : sum;
}

// Of equals the lower index wins.
static void take_best(const float *choice, size_t n, size_t n_used, bool *selected) {
    for (size_t u = 0; u < n_used; u++) {
        size_t arg = n;
        for (size_t e = 0; e < n; e++)
            if (!selected[e] && (arg == n || choice[e] > choice[arg])) arg = e;
        selected[arg] = true;
    }
}

// Experts of other groups than the best ones can no longer be selected.
static void leave_groups(const struct st_router *r, size_t n, float *choice) {
    float group[ST_MAX_EXPERTS];
    bool selected[ST_MAX_EXPERTS] = {false};
    size_t size = n / r->n_groups;
    for (size_t g = 0; g < r->n_groups; g++) {
        float best = -INFINITY, second = -INFINITY;
        for (size_t e = g * size; e < (g + 1) * size; e++) {
            second = fmaxf(second, fminf(best, choice[e]));
            best = fmaxf(best, choice[e]);
        }
        group[g] = r->group_sums ? best + second : best;
    }
    take_best(group, r->n_groups, r->n_groups_used, selected);
    for (size_t e = 0; e < n; e++)
        if (!selected[e / size]) choice[e] = -INFINITY;
}

// Turns one token's router logits into the weights of its best experts, 0 for the others. Shares
// of the selected ones equal the full softmax renormalised.
static void select_experts(const struct st_config *c, const float *bias, float *route) {
    const struct st_router *r = &c->router;
    float score[ST_MAX_EXPERTS], choice[ST_MAX_EXPERTS] = {0}, chosen = 0.0f;
    bool selected[ST_MAX_EXPERTS] = {false};
    float whole = score_all(r, route, c->n_experts, score);
    for (size_t e = 0; e < c->n_experts; e++) {
        choice[e] = r->sigmoid || bias ? score[e] / whole : route[e];
        if (bias) choice[e] += bias[e];
    }
    if (r->n_groups > 1) leave_groups(r, c->n_experts, choice);
    take_best(choice, c->n_experts, c->n_experts_used, selected);
    for (size_t e = 0; e < c->n_experts; e++) chosen += selected[e] ? score[e] : 0.0f;
    if (!r->shares) whole = chosen > 0.0f ? chosen : 1.0f;
    for (size_t e = 0; e < c->n_experts; e++)
        route[e] = selected[e] ? score[e] / whole * (float)r->scale : 0.0f;
}

void st_scale_rows(const struct st_run *r, const float *factors, const float *x, size_t n,
                   float *to) {
    size_t hidden = r->s->model->config.hidden;
    if (to != x) memcpy(to, x, n * hidden * sizeof *to);
    for (size_t t = 0; t < n; t++)
        r->s->kernels.elementwise->multiply(factors, hidden, to + t * hidden);
}

stint_status st_route(const struct st_run *r, const float *x, size_t n) {
    const struct st_config *c = &r->s->model->config;
    const struct st_layer *l = &r->s->model->weights.layers[r->layer];
    const struct st_mixture_norms *m = &l->mixture;
    if (m->router) st_scale_rows(r, m->router, x, n, r->buffers->expert_in);
    if (m->router) x = r->buffers->expert_in;
    ST_TRY(st_lone_linear(r, x, n, &l->router, r->buffers->route));
    for (size_t t = 0; t < n; t++) {
        float *weights = r->buffers->route + t * c->n_experts;
        select_experts(c, l->router_bias, weights);
        for (size_t e = 0; e < c->n_experts && m->scale; e++) weights[e] *= m->scale[e];
    }
    return STINT_OK;
}

bool st_route_has(const struct st_run *r, size_t n, uint32_t expert) {
    const float *route = r->buffers->route + expert;
    for (size_t t = 0; t < n; t++)
        if (route[t * r->s->model->config.n_experts] != 0.0f) return true;
    return false;
}

bool st_route_favours(const struct st_run *r, size_t n, uint32_t expert) {
    size_t n_experts = r->s->model->config.n_experts;
    for (size_t t = 0; t < n; t++) {
        const float *route = r->buffers->route + t * n_experts;
        float first = 0.0f;
        for (size_t e = 0; e < n_experts; e++) first = fmaxf(first, route[e]);
        if (first > 0.0f && route[expert] >= 0.5f * first) return true;
    }
    return false;
}
