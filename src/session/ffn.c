// SPDX-License-Identifier: Apache-2.0
// The feed-forward block: gated or plain, one or a routed mixture (Mixtral, Jiang et al. 2024,
// section 2.1).
#include "session/session.h"

#include "base/size.h"

#include <math.h>
#include <string.h>

struct activation {
    struct stint_session *s;
    size_t n; // elements per token
    bool gated;
};

static void activate_token(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct activation *a = context;
    const struct st_elementwise *k = a->s->kernels.elementwise;
    enum st_act act = a->s->model->config.act;
    float *up = a->s->up + t * a->n;
    if (a->gated)
        k->act_gated(act, a->s->gate + t * a->n, up, a->n, up);
    else
        k->act(act, up, a->n, up);
}

static void run_block(struct stint_session *s, uint32_t layer, uint32_t expert, const float *x,
                      size_t n, float *y) {
    const struct st_ffn_weight *ffn = &s->model->weights.layers[layer].ffn[expert];
    size_t n_ffn = s->model->config.ffn;
    bool gated = ffn->gate.data != NULL;
    struct st_matmul linears[] = {{&ffn->up, s->up, n_ffn}, {&ffn->gate, s->gate, n_ffn}};
    struct activation activation = {s, n_ffn, gated};
    struct st_linear_input input = {layer, expert, ST_INT8_UP, x, n, s->model->config.hidden};
    st_session_linears(s, st_session_observe(s, &input), n, linears, gated ? 2 : 1);
    st_pool_run(s->pool, activate_token, &activation, n);
    input = (struct st_linear_input){layer, expert, ST_INT8_DOWN, s->up, n, n_ffn};
    st_session_linear(s, st_session_observe(s, &input), n, &ffn->down, y);
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

// Expert by expert, over the tokens that were routed to it; each token adds its experts in
// ascending order.
stint_status st_session_mixture(struct stint_session *s, uint32_t index, const float *x, size_t n,
                                float *y, st_expert_fn *run_expert) {
    const struct st_config *c = &s->model->config;
    const struct st_layer *layer = &s->model->weights.layers[index];
    const struct st_elementwise *k = s->kernels.elementwise;
    size_t hidden = c->hidden;
    st_session_linear(s, x, n, &layer->router, s->route);
    for (size_t t = 0; t < n; t++)
        choose_experts(s->route + t * c->n_experts, c->n_experts, c->n_experts_used);
    memset(y, 0, n * hidden * sizeof(float));
    for (size_t e = 0; e < c->n_experts; e++) {
        size_t count = 0;
        for (size_t t = 0; t < n; t++) {
            if (s->route[t * c->n_experts + e] == 0.0f) continue;
            memcpy(s->expert_in + count * hidden, x + t * hidden, hidden * sizeof(float));
            s->expert_tokens[count++] = (int32_t)t;
        }
        if (count == 0) continue;
        ST_TRY(run_expert(s, index, (uint32_t)e, s->expert_in, count, s->expert_out));
        for (size_t i = 0; i < count; i++) {
            size_t t = (size_t)s->expert_tokens[i];
            k->axpy(s->route[t * c->n_experts + e], s->expert_out + i * hidden, hidden,
                    y + t * hidden);
        }
    }
    return STINT_OK;
}

static stint_status run_float_expert(struct stint_session *s, uint32_t layer, uint32_t expert,
                                     const float *x, size_t n, float *y) {
    run_block(s, layer, expert, x, n, y);
    return STINT_OK;
}

void st_session_ffn(struct stint_session *s, uint32_t layer, const float *x, size_t n, float *y) {
    if (s->model->config.n_experts)
        st_session_mixture(s, layer, x, n, y, run_float_expert);
    else
        run_block(s, layer, 0, x, n, y);
}
