// SPDX-License-Identifier: Apache-2.0
// Neurons that are read one by one: the laws of a bound with all of them, and what predictors leave
// out.
#include "support/bounded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static const struct ts_bounded_variant variants[] = {
    {"sparse", "models/novels-10m-drelu", 8, 512, 0},
    {"sparse, 4 bits, 3 a step", "models/novels-10m-drelu", 4, 2048, 3},
};

// Of the largest logit.
static size_t best(const float *logits) {
    size_t b = 0;
    for (size_t i = 1; i < ts_bounded_vocab(); i++) b = logits[i] > logits[b] ? i : b;
    return b;
}

static void predictors_compute_less(void **state) {
    (void)state;
    assert_non_null(ts_bounded.lazy->neurons.layers);
    float *got = malloc(TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *got),
          *again = malloc(TS_BOUNDED_IDS * ts_bounded_vocab() * 4);
    stint_memory_info info = {.size = sizeof info};
    size_t same = 0;
    for (int round = 0; round < 2; round++) { // with much memory, with little
        uint64_t memory = round ? ts_bounded_min(1) : 200 << 20;
        stint_session *s = ts_bounded_session(ts_bounded.lazy, memory, true);
        assert_int_equal(ts_bounded_eval(s, round ? again : got), STINT_OK);
        assert_int_equal(stint_session_memory(s, &info), STINT_OK);
        stint_session_close(s);
    }
    // What is in memory has no say in which neurons are computed, but hot ones are, asked or not.
    assert_true(info.computed > 0.1 && info.computed < 0.9);
    for (size_t i = TS_BOUNDED_PROMPT; i < TS_BOUNDED_IDS; i++)
        same +=
            best(got + i * ts_bounded_vocab()) == best(ts_bounded.wanted + i * ts_bounded_vocab());
    assert_true(same >= 7); // of 10
    free(got);
    free(again);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(predictors_compute_less)};
    int failed = 0;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        failed |= ts_bounded_run(&variants[i], true, tests, sizeof tests / sizeof *tests);
    return failed;
}
