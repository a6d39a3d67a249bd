// SPDX-License-Identifier: Apache-2.0
// Several hidden states of a token: their magnitudes at both ends, and how they are predicted and
// corrected, against the definition in doubles.
#include "session/pass.h"
#include "stint.h"
#include "support/checkpoints.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { N = 9, WIDTH = 32, STREAMS = 3, LAYER = 2 };

static stint_model *model;
static struct stint_session *s;
static float before[STREAMS][N][WIDTH];

static int open_session(void **state) {
    (void)state;
    stint_session_options o = {.size = sizeof o, .n_threads = 2, .n_context = 32, .kv = "f32"};
    model = ts_golden_model("gemma3n", "");
    if (stint_session_open(model, &o, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    assert_int_equal(model->config.hidden, WIDTH);
    assert_int_equal(model->config.n_streams, STREAMS);
    return 0;
}

static int close_session(void **state) {
    (void)state;
    stint_session_close(s);
    stint_model_close(model);
    return 0;
}

static const struct st_batch batch = {.n = N, .n_total = N};

static struct st_run run_of(uint32_t layer) {
    struct st_run run = st_session_run(s, ST_PHASE_PREFILL, 0, &batch);
    run.layer = layer;
    return run;
}

static float *state_of(uint32_t stream, size_t t) {
    return stream == 0 ? s->buffers->x + t * WIDTH
                       : s->buffers->streams + ((stream - 1) * s->chunk_len + t) * WIDTH;
}

static void fill(void) {
    for (uint32_t i = 0; i < STREAMS; i++)
        for (size_t t = 0; t < N; t++) {
            for (size_t d = 0; d < WIDTH; d++) before[i][t][d] = ts_random_float(-2.0f, 2.0f);
            memcpy(state_of(i, t), before[i][t], sizeof before[i][t]);
        }
}

static double magnitude(const float *x) {
    double sum = 0.0;
    for (size_t d = 0; d < WIDTH; d++) sum += (double)x[d] * (double)x[d];
    return sqrt(sum / WIDTH);
}

// A token's factors, from its first state.
static void route(const struct st_stream_weight *w, const float *x, double routes[STREAMS]) {
    double scale = 1.0 / sqrt(magnitude(x) * magnitude(x) + (double)model->config.norm_epsilon);
    float row[WIDTH];
    for (size_t i = 0; i < STREAMS; i++) {
        double sum = 0.0;
        st_session_row(s, &w->router, i, row);
        for (size_t d = 0; d < WIDTH; d++)
            sum += (double)row[d] * (double)x[d] * scale * (double)w->router_norm.weight[d];
        routes[i] = tanh(sum / WIDTH);
    }
}

static double mixed(const float *row, const double routes[STREAMS]) {
    double sum = 0.0;
    for (size_t i = 0; i < STREAMS; i++) sum += (double)row[i] * routes[i];
    return sum;
}

static void further_states_have_the_magnitude_of_the_first(void **state) {
    (void)state;
    struct st_run run = run_of(0);
    fill();
    assert_int_equal(st_streams_begin(&run), STINT_OK);
    for (size_t t = 0; t < N; t++)
        for (uint32_t i = 1; i < STREAMS; i++)
            assert_float_equal(magnitude(state_of(i, t)), magnitude(before[0][t]), 1e-4);
}

static void states_are_predicted_from_each_other(void **state) {
    (void)state;
    struct st_run run = run_of(LAYER);
    const struct st_stream_weight *w = &model->weights.layers[LAYER].streams;
    fill();
    assert_int_equal(st_streams_predict(&run), STINT_OK);
    for (size_t t = 0; t < N; t++) {
        double routes[STREAMS];
        route(w, before[0][t], routes);
        for (uint32_t to = 0; to < STREAMS; to++)
            for (size_t d = 0; d < WIDTH; d++) {
                double wanted = (double)before[to][t][d];
                for (uint32_t from = 0; from < STREAMS; from++)
                    wanted += mixed(w->predict + (to * STREAMS + from) * STREAMS, routes) *
                              (double)before[from][t][d];
                assert_float_equal(state_of(to, t)[d], wanted, 1e-4);
            }
        assert_memory_equal(s->buffers->predicted + t * WIDTH, state_of(0, t),
                            WIDTH * sizeof(float));
    }
}

static void what_a_layer_changes_corrects_all(void **state) {
    (void)state;
    struct st_run run = run_of(LAYER);
    const struct st_stream_weight *w = &model->weights.layers[LAYER].streams;
    fill();
    for (size_t i = 0; i < (size_t)N * WIDTH; i++)
        s->buffers->predicted[i] = ts_random_float(-1.0f, 1.0f);
    assert_int_equal(st_streams_correct(&run), STINT_OK);
    for (size_t t = 0; t < N; t++) {
        double routes[STREAMS];
        route(w, before[0][t], routes);
        for (uint32_t i = 0; i < STREAMS; i++)
            for (size_t d = 0; d < WIDTH; d++) {
                double predicted = (double)s->buffers->predicted[t * WIDTH + d];
                double from = i == 0 ? predicted : (double)before[i][t][d];
                double wanted = from + ((double)before[0][t][d] - predicted) *
                                           (1.0 + mixed(w->correct + i * STREAMS, routes));
                assert_float_equal(state_of(i, t)[d], wanted, 1e-4);
                if (i == 0)
                    assert_float_equal(s->buffers->normed[t * WIDTH + d],
                                       wanted * (double)w->scale[d], 1e-4);
            }
    }
}

static void the_end_is_the_mean_of_all(void **state) {
    (void)state;
    struct st_run run = run_of(LAYER);
    float row[WIDTH];
    fill();
    assert_int_equal(st_streams_end(&run), STINT_OK);
    for (size_t t = 0; t < N; t++) {
        double wanted[WIDTH];
        for (size_t d = 0; d < WIDTH; d++) wanted[d] = (double)before[0][t][d] / STREAMS;
        for (uint32_t i = 1; i < STREAMS; i++) {
            float y[WIDTH];
            for (size_t d = 0; d < WIDTH; d++) {
                double sum = 0.0;
                st_session_row(s, &model->weights.stream_out[i - 1], d, row);
                for (size_t k = 0; k < WIDTH; k++) sum += (double)row[k] * (double)before[i][t][k];
                y[d] = (float)sum;
            }
            for (size_t d = 0; d < WIDTH; d++)
                wanted[d] += (double)y[d] * magnitude(before[0][t]) / magnitude(y) / STREAMS;
        }
        for (size_t d = 0; d < WIDTH; d++) assert_float_equal(state_of(0, t)[d], wanted[d], 2e-4);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(further_states_have_the_magnitude_of_the_first),
        cmocka_unit_test(states_are_predicted_from_each_other),
        cmocka_unit_test(what_a_layer_changes_corrects_all),
        cmocka_unit_test(the_end_is_the_mean_of_all),
    };
    return cmocka_run_group_tests(tests, open_session, close_session);
}
