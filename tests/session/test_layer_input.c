// SPDX-License-Identifier: Apache-2.0
// Tokens' inputs of each layer: what they are by definition, the same bits however many layers are
// made at a time, and the first row for tokens that have none.
#include "session/pass.h"
#include "stint.h"
#include "support/checkpoints.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N = 23 };

static stint_model *model;
static struct stint_session *s;
static int32_t ids[N];

static int open_session(void **state) {
    (void)state;
    stint_session_options o = {.size = sizeof o, .n_threads = 2, .n_context = 32, .kv = "f32"};
    model = ts_golden_model("gemma4", "");
    if (stint_session_open(model, &o, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    for (size_t i = 0; i < N; i++) ids[i] = (int32_t)ts_random_below(model->config.vocab);
    return 0;
}

static int close_session(void **state) {
    (void)state;
    stint_session_close(s);
    stint_model_close(model);
    return 0;
}

// Of layers [first, first + n_layers), which are left in the session's buffers.
static const float *inputs(enum st_phase phase, size_t n, uint32_t first, uint32_t n_layers) {
    struct st_batch batch = {.n = n, .n_total = n};
    struct st_run run = st_session_run(s, phase, 0, &batch);
    run.layer = first;
    if (st_pass_embed(&run, ids, n_layers) != STINT_OK) fail_msg("%s", stint_error_text());
    return s->buffers->layer_inputs;
}

// One token's input of a layer, in doubles.
static void define(int32_t id, uint32_t layer, double *out) {
    const struct st_config *c = &model->config;
    const struct st_weights *w = &model->weights;
    size_t n = c->layer_input, row = (size_t)id < c->layer_vocab ? (size_t)id : 0;
    float embed[64], weights[64], all[256];
    double squares = 0.0;
    assert_true(c->hidden <= 64 && c->n_layers * n <= 256);
    st_session_row(s, &w->embed, (size_t)id, embed);
    st_session_row(s, &w->layer_embed, row, all);
    for (size_t i = 0; i < n; i++) {
        st_session_row(s, &w->layer_project, layer * n + i, weights);
        out[i] = 0.0;
        for (size_t k = 0; k < c->hidden; k++)
            out[i] += (double)weights[k] * (double)embed[k]; // scales of both cancel
        squares += out[i] * out[i];
    }
    double scale = 1.0 / sqrt(squares / (double)n + (double)c->norm_epsilon);
    for (size_t i = 0; i < n; i++)
        out[i] = (out[i] * scale * (double)w->layer_project_norm.weight[i] +
                  (double)all[layer * n + i] * sqrt((double)n)) /
                 sqrt(2.0);
}

static void inputs_are_what_they_are_by_definition(void **state) {
    (void)state;
    const struct st_config *c = &model->config;
    const float *got = inputs(ST_PHASE_PREFILL, N, 0, c->n_layers);
    double wanted[64];
    for (size_t t = 0; t < N; t++)
        for (uint32_t layer = 0; layer < c->n_layers; layer++) {
            define(ids[t], layer, wanted);
            for (size_t i = 0; i < c->layer_input; i++)
                assert_float_equal(got[(t * c->n_layers + layer) * c->layer_input + i], wanted[i],
                                   2e-4);
        }
}

static void layers_by_themselves_have_the_same_bits(void **state) {
    (void)state;
    const struct st_config *c = &model->config;
    size_t row = c->layer_input * c->n_layers, bytes = c->layer_input * sizeof(float);
    static const size_t rows[] = {N, 2};
    for (size_t i = 0; i < 2; i++) {
        enum st_phase phase = i ? ST_PHASE_DECODE : ST_PHASE_PREFILL;
        float *whole = malloc(rows[i] * row * sizeof *whole);
        memcpy(whole, inputs(phase, rows[i], 0, c->n_layers), rows[i] * row * sizeof *whole);
        for (uint32_t layer = 0; layer < c->n_layers; layer++) {
            const float *alone = inputs(phase, rows[i], layer, 1);
            for (size_t t = 0; t < rows[i]; t++)
                assert_memory_equal(alone + t * row + layer * c->layer_input,
                                    whole + t * row + layer * c->layer_input, bytes);
        }
        free(whole);
    }
}

static void tokens_without_a_row_have_the_first_one(void **state) {
    (void)state;
    struct st_weights *w = &model->weights;
    struct st_linear_weight table = w->layer_embed;
    double wanted[64];
    ids[1] = (int32_t)model->config.vocab - 1;
    w->layer_embed.n_out = model->config.layer_vocab = model->config.vocab - 1;
    const float *got = inputs(ST_PHASE_PREFILL, N, 0, model->config.n_layers);
    define(ids[1], 2, wanted);
    for (size_t i = 0; i < model->config.layer_input; i++)
        assert_float_equal(
            got[(model->config.n_layers + 2) * (size_t)model->config.layer_input + i], wanted[i],
            2e-4);
    w->layer_embed = table;
    model->config.layer_vocab = model->config.vocab;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_are_what_they_are_by_definition),
        cmocka_unit_test(layers_by_themselves_have_the_same_bits),
        cmocka_unit_test(tokens_without_a_row_have_the_first_one),
    };
    return cmocka_run_group_tests(tests, open_session, close_session);
}
