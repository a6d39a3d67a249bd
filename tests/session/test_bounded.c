// SPDX-License-Identifier: Apache-2.0
// Weights that are read when they are needed: the laws of a bound, of a model without nested
// weights and without neurons.
#include "support/bounded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

int main(void) {
    static const struct ts_bounded_variant dense = {"dense", "models/novels-10m", 0, 512, 0};
    return ts_bounded_run(&dense, true, NULL, 0);
}
