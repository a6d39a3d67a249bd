// SPDX-License-Identifier: Apache-2.0
// The scheduler's network forward and backward. Pure functions on arrays; sums in double where they
// are long.
#include "session/precision/learned.h"

#include <math.h>
#include <string.h>

static const float epsilon = 1e-5f;

static size_t width_of(const struct st_pooling_net *n) {
    return n->n_heads * n->head_dim;
}

size_t st_pooling_net_size(const struct st_pooling_net *n) {
    return width_of(n) + n->n_hidden * (width_of(n) + 1) + n->n_choices * (n->n_hidden + 1);
}

void st_pooling_net_place(struct st_pooling_net *n, float *floats) {
    n->query = floats;
    n->w1 = n->query + width_of(n);
    n->b1 = n->w1 + n->n_hidden * width_of(n);
    n->w2 = n->b1 + n->n_hidden;
    n->b2 = n->w2 + n->n_choices * n->n_hidden;
}

void st_pooling_state_take(const struct st_pooling_net *net, size_t n, struct st_arena *arena,
                           struct st_pooling_state *s) {
    s->weights = ST_TAKE(arena, float, net->n_heads *n);
    s->pooled = ST_TAKE(arena, float, width_of(net));
    s->normed = ST_TAKE(arena, float, width_of(net));
    s->hidden = ST_TAKE(arena, float, net->n_hidden);
    s->logits = ST_TAKE(arena, float, net->n_choices);
}

static float dot(const float *a, const float *b, size_t n) {
    float sum = 0.0f;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static void add(float scale, const float *x, size_t n, float *y) {
    for (size_t i = 0; i < n; i++) y[i] += scale * x[i];
}

static void softmax(float *x, size_t n) {
    float most = x[0];
    double sum = 0.0;
    for (size_t i = 1; i < n; i++) most = fmaxf(most, x[i]);
    for (size_t i = 0; i < n; i++) sum += (double)(x[i] = expf(x[i] - most));
    for (size_t i = 0; i < n; i++) x[i] = (float)((double)x[i] / sum);
}

static void pool_head(const struct st_pooling_net *net, const struct st_pooling_input *in, size_t h,
                      struct st_pooling_state *s) {
    size_t d = net->head_dim;
    float scale = 1.0f / sqrtf((float)d), *weights = s->weights + h * in->n;
    const float *keys = in->keys + h * in->stride, *values = in->values + h * in->stride;
    for (size_t t = 0; t < in->n; t++)
        weights[t] = scale * dot(net->query + h * d, keys + t * d, d);
    softmax(weights, in->n);
    memset(s->pooled + h * d, 0, d * sizeof(float));
    for (size_t t = 0; t < in->n; t++) add(weights[t], values + t * d, d, s->pooled + h * d);
}

void st_pooling_forward(const struct st_pooling_net *net, const struct st_pooling_input *in,
                        struct st_pooling_state *s) {
    size_t n = width_of(net);
    double mean = 0.0, variance = 0.0;
    for (size_t h = 0; h < net->n_heads; h++) pool_head(net, in, h, s);
    for (size_t i = 0; i < n; i++) mean += (double)s->pooled[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        double off = (double)s->pooled[i] - mean;
        variance += off * off / (double)n;
    }
    s->deviation = sqrtf((float)variance + epsilon);
    for (size_t i = 0; i < n; i++)
        s->normed[i] = (float)((double)s->pooled[i] - mean) / s->deviation;
    for (size_t i = 0; i < net->n_hidden; i++)
        s->hidden[i] = fmaxf(net->b1[i] + dot(net->w1 + i * n, s->normed, n), 0.0f);
    for (size_t i = 0; i < net->n_choices; i++)
        s->logits[i] = net->b2[i] + dot(net->w2 + i * net->n_hidden, s->hidden, net->n_hidden);
}

// g->normed -> g->pooled
static void norm_backward(size_t n, const struct st_pooling_state *s, struct st_pooling_state *g) {
    double mean = 0.0, along = 0.0;
    for (size_t i = 0; i < n; i++) {
        mean += (double)g->normed[i] / (double)n;
        along += (double)g->normed[i] * (double)s->normed[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++)
        g->pooled[i] =
            (float)((double)g->normed[i] - mean - (double)s->normed[i] * along) / s->deviation;
}

static void pool_backward(const struct st_pooling_net *net, const struct st_pooling_input *in,
                          size_t h, const struct st_pooling_state *s, struct st_pooling_state *g,
                          struct st_pooling_net *grad) {
    size_t d = net->head_dim;
    const float *keys = in->keys + h * in->stride, *values = in->values + h * in->stride;
    const float *weights = s->weights + h * in->n;
    float *back = g->weights + h * in->n, scale = 1.0f / sqrtf((float)d);
    double mean = 0.0;
    for (size_t t = 0; t < in->n; t++) {
        back[t] = dot(g->pooled + h * d, values + t * d, d);
        mean += (double)weights[t] * (double)back[t];
    }
    for (size_t t = 0; t < in->n; t++)
        add(scale * weights[t] * (float)((double)back[t] - mean), keys + t * d, d,
            grad->query + h * d);
}

double st_pooling_backward(const struct st_pooling_net *net, const struct st_pooling_input *in,
                           const struct st_pooling_state *s, size_t label,
                           struct st_pooling_state *g, struct st_pooling_net *grad) {
    size_t n = width_of(net);
    memcpy(g->logits, s->logits, net->n_choices * sizeof(float));
    softmax(g->logits, net->n_choices);
    double loss = -log(fmax((double)g->logits[label], 1e-30));
    g->logits[label] -= 1.0f;
    memset(g->hidden, 0, net->n_hidden * sizeof(float));
    for (size_t i = 0; i < net->n_choices; i++) {
        grad->b2[i] += g->logits[i];
        add(g->logits[i], s->hidden, net->n_hidden, grad->w2 + i * net->n_hidden);
        add(g->logits[i], net->w2 + i * net->n_hidden, net->n_hidden, g->hidden);
    }
    memset(g->normed, 0, n * sizeof(float));
    for (size_t i = 0; i < net->n_hidden; i++) {
        if (s->hidden[i] <= 0.0f) continue;
        grad->b1[i] += g->hidden[i];
        add(g->hidden[i], s->normed, n, grad->w1 + i * n);
        add(g->hidden[i], net->w1 + i * n, n, g->normed);
    }
    norm_backward(n, s, g);
    for (size_t h = 0; h < net->n_heads; h++) pool_backward(net, in, h, s, g, grad);
    return loss;
}
