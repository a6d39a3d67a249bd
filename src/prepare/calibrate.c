// SPDX-License-Identifier: Apache-2.0
#include "prepare/calibrate.h"

#include "base/size.h"
#include "kernels/linear.h"
#include "prepare/calibration_tokens.h"
#include "prepare/quantize.h"
#include "session/kv/state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_TOKENS = 256, LOGIT_ROWS = 48, COUNT_TOKENS = 1024, ERROR_EVERY = 8 };
enum { LOUDEST = 4 }; // times the median energy that a token may count

// ---- Memory

static struct st_input_stats take_stats(const struct st_calibration *c, struct st_arena *arena,
                                        size_t n) {
    return (struct st_input_stats){
        .n = n,
        .max = ST_TAKE(arena, float, n),
        .norms = ST_TAKE(arena, float, n),
        .squares = ST_TAKE(arena, float, n),
        .products = c->products ? ST_TAKE(arena, float, st_moments_floats(n)) : NULL,
        .beyond = ST_TAKE(arena, uint32_t, n * ST_CLIP_CANDIDATES)};
}

static size_t n_states(const struct stint_model *model) {
    return st_max(1, model->config.n_streams);
}

// Numbers of a token's keys that later layers use, of layers of a kind: with a window, or without.
static size_t shared_keys(const struct stint_model *model, uint8_t kind) {
    const struct st_config *c = &model->config;
    for (uint32_t i = 0; i < c->n_layers; i++) {
        struct st_heads heads = st_config_heads(c, i);
        if (c->cache_back[i] && c->sliding[i] == kind) return (size_t)heads.n_kv * heads.dim;
    }
    return 0;
}

size_t st_calibration_floats(const struct stint_model *model, size_t n_ids) {
    size_t keys = shared_keys(model, 0) + shared_keys(model, 1), hidden = model->config.hidden;
    size_t normed = model->config.flags & ST_ARCH_JOINT ? hidden : 0;
    return n_ids * (n_states(model) * hidden + normed + 2 * keys);
}

static void lay_out(struct st_calibration *c, struct st_arena *arena) {
    const struct st_config *config = &c->model->config;
    size_t n_floats = st_calibration_floats(c->model, c->n_ids);
    uint32_t n_ffn = st_config_max_blocks(config);
    struct st_layer_stats *s = &c->stats;
    c->hidden = ST_TAKE(arena, float, n_floats);
    float *end = c->hidden ? c->hidden + n_states(c->model) * c->n_ids * config->hidden : NULL;
    for (uint8_t kind = 0; kind < 2 && end; kind++) {
        size_t n = c->n_ids * shared_keys(c->model, kind);
        c->keys[kind] = n ? end : NULL;
        c->values[kind] = n ? end + n : NULL;
        end += 2 * n;
    }
    if (config->flags & ST_ARCH_JOINT) c->normed = end;
    if (c->n_observed == 0) return;
    c->before = ST_TAKE(arena, float, n_floats);
    s->qkv = take_stats(c, arena, config->hidden);
    s->o = take_stats(c, arena, st_config_widest_mixer(config).out);
    s->head = take_stats(c, arena, config->embed);
    s->up = ST_TAKE(arena, struct st_input_stats, n_ffn);
    s->down = ST_TAKE(arena, struct st_input_stats, n_ffn);
    for (uint32_t e = 0; e < n_ffn; e++) {
        struct st_input_stats up = take_stats(c, arena, config->hidden);
        struct st_input_stats down = take_stats(c, arena, st_config_widest_block(config, e));
        if (s->up) s->up[e] = up;
        if (s->down) s->down[e] = down;
    }
}

// ---- Observation

struct st_input_stats *st_calibration_stats(struct st_calibration *c, enum st_int8_role role,
                                            uint32_t expert) {
    struct st_layer_stats *s = &c->stats;
    switch (role) {
    case ST_INT8_QKV:
        return &s->qkv;
    case ST_INT8_O:
        return &s->o;
    case ST_INT8_UP:
        return &s->up[expert];
    case ST_INT8_DOWN:
        return &s->down[expert];
    case ST_INT8_HEAD:
    case ST_INT8_ROLES:
        break;
    }
    return &s->head;
}

static void see_maxima(struct st_input_stats *s, const float *x, float share) {
    float row_max = 0.0f, energy = 0.0f;
    for (size_t i = 0; i < s->n; i++) {
        float magnitude = fabsf(x[i]);
        s->squares[i] += share * x[i] * x[i];
        energy += x[i] * x[i];
        // A NaN stays, because no comparison with it is true.
        if (magnitude > s->max[i] || isnan(magnitude)) s->max[i] = magnitude;
        row_max = fmaxf(row_max, magnitude);
    }
    if (!(energy > 0.0f)) return;
    double step = (double)row_max / 127.0; // an error within it is uniform
    s->row_errors += (double)s->n * step * step / 12.0 / (double)energy;
    s->row_tokens++;
}

static int by_size(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

// How much of each token's squares counts. A few tokens, such as the first of a text, have a
// thousand times the energy of others; second moments would be those of these tokens alone.
static void find_shares(const struct st_linear_input *input, float shares[BATCH_TOKENS]) {
    float sorted[BATCH_TOKENS];
    for (size_t t = 0; t < input->n_tokens; t++) {
        const float *x = input->x + t * input->n;
        double sum = 0.0;
        for (size_t i = 0; i < input->n; i++) sum += (double)x[i] * (double)x[i];
        sorted[t] = shares[t] = (float)sum;
    }
    qsort(sorted, input->n_tokens, sizeof *sorted, by_size);
    float most = LOUDEST * sorted[input->n_tokens / 2];
    for (size_t t = 0; t < input->n_tokens; t++)
        shares[t] = shares[t] > most ? most / shares[t] : 1.0f;
}

static const float *observe(void *context, const struct st_linear_input *input) {
    struct st_calibration *c = context;
    struct st_input_stats *s = st_calibration_stats(c, input->role, input->expert);
    size_t stride = st_max(1, c->n_observed / COUNT_TOKENS);
    if (c->watch && c->phase == ST_CALIBRATE_MAXIMA) c->watch(c->watch_context, input);
    if (c->phase == ST_CALIBRATE_MAXIMA) {
        float shares[BATCH_TOKENS];
        find_shares(input, shares);
        s->n_seen += input->n_tokens;
        for (size_t t = 0; t < input->n_tokens; t++)
            see_maxima(s, input->x + t * input->n, shares[t]);
        if (s->products)
            st_moments_add(s->products, s->n, input->x, shares, input->n_tokens,
                           c->session->kernels.tile, c->session->group.pool);
    } else {
        for (size_t t = 0; t < input->n_tokens; t += stride)
            st_outlier_count(s, input->x + t * input->n, s->n_tokens % ERROR_EVERY == 0);
    }
    return input->x;
}

static void clear_maxima(struct st_input_stats *s) {
    memset(s->max, 0, s->n * sizeof *s->max);
    memset(s->squares, 0, s->n * sizeof *s->squares);
    s->n_seen = 0;
    s->row_errors = 0.0;
    s->row_tokens = 0;
    if (s->products) memset(s->products, 0, s->n * s->n * sizeof *s->products);
}

static void clear_counts(struct st_input_stats *s) {
    memset(s->beyond, 0, s->n * ST_CLIP_CANDIDATES * sizeof *s->beyond);
    memset(s->errors, 0, sizeof s->errors);
    s->n_tokens = 0;
}

static void for_layer(struct st_calibration *c, void (*fn)(struct st_input_stats *stats)) {
    fn(&c->stats.qkv);
    fn(&c->stats.o);
    for (size_t e = 0; e < st_config_max_blocks(&c->model->config); e++) {
        fn(&c->stats.up[e]);
        fn(&c->stats.down[e]);
    }
}

static bool is_silent(const struct st_input_stats *s) {
    for (size_t i = 0; i < s->n; i++)
        if (s->max[i] != 0.0f) return false;
    return true;
}

// An expert that received no token gets the maxima of the others, channel by channel.
static void fill_silent(struct st_input_stats *experts, size_t n) {
    for (size_t e = 0; e < n; e++) {
        if (!is_silent(&experts[e])) continue;
        for (size_t other = 0; other < n; other++)
            for (size_t i = 0; i < experts[e].n; i++)
                experts[e].max[i] = fmaxf(experts[e].max[i], experts[other].max[i]);
    }
}

// ---- Passes

// Runs the batches of all sequences, one after the other.
typedef stint_status batch_fn(struct st_calibration *c, const struct st_batch *batch, size_t first,
                              uint32_t layer);

static stint_status for_batches(struct st_calibration *c, batch_fn *fn, uint32_t layer) {
    for (size_t start = 0; start < c->n_ids; start += c->n_sequence) {
        size_t n = st_min(c->n_sequence, c->n_ids - start);
        for (size_t done = 0; done < n; done += BATCH_TOKENS) {
            struct st_batch batch = {
                .n = st_min(BATCH_TOKENS, n - done), .position = done, .n_total = n};
            if (c->stop && c->stop(c->stop_context)) return st_fail(STINT_E_CANCELED, "canceled");
            // Whole batches are observed, including the one with the last token to observe.
            c->session->observe = start + done < c->n_observed ? observe : NULL;
            ST_TRY(fn(c, &batch, start + done, layer));
        }
    }
    return STINT_OK;
}

static float *hidden_of(const struct st_calibration *c, size_t token) {
    return c->hidden + token * c->model->config.hidden;
}

static size_t row_bytes(const struct st_calibration *c) {
    return c->model->config.hidden * sizeof(float);
}

// The states of a batch, [states, chunk_len, hidden] where the pass has them, to or from those of
// the text.
static float *state_in_pass(const struct st_calibration *c, const struct st_run *run, size_t i) {
    if (i == 0) return run->buffers->x;
    return run->buffers->streams + (i - 1) * c->session->chunk_len * c->model->config.hidden;
}

static void keep_states(const struct st_calibration *c, const struct st_run *run, size_t first) {
    for (size_t i = 0; i < n_states(c->model); i++)
        memcpy(hidden_of(c, i * c->n_ids_all + first), state_in_pass(c, run, i),
               run->batch->n * row_bytes(c));
}

static void restore_states(const struct st_calibration *c, const struct st_run *run, size_t first) {
    for (size_t i = 0; i < n_states(c->model); i++)
        memcpy(state_in_pass(c, run, i), hidden_of(c, i * c->n_ids_all + first),
               run->batch->n * row_bytes(c));
}

static struct st_run run_of(const struct st_calibration *c, const struct st_batch *batch) {
    bool prompt = c->n_sequence > ST_SHORT_TEXT;
    struct st_run run = st_session_run(c->session, prompt ? ST_PHASE_PREFILL : ST_PHASE_DECODE,
                                       c->bits ? c->bits : ST_PRECISION_INT8, batch);
    run.as_steps = true;
    run.nearly_exact = c->roughly || c->session->observe;
    return run;
}

static stint_status embed(struct st_calibration *c, const struct st_batch *batch, size_t first,
                          uint32_t layer) {
    struct st_run run = run_of(c, batch);
    (void)layer;
    ST_TRY(st_pass_embed(&run, c->ids + first, 0));
    keep_states(c, &run, first);
    return STINT_OK;
}

// The layerwise session has forgotten a cache that is used again.
static void restore_rows(const struct st_calibration *c, const struct st_run *run, size_t first) {
    const struct st_config *config = &c->model->config;
    struct st_heads heads = st_config_heads(config, run->layer);
    size_t width = (size_t)heads.n_kv * heads.dim, n = run->batch->n * width;
    uint8_t kind = config->sliding[run->layer];
    if (!config->cache_back[run->layer]) return;
    memcpy(run->buffers->k, c->keys[kind] + first * width, n * sizeof(float));
    memcpy(run->buffers->v, c->values[kind] + first * width, n * sizeof(float));
}

// The last layer of its kind with a cache is the one that others use.
static void keep_rows(const struct st_calibration *c, const struct st_run *run, size_t first) {
    const struct st_config *config = &c->model->config;
    struct st_heads heads = st_config_heads(config, run->layer);
    size_t width = (size_t)heads.n_kv * heads.dim, n = run->batch->n * width;
    uint8_t kind = config->sliding[run->layer];
    if (!c->keys[kind] || !st_config_has_cache(config, run->layer)) return;
    memcpy(c->keys[kind] + first * width, run->buffers->k, n * sizeof(float));
    memcpy(c->values[kind] + first * width, run->buffers->v, n * sizeof(float));
}

static stint_status run_layer(struct st_calibration *c, const struct st_batch *batch, size_t first,
                              uint32_t layer) {
    struct st_run run = run_of(c, batch);
    run.layer = layer;
    if (c->model->config.layer_input)
        ST_TRY(st_pass_embed(&run, c->ids + first, 1));
    else
        st_pass_rotations(&run);
    restore_states(c, &run, first);
    restore_rows(c, &run, first);
    struct st_state_batch state = {.position = batch->position, .n = batch->n};
    float *normed = c->normed ? c->normed + first * c->model->config.hidden : NULL;
    if (c->model->config.joined[layer])
        memcpy(run.buffers->normed, normed, batch->n * row_bytes(c));
    st_state_begin(c->session, &state);
    ST_TRY(st_pass_layer(&run));
    st_state_end(c->session, &state);
    keep_rows(c, &run, first);
    if (normed && !c->model->config.joined[layer])
        memcpy(normed, run.buffers->normed, batch->n * row_bytes(c));
    keep_states(c, &run, first);
    return STINT_OK;
}

static stint_status run_head(struct st_calibration *c, const struct st_batch *batch, size_t first,
                             uint32_t layer) {
    (void)layer;
    struct st_run run = run_of(c, batch);
    const float *x;
    ST_TRY(st_pass_head_input(&run, hidden_of(c, first), batch->n, &x));
    st_session_observe(c->session, &(struct st_linear_input){0, 0, ST_INT8_HEAD, x, batch->n,
                                                             c->model->config.embed});
    return STINT_OK;
}

static stint_status open_in(struct st_calibration *c, uint32_t n_threads) {
    stint_session_options options = {.size = sizeof options,
                                     .n_threads = n_threads,
                                     .n_context = (uint32_t)c->n_sequence,
                                     .chunk_len = BATCH_TOKENS,
                                     .kv = "f32"};
    struct st_arena measure = st_arena_measure();
    lay_out(c, &measure);
    ST_TRY(st_arena_check(&measure, "calibration"));
    ST_TRY(st_arena_open(&c->arena, measure.used));
    lay_out(c, &c->arena);
    ST_TRY(st_session_open_layerwise(c->model, &options, &c->session));
    c->session->observe_context = c;
    return for_batches(c, embed, 0);
}

stint_status st_calibration_open(const struct stint_model *model, const int32_t *ids, size_t n_ids,
                                 size_t n_observed, uint32_t n_threads,
                                 struct st_calibration *calibration) {
    calibration->model = model;
    calibration->ids = ids;
    calibration->n_ids = calibration->n_ids_all = n_ids;
    calibration->n_observed = n_observed;
    calibration->n_sequence = st_min(st_calibration_sequence(model), n_ids);
    return open_in(calibration, n_threads);
}

void st_calibration_close(struct st_calibration *calibration) {
    stint_session_close(calibration->session);
    st_arena_close(&calibration->arena);
    calibration->session = NULL;
}

stint_status st_calibration_layer(struct st_calibration *c, uint32_t layer) {
    const struct st_config *config = &c->model->config;
    c->phase = ST_CALIBRATE_MAXIMA;
    c->stats.o.n = st_config_mixer(config, layer).out;
    if (c->n_observed) {
        for (uint32_t e = 0; e < st_config_blocks(config, layer); e++)
            c->stats.down[e].n = st_config_ffn(config, layer, e);
        for_layer(c, clear_maxima);
        memcpy(c->before, c->hidden, st_calibration_floats(c->model, c->n_ids) * sizeof *c->before);
    }
    ST_TRY(for_batches(c, run_layer, layer));
    if (c->n_observed && st_config_is_routed(config, layer, 0)) {
        fill_silent(c->stats.up, config->n_experts);
        fill_silent(c->stats.down, config->n_experts);
    }
    return STINT_OK;
}

// Takes the first n_counted ids alone.
static stint_status count_batches(struct st_calibration *c, batch_fn *fn, uint32_t layer) {
    size_t all = c->n_ids;
    if (c->n_counted) c->n_ids = st_min(all, c->n_counted);
    c->phase = ST_CALIBRATE_OUTLIERS;
    stint_status status = for_batches(c, fn, layer);
    c->n_ids = all;
    return status;
}

// The hidden states of ids that are not counted stay as the first run left them.
stint_status st_calibration_layer_again(struct st_calibration *c, uint32_t layer) {
    size_t n = c->n_counted ? st_min(c->n_counted, c->n_ids) : c->n_ids;
    for_layer(c, clear_counts);
    for (size_t i = 0; i < n_states(c->model); i++) {
        size_t at = i * c->n_ids_all * c->model->config.hidden;
        memcpy(c->hidden + at, c->before + at, n * row_bytes(c));
    }
    return count_batches(c, run_layer, layer);
}

stint_status st_calibration_head(struct st_calibration *c) {
    c->phase = ST_CALIBRATE_MAXIMA;
    clear_maxima(&c->stats.head);
    return for_batches(c, run_head, 0);
}

stint_status st_calibration_head_again(struct st_calibration *c) {
    clear_counts(&c->stats.head);
    return count_batches(c, run_head, 0);
}

// ---- Predictions

// Rows [row, row + n) of the text. The token after a sequence's last one is not known.
static stint_status predict_rows(struct st_calibration *c, size_t row, size_t n, float *logits,
                                 struct st_predictions *p) {
    struct st_run run = run_of(c, NULL);
    size_t vocab = c->model->config.vocab;
    memcpy(run.buffers->x, hidden_of(c, row), n * row_bytes(c));
    c->session->observe = NULL;
    ST_TRY(st_pass_logits(&run, 0, n, logits));
    for (size_t t = 0; t < n; t++) {
        size_t next = row + t + 1;
        if (next == c->n_ids || next % c->n_sequence == 0) continue;
        st_predictions_add(p, logits + t * vocab, vocab, c->ids[next]);
    }
    return STINT_OK;
}

stint_status st_calibration_predict(struct st_calibration *c, size_t first,
                                    struct st_predictions *p) {
    struct st_arena measure = st_arena_measure(), arena;
    size_t rows = st_min(LOGIT_ROWS, c->session->chunk_len),
           n_logits = rows * c->model->config.vocab;
    ST_TAKE(&measure, float, n_logits);
    ST_TRY(st_arena_open(&arena, measure.used));
    float *logits = ST_TAKE(&arena, float, n_logits);
    stint_status status = STINT_OK;
    p->loss = p->divergence = 0.0;
    p->n = p->n_same = 0;
    for (size_t row = first; row < c->n_ids && status == STINT_OK; row += rows) {
        size_t n = st_min(rows, c->n_ids - row);
        if (c->stop && c->stop(c->stop_context)) status = st_fail(STINT_E_CANCELED, "canceled");
        if (status == STINT_OK) status = predict_rows(c, row, n, logits, p);
    }
    st_arena_close(&arena);
    return status;
}
