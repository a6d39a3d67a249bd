// SPDX-License-Identifier: Apache-2.0
#include "eval/awq.h"

#include "base/size.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const float least_mean = 1e-4f;

// ---- Tokens

int st_awq_tokens_open(size_t n, struct st_awq_tokens *t) {
    *t = (struct st_awq_tokens){
        .n = n, .step = 1, .sum = calloc((1 + ST_AWQ_SAMPLES) * n, sizeof(float))};
    if (!t->sum) return -1;
    t->kept = t->sum + n;
    return 0;
}

void st_awq_tokens_close(struct st_awq_tokens *t) {
    free(t->sum);
    *t = (struct st_awq_tokens){0};
}

void st_awq_tokens_add(struct st_awq_tokens *t, const float *x) {
    for (size_t i = 0; i < t->n; i++) t->sum[i] += fabsf(x[i]);
    if (t->n_kept == ST_AWQ_SAMPLES) {
        for (size_t i = 0; i < ST_AWQ_SAMPLES; i += 2)
            memcpy(t->kept + i / 2 * t->n, t->kept + i * t->n, t->n * sizeof *x);
        t->n_kept /= 2;
        t->step *= 2;
    }
    if (t->n_met++ % t->step == 0) memcpy(t->kept + t->n_kept++ * t->n, x, t->n * sizeof *x);
}

// ---- Search

static void quantize_group(float *w, size_t n) {
    float least = 0.0f, most = 0.0f;
    for (size_t i = 0; i < n; i++) {
        least = fminf(least, w[i]);
        most = fmaxf(most, w[i]);
    }
    float scale = most > least ? (most - least) / 15.0f : 1.0f;
    float zero = rintf(-least / scale);
    for (size_t i = 0; i < n; i++)
        w[i] = scale * (fminf(fmaxf(rintf(w[i] / scale) + zero, 0.0f), 15.0f) - zero);
}

void st_fake_int4_groups(float *w, size_t n, size_t group) {
    for (size_t i = 0; i < n; i += group) quantize_group(w + i, st_min(group, n - i));
}

void st_awq_quantize(const float *factors, size_t n, size_t group, float *w) {
    for (size_t i = 0; i < n; i++) w[i] *= factors[i];
    st_fake_int4_groups(w, n, group);
    for (size_t i = 0; i < n; i++) w[i] /= factors[i];
}

void st_awq_begin(struct st_awq *awq) {
    for (size_t g = 0; g < ST_AWQ_GRID; g++) {
        float *factors = awq->factors + g * awq->n, least = INFINITY, most = 0.0f;
        for (size_t i = 0; i < awq->n; i++) {
            factors[i] = powf(fmaxf(awq->mean[i], least_mean), (float)g / ST_AWQ_GRID);
            least = fminf(least, factors[i]);
            most = fmaxf(most, factors[i]);
        }
        for (size_t i = 0; i < awq->n; i++) factors[i] /= sqrtf(least * most);
        awq->errors[g] = 0.0;
    }
}

// Partial sums, which a compiler turns into lanes.
static float dot(const float *a, const float *b, size_t n) {
    enum { LANES = 8 };
    float sums[LANES] = {0}, sum = 0.0f;
    size_t whole = n / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t lane = 0; lane < LANES; lane++) sums[lane] += a[i + lane] * b[i + lane];
    for (size_t lane = 0; lane < LANES; lane++) sum += sums[lane];
    for (size_t i = whole; i < n; i++) sum += a[i] * b[i];
    return sum;
}

void st_awq_try(struct st_awq *awq, const float *w) {
    for (size_t g = 0; g < ST_AWQ_GRID; g++) {
        memcpy(awq->row, w, awq->n * sizeof *w);
        st_awq_quantize(awq->factors + g * awq->n, awq->n, awq->group, awq->row);
        for (size_t i = 0; i < awq->n; i++) awq->row[i] -= w[i];
        for (size_t t = 0; t < awq->n_samples; t++) {
            double miss = (double)dot(awq->row, awq->x + t * awq->n, awq->n);
            awq->errors[g] += miss * miss;
        }
    }
}

const float *st_awq_best(const struct st_awq *awq) {
    size_t best = 0;
    for (size_t g = 1; g < ST_AWQ_GRID; g++)
        if (awq->errors[g] < awq->errors[best]) best = g;
    return awq->factors + best * awq->n;
}
