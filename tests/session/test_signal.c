// SPDX-License-Identifier: Apache-2.0
// Signals say what their definitions say, and schedules go by them.
#include "session/precision/signal.h"

#include "session/precision/precision.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { VOCAB = 1000 };

static double exact_entropy(const float *logits, size_t n) {
    double sum = 0.0, entropy = 0.0;
    for (size_t i = 0; i < n; i++) sum += exp((double)logits[i]);
    for (size_t i = 0; i < n; i++) {
        double p = exp((double)logits[i]) / sum;
        entropy -= p * log(p);
    }
    return entropy;
}

static void entropy_is_that_of_the_softmax(void **state) {
    (void)state;
    float logits[VOCAB];
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < VOCAB; i++) logits[i] = ts_random_float(0.0f, (float)round);
        double got = (double)st_signal_read(STINT_SIGNAL_ENTROPY, logits, VOCAB);
        if (fabs(got - exact_entropy(logits, VOCAB)) > 1e-3)
            fail_msg("spread %d: %g, not %g", round, got, exact_entropy(logits, VOCAB));
    }
}

static void margin_is_the_ratio_of_the_first_two(void **state) {
    (void)state;
    const float logits[] = {-3.0f, 2.0f, 1.0f, -8.0f}, tie[] = {1.0f, 1.0f}, one[] = {5.0f};
    assert_float_equal(st_signal_read(STINT_SIGNAL_MARGIN, logits, 4), expf(-1.0f), 1e-6f);
    assert_float_equal(st_signal_read(STINT_SIGNAL_MARGIN, tie, 2), 1.0f, 0.0f);
    assert_float_equal(st_signal_read(STINT_SIGNAL_MARGIN, one, 1), 0.0f, 0.0f);
    assert_float_equal(st_signal_read(STINT_SIGNAL_NONE, logits, 4), 0.0f, 0.0f);
}

static void names_are_found(void **state) {
    (void)state;
    stint_signal signal = STINT_SIGNAL_MARGIN;
    assert_int_equal(st_signal_find(NULL, &signal), STINT_OK);
    assert_int_equal(signal, STINT_SIGNAL_NONE);
    for (int i = 0; i < ST_N_SIGNALS; i++) {
        assert_int_equal(st_signal_find(stint_signal_name((stint_signal)i), &signal), STINT_OK);
        assert_int_equal(signal, i);
    }
    assert_int_equal(st_signal_find("temper", &signal), STINT_E_ARG);
    assert_non_null(strstr(stint_error_text(), "entropy, margin"));
}

static void tokens_get_the_bits_of_their_threshold(void **state) {
    (void)state;
    const stint_precision p = {.n_steps = 3,
                               .steps = {{4, 0}, {3, 0}, {2, 0}},
                               .signal = STINT_SIGNAL_ENTROPY,
                               .thresholds = {1.5f, 0.25f}};
    const struct {
        float signal;
        unsigned bits;
    } cases[] = {{9.0f, 4}, {1.5f, 4}, {1.49f, 3}, {0.25f, 3}, {0.2f, 2}, {0.0f, 2}, {NAN, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t step = 0; step < 40; step += 13)
            assert_int_equal(st_precision_at(&p, step, cases[i].signal), cases[i].bits);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entropy_is_that_of_the_softmax),
        cmocka_unit_test(margin_is_the_ratio_of_the_first_two),
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(tokens_get_the_bits_of_their_threshold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
