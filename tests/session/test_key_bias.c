// SPDX-License-Identifier: Apache-2.0
// What a cache without key biases lacks, from rotations and factors, against the definition: the
// product of a rotated query with the rotated bias, in double. Which models leave biases out.
#include "session/kv/key_bias.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { DIMS = 24, HEAD = 32, POSITIONS = 40 };

static stint_model *open_model(const char *folder) {
    stint_model *model = NULL;
    if (stint_model_open(ts_source(folder), NULL, &model) != STINT_OK)
        fail_msg("%s", stint_error_text());
    return model;
}

// x turned as position p turns it, with frequencies of theta 10,000 (Su et al. 2021, section 3).
static double turned_product(const float *q, const float *x, size_t p, bool interleaved) {
    double sum = 0;
    for (size_t i = 0; i < DIMS / 2; i++) {
        double angle = (double)p * pow(10000.0, -2.0 * (double)i / DIMS);
        size_t a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : DIMS / 2 + i;
        sum += q[a] * (x[a] * cos(angle) - x[b] * sin(angle));
        sum += q[b] * (x[b] * cos(angle) + x[a] * sin(angle));
    }
    return sum;
}

static void factors_and_rotations_make_the_product(void **state) {
    (void)state;
    float rotations[POSITIONS * DIMS], q[HEAD], bias[HEAD], factors[DIMS];
    struct stint_model model = {.config = {.rope_dims = DIMS, .head_dim = HEAD}};
    struct st_key_bias k = {.rotations = {rotations}};
    model.config.rope.theta = 10000.0;
    model.config.rope.factor = 1.0;
    st_key_bias_reach(&k, &model, 7);
    st_key_bias_reach(&k, &model, 3);
    st_key_bias_reach(&k, &model, POSITIONS);
    for (int layout = 0; layout < 2; layout++) {
        model.config.rope_interleaved = layout;
        for (size_t d = 0; d < HEAD; d++) {
            q[d] = ts_random_float(-1.0f, 1.0f);
            bias[d] = ts_random_float(-100.0f, 100.0f);
        }
        st_key_bias_factors(&model.config, DIMS, q, bias, factors);
        for (size_t p = 0; p < POSITIONS; p++) {
            double sum = 0;
            for (size_t d = 0; d < DIMS; d++) sum += factors[d] * rotations[p * DIMS + d];
            assert_true(fabs(sum - turned_product(q, bias, p, layout)) < 1e-3);
        }
    }
}

// Norms after the bias, rotations that change, and exact caches keep it.
static void only_where_a_bias_is_all_that_is_added(void **state) {
    (void)state;
    const struct {
        const char *folder;
        enum st_kv_type type;
        bool leaves_out;
    } cases[] = {
        {"tests/golden/models/qwen2-window", ST_KV_Q8, true},
        {"tests/golden/models/qwen2-window", ST_KV_F16, false},
        {"tests/golden/models/qwen3-window", ST_KV_Q8, false},
        {"tests/golden/models/llama-dynamic", ST_KV_Q8, false},
        {"tests/golden/models/phi-qk-norm", ST_KV_Q8, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stint_model *model = open_model(cases[i].folder);
        size_t dims = st_key_bias_dims(model, cases[i].type);
        assert_int_equal(dims, cases[i].leaves_out ? model->config.rope_dims : 0);
        stint_model_close(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_and_rotations_make_the_product),
        cmocka_unit_test(only_where_a_bias_is_all_that_is_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
