// SPDX-License-Identifier: Apache-2.0
#include "eval/awq.h"

#include "support/support.h"

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N = 96, GROUP = 32, TOKENS = 8, LARGE = 5 };

static void four_bits_have_a_zero(void **state) {
    (void)state;
    float w[N], was[N];
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < N; i++) was[i] = ts_random_float(i < GROUP ? 0.0f : -1.0f, 1.0f);
        memcpy(w, was, sizeof w);
        st_fake_int4_groups(w, N, GROUP);
        // A range from 0 to 1 has steps half as long as one from -1 to 1.
        for (size_t i = 0; i < N; i++)
            assert_true(fabsf(w[i] - was[i]) <= (i < GROUP ? 0.5f : 1.01f) * 1.001f / 15.0f);
    }
    for (size_t i = 0; i < N; i++) w[i] = was[i] = 0.25f * (float)((int)(7 * i % 16) - 6);
    st_fake_int4_groups(w, N, GROUP); // sixteen levels, all of them there
    assert_memory_equal(w, was, sizeof w);
    memset(w, 0, sizeof w);
    st_fake_int4_groups(w, N, 1);
    for (size_t i = 0; i < N; i++) assert_true(w[i] == 0.0f);
}

// Of any number of tokens at most ST_AWQ_SAMPLES are kept, evenly, and all count in the sums.
static void tokens_are_kept_evenly(void **state) {
    (void)state;
    enum { MET = 5 * ST_AWQ_SAMPLES + 1 };
    struct st_awq_tokens t;
    assert_int_equal(st_awq_tokens_open(2, &t), 0);
    for (size_t i = 0; i < MET; i++) {
        st_awq_tokens_add(&t, (float[]){(float)i, -1.0f});
        assert_true(t.n_kept <= ST_AWQ_SAMPLES && t.n_kept * t.step > i);
        for (size_t k = 0; k < t.n_kept; k++) assert_true(t.kept[2 * k] == (float)(k * t.step));
    }
    assert_true(t.sum[0] == MET * (MET - 1) / 2.0f && t.sum[1] == MET);
    st_awq_tokens_close(&t);
}

// Inputs of one channel are a hundred times the others'.
static void fill(struct st_awq *awq, float *x, float *mean) {
    memset(mean, 0, N * sizeof *mean);
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t i = 0; i < N; i++) {
            x[t * N + i] = ts_random_float(-1.0f, 1.0f) * (i == LARGE ? 100.0f : 1.0f);
            mean[i] += fabsf(x[t * N + i]) / TOKENS;
        }
    *awq = (struct st_awq){.n = N, .group = GROUP, .x = x, .n_samples = TOKENS, .mean = mean};
}

static void large_inputs_get_exact_weights(void **state) {
    (void)state;
    float x[TOKENS * N], mean[N], factors[ST_AWQ_GRID * N], row[N], w[N], plain[N], scaled[N];
    struct st_awq awq;
    fill(&awq, x, mean);
    awq.factors = factors;
    awq.row = row;
    st_awq_begin(&awq);
    for (size_t i = 0; i < N; i++) assert_true(factors[i] == 1.0f); // exponent 0
    for (int r = 0; r < 50; r++) {
        for (size_t i = 0; i < N; i++) w[i] = ts_random_float(-1.0f, 1.0f);
        st_awq_try(&awq, w);
    }
    const float *best = st_awq_best(&awq);
    for (size_t i = 0; i < N; i++) assert_true(i == LARGE || best[LARGE] > 2.0f * best[i]);
    for (size_t g = 0; g < ST_AWQ_GRID; g++) assert_true(awq.errors[g] > 0.0);
    assert_true(awq.errors[(best - factors) / N] < 0.5 * awq.errors[0]);
    double error = 0.0, better = 0.0;
    for (int r = 0; r < 200; r++) { // other rows, too
        for (size_t i = 0; i < N; i++) w[i] = ts_random_float(-1.0f, 1.0f);
        memcpy(plain, w, sizeof w);
        memcpy(scaled, w, sizeof w);
        st_awq_quantize(factors, N, GROUP, plain);
        st_awq_quantize(best, N, GROUP, scaled);
        error += pow((double)(plain[LARGE] - w[LARGE]), 2);
        better += pow((double)(scaled[LARGE] - w[LARGE]), 2);
    }
    assert_true(better < 0.5 * error);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_bits_have_a_zero),
        cmocka_unit_test(tokens_are_kept_evenly),
        cmocka_unit_test(large_inputs_get_exact_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
