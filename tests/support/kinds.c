// SPDX-License-Identifier: Apache-2.0
#include "support/kinds.h"

#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

stint_model *ts_kinds[TS_KINDS];
const char *const ts_kind_names[TS_KINDS] = {"float", "int8", "nested"};

static stint_model *prepare(const char *name, const stint_prepare_options *options) {
    char path[600];
    stint_model *m = NULL;
    snprintf(path, sizeof path, "%s/%s.stint", ts_temp_folder(), name);
    assert_int_equal(stint_prepare(ts_source("models/novels-10m"), path, options, NULL), STINT_OK);
    assert_int_equal(stint_model_open(path, NULL, &m), STINT_OK);
    return m;
}

int ts_kinds_open(void **state) {
    (void)state;
    stint_prepare_options o = {.size = sizeof o, .n_tokens = 300, .outliers = STINT_OUTLIERS_NONE};
    assert_int_equal(stint_model_open(ts_source("models/novels-10m"), NULL, &ts_kinds[0]),
                     STINT_OK);
    ts_kinds[1] = prepare("int8", &o);
    o.outliers = STINT_OUTLIERS_SHARE;
    o.outlier_prune = 0.5f;
    o.bits_low = 2;
    o.bits_high = 4;
    ts_kinds[2] = prepare("nested", &o);
    return 0;
}

int ts_kinds_close(void **state) {
    (void)state;
    for (int i = 0; i < TS_KINDS; i++) stint_model_close(ts_kinds[i]);
    return 0;
}
