// SPDX-License-Identifier: Apache-2.0
// Nested linears of models whose neurons are stored one by one: what a package has of them, and how
// near products come, whose inputs are one number or two.
#include "model/weights_nested.h"
#include "session/linear/op.h"
#include "support/kinds.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { N_TOKENS = ST_SHORT_TEXT + 3, LAYER = 0 };

static stint_model *model;
static stint_session *session;

static int open_model(void **state) {
    (void)state;
    stint_prepare_options o = {.size = sizeof o,
                               .n_tokens = 300,
                               .outliers = STINT_OUTLIERS_NONE,
                               .neurons = true,
                               .bits_low = 2,
                               .bits_high = 4};
    model = ts_package(ts_trained_sparse(), "m", &o);
    assert_int_equal(stint_session_open(model, NULL, &session), STINT_OK);
    return 0;
}

static int close_model(void **state) {
    (void)state;
    stint_session_close(session);
    stint_model_close(model);
    return 0;
}

static void neurons_have_no_second_codes(void **state) {
    (void)state;
    static const char *const wanted[] = {"q", "k", "v", "o"}, *const unwanted[] = {"up", "down"};
    char name[64];
    for (uint32_t i = 0; i < model->config.n_layers; i++) {
        for (size_t j = 0; j < 4; j++) {
            snprintf(name, sizeof name, "layers.%u.%s.nested", i, wanted[j]);
            assert_non_null(st_package_find(model->checkpoint.package, name));
        }
        for (size_t j = 0; j < 2; j++) {
            snprintf(name, sizeof name, "layers.%u.%s.nested", i, unwanted[j]);
            assert_null(st_package_find(model->checkpoint.package, name));
        }
    }
}

static double exact(const struct st_nested_weight *w, unsigned bits, size_t row, const float *x) {
    double sum = 0.0;
    for (size_t i = 0; i < w->n_in; i++)
        sum += (double)st_nested_value(w, row, i, bits) * (double)x[i];
    return sum;
}

// Of what linears miss of the same weights and inputs in double, the root of the mean square,
// divided by that of the outputs; and the most bits that a linear has of its own.
enum way { STEP, DRAFT, PROMPT, PROMPT_AS_STEPS, N_WAYS };

static double error_of(enum st_unit unit, size_t part, const float *x, unsigned bits, enum way way,
                       unsigned *most) {
    struct st_run run =
        st_session_run(session, way >= PROMPT ? ST_PHASE_PREFILL : ST_PHASE_DECODE, bits, NULL);
    struct st_operands o = {.role = st_unit_role(unit), .x = x, .n = N_TOKENS};
    const struct st_linear_weight *weights[ST_MAX_LINEARS];
    run.layer = LAYER;
    run.as_steps = way == PROMPT_AS_STEPS;
    run.drafts = way == DRAFT;
    size_t n_linears = st_operands_linears(&run, &o, weights);
    *most = 0;
    for (size_t i = 0; i < n_linears; i++) {
        if (weights[i]->nested->bits[bits] > *most) *most = weights[i]->nested->bits[bits];
        o.y_row[i] = weights[i]->n_out;
        o.y[i] = malloc(N_TOKENS * o.y_row[i] * sizeof(float));
    }
    assert_int_equal(st_op_of(&run, unit)->run(&run, &o), STINT_OK);
    const struct st_linear_weight *weight = weights[part];
    size_t n_in = weight->n_in, n_out = weight->n_out;
    const float *y = o.y[part];
    double sum = 0.0, all = 0.0;
    unsigned own = weight->nested->bits[bits];
    for (size_t t = 0; t < N_TOKENS; t++)
        for (size_t r = 0; r < n_out; r++) {
            double bias = weight->bias ? (double)weight->bias[r] : 0.0;
            double wanted = bias + exact(weight->nested, own, r, x + t * n_in);
            double miss = (double)y[t * n_out + r] - wanted;
            sum += miss * miss;
            all += wanted * wanted;
        }
    for (size_t i = 0; i < n_linears; i++) free(o.y[i]);
    return sqrt(sum / all);
}

// Steps: fifteen bits beside weights of four and more; one term, which misses a hundredth, beside
// fewer, and where they draft. Prompts may take numbers of 16 bits, of which BF16 has 8 bits of
// each; what is measured is as steps are.
static double bound_of(unsigned most, enum way way) {
    bool numbers = way == PROMPT && st_linear_nested_path(session->kernels.cpu_flags);
    return numbers ? 0.005 : most > 3 && way != DRAFT ? 1e-4 : 0.02;
}

static void inputs_are_as_exact_as_their_weights(void **state) {
    (void)state;
    const struct st_config *c = &model->config;
    static const struct {
        enum st_unit unit;
        size_t part;
    } linears[] = {{ST_UNIT_QKV, 0}, {ST_UNIT_QKV, 2}, {ST_UNIT_O, 0}, {ST_UNIT_HEAD, 0}};
    for (size_t i = 0; i < sizeof linears / sizeof *linears; i++) {
        size_t n_in = linears[i].unit == ST_UNIT_O ? (size_t)c->n_heads * c->head_dim : c->hidden;
        size_t n = N_TOKENS * n_in;
        float *x = malloc(n * sizeof *x);
        for (size_t j = 0; j < n; j++) x[j] = ts_random_float(-1.0f, 1.0f);
        for (unsigned bits = model->nested.low; bits <= model->nested.high; bits++)
            for (enum way way = STEP; way < N_WAYS; way++) {
                unsigned most;
                double error = error_of(linears[i].unit, linears[i].part, x, bits, way, &most);
                assert_true(error < bound_of(most, way));
                if (way == DRAFT) assert_true(error > 1e-3); // one term, not two
            }
        free(x);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(neurons_have_no_second_codes),
                                       cmocka_unit_test(inputs_are_as_exact_as_their_weights)};
    return cmocka_run_group_tests(tests, open_model, close_model);
}
