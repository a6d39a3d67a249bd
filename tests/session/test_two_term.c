// SPDX-License-Identifier: Apache-2.0
// Steps of a model with neurons, whose inputs are two INT8 numbers, against prompts of one.
#include "support/bounded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static const struct ts_bounded_variant variant = {
    "neurons of 8 bits", "models/novels-2-drelu", 8, 512, 0, 0};

static double squared_error(const float *got, const float *exact) {
    double sum = 0.0;
    for (size_t i = 0; i < (TS_BOUNDED_IDS - TS_BOUNDED_PROMPT) * ts_bounded_vocab(); i++)
        sum += ((double)got[i] - (double)exact[i]) * ((double)got[i] - (double)exact[i]);
    return sum;
}

// In a prompt the same tokens have inputs in 8 bits. The roundings of weights are in both, and are
// the larger part: so it is a matter of several texts.
static void steps_are_finer_than_prompts(void **state) {
    (void)state;
    enum { TEXTS = 12 };
    size_t bytes = TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof(float),
           after = TS_BOUNDED_PROMPT * ts_bounded_vocab();
    float *exact = malloc(bytes), *prompt = malloc(bytes), *steps = malloc(bytes);
    double of_prompts = 0.0, of_steps = 0.0;
    stint_model *source = NULL;
    assert_int_equal(stint_model_open(ts_bounded_source(), NULL, &source), STINT_OK);
    stint_session *plain = ts_bounded_session(source, 0, false);
    stint_session *s = ts_bounded_session(ts_bounded.whole, 0, false);
    for (int i = 0; i < TEXTS; i++) {
        assert_int_equal(stint_session_eval(plain, 0, ts_bounded.ids, TS_BOUNDED_IDS, true, exact),
                         STINT_OK);
        assert_int_equal(stint_session_eval(s, 0, ts_bounded.ids, TS_BOUNDED_IDS, true, prompt),
                         STINT_OK);
        assert_int_equal(ts_bounded_eval(s, steps), STINT_OK);
        of_prompts += squared_error(prompt + after, exact + after);
        of_steps += squared_error(steps + after, exact + after);
        assert_int_equal(stint_session_truncate(plain, 0, 0), STINT_OK);
        assert_int_equal(stint_session_truncate(s, 0, 0), STINT_OK);
        for (size_t t = 0; t < TS_BOUNDED_IDS; t++)
            ts_bounded.ids[t] = (int32_t)ts_random_below((uint32_t)ts_bounded_vocab());
    }
    if (!(of_steps < of_prompts))
        fail_msg("squared errors: steps %g, prompts %g", of_steps, of_prompts);
    stint_session_close(plain);
    stint_session_close(s);
    stint_model_close(source);
    free(exact);
    free(prompt);
    free(steps);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_are_finer_than_prompts)};
    return ts_bounded_run(&variant, false, tests, sizeof tests / sizeof *tests);
}
