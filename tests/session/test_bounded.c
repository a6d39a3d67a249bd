// SPDX-License-Identifier: Apache-2.0
// Weights that are read when they are needed: the laws of a bound, of a package without nested
// weights and without neurons, and of a checkpoint as it lies (tests/model/test_file_pieces.c has
// its damages).
#include "support/bounded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

int main(void) {
    static const struct ts_bounded_variant dense = {"dense", "models/novels-10m", 0, 512, 0};
    static const struct ts_bounded_variant folder = {"folder", "models/novels-10m", 0, 0, 0};
    const struct CMUnitTest laws[] = {
        cmocka_unit_test(ts_bounded_any_bound_gives_the_same),
        cmocka_unit_test(ts_bounded_a_bound_must_be_given),
        cmocka_unit_test(ts_bounded_each_sequence_gets_what_it_gets_alone),
    };
    int failed = ts_bounded_run(&dense, true, NULL, 0);
    return failed + ts_bounded_run(&folder, false, laws, sizeof laws / sizeof *laws);
}
