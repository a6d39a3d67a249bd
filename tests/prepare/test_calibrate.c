// SPDX-License-Identifier: Apache-2.0
// What calibration sees layer by layer is what a whole forward pass sees.
#include "prepare/calibrate.h"
#include "prepare/calibration_tokens.h"
#include "support/checkpoints.h"
#include "support/support.h"

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_IDS = 150, MAX_LAYERS = 12 };

static stint_model *model;

static int open_model(void **state) {
    (void)state;
    return stint_model_open(ts_trained(), NULL, &model) == STINT_OK ? 0 : -1;
}

static int close_model(void **state) {
    (void)state;
    stint_model_close(model);
    return 0;
}

// The largest input of every linear, in the order of a forward pass.
struct seen {
    float max[MAX_LAYERS * 4];
    size_t n;
};

static const float *see(void *context, const struct st_linear_input *input) {
    struct seen *s = context;
    assert_int_equal(input->layer, s->n / 4);
    assert_int_equal(input->role, s->n % 4);
    assert_int_equal(input->expert, 0);
    assert_true(s->n < MAX_LAYERS * 4);
    for (size_t i = 0; i < input->n_tokens * input->n; i++)
        s->max[s->n] = fmaxf(s->max[s->n], fabsf(input->x[i]));
    s->n++;
    return input->x;
}

static void random_ids(int32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)ts_random_below(4000);
}

static float largest(const struct st_input_stats *stats) {
    float max = 0.0f;
    for (size_t i = 0; i < stats->n; i++) max = fmaxf(max, stats->max[i]);
    return max;
}

static void layer_by_layer_is_the_whole_pass(void **state) {
    (void)state;
    int32_t ids[N_IDS];
    struct seen seen = {.n = 0};
    stint_session *s = NULL;
    stint_session_options exact = {.size = sizeof exact, .kv = "f32"};
    struct st_calibration c = {0};
    random_ids(ids, N_IDS);
    assert_int_equal(stint_session_open(model, &exact, &s), STINT_OK);
    s->observe = see;
    s->observe_context = &seen;
    assert_int_equal(stint_session_eval(s, 0, ids, N_IDS, false, NULL), STINT_OK);
    assert_int_equal(seen.n, 4 * model->config.n_layers);
    assert_int_equal(st_calibration_open(model, ids, N_IDS, N_IDS, 2, &c), STINT_OK);
    for (uint32_t i = 0; i < model->config.n_layers; i++) {
        assert_int_equal(st_calibration_layer(&c, i), STINT_OK);
        for (int role = 0; role < 4; role++) {
            struct st_input_stats *stats = st_calibration_stats(&c, (enum st_int8_role)role, 0);
            // Where products of 16-bit integers are faster, they are good enough.
            float wanted = seen.max[4 * i + (size_t)role];
            assert_true(fabsf(largest(stats) - wanted) <= 2e-3f * wanted);
            assert_int_equal(st_outlier_scales(stats, "x"), STINT_OK);
        }
        // The same input once more: the next layer does not notice.
        assert_int_equal(st_calibration_layer_again(&c, i), STINT_OK);
        assert_int_equal(c.stats.o.n_tokens, N_IDS);
    }
    assert_int_equal(st_calibration_head(&c), STINT_OK);
    assert_int_equal(c.stats.head.n, model->config.embed);
    assert_true(largest(&c.stats.head) > 0.0f);
    st_calibration_close(&c);
    stint_session_close(s);
}

static void run_from(struct st_calibration *c, uint32_t layer) {
    for (uint32_t i = layer; i < c->model->config.n_layers; i++)
        if (st_calibration_layer(c, i) != STINT_OK) fail_msg("%s", stint_error_text());
}

// From any layer on, with what all runs in between have left.
static void layers_need_nothing_but_what_is_kept(void **state) {
    static const char *const names[] = {"gemma4", "gemma3n", "falcon_h1"};
    int32_t ids[N_IDS];
    (void)state;
    for (size_t i = 0; i < N_IDS; i++) ids[i] = (int32_t)ts_random_below(44);
    for (size_t m = 0; m < sizeof names / sizeof *names; m++) {
        stint_model *golden = ts_golden_model(names[m], "");
        struct st_calibration c = {0};
        size_t bytes = st_calibration_floats(golden, 50) * sizeof(float);
        float *kept = malloc(bytes), *end = malloc(bytes);
        assert_int_equal(st_calibration_open(golden, ids, 50, 0, 2, &c), STINT_OK);
        for (uint32_t from = 0; from < golden->config.n_layers; from++) {
            memcpy(kept, c.hidden, bytes);
            run_from(&c, from);
            memcpy(end, c.hidden, bytes);
            for (size_t i = 0; i < bytes / sizeof(float); i++) c.hidden[i] = (float)(i % 3);
            run_from(&c, 0); // another text's
            memcpy(c.hidden, kept, bytes);
            run_from(&c, from);
            assert_memory_equal(c.hidden, end, 50 * golden->config.hidden * sizeof(float));
            memcpy(c.hidden, kept, bytes);
            assert_int_equal(st_calibration_layer(&c, from), STINT_OK);
        }
        st_calibration_close(&c);
        stint_model_close(golden);
        free(kept);
        free(end);
    }
}

static void predictions_are_those_of_a_session(void **state) {
    (void)state;
    int32_t ids[N_IDS];
    size_t vocab = model->config.vocab;
    float *logits = malloc(N_IDS * vocab * sizeof *logits);
    stint_session *s = NULL;
    stint_session_options exact = {.size = sizeof exact, .kv = "f32"};
    struct st_calibration c = {0};
    struct st_predictions first = {.at = calloc(N_IDS, sizeof *first.at)};
    struct st_predictions again = {.at = calloc(N_IDS, sizeof *again.at), .exact = &first};
    random_ids(ids, N_IDS);
    assert_int_equal(stint_session_open(model, &exact, &s), STINT_OK);
    assert_int_equal(stint_session_eval(s, 0, ids, N_IDS, true, logits), STINT_OK);
    double loss = 0.0;
    for (size_t t = 0; t + 1 < N_IDS; t++) {
        double sum = 0.0;
        for (size_t v = 0; v < vocab; v++) sum += exp((double)logits[t * vocab + v]);
        loss += log(sum) - (double)logits[t * vocab + (size_t)ids[t + 1]];
    }
    assert_int_equal(st_calibration_open(model, ids, N_IDS, 0, 2, &c), STINT_OK);
    run_from(&c, 0);
    assert_int_equal(st_calibration_predict(&c, 0, &first), STINT_OK);
    assert_int_equal(first.n, N_IDS - 1);
    assert_true(fabs(first.loss - loss) < 1e-4 * loss);
    for (size_t i = 1; i < ST_PREDICTED; i++)
        assert_true(first.at[3].log_p[i] <= first.at[3].log_p[i - 1]);
    // Nothing is as near to a model as itself.
    assert_int_equal(st_calibration_predict(&c, 0, &again), STINT_OK);
    assert_int_equal(again.n_same, again.n);
    assert_true(fabs(again.divergence) < 1e-3);
    free(first.at);
    free(again.at);
    free(logits);
    st_calibration_close(&c);
    stint_session_close(s);
}

static bool stop(void *context) {
    return --*(int *)context < 0;
}

static void it_stops_when_asked(void **state) {
    (void)state;
    int32_t ids[N_IDS];
    int left = 3;
    struct st_calibration c = {.stop = stop, .stop_context = &left};
    random_ids(ids, N_IDS);
    assert_int_equal(st_calibration_open(model, ids, N_IDS, N_IDS, 1, &c), STINT_OK);
    assert_int_equal(st_calibration_layer(&c, 0), STINT_OK);
    assert_int_equal(st_calibration_layer(&c, 1), STINT_OK);
    assert_int_equal(st_calibration_layer(&c, 2), STINT_E_CANCELED);
    st_calibration_close(&c);
}

// One token reaches two of Mixtral's eight experts.
static void an_idle_expert_takes_the_others_maxima(void **state) {
    (void)state;
    stint_model *mixture = NULL;
    const int32_t id = 7;
    struct st_calibration c = {0};
    const char *path = ts_shared("fixtures/models/mixtral");
    assert_int_equal(stint_model_open(path, NULL, &mixture), STINT_OK);
    uint32_t n = mixture->config.n_experts;
    float max = 0.0f, min = INFINITY;
    assert_int_equal(st_calibration_open(mixture, &id, 1, 1, 1, &c), STINT_OK);
    assert_int_equal(st_calibration_layer(&c, 0), STINT_OK);
    for (uint32_t e = 0; e < n; e++) {
        float scale = largest(&c.stats.down[e]);
        max = fmaxf(max, scale);
        min = fminf(min, scale);
    }
    assert_true(n > 2 && min > 0.0f && min < max);
    st_calibration_close(&c);
    stint_model_close(mixture);
}

static void tokens_come_from_what_is_given(void **state) {
    (void)state;
    const int32_t given[] = {5, 6, 7}, beyond[] = {5, 4096};
    struct st_calibration_input input = {.ids = given, .n_ids = 3, .max = 2};
    struct st_ids ids = {0};
    assert_int_equal(st_calibration_tokens(model, &input, &ids), STINT_OK);
    assert_int_equal(ids.count, 2);
    assert_memory_equal(ids.data, given, sizeof(int32_t) * 2);
    st_ids_free(&ids);
    input = (struct st_calibration_input){.ids = beyond, .n_ids = 2};
    assert_int_equal(st_calibration_tokens(model, &input, &ids), STINT_E_ARG);
    assert_non_null(strstr(stint_error_text(), "token 1 is 4096"));
    st_ids_free(&ids);
    input = (struct st_calibration_input){.text = "", .text_bytes = 0};
    assert_int_equal(st_calibration_tokens(model, &input, &ids), STINT_E_ARG);
    st_ids_free(&ids);
    input = (struct st_calibration_input){.text = NULL};
    assert_int_equal(st_calibration_tokens(model, &input, &ids), STINT_OK);
    assert_in_range(ids.count, 2000, ST_CALIBRATION_TOKENS);
    st_ids_free(&ids);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layer_by_layer_is_the_whole_pass),
        cmocka_unit_test(it_stops_when_asked),
        cmocka_unit_test(an_idle_expert_takes_the_others_maxima),
        cmocka_unit_test(layers_need_nothing_but_what_is_kept),
        cmocka_unit_test(predictions_are_those_of_a_session),
        cmocka_unit_test(tokens_come_from_what_is_given),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
