// SPDX-License-Identifier: Apache-2.0
#include "eval/baseline.h"

#include "base/cpu.h"
#include "base/size.h"
#include "eval/awq.h"
#include "eval/fake_quantize.h"
#include "prepare/calibration_tokens.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_PREFIX = 4,
    ROWS = 64,     // tokens of a batch of calibration
    WIDTHS = 8,    // maximum of different input widths in a model
    FAR = 64,      // times the median: the token belongs to the prefix
    OUTLIER = 6,   // of LLM.int8()
    ROTATION = 11, // seed
    CHANNELS = 64, // that a thread looks at, at least
};

// The input of one linear.
struct input {
    size_t n, width;             // channels; floats per token of the linear's input
    float scale;                 // static
    float *max;                  // [n] on the calibration text
    float *factors;              // [n] or NULL
    float *token_max;            // [calibration tokens], while prefixes are looked for
    struct st_awq_tokens tokens; // where they are wanted
    struct st_rotation *rotation;
};

struct st_baseline {
    struct st_baseline_method method;
    const struct stint_model *source;
    const struct st_dequantize *dequantize;
    struct stint_model model; // a copy; the next three hold what it does not share
    struct st_layer *layers;
    struct st_ffn_weight *ffn;
    float **weights; // [n_weights]
    size_t n_weights;
    struct input *inputs; // [n_inputs]
    size_t n_inputs;
    struct st_rotation rotations[WIDTHS];
    struct stint_session *session; // attached, or the one that calibrates
    float *x, *scratch;            // [chunk, width], [threads of the attached session, widest]
    size_t widest;
    uint8_t *outlier; // [widest]
    int32_t prefix[MAX_PREFIX];
    size_t n_prefix, n_seen;
};

static stint_status no_memory(void) {
    return st_fail(STINT_E_NOMEM, "no memory to compare quantization methods");
}

static size_t blocks(const struct st_baseline *b) {
    return st_config_max_blocks(&b->source->config);
}

static struct input *input_of(struct st_baseline *b, enum st_int8_role role, uint32_t layer,
                              uint32_t expert) {
    size_t per_layer = 2 + 2 * blocks(b), first = layer * per_layer;
    switch (role) {
    case ST_INT8_QKV:
        return &b->inputs[first];
    case ST_INT8_O:
        return &b->inputs[first + 1];
    case ST_INT8_UP:
        return &b->inputs[first + 2 + 2 * expert];
    case ST_INT8_DOWN:
        return &b->inputs[first + 3 + 2 * expert];
    case ST_INT8_HEAD:
    case ST_INT8_ROLES:
        break;
    }
    return &b->inputs[b->n_inputs - 1];
}

// ---- Calibration

static const float *collect(void *context, const struct st_linear_input *in) {
    struct st_baseline *b = context;
    struct input *input = input_of(b, in->role, in->layer, in->expert);
    for (size_t t = 0; t < in->n_tokens; t++) {
        float token_max = 0.0f;
        if (input->tokens.sum) st_awq_tokens_add(&input->tokens, in->x + t * in->n);
        for (size_t i = 0; i < in->n; i++) {
            float magnitude = fabsf(in->x[t * in->n + i]);
            input->max[i] = fmaxf(input->max[i], magnitude);
            token_max = fmaxf(token_max, magnitude);
        }
        if (input->token_max && !b->source->config.n_experts)
            input->token_max[b->n_seen + t] = token_max;
    }
    return in->x;
}

static stint_status run_prefix(struct st_baseline *b, struct stint_session *s) {
    s->observe = NULL;
    for (uint32_t i = 0; i < s->n_sequences && b->n_prefix; i++)
        ST_TRY(stint_session_eval(s, i, b->prefix, b->n_prefix, false, NULL));
    return STINT_OK;
}

static stint_status observe_ids(struct st_baseline *b, const struct st_baseline_options *o,
                                float *logits) {
    size_t sequence = st_calibration_sequence(b->source);
    ST_TRY(run_prefix(b, b->session));
    b->session->observe = collect;
    b->session->observe_context = b;
    for (b->n_seen = 0; b->n_seen < o->ids->count;) {
        size_t in_sequence = b->n_seen % sequence, left = o->ids->count - b->n_seen;
        size_t n = st_min(st_min(ROWS, left), sequence - in_sequence);
        if (in_sequence == 0) ST_TRY(stint_session_truncate(b->session, 0, b->n_prefix));
        ST_TRY(stint_session_eval(b->session, 0, o->ids->data + b->n_seen, n, true, logits));
        b->n_seen += n;
        if (o->progress) o->progress(o->context, "calibrating", b->n_seen, o->ids->count);
        if (o->canceled && o->canceled(o->context)) return st_fail(STINT_E_CANCELED, "canceled");
    }
    return STINT_OK;
}

static stint_status calibrate(struct st_baseline *b, const struct st_baseline_options *o) {
    stint_session_options options = {
        .size = sizeof options,
        .n_threads = o->n_threads,
        .n_context = (uint32_t)(st_calibration_sequence(b->source) + b->n_prefix),
        .chunk_len = ROWS,
        .kv = "f32"};
    float *logits = malloc(ROWS * b->source->config.vocab * sizeof *logits);
    if (!logits) return no_memory();
    for (size_t i = 0; i < b->n_inputs; i++)
        if (b->inputs[i].max) // layers may have fewer blocks than the model's most
            memset(b->inputs[i].max, 0, b->inputs[i].n * sizeof *b->inputs[i].max);
    stint_status status = stint_session_open(b->source, &options, &b->session);
    if (status == STINT_OK) status = observe_ids(b, o, logits);
    stint_session_close(b->session);
    b->session = NULL;
    free(logits);
    return status;
}

// ---- The prefix

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

// Counts the tokens whose input is far larger than the median.
static stint_status count_far(const struct input *input, const struct st_ids *ids,
                              uint32_t *counts) {
    float *sorted = malloc(ids->count * sizeof *sorted);
    if (!sorted) return no_memory();
    memcpy(sorted, input->token_max, ids->count * sizeof *sorted);
    qsort(sorted, ids->count, sizeof *sorted, by_value);
    float median = sorted[ids->count / 2];
    for (size_t t = 0; t < ids->count; t++)
        if (input->token_max[t] > (float)FAR * median) counts[ids->data[t]]++;
    free(sorted);
    return STINT_OK;
}

// The tokens that are outliers most often, then the ids with which a text of this model begins.
static void select_prefix(struct st_baseline *b, const uint32_t *counts) {
    const struct stint_tokenizer *tokenizer = b->source->tokenizer;
    int32_t bos = tokenizer ? stint_tokenizer_bos(tokenizer) : -1;
    while (b->n_prefix < MAX_PREFIX - 1) {
        int32_t best = -1;
        for (int32_t id = 0; id < (int32_t)b->source->config.vocab; id++) {
            bool taken = id == bos;
            for (size_t i = 0; i < b->n_prefix; i++) taken = taken || b->prefix[i] == id;
            if (!taken && counts[id] > (best < 0 ? 0 : counts[best])) best = id;
        }
        if (best < 0) break;
        b->prefix[b->n_prefix++] = best;
    }
    if (bos >= 0) b->prefix[b->n_prefix++] = bos;
}

static stint_status find_prefix(struct st_baseline *b, const struct st_baseline_options *o) {
    uint32_t *counts = calloc(b->source->config.vocab, sizeof *counts);
    stint_status status = counts ? STINT_OK : no_memory();
    for (size_t i = 0; i < b->n_inputs && status == STINT_OK; i++) {
        b->inputs[i].token_max = calloc(o->ids->count, sizeof *b->inputs[i].token_max);
        if (!b->inputs[i].token_max) status = no_memory();
    }
    if (status == STINT_OK) status = calibrate(b, o);
    for (size_t i = 0; i < b->n_inputs; i++) {
        if (status == STINT_OK) status = count_far(&b->inputs[i], o->ids, counts);
        free(b->inputs[i].token_max);
        b->inputs[i].token_max = NULL;
    }
    if (status == STINT_OK) select_prefix(b, counts);
    free(counts);
    return status;
}

// ---- Weights

// The parts of a linear in the copy, which still point to the source's weights.
struct parts {
    struct st_linear_weight *part[ST_LINEAR_OP_PARTS];
    size_t n;
};

static stint_status set_factors(const struct st_baseline *b, struct input *input,
                                const struct parts *parts) {
    float *row = malloc(input->n * sizeof *row);
    input->factors = calloc(input->n, sizeof *input->factors);
    if (!row || !input->factors) {
        free(row);
        return no_memory();
    }
    for (size_t p = 0; p < parts->n; p++)
        for (size_t r = 0; r < parts->part[p]->n_out; r++) {
            st_linear_dequantize_row(b->dequantize, parts->part[p], r, 0, parts->part[p]->n_in,
                                     row);
            for (size_t i = 0; i < input->n; i++)
                input->factors[i] = fmaxf(input->factors[i], fabsf(row[i]));
        }
    for (size_t i = 0; i < input->n; i++) {
        float factor = sqrtf(fmaxf(input->max[i], 1e-5f) / fmaxf(input->factors[i], 1e-5f));
        input->factors[i] = factor;
    }
    free(row);
    return STINT_OK;
}

// Of linears that share an input.
static stint_status set_awq_factors(const struct st_baseline *b, struct input *input,
                                    const struct parts *parts) {
    struct st_awq awq = {.n = input->n,
                         .group = b->method.group,
                         .x = input->tokens.kept,
                         .n_samples = input->tokens.n_kept,
                         .mean = input->tokens.sum};
    float *floats = malloc((ST_AWQ_GRID + 2) * input->n * sizeof *floats);
    input->factors = calloc(input->n, sizeof *input->factors);
    if (!floats || !input->factors) {
        free(floats);
        return no_memory();
    }
    float *w = floats + input->n;
    awq.row = floats;
    awq.factors = w + input->n;
    for (size_t i = 0; i < input->n; i++)
        input->tokens.sum[i] /= (float)st_max(1, input->tokens.n_met);
    st_awq_begin(&awq);
    for (size_t p = 0; p < parts->n; p++)
        for (size_t r = 0; r < parts->part[p]->n_out; r += ST_AWQ_ROW_STEP) {
            st_linear_dequantize_row(b->dequantize, parts->part[p], r, 0, input->n, w);
            st_awq_try(&awq, w);
        }
    memcpy(input->factors, st_awq_best(&awq), input->n * sizeof *floats);
    free(floats);
    return STINT_OK;
}

static stint_status find_rotation(struct st_baseline *b, size_t n, struct st_rotation **rotation) {
    for (size_t i = 0; i < WIDTHS; i++) {
        struct st_rotation *r = &b->rotations[i];
        *rotation = r;
        if (r->n == n) return STINT_OK;
        if (r->n == 0) return st_rotation_open(n, ROTATION, r) == 0 ? STINT_OK : no_memory();
    }
    return st_fail(STINT_E_INTERNAL, "linears of more than %d widths", WIDTHS);
}

// Before any session is attached.
static void quantize_row(const struct st_baseline *b, const struct input *input, float *x) {
    size_t group = b->method.group ? b->method.group : input->n;
    if (b->method.awq) {
        st_awq_quantize(input->factors, input->n, group, x);
        return;
    }
    for (size_t i = 0; i < input->n && input->factors; i++) x[i] *= input->factors[i];
    if (input->rotation) st_rotation_apply(input->rotation, x, b->scratch);
    st_fake_int8_groups(x, input->n, group, x);
}

static stint_status quantize_weight(struct st_baseline *b, const struct input *input,
                                    struct st_linear_weight *w) {
    float *data = malloc(w->n_out * input->width * sizeof *data);
    if (!data) return no_memory();
    b->weights[b->n_weights++] = data;
    for (size_t r = 0; r < w->n_out; r++) {
        float *row = data + r * input->width;
        st_linear_dequantize_row(b->dequantize, w, r, 0, w->n_in, row);
        if (input->width > input->n) memcpy(row + input->n, row, input->n * sizeof *row);
        quantize_row(b, input, row);
    }
    w->data = data;
    w->dtype = ST_DTYPE_F32;
    w->scale = 0.0f; // it is in them
    w->n_in = (uint32_t)input->width;
    w->row_bytes = input->width * sizeof *data;
    return STINT_OK;
}

static stint_status quantize_linear(struct st_baseline *b, enum st_int8_role role, uint32_t layer,
                                    uint32_t expert, struct parts parts) {
    struct input *input = input_of(b, role, layer, expert);
    bool from_norm = role == ST_INT8_QKV || role == ST_INT8_UP || role == ST_INT8_HEAD;
    float max = 0.0f;
    if (b->method.awq && role == ST_INT8_HEAD) return STINT_OK;
    if (b->method.awq) ST_TRY(set_awq_factors(b, input, &parts));
    if (b->method.smooth && from_norm) ST_TRY(set_factors(b, input, &parts));
    if (b->method.rotate) ST_TRY(find_rotation(b, input->n, &input->rotation));
    for (size_t i = 0; i < input->n; i++)
        max = fmaxf(max, input->max[i] / (input->factors ? input->factors[i] : 1.0f));
    input->scale = max > 0.0f ? max / 127.0f : 1.0f;
    for (size_t p = 0; p < parts.n; p++) ST_TRY(quantize_weight(b, input, parts.part[p]));
    return STINT_OK;
}

static stint_status quantize_all(struct st_baseline *b) {
    for (uint32_t i = 0; i < b->source->config.n_layers; i++) {
        struct st_layer *l = &b->layers[i];
        size_t n_first = l->v.data ? 3 : l->k.data ? 2 : 1;
        struct parts first = {{&l->q, &l->k, &l->v}, n_first};
        ST_TRY(quantize_linear(b, ST_INT8_QKV, i, 0, first));
        ST_TRY(quantize_linear(b, ST_INT8_O, i, 0, (struct parts){{&l->o}, 1}));
        for (uint32_t e = 0; e < st_config_blocks(&b->source->config, i); e++) {
            struct st_ffn_weight *f = &l->ffn[e];
            size_t n = f->gate.data ? 2 : 1;
            ST_TRY(quantize_linear(b, ST_INT8_UP, i, e, (struct parts){{&f->up, &f->gate}, n}));
            ST_TRY(quantize_linear(b, ST_INT8_DOWN, i, e, (struct parts){{&f->down}, 1}));
        }
    }
    return quantize_linear(b, ST_INT8_HEAD, 0, 0, (struct parts){{&b->model.weights.head}, 1});
}

// ---- Opening

static stint_status take_input(struct st_baseline *b, enum st_int8_role role, uint32_t layer,
                               uint32_t expert) {
    struct st_linear_op linear_op;
    struct input *input = input_of(b, role, layer, expert);
    st_int8_shape(role, &b->source->config, layer, expert, &linear_op);
    input->n = linear_op.weight.n_in;
    input->width = b->method.outliers ? 2 * input->n : input->n;
    b->widest = st_max(b->widest, input->width);
    input->max = calloc(input->n, sizeof *input->max);
    if (b->method.awq && role != ST_INT8_HEAD && st_awq_tokens_open(input->n, &input->tokens) != 0)
        return no_memory();
    return input->max ? STINT_OK : no_memory();
}

static stint_status take_inputs(struct st_baseline *b) {
    for (uint32_t i = 0; i < b->source->config.n_layers; i++) {
        ST_TRY(take_input(b, ST_INT8_QKV, i, 0));
        ST_TRY(take_input(b, ST_INT8_O, i, 0));
        for (uint32_t e = 0; e < st_config_blocks(&b->source->config, i); e++) {
            ST_TRY(take_input(b, ST_INT8_UP, i, e));
            ST_TRY(take_input(b, ST_INT8_DOWN, i, e));
        }
    }
    return take_input(b, ST_INT8_HEAD, 0, 0);
}

static stint_status copy_model(struct st_baseline *b) {
    size_t n_layers = b->source->config.n_layers, n_ffn = n_layers * blocks(b);
    b->n_inputs = n_layers * (2 + 2 * blocks(b)) + 1;
    b->layers = calloc(n_layers, sizeof *b->layers);
    b->ffn = calloc(n_ffn, sizeof *b->ffn);
    b->inputs = calloc(b->n_inputs, sizeof *b->inputs);
    b->weights = calloc(n_layers * 4 + n_ffn * 3 + 1, sizeof *b->weights);
    if (!b->layers || !b->ffn || !b->inputs || !b->weights) return no_memory();
    b->model = *b->source;
    b->model.weights.layers = b->layers;
    for (size_t i = 0; i < n_layers; i++) {
        b->layers[i] = b->source->weights.layers[i];
        size_t n = st_config_blocks(&b->source->config, (uint32_t)i);
        memcpy(b->ffn + i * blocks(b), b->layers[i].ffn, n * sizeof *b->ffn);
        b->layers[i].ffn = b->ffn + i * blocks(b);
    }
    ST_TRY(take_inputs(b));
    b->scratch = malloc(b->widest * sizeof *b->scratch);
    b->outlier = calloc(b->widest, 1);
    return b->scratch && b->outlier ? STINT_OK : no_memory();
}

stint_status st_baseline_open(const struct st_baseline_method *method,
                              const struct stint_model *model,
                              const struct st_baseline_options *options,
                              struct st_baseline **baseline) {
    if (model->checkpoint.lazy)
        return st_fail(STINT_E_UNSUPPORTED, "methods are compared with all of a model in memory: "
                                            "leave out --memory");
    struct st_baseline *b = calloc(1, sizeof *b);
    if (!b) return no_memory();
    b->method = *method;
    b->source = model;
    b->dequantize = st_dequantize_select(st_cpu_flags());
    stint_status status = copy_model(b);
    if (status == STINT_OK && method->prefix) status = find_prefix(b, options);
    if (status == STINT_OK && (method->static_scale || method->smooth || method->awq))
        status = calibrate(b, options);
    if (status == STINT_OK) status = quantize_all(b);
    if (status != STINT_OK) {
        st_baseline_close(b);
        return status;
    }
    *baseline = b;
    return STINT_OK;
}

void st_baseline_close(struct st_baseline *b) {
    if (!b) return;
    for (size_t i = 0; i < b->n_inputs && b->inputs; i++) {
        free(b->inputs[i].max);
        free(b->inputs[i].factors);
        st_awq_tokens_close(&b->inputs[i].tokens);
    }
    for (size_t i = 0; i < b->n_weights; i++) free(b->weights[i]);
    for (size_t i = 0; i < WIDTHS; i++) st_rotation_close(&b->rotations[i]);
    free(b->layers);
    free(b->ffn);
    free(b->inputs);
    free(b->weights);
    free(b->x);
    free(b->scratch);
    free(b->outlier);
    free(b);
}

const struct stint_model *st_baseline_model(const struct st_baseline *baseline) {
    return &baseline->model;
}

size_t st_baseline_prefix(const struct st_baseline *baseline) {
    return baseline->n_prefix;
}

// ---- Inputs

// The input of a linear, of all tokens of a batch.
struct met {
    struct st_baseline *baseline;
    const struct st_linear_input *in;
    const struct input *input;
};

static void find_outliers(void *context, size_t from, size_t to, size_t worker) {
    const struct met *m = context;
    const struct st_linear_input *in = m->in;
    uint8_t *outlier = m->baseline->outlier;
    (void)worker;
    memset(outlier + from, 0, to - from);
    for (size_t t = 0; t < in->n_tokens; t++)
        for (size_t i = from; i < to; i++)
            outlier[i] |= fabsf(in->x[t * in->n + i]) >= (float)OUTLIER;
}

static void quantize_token(void *context, size_t t, size_t worker) {
    const struct met *m = context;
    const struct st_baseline *b = m->baseline;
    const struct input *input = m->input;
    const float *x = m->in->x + t * m->in->n;
    float *y = b->x + t * input->width, *scratch = b->scratch + worker * b->widest;
    size_t n = input->n, group = b->method.group ? b->method.group : n;
    for (size_t i = 0; i < n; i++) y[i] = b->outlier[i] ? 0.0f : x[i];
    for (size_t i = 0; i < n && input->factors; i++) y[i] /= input->factors[i];
    if (input->rotation) st_rotation_apply(input->rotation, y, scratch);
    if (b->method.static_scale)
        st_fake_int8(y, n, input->scale, y);
    else
        st_fake_int8_groups(y, n, group, y);
    if (input->width == n) return;
    for (size_t i = 0; i < n; i++) y[n + i] = b->outlier[i] ? x[i] : 0.0f;
}

static const float *quantize_input(void *context, const struct st_linear_input *in) {
    struct st_baseline *b = context;
    struct met met = {b, in, input_of(b, in->role, in->layer, in->expert)};
    struct st_pool *pool = b->session->group.pool;
    if (b->method.outliers) st_pool_run_ranges(pool, find_outliers, &met, in->n, CHANNELS);
    st_pool_run(pool, quantize_token, &met, in->n_tokens);
    return b->x;
}

stint_status st_baseline_attach(struct st_baseline *b, struct stint_session *session) {
    size_t rows = st_max(session->chunk_len,
                         ST_LINEAR_FEW_TOKENS + 1); // the last rows of a prompt are scratch
    free(b->x);
    free(b->scratch);
    b->x = calloc(rows * b->widest, sizeof *b->x);
    b->scratch = malloc(st_pool_threads(session->group.pool) * b->widest * sizeof *b->scratch);
    if (!b->x || !b->scratch) return no_memory();
    b->session = session;
    ST_TRY(run_prefix(b, session));
    if (b->method.awq) return STINT_OK; // inputs stay as they are
    session->observe = quantize_input;
    session->observe_context = b;
    return STINT_OK;
}
