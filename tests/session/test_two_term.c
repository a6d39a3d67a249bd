// SPDX-License-Identifier: Apache-2.0
// Steps of a model with neurons, whose inputs are two INT8 numbers, against prompts of one.
#include "support/bounded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static const struct ts_bounded_variant variant = {"neurons of 8 bits", "models/novels-2-drelu", 8,
                                                  512, 0, 0};

static double squared_error(const float *got, const float *exact) {
    double sum = 0.0;
    for (size_t i = 0; i < (TS_BOUNDED_IDS - TS_BOUNDED_PROMPT) * ts_bounded_vocab(); i++)
        sum += ((double)got[i] - (double)exact[i]) * ((double)got[i] - (double)exact[i]);
    return sum;
}

// In a prompt the same tokens have inputs in 8 bits.
static void steps_are_finer_than_prompts(void **state) {
    (void)state;
    size_t bytes = TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof(float),
           after = TS_BOUNDED_PROMPT * ts_bounded_vocab();
    float *exact = malloc(bytes), *prompt = malloc(bytes);
    stint_model *source = NULL;
    assert_int_equal(stint_model_open(ts_bounded_source(), NULL, &source), STINT_OK);
    stint_session *s = ts_bounded_session(source, 0, false);
    assert_int_equal(stint_session_eval(s, 0, ts_bounded.ids, TS_BOUNDED_IDS, true, exact),
                     STINT_OK);
    stint_session_close(s);
    s = ts_bounded_session(ts_bounded.whole, 0, false);
    assert_int_equal(stint_session_eval(s, 0, ts_bounded.ids, TS_BOUNDED_IDS, true, prompt),
                     STINT_OK);
    stint_session_close(s);
    assert_true(squared_error(ts_bounded.wanted + after, exact + after) <
                squared_error(prompt + after, exact + after));
    stint_model_close(source);
    free(exact);
    free(prompt);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_are_finer_than_prompts)};
    return ts_bounded_run(&variant, false, tests, sizeof tests / sizeof *tests);
}
