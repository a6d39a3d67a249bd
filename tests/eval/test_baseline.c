// SPDX-License-Identifier: Apache-2.0
// Every way of quantizing is exact where each element has a scale of its own: what a method does
// around the quantization must leave the model as it is.
#include "eval/baseline.h"

#include "support/support.h"

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N = 60, CALIBRATION = 200 };

static stint_model *model;
static struct st_ids calibration;
static int32_t ids[N];

static int open_model(void **state) {
    (void)state;
    if (stint_model_open(ts_trained(), NULL, &model) != STINT_OK)
        fail_msg("%s", stint_error_text());
    for (size_t i = 0; i < N; i++) ids[i] = (int32_t)ts_random_below(4000);
    for (size_t i = 0; i < CALIBRATION; i++)
        assert_int_equal(st_ids_append(&calibration, (int32_t)ts_random_below(4000)), STINT_OK);
    return 0;
}

static int close_model(void **state) {
    (void)state;
    stint_model_close(model);
    st_ids_free(&calibration);
    return 0;
}

static float *logits_of(const stint_model *m, struct st_baseline *baseline) {
    stint_session *s = NULL;
    float *logits = malloc(N * m->config.vocab * sizeof *logits);
    stint_session_options options = {.size = sizeof options, .chunk_len = 16};
    assert_int_equal(stint_session_open(m, &options, &s), STINT_OK);
    if (baseline) assert_int_equal(st_baseline_attach(baseline, s), STINT_OK);
    if (stint_session_eval(s, 0, ids, N, true, logits) != STINT_OK)
        fail_msg("%s", stint_error_text());
    stint_session_close(s);
    return logits;
}

// Root mean square of the difference over that of the exact logits.
static double difference(const struct st_baseline_method *method) {
    struct st_baseline *b = NULL;
    struct st_baseline_options options = {.ids = &calibration};
    if (st_baseline_open(method, model, &options, &b) != STINT_OK)
        fail_msg("%s", stint_error_text());
    float *exact = logits_of(model, NULL), *got = logits_of(st_baseline_model(b), b);
    double error = 0.0, power = 0.0;
    for (size_t i = 0; i < N * model->config.vocab; i++) {
        error += pow((double)exact[i] - (double)got[i], 2);
        power += pow((double)exact[i], 2);
    }
    free(exact);
    free(got);
    st_baseline_close(b);
    return sqrt(error / power);
}

static void what_surrounds_quantization_changes_nothing(void **state) {
    (void)state;
    static const struct st_baseline_method methods[] = {
        {.group = 1},
        {.group = 1, .smooth = true},
        {.group = 1, .rotate = true},
        {.group = 1, .outliers = true},
        {.group = 1, .awq = true},
        {.group = 1, .smooth = true, .rotate = true},
    };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        assert_true(difference(&methods[i]) < 1e-4);
}

static void finer_scales_lose_less(void **state) {
    (void)state;
    double tensor = difference(&(struct st_baseline_method){.static_scale = true});
    double token = difference(&(struct st_baseline_method){.group = 0});
    double group = difference(&(struct st_baseline_method){.group = 32});
    double outliers = difference(&(struct st_baseline_method){.outliers = true});
    assert_true(group < token && token < tensor && tensor < 0.2);
    assert_true(outliers < token && group > 1e-4);
}

static bool at_once(void *context) {
    (void)context;
    return true;
}

static void it_can_be_canceled(void **state) {
    (void)state;
    struct st_baseline *b = NULL;
    struct st_baseline_options options = {.ids = &calibration, .canceled = at_once};
    assert_int_equal(
        st_baseline_open(&(struct st_baseline_method){.static_scale = true}, model, &options, &b),
        STINT_E_CANCELED);
    assert_null(b);
}

static void a_prefix_comes_first(void **state) {
    (void)state;
    struct st_baseline *b = NULL;
    stint_session *s = NULL;
    struct st_baseline_options options = {.ids = &calibration};
    struct st_baseline_method method = {.prefix = true, .static_scale = true};
    assert_int_equal(st_baseline_open(&method, model, &options, &b), STINT_OK);
    assert_int_equal(stint_session_open(st_baseline_model(b), NULL, &s), STINT_OK);
    assert_int_equal(st_baseline_attach(b, s), STINT_OK);
    assert_true(st_baseline_prefix(b) >= 1); // at least what a text begins with
    assert_int_equal(stint_session_length(s, 0), st_baseline_prefix(b));
    stint_session_close(s);
    st_baseline_close(b);
}

// Inputs of blocks that a layer does not have stay empty.
static void a_mixture_may_have_dense_layers(void **state) {
    (void)state;
    stint_model *mixture = NULL;
    struct st_ids few = {0};
    struct st_baseline *b = NULL;
    struct st_baseline_options options = {.ids = &few};
    struct st_baseline_method method = {.static_scale = true};
    for (int32_t i = 0; i < 40; i++) assert_int_equal(st_ids_append(&few, i % 32), STINT_OK);
    assert_int_equal(
        stint_model_open(STINT_SOURCE_DIR "/tests/golden/models/qwen2moe-dense", NULL, &mixture),
        STINT_OK);
    if (st_baseline_open(&method, mixture, &options, &b) != STINT_OK)
        fail_msg("%s", stint_error_text());
    st_baseline_close(b);
    stint_model_close(mixture);
    st_ids_free(&few);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_surrounds_quantization_changes_nothing),
        cmocka_unit_test(finer_scales_lose_less),
        cmocka_unit_test(it_can_be_canceled),
        cmocka_unit_test(a_prefix_comes_first),
        cmocka_unit_test(a_mixture_may_have_dense_layers),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
