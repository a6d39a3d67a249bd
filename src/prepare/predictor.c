// SPDX-License-Identifier: Apache-2.0
// All products of training multiply rows by rows, so that the decode kernels compute them. Matrices
// in the other layout are transposed first.
#include "prepare/predictor.h"

#include "base/cpu.h"
#include "base/random.h"
#include "base/size.h"
#include "prepare/adam.h"
#include "session/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 128, BLOCK = 64, PIECE = 1 << 14, HELD_OUT_TOKENS = 1024 };
enum { FEWEST_EPOCHS = 10, MAX_EPOCHS = 30, STEPS = 500 };
static const float learning_rate = 3e-3f;
static const float widest = 24.0f; // activations are clipped at this multiple of their RMS

struct st_trainer {
    struct st_predictor_options options;
    struct st_pool *pool;
    const struct st_gemv *gemv;
    struct st_arena arena;
    size_t n_floats;                  // parameters: in, out, bias
    float *gradient, *first, *second; // [n_floats], moments
    float *x, *x_turned;              // [BATCH, hidden] and its transpose
    float *h, *h_turned;              // [BATCH, rank]
    float *g, *g_turned;              // [BATCH, ffn]
    float *dh, *dh_turned;            // [BATCH, rank]
    float *out_turned;                // [rank, ffn]
    uint32_t *tokens;                 // [most] in the order of an epoch
    float input_rms;
    uint64_t drawn;
};

// ---- Products

struct product {
    const struct st_trainer *t;
    const float *a, *b; // [m, k], [n, k]
    size_t m, n, k;
    float *y; // [n, m]
};

static void product_block(void *context, size_t item, size_t worker) {
    (void)worker;
    const struct product *p = context;
    bool by_a = p->m >= p->n;
    size_t first = item * BLOCK, count = st_min(BLOCK, (by_a ? p->m : p->n) - first);
    size_t a0 = by_a ? first : 0, a_n = by_a ? count : p->m;
    size_t b0 = by_a ? 0 : first, b_end = by_a ? p->n : first + count;
    for (size_t b = b0; b < b_end; b += ST_GEMV_MAX_COLUMNS)
        p->t->gemv->fn[ST_DTYPE_F32](p->a + a0 * p->k, p->k * sizeof(float), a_n, p->k,
                                     p->b + b * p->k, st_min(ST_GEMV_MAX_COLUMNS, b_end - b),
                                     p->y + b * p->m + a0, p->m);
}

// y[n, m] = b a^T
static void multiply(const struct st_trainer *t, const float *a, size_t m, const float *b, size_t n,
                     size_t k, float *y) {
    struct product p = {t, a, b, m, n, k, y};
    st_pool_run(t->pool, product_block, &p, st_ceil_div(st_max(m, n), BLOCK));
}

static void turn(const float *x, size_t rows, size_t columns, float *y) {
    enum { TILE = 16 };
    for (size_t r0 = 0; r0 < rows; r0 += TILE)
        for (size_t c0 = 0; c0 < columns; c0 += TILE)
            for (size_t c = c0; c < st_min(columns, c0 + TILE); c++)
                for (size_t r = r0; r < st_min(rows, r0 + TILE); r++)
                    y[c * rows + r] = x[r * columns + c];
}

// ---- Memory

static void lay_out(struct st_predictor *p, struct st_trainer *t, struct st_arena *a) {
    size_t h = p->hidden, f = p->ffn, r = p->rank;
    t->n_floats = r * h + f * r + f;
    p->in = ST_TAKE(a, float, t->n_floats);
    p->out = p->in ? p->in + r * h : NULL;
    p->bias = p->in ? p->out + f * r : NULL;
    t->gradient = ST_TAKE(a, float, t->n_floats);
    t->first = ST_TAKE(a, float, t->n_floats);
    t->second = ST_TAKE(a, float, t->n_floats);
    t->x = ST_TAKE(a, float, BATCH *h);
    t->x_turned = ST_TAKE(a, float, BATCH *h);
    t->h = ST_TAKE(a, float, BATCH *r);
    t->h_turned = ST_TAKE(a, float, BATCH *r);
    t->g = ST_TAKE(a, float, BATCH *f);
    t->g_turned = ST_TAKE(a, float, BATCH *f);
    t->dh = ST_TAKE(a, float, BATCH *r);
    t->dh_turned = ST_TAKE(a, float, BATCH *r);
    t->out_turned = ST_TAKE(a, float, r *f);
}

stint_status st_predictor_open(size_t hidden, size_t ffn,
                               const struct st_predictor_options *options, struct st_pool *pool,
                               struct st_predictor *predictor) {
    struct st_trainer *t = calloc(1, sizeof *t);
    struct st_arena measure = st_arena_measure();
    if (!t) return st_fail(STINT_E_NOMEM, "no memory to train a predictor");
    *predictor =
        (struct st_predictor){.hidden = hidden, .ffn = ffn, .rank = options->rank, .trainer = t};
    t->options = *options;
    t->pool = pool;
    t->gemv = st_gemv_select(st_cpu_flags());
    lay_out(predictor, t, &measure);
    stint_status status = st_arena_check(&measure, "a predictor");
    if (status == STINT_OK) status = st_arena_open(&t->arena, measure.used);
    if (status == STINT_OK) lay_out(predictor, t, &t->arena);
    if (status != STINT_OK) st_predictor_close(predictor);
    return status;
}

void st_predictor_close(struct st_predictor *predictor) {
    if (!predictor->trainer) return;
    free(predictor->trainer->tokens);
    st_arena_close(&predictor->trainer->arena);
    free(predictor->trainer);
    *predictor = (struct st_predictor){0};
}

// ---- One batch

struct batch {
    struct st_predictor *p;
    const struct st_activity *activity;
    const uint32_t *tokens;
    size_t n;
};

static void gather(const struct batch *b) {
    struct st_trainer *t = b->p->trainer;
    size_t h = b->p->hidden;
    for (size_t i = 0; i < b->n; i++) {
        const float *x = b->activity->inputs + b->tokens[i] * h;
        for (size_t c = 0; c < h; c++) t->x[i * h + c] = x[c] / t->input_rms;
    }
}

static void forward(const struct batch *b) {
    const struct st_predictor *p = b->p;
    const struct st_trainer *t = p->trainer;
    gather(b);
    multiply(t, p->in, p->rank, t->x, b->n, p->hidden, t->h);
    multiply(t, p->out, p->ffn, t->h, b->n, p->rank, t->g);
}

// Replaces the scores by the gradient of the loss: the probability minus the truth.
static void differ(void *context, size_t i, size_t worker) {
    (void)worker;
    const struct batch *b = context;
    const struct st_predictor *p = b->p;
    float *g = p->trainer->g + i * p->ffn;
    for (size_t f = 0; f < p->ffn; f++) {
        float score = g[f] + p->bias[f];
        bool active = st_activity_has(b->activity, b->tokens[i], f);
        float e = expf(-fabsf(score)), one = 1.0f / (1.0f + e);
        g[f] = ((score >= 0.0f ? one : e * one) - (float)active) / (float)b->n;
    }
}

// The cross-entropy of the batch whose scores forward() computed.
static double cross_entropy(const struct batch *b) {
    const struct st_predictor *p = b->p;
    double loss = 0.0;
    for (size_t i = 0; i < b->n; i++)
        for (size_t f = 0; f < p->ffn; f++) {
            double score = (double)(p->trainer->g[i * p->ffn + f] + p->bias[f]);
            bool active = st_activity_has(b->activity, b->tokens[i], f);
            loss += log1p(exp(-fabs(score))) + fmax(score, 0.0) - (active ? score : 0.0);
        }
    return loss / (double)b->n;
}

static void backward(const struct batch *b) {
    const struct st_predictor *p = b->p;
    struct st_trainer *t = p->trainer;
    size_t n = b->n, h = p->hidden, f = p->ffn, r = p->rank;
    float *d_in = t->gradient, *d_out = d_in + r * h, *d_bias = d_out + f * r;
    st_pool_run(t->pool, differ, (void *)(uintptr_t)b, n);
    turn(t->g, n, f, t->g_turned);
    turn(t->h, n, r, t->h_turned);
    turn(t->x, n, h, t->x_turned);
    turn(p->out, f, r, t->out_turned);
    multiply(t, t->h_turned, r, t->g_turned, f, n, d_out);
    multiply(t, t->out_turned, r, t->g, n, f, t->dh);
    turn(t->dh, n, r, t->dh_turned);
    multiply(t, t->x_turned, h, t->dh_turned, r, n, d_in);
    for (size_t i = 0; i < f; i++) {
        d_bias[i] = 0.0f;
        for (size_t j = 0; j < n; j++) d_bias[i] += t->g_turned[i * n + j];
    }
}

double st_predictor_gradients(struct st_predictor *p, const struct st_activity *activity,
                              const uint32_t *tokens, size_t n, const float **in, const float **out,
                              const float **bias) {
    struct batch b = {p, activity, tokens, st_min(n, BATCH)};
    forward(&b);
    double loss = cross_entropy(&b);
    backward(&b);
    *in = p->trainer->gradient;
    *out = *in + p->rank * p->hidden;
    *bias = *out + p->ffn * p->rank;
    return loss;
}

// ---- Training

static float draw(struct st_trainer *t, float deviation) {
    double u = st_random_draw(t->options.seed, t->drawn++);
    return (float)(2.0 * u - 1.0) * deviation * sqrtf(3.0f);
}

static size_t training_tokens(const struct st_activity *a) {
    return a->n - a->n / 4;
}

static void begin(struct st_predictor *p, const struct st_activity *a) {
    struct st_trainer *t = p->trainer;
    double squares = 0.0;
    t->drawn = 0;
    memset(t->first, 0, t->n_floats * sizeof(float));
    memset(t->second, 0, t->n_floats * sizeof(float));
    for (size_t i = 0; i < a->n * a->hidden; i++)
        squares += (double)a->inputs[i] * (double)a->inputs[i];
    t->input_rms = (float)sqrt(squares / (double)(a->n * a->hidden));
    if (!(t->input_rms > 0.0f)) t->input_rms = 1.0f;
    for (size_t i = 0; i < p->rank * p->hidden; i++)
        p->in[i] = draw(t, 1.0f / sqrtf((float)p->hidden));
    for (size_t i = 0; i < p->ffn * p->rank; i++) p->out[i] = draw(t, 0.1f / sqrtf((float)p->rank));
    for (size_t i = 0; i < p->ffn; i++) {
        float rate = fminf(fmaxf(a->rates[i], 1e-3f), 1.0f - 1e-3f);
        p->bias[i] = logf(rate / (1.0f - rate));
    }
}

static void shuffle(struct st_trainer *t, size_t n) {
    for (size_t i = 0; i < n; i++) t->tokens[i] = (uint32_t)i;
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)(st_random_draw(t->options.seed, t->drawn++) * (double)i);
        uint32_t other = t->tokens[j];
        t->tokens[j] = t->tokens[i - 1];
        t->tokens[i - 1] = other;
    }
}

struct step {
    const struct st_predictor *p;
    struct st_adam adam;
};

static void update(void *context, size_t item, size_t worker) {
    (void)worker;
    const struct step *s = context;
    const struct st_trainer *t = s->p->trainer;
    size_t at = item * PIECE;
    st_adam_step(&s->adam, t->gradient + at, 1.0f, st_min(PIECE, t->n_floats - at), s->p->in + at,
                 t->first + at, t->second + at);
}

stint_status st_predictor_train(struct st_predictor *p, const struct st_activity *a) {
    struct st_trainer *t = p->trainer;
    size_t n = training_tokens(a), batches = st_ceil_div(n, BATCH), done = 0;
    size_t epochs = t->options.epochs;
    if (epochs == 0) epochs = st_max(FEWEST_EPOCHS, st_min(MAX_EPOCHS, STEPS / st_max(1, batches)));
    size_t total = batches * epochs;
    uint32_t *tokens = realloc(t->tokens, st_max(1, n) * sizeof *tokens);
    if (!tokens) return st_fail(STINT_E_NOMEM, "no memory to train a predictor");
    t->tokens = tokens;
    begin(p, a);
    for (size_t epoch = 0; epoch < epochs; epoch++) {
        shuffle(t, n);
        for (size_t at = 0; at < n; at += BATCH, done++) {
            struct batch b = {p, a, t->tokens + at, st_min(BATCH, n - at)};
            if (t->options.stop && t->options.stop(t->options.stop_context))
                return st_fail(STINT_E_CANCELED, "canceled");
            forward(&b);
            backward(&b);
            float rate = learning_rate * (1.0f - (float)done / (float)total);
            struct step s = {p, {rate, 0.0f, done + 1}};
            st_pool_run(t->pool, update, &s, st_ceil_div(t->n_floats, PIECE));
        }
    }
    // Training divided the inputs by this; from here on they are used unscaled.
    for (size_t i = 0; i < p->rank * p->hidden; i++) p->in[i] /= t->input_rms;
    return STINT_OK;
}

// ---- INT8 and the threshold

static void round_rows(float *w, size_t rows, size_t k) {
    for (size_t r = 0; r < rows; r++) {
        float max = 0.0f;
        for (size_t i = 0; i < k; i++) max = fmaxf(max, fabsf(w[r * k + i]));
        float scale = max / 127.0f;
        for (size_t i = 0; i < k && scale > 0.0f; i++)
            w[r * k + i] = scale * nearbyintf(w[r * k + i] / scale);
    }
}

static float scale_of(const float *x, size_t n) {
    double squares = 0.0;
    float max = 0.0f;
    for (size_t i = 0; i < n; i++) {
        max = fmaxf(max, fabsf(x[i]));
        squares += (double)x[i] * (double)x[i];
    }
    float scale = fminf(max, widest * (float)sqrt(squares / (double)st_max(1, n))) / 127.0f;
    return scale > 0.0f ? scale : 1.0f;
}

static void round_values(float *x, size_t n, float scale) {
    for (size_t i = 0; i < n; i++)
        x[i] = scale * fminf(fmaxf(nearbyintf(x[i] / scale), -127.0f), 127.0f);
}

// Computes the INT8 scores of held-out tokens [first, first + n) into trainer->g.
static void score(struct st_predictor *p, const struct st_activity *a, size_t first, size_t n) {
    struct st_trainer *t = p->trainer;
    memcpy(t->x, a->inputs + first * p->hidden, n * p->hidden * sizeof(float));
    round_values(t->x, n * p->hidden, p->input_scale);
    multiply(t, p->in, p->rank, t->x, n, p->hidden, t->h);
    if (p->rank_scale > 0.0f) round_values(t->h, n * p->rank, p->rank_scale);
    multiply(t, p->out, p->ffn, t->h, n, p->rank, t->g);
    for (size_t i = 0; i < n; i++)
        for (size_t f = 0; f < p->ffn; f++) t->g[i * p->ffn + f] += p->bias[f];
}

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

// The score that the given share of the active neurons exceeds.
static float threshold_of(struct st_predictor *p, const struct st_activity *a, size_t first,
                          size_t end, float *scores) {
    size_t n = 0;
    for (size_t at = first; at < end; at += BATCH) {
        size_t count = st_min(BATCH, end - at);
        score(p, a, at, count);
        for (size_t i = 0; i < count; i++)
            for (size_t f = 0; f < p->ffn; f++)
                if (st_activity_has(a, at + i, f)) scores[n++] = p->trainer->g[i * p->ffn + f];
    }
    if (n == 0) return 0.0f;
    qsort(scores, n, sizeof *scores, by_value);
    size_t lost = (size_t)((1.0 - p->trainer->options.recall) * (double)n);
    return nextafterf(scores[st_min(lost, n - 1)], -INFINITY);
}

static void measure(struct st_predictor *p, const struct st_activity *a, size_t first, size_t end) {
    size_t named = 0, found = 0, active = 0;
    for (size_t at = first; at < end; at += BATCH) {
        size_t count = st_min(BATCH, end - at);
        score(p, a, at, count);
        for (size_t i = 0; i < count; i++)
            for (size_t f = 0; f < p->ffn; f++) {
                bool is = st_activity_has(a, at + i, f), name = p->trainer->g[i * p->ffn + f] > 0;
                named += name;
                active += is;
                found += is && name;
            }
    }
    p->share = (double)named / (double)st_max(1, (end - first) * p->ffn);
    p->found = active ? (double)found / (double)active : 1.0;
}

stint_status st_predictor_calibrate(struct st_predictor *p, const struct st_activity *a) {
    size_t first = training_tokens(a), end = st_min(a->n, first + HELD_OUT_TOKENS), n = 0;
    if (first == end) first = 0; // too short a text to hold a part out
    for (size_t t = first; t < end; t++)
        for (size_t w = 0; w < a->words; w++)
            n += (size_t)__builtin_popcountll(a->active[t * a->words + w]);
    float *scores = malloc(st_max(1, n) * sizeof *scores);
    if (!scores) return st_fail(STINT_E_NOMEM, "no memory to calibrate a predictor");
    round_rows(p->in, p->rank, p->hidden);
    round_rows(p->out, p->ffn, p->rank);
    p->input_scale = scale_of(a->inputs, first * p->hidden + (first ? 0 : a->n * p->hidden));
    p->rank_scale = 0.0f;
    score(p, a, first, st_min(BATCH, end - first));
    p->rank_scale = 1.25f * scale_of(p->trainer->h, st_min(BATCH, end - first) * p->rank);
    float threshold = threshold_of(p, a, first, end, scores);
    for (size_t f = 0; f < p->ffn; f++) p->bias[f] -= threshold;
    measure(p, a, first, end);
    free(scores);
    return STINT_OK;
}
