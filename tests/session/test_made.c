// SPDX-License-Identifier: Apache-2.0
// INT8 weights that are made of nested codes as these are read: the laws of every bound, for steps
// that read some planes of what prompts read, and for steps that read the same.
#include "support/bounded.h"

#include "session/weights/bounded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct ts_bounded_variant variants[] = {
    {"one set, 3 bits a step", "models/novels-2", 0, 128, 3, 8},
    {"one set, INT8 steps", "models/novels-2", 0, 128, 0, 7},
};

// Of a session that is opened, where the bound has room for the codes, or begins; one that runs
// fails when it reads them again, or has them. All go on when the file is whole.
static void damage_of_codes_is_found(void **state) {
    (void)state;
    static const char *const sections[] = {"layers.0.k.nested", "layers.1.up.nested",
                                           "head.nested"};
    float *got = malloc(TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *got);
    size_t bytes = TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *got;
    uint64_t min = ts_bounded_min(1);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        stint_session *running = ts_bounded_session(ts_bounded.lazy, min, false);
        assert_int_equal(ts_bounded_eval(running, got), STINT_OK);
        ts_bounded_flip(sections[i], 1000);
        if (ts_bounded_eval(running, got) == STINT_OK)
            assert_memory_equal(got, ts_bounded.wanted, bytes);
        stint_session *s = NULL;
        stint_status status = ts_bounded_try(ts_bounded.lazy, min, false, &s);
        if (s) status = ts_bounded_eval(s, got);
        assert_int_equal(status, STINT_E_FORMAT);
        assert_non_null(strstr(stint_error_text(), sections[i]));
        ts_bounded_flip(sections[i], 1000);
        if (!s) s = ts_bounded_session(ts_bounded.lazy, min, false);
        ts_bounded_goes_on(s, got);
        ts_bounded_goes_on(running, got);
        stint_session_close(running);
        stint_session_close(s);
    }
    free(got);
}

// A slice is held for as long as rows are made of it, a linear at a time.
static void nothing_is_held_between_batches(void **state) {
    (void)state;
    float *got = malloc(TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *got);
    stint_session *s = ts_bounded_session(ts_bounded.lazy, ts_bounded_min(1), false);
    assert_int_equal(ts_bounded_eval(s, got), STINT_OK);
    const struct st_bounded *r = s->bounded;
    assert_non_null(r->made.panels);
    assert_false(r->made.holds);
    for (int i = 0; i < ST_N_REGIONS; i++) {
        size_t n_held = 0;
        for (uint32_t e = 0; e < r->slices.regions[i].n_entries; e++)
            n_held += r->slices.regions[i].held[e];
        assert_true(n_held <= r->slices.n_ahead);
    }
    stint_session_close(s);
    free(got);
}

static void planes_in_memory_are_not_read_again(void **state) {
    (void)state;
    float *got = malloc(TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *got);
    stint_session *s = ts_bounded_session(ts_bounded.lazy, 100 << 20, false);
    assert_true(s->bounded->pins.limit == ST_PINS_ALL);
    assert_int_equal(ts_bounded_eval(s, got), STINT_OK);
    assert_memory_equal(got, ts_bounded.wanted, TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *got);
    for (int i = 0; i < ST_N_REGIONS; i++)
        assert_int_equal(s->bounded->slices.regions[i].misses, 0);
    stint_session_close(s);
    free(got);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ts_bounded_any_bound_gives_the_same),
        cmocka_unit_test(ts_bounded_a_bound_must_be_given),
        cmocka_unit_test(ts_bounded_each_sequence_gets_what_it_gets_alone),
        cmocka_unit_test(damage_of_codes_is_found),
        cmocka_unit_test(nothing_is_held_between_batches),
        cmocka_unit_test(planes_in_memory_are_not_read_again),
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        failed |= ts_bounded_run(&variants[i], false, tests, sizeof tests / sizeof *tests);
    return failed;
}
