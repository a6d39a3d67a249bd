// SPDX-License-Identifier: Apache-2.0
// Trains the learned precision scheduler (PMPD, section 4.3 and appendix A.1): prompts are cut from
// a text, labels come from the model's own answers, and Adam minimizes the cross-entropy.
#include "eval/fork.h"
#include "eval/overlap.h"
#include "eval/schedule_run.h"

#include "base/log_sum.h"
#include "base/map.h"
#include "base/random.h"
#include "base/size.h"
#include "prepare/adam.h"
#include "session/precision/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHORTEST = 32, // tokens of a prompt
    LONGEST = 128,
    DEFAULT_SAMPLES = 256,
    DEFAULT_EPOCHS = 30,
    BATCH = 32,
    HELD_OUT = 10, // one of this many samples
    MAX_TEXT = 64 << 20,
};
static const float rate = 2e-3f, decay = 0.01f;

struct sample {
    size_t n;             // tokens of the prompt
    float *keys, *values; // of the last block, from st_learned_read_cache()
    size_t label;
};

struct trainer {
    struct st_schedule_run run;
    struct st_fork fork;
    struct st_ids ids; // of the text
    struct sample *samples;
    size_t n_samples;
    stint_precision choices[ST_LEARNED_CHOICES];
    struct st_pooling_net net, grad;
    struct st_pooling_state state, back;
    struct st_arena arena;
    float *best, *first, *second; // parameters, moments
    uint64_t drawn;
};

static double draw(struct trainer *t) {
    return st_random_draw(t->run.options.seed ^ 0x5eedu, t->drawn++);
}

// ---- Samples

// Scores are compared with three decimals, as in the publications.
static stint_status score(struct trainer *t, char *const *reference, long *thousandths) {
    double value;
    ST_TRY(st_rouge_l(t->fork.text, reference, 1, &value));
    *thousandths = lrint(value * 1000.0);
    return STINT_OK;
}

// The choice with the fewest bits whose text is about as close to INT8's as that of the last
// choice.
static stint_status find_label(struct trainer *t, size_t *label) {
    stint_precision int8 = st_precision_uniform(ST_PRECISION_INT8, ST_PRECISION_INT8);
    long wanted = 0, got = 0;
    ST_TRY(st_fork_write_by(&t->fork, &int8));
    char *reference = strdup(t->fork.text);
    if (!reference) return st_fail(STINT_E_NOMEM, "no memory for a sample");
    stint_status status = STINT_OK;
    for (size_t i = t->net.n_choices; i-- > 0 && status == STINT_OK;) {
        status = st_fork_write_by(&t->fork, &t->choices[i]);
        if (status == STINT_OK) status = score(t, &reference, &got);
        if (i + 1 == t->net.n_choices) wanted = lrint((double)got * (1.0 - t->run.epsilon));
        if (status == STINT_OK && got >= wanted) *label = i;
    }
    free(reference);
    return status;
}

static stint_status make_sample(struct trainer *t, struct sample *s) {
    size_t longest = st_min(LONGEST, t->ids.count);
    size_t n = SHORTEST + (size_t)(draw(t) * (double)(longest - SHORTEST + 1));
    size_t first = (size_t)(draw(t) * (double)(t->ids.count - n + 1));
    ST_TRY(st_fork_prompt(&t->fork, t->ids.data + first, n, ST_PRECISION_INT8));
    size_t floats = st_learned_cache_floats(t->fork.session, 0);
    s->n = n;
    s->keys = malloc(floats * sizeof *s->keys);
    s->values = malloc(floats * sizeof *s->values);
    if (!s->keys || !s->values) return st_fail(STINT_E_NOMEM, "no memory for a sample");
    st_learned_read_cache(t->fork.session, 0, s->keys, s->values);
    return find_label(t, &s->label);
}

static stint_status read_text(struct trainer *t) {
    struct st_map map = {0};
    ST_TRY(st_map_open(t->run.options.data, &map));
    stint_status status =
        st_tokenizer_encode(t->run.model->tokenizer, (const char *)map.data,
                            st_min(map.bytes, MAX_TEXT), STINT_TOKENIZE_PLAIN, &t->ids);
    st_map_close(&map);
    if (status == STINT_OK && t->ids.count < SHORTEST)
        return st_fail(STINT_E_FORMAT, "%s: %zu tokens are too few to train on, %d are needed",
                       t->run.options.data, t->ids.count, SHORTEST);
    return status;
}

static stint_status make_samples(struct trainer *t) {
    ST_TRY(read_text(t));
    t->samples = calloc(t->n_samples, sizeof *t->samples);
    if (!t->samples) return st_fail(STINT_E_NOMEM, "no memory for %zu samples", t->n_samples);
    for (size_t i = 0; i < t->n_samples; i++) {
        ST_TRY(make_sample(t, &t->samples[i]));
        ST_TRY(st_schedule_run_step(&t->run, "making samples"));
    }
    return STINT_OK;
}

// ---- The network

static void lay_out(struct trainer *t, struct st_arena *arena) {
    size_t n = st_pooling_net_size(&t->net);
    float *weights = ST_TAKE(arena, float, n), *grads = ST_TAKE(arena, float, n);
    t->grad = t->net;
    if (weights && grads) {
        st_pooling_net_place(&t->net, weights);
        st_pooling_net_place(&t->grad, grads);
    }
    t->best = ST_TAKE(arena, float, n);
    t->first = ST_TAKE(arena, float, n);
    t->second = ST_TAKE(arena, float, n);
    st_pooling_state_take(&t->net, LONGEST, arena, &t->state);
    st_pooling_state_take(&t->net, LONGEST, arena, &t->back);
}

static void start(struct trainer *t) {
    size_t width = t->net.n_heads * t->net.head_dim;
    float in = sqrtf(3.0f / (float)width), hidden = sqrtf(3.0f / (float)t->net.n_hidden);
    for (size_t i = 0; i < width; i++) t->net.query[i] = (float)(2.0 * draw(t) - 1.0) * 0.1f;
    for (size_t i = 0; i < t->net.n_hidden * width; i++)
        t->net.w1[i] = (float)(2.0 * draw(t) - 1.0) * in;
    for (size_t i = 0; i < t->net.n_choices * t->net.n_hidden; i++)
        t->net.w2[i] = (float)(2.0 * draw(t) - 1.0) * hidden;
}

static struct st_pooling_input input_of(const struct trainer *t, const struct sample *s) {
    return (struct st_pooling_input){s->keys, s->values, s->n, s->n * t->net.head_dim};
}

static size_t predict(struct trainer *t, const struct sample *s) {
    struct st_pooling_input input = input_of(t, s);
    size_t best = 0;
    st_pooling_forward(&t->net, &input, &t->state);
    for (size_t i = 1; i < t->net.n_choices; i++)
        if (t->state.logits[i] > t->state.logits[best]) best = i;
    return best;
}

// Updates the parameters after the gradients of `n` samples.
static void update(struct trainer *t, float n, uint64_t round) {
    size_t size = st_pooling_net_size(&t->net);
    struct st_adam adam = {rate, decay, round};
    st_adam_step(&adam, t->grad.query, n, size, t->net.query, t->first, t->second);
    memset(t->grad.query, 0, size * sizeof *t->grad.query);
}

static double held_out_loss(struct trainer *t, size_t n) {
    double loss = 0.0;
    for (size_t i = 0; i < n; i++) {
        predict(t, &t->samples[i]);
        loss += st_log_sum(t->state.logits, t->net.n_choices) -
                (double)t->state.logits[t->samples[i].label];
    }
    return loss;
}

static void shuffle(struct trainer *t, uint32_t *order, size_t n) {
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)(draw(t) * (double)i);
        uint32_t kept = order[i - 1];
        order[i - 1] = order[j];
        order[j] = kept;
    }
}

static stint_status learn(struct trainer *t, size_t held_out, uint32_t epochs) {
    size_t n = t->n_samples - held_out, size = st_pooling_net_size(&t->net);
    uint32_t *order = malloc(n * sizeof *order);
    stint_status status = STINT_OK;
    double best = INFINITY;
    uint64_t round = 0;
    if (!order) status = st_fail(STINT_E_NOMEM, "no memory to train");
    for (size_t i = 0; i < n && order; i++) order[i] = (uint32_t)(held_out + i);
    for (uint32_t epoch = 0; epoch < epochs && status == STINT_OK; epoch++) {
        shuffle(t, order, n);
        for (size_t i = 0; i < n; i++) {
            const struct sample *s = &t->samples[order[i]];
            struct st_pooling_input input = input_of(t, s);
            st_pooling_forward(&t->net, &input, &t->state);
            st_pooling_backward(&t->net, &input, &t->state, s->label, &t->back, &t->grad);
            if (i % BATCH == BATCH - 1 || i + 1 == n) update(t, (float)(i % BATCH + 1), ++round);
        }
        double loss = held_out_loss(t, held_out);
        if (loss < best) memcpy(t->best, t->net.query, size * sizeof *t->best);
        best = fmin(best, loss);
        status = st_schedule_run_step(&t->run, "training");
    }
    free(order);
    memcpy(t->net.query, t->best, size * sizeof *t->best);
    return status;
}

static double accuracy(struct trainer *t, size_t from, size_t to) {
    size_t right = 0;
    for (size_t i = from; i < to; i++) right += predict(t, &t->samples[i]) == t->samples[i].label;
    return to > from ? (double)right / (double)(to - from) : 0.0;
}

static double majority(const struct trainer *t, size_t n) {
    size_t count[ST_LEARNED_CHOICES] = {0}, max = 0;
    for (size_t i = 0; i < n; i++) max = st_max(max, ++count[t->samples[i].label]);
    return n ? (double)max / (double)n : 0.0;
}

// ---- All steps

static stint_status set_choices(struct trainer *t) {
    unsigned high = t->run.high, low = t->run.low;
    size_t n = t->net.n_choices;
    if (low >= high)
        return st_fail(STINT_E_ARG, "low %u and high %u: there is nothing to choose from", low,
                       high);
    for (size_t i = 0; i < n; i++) {
        uint32_t start = (uint32_t)(i * t->run.n_tokens / (n - 1));
        stint_precision *p = &t->choices[i];
        *p = (stint_precision){.size = sizeof *p, .prefill = ST_PRECISION_INT8};
        if (i > 0) p->steps[p->n_steps++].bits = high;
        if (i + 1 < n) {
            p->steps[p->n_steps].bits = low;
            p->steps[p->n_steps++].start = start;
        }
        ST_TRY(st_precision_check(t->run.model, p));
    }
    return STINT_OK;
}

static stint_status open_trainer(struct trainer *t) {
    const struct stint_model *model = t->run.model;
    const stint_schedule_options *o = &t->run.options;
    uint32_t n = t->run.n_candidates;
    t->n_samples = o->limit ? o->limit : DEFAULT_SAMPLES;
    struct st_heads heads = st_learned_heads(&model->config);
    t->net = (struct st_pooling_net){.n_heads = heads.n_kv,
                                     .head_dim = heads.dim,
                                     .n_hidden = ST_LEARNED_HIDDEN,
                                     .n_choices = n};
    if (n < 2 || n > ST_LEARNED_CHOICES || t->n_samples < HELD_OUT || t->n_samples > 1 << 20 ||
        t->run.n_tokens < n || t->run.n_tokens > 4096)
        return st_fail(STINT_E_ARG,
                       "candidates %u, samples %zu, tokens %u: expected 2 to %d, %d to %d, and "
                       "%u to 4096",
                       n, t->n_samples, t->run.n_tokens, ST_LEARNED_CHOICES, HELD_OUT, 1 << 20, n);
    ST_TRY(st_fork_open(model, o->session, LONGEST, t->run.n_tokens, false, &t->fork));
    ST_TRY(set_choices(t));
    struct st_arena measure = st_arena_measure();
    lay_out(t, &measure);
    ST_TRY(st_arena_check(&measure, "training"));
    ST_TRY(st_arena_open(&t->arena, measure.used));
    lay_out(t, &t->arena);
    return st_arena_check(&t->arena, "training");
}

static stint_status train(struct trainer *t, stint_schedule_result *out) {
    uint32_t epochs = t->run.options.epochs ? t->run.options.epochs : DEFAULT_EPOCHS;
    size_t held_out = t->n_samples / HELD_OUT;
    t->run.total = t->n_samples + epochs;
    ST_TRY(make_samples(t));
    start(t);
    ST_TRY(learn(t, held_out, epochs));
    out->items = t->n_samples;
    out->training_accuracy = accuracy(t, held_out, t->n_samples);
    out->validation_accuracy = accuracy(t, 0, held_out);
    out->majority = majority(t, held_out);
    if (!t->run.options.output) return STINT_OK;
    return st_learned_write(t->run.model, &t->net, t->choices, t->run.options.output);
}

static void close_trainer(struct trainer *t) {
    for (size_t i = 0; i < t->n_samples && t->samples; i++) {
        free(t->samples[i].keys);
        free(t->samples[i].values);
    }
    free(t->samples);
    st_ids_free(&t->ids);
    st_fork_close(&t->fork);
    st_arena_close(&t->arena);
}

stint_status stint_schedule_train(const stint_model *model, const stint_schedule_options *options,
                                  stint_schedule_result *result) {
    struct trainer t = {0};
    stint_schedule_result out = {0};
    ST_TRY(st_schedule_run_begin(model, options, result, &t.run));
    stint_status status = open_trainer(&t);
    if (status == STINT_OK) status = train(&t, &out);
    close_trainer(&t);
    if (status == STINT_OK) st_schedule_run_finish(&t.run, &out, result);
    return status;
}
