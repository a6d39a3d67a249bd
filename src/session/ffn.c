// SPDX-License-Identifier: Apache-2.0
// The feed-forward block: gated or plain, one or a routed mixture (Mixtral, Jiang et al. 2024,
// section 2.1).
#include "session/session.h"

#include "base/size.h"

#include <math.h>
#include <string.h>

struct activation {
    const struct st_run *run;
    size_t n; // elements per token
    bool gated;
};

static void activate_token(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct activation *a = context;
    const struct st_elementwise *k = a->run->s->kernels.elementwise;
    enum st_act act = a->run->s->model->config.act;
    float *up = a->run->lane->up + t * a->n;
    if (a->gated)
        k->act_gated(act, a->run->lane->gate + t * a->n, up, a->n, up);
    else
        k->act(act, up, a->n, up);
}

static void run_block(const struct st_run *r, uint32_t expert, const float *x, size_t n, float *y) {
    const struct stint_session *s = r->s;
    struct st_lane *lane = r->lane;
    const struct st_ffn_weight *ffn = &st_run_layer(r)->ffn[expert];
    size_t n_ffn = s->model->config.ffn;
    bool gated = st_linear_exists(&ffn->gate);
    struct st_matmul linears[] = {{&ffn->up, lane->up, n_ffn}, {&ffn->gate, lane->gate, n_ffn}};
    struct activation activation = {r, n_ffn, gated};
    struct st_linear_input input = {r->layer, expert, ST_INT8_UP, x, n, s->model->config.hidden};
    st_session_linears(r, st_session_observe(s, &input), n, linears, gated ? 2 : 1);
    st_pool_run(r->crew->pool, activate_token, &activation, n);
    input = (struct st_linear_input){r->layer, expert, ST_INT8_DOWN, lane->up, n, n_ffn};
    st_session_linear(r, st_session_observe(s, &input), n, &ffn->down, y);
}

// Turns one token's router logits into the weights of its best experts, 0 for the others: a softmax
// over the chosen ones, which equals the full softmax renormalised. Of equals the lower index wins.
static void choose_experts(float *route, size_t n_experts, size_t n_used) {
    bool chosen[ST_MAX_EXPERTS] = {false};
    float best = -INFINITY, sum = 0.0f;
    for (size_t u = 0; u < n_used; u++) {
        size_t arg = n_experts;
        for (size_t e = 0; e < n_experts; e++)
            if (!chosen[e] && (arg == n_experts || route[e] > route[arg])) arg = e;
        chosen[arg] = true;
        if (u == 0) best = route[arg];
    }
    for (size_t e = 0; e < n_experts; e++) {
        route[e] = chosen[e] ? expf(route[e] - best) : 0.0f;
        sum += route[e];
    }
    for (size_t e = 0; e < n_experts; e++) route[e] /= sum;
}

// Those of the batch are read from now on, where they are not in memory.
static void expect_experts(const struct st_run *r, size_t n) {
    const struct st_config *c = &r->s->model->config;
    for (uint32_t e = 0; e < c->n_experts; e++) {
        bool used = false;
        for (size_t t = 0; t < n; t++) used |= r->lane->route[t * c->n_experts + e] != 0.0f;
        if (used) st_resident_expect(r->s->resident, c, r->layer, e);
    }
}

// Expert by expert, over the tokens that were routed to it; each token adds its experts in
// ascending order.
stint_status st_session_mixture(const struct st_run *r, const float *x, size_t n, float *y,
                                st_expert_fn *run_expert) {
    const struct st_config *c = &r->s->model->config;
    const struct st_elementwise *k = r->s->kernels.elementwise;
    struct st_lane *lane = r->lane;
    size_t hidden = c->hidden;
    st_session_linear(r, x, n, &st_run_layer(r)->router, lane->route);
    for (size_t t = 0; t < n; t++)
        choose_experts(lane->route + t * c->n_experts, c->n_experts, c->n_experts_used);
    if (r->s->resident) expect_experts(r, n);
    memset(y, 0, n * hidden * sizeof(float));
    for (size_t e = 0; e < c->n_experts; e++) {
        size_t count = 0;
        for (size_t t = 0; t < n; t++) {
            if (lane->route[t * c->n_experts + e] == 0.0f) continue;
            memcpy(lane->expert_in + count * hidden, x + t * hidden, hidden * sizeof(float));
            lane->expert_tokens[count++] = (int32_t)t;
        }
        if (count == 0) continue;
        ST_TRY(run_expert(r, (uint32_t)e, lane->expert_in, count, lane->expert_out));
        for (size_t i = 0; i < count; i++) {
            size_t t = (size_t)lane->expert_tokens[i];
            k->axpy(lane->route[t * c->n_experts + e], lane->expert_out + i * hidden, hidden,
                    y + t * hidden);
        }
    }
    return STINT_OK;
}

static stint_status run_float_expert(const struct st_run *r, uint32_t expert, const float *x,
                                     size_t n, float *y) {
    run_block(r, expert, x, n, y);
    return STINT_OK;
}

void st_session_ffn(const struct st_run *r, const float *x, size_t n, float *y) {
    if (r->s->model->config.n_experts)
        st_session_mixture(r, x, n, y, run_float_expert);
    else
        run_block(r, 0, x, n, y);
}
