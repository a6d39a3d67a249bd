// SPDX-License-Identifier: Apache-2.0
// Nested weights under a memory bound: they are read once, when a session opens, and stay.
#include "support/bounded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static const struct ts_bounded_variant variants[] = {
    {"dense, 3 bits a step", "models/novels-10m", 0, 512, 3},
    {"sparse, 4 bits, 3 a step", "models/novels-10m-drelu", 4, 512, 3},
};

static void nested_weights_are_pinned(void **state) {
    (void)state;
    stint_session_options o = {
        .size = sizeof o, .n_context = TS_BOUNDED_CONTEXT, .memory = 100 << 20};
    stint_precision p = {.size = sizeof p, .prefill = 8, .n_steps = 1, .steps = {{3, 0}}};
    stint_session *s = NULL;
    assert_int_equal(stint_session_open(ts_bounded.lazy, &o, &s), STINT_OK);
    assert_int_equal(stint_session_set_precision(s, &p), STINT_E_UNSUPPORTED);
    assert_non_null(strstr(stint_error_text(), "open it with the schedule"));
    stint_session_close(s);
    s = ts_bounded_session(ts_bounded.lazy, 100 << 20, false);
    assert_int_equal(stint_session_set_precision(s, &p), STINT_OK);
    p.prefill = 4;
    assert_int_equal(stint_session_set_precision(s, &p), STINT_E_UNSUPPORTED);
    stint_session_close(s);
    static const char *const sections[] = {"layers.2.k.nested", "head.nested_groups3"};
    for (size_t i = 0; i < 2; i++) {
        o.schedule = ts_bounded.schedule;
        ts_bounded_flip(sections[i], 70);
        assert_int_equal(stint_session_open(ts_bounded.lazy, &o, &s), STINT_E_FORMAT);
        assert_non_null(strstr(stint_error_text(), sections[i]));
        ts_bounded_flip(sections[i], 70);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nested_weights_are_pinned)};
    int failed = 0;
    // The laws hold of neurons in session.test_predict.
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        failed |= ts_bounded_run(&variants[i], i == 0, tests, sizeof tests / sizeof *tests);
    return failed;
}
