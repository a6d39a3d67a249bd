// SPDX-License-Identifier: Apache-2.0
#include "support/kinds.h"

#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

stint_model *ts_kinds[TS_KINDS];
const char *const ts_kind_names[TS_KINDS] = {"float", "int8", "nested"};

void ts_prepare(const char *source, const char *path, const stint_prepare_options *options) {
    enum { FEW_TOKENS = 32, FEW_FOR_PREDICTORS = 256, LOW_RANK = 8 };
    stint_prepare_options o = {.size = sizeof o};
    if (options) o = *options;
    if (!o.quantizer) {
        uint32_t few = o.neurons ? FEW_FOR_PREDICTORS : FEW_TOKENS;
        o.quantizer = "uniform";
        if (ts_is_emulated() && (o.n_tokens == 0 || o.n_tokens > few)) o.n_tokens = few;
        if (ts_is_emulated() && o.neurons) o.predictor_rank = LOW_RANK;
    }
    if (stint_prepare(source, path, &o, NULL) != STINT_OK) fail_msg("%s", stint_error_text());
}

stint_model *ts_package(const char *source, const char *name,
                        const stint_prepare_options *options) {
    char path[600];
    stint_model *m = NULL;
    snprintf(path, sizeof path, "%s/%s.stint", ts_temp_folder(), name);
    ts_prepare(source, path, options);
    if (stint_model_open(path, NULL, &m) != STINT_OK) fail_msg("%s", stint_error_text());
    return m;
}

stint_model *ts_package_on_demand(const char *name) {
    char path[600];
    stint_model *m = NULL;
    stint_model_options on_demand = {.size = sizeof on_demand, .lazy = true};
    snprintf(path, sizeof path, "%s/%s.stint", ts_temp_folder(), name);
    if (stint_model_open(path, &on_demand, &m) != STINT_OK) fail_msg("%s", stint_error_text());
    return m;
}

stint_model *ts_shadow_package(const char *source, const char *target, bool neurons,
                               const int32_t *ids, size_t n_ids) {
    static unsigned number; // what is open under a name stays
    char name[32];
    stint_prepare_options o = {.size = sizeof o,
                               .n_tokens = 200,
                               .outliers = STINT_OUTLIERS_SHARE,
                               .outlier_prune = 0.3f,
                               .target = target,
                               .ids = ids,
                               .n_ids = n_ids,
                               .neurons = neurons};
    snprintf(name, sizeof name, "shadow-%u", number++);
    return ts_package(ts_shared(source), name, &o);
}

int ts_kinds_open(void **state) {
    (void)state;
    stint_prepare_options o = {.size = sizeof o, .n_tokens = 300, .outliers = STINT_OUTLIERS_NONE};
    const char *source = ts_built("models/novels-2");
    assert_int_equal(stint_model_open(source, NULL, &ts_kinds[0]), STINT_OK);
    ts_kinds[1] = ts_package(source, "int8", &o);
    o.outliers = STINT_OUTLIERS_SHARE;
    o.outlier_prune = 0.5f;
    o.bits_low = 2;
    o.bits_high = 4;
    ts_kinds[2] = ts_package(source, "nested", &o);
    return 0;
}

int ts_kinds_close(void **state) {
    (void)state;
    for (int i = 0; i < TS_KINDS; i++) stint_model_close(ts_kinds[i]);
    return 0;
}
