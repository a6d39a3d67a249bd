// SPDX-License-Identifier: Apache-2.0
// A checkpoint that runs with a package's nested weights: its own floats stay as they are, fewer
// bits are the package's, and nothing but a package made from it is taken.
#include "model/nested_from.h"

#include "session/session.h"
#include "support/kinds.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { N_IDS = 24 };

static char package[600], without[600], other[600];

static void prepare(const char *source, const char *name, const stint_prepare_options *o,
                    char path[600]) {
    stint_model_close(ts_package(source, name, o));
    snprintf(path, 600, "%s/%s.stint", ts_temp_folder(), name);
}

static int make_packages(void **state) {
    (void)state;
    static int32_t ids[128];
    stint_prepare_options o = {.size = sizeof o, .n_tokens = 200, .bits_low = 2, .bits_high = 4};
    stint_prepare_options plain = {.size = sizeof plain, .n_tokens = 200};
    prepare(ts_built("models/novels-2"), "nested", &o, package);
    prepare(ts_built("models/novels-2"), "plain", &plain, without);
    for (int i = 0; i < 128; i++) ids[i] = (int32_t)ts_random_below(48);
    o.ids = ids;
    o.n_ids = 128;
    prepare(ts_source("tests/golden/models/qwen35"), "other", &o, other);
    return 0;
}

static stint_status open_with(const char *path, const char *nested, bool lazy,
                              stint_model **model) {
    stint_model_options o = {.size = sizeof o, .nested = nested, .lazy = lazy};
    *model = NULL;
    return stint_model_open(path, &o, model);
}

// The logits behind a text whose last token is a step at the schedule's precision.
static void logits_of(const stint_model *m, const char *schedule, float *logits) {
    stint_session *s = NULL;
    stint_session_options o = {.size = sizeof o, .n_threads = 2, .n_context = 64};
    int32_t ids[N_IDS];
    uint32_t sequence = 0;
    o.schedule = schedule;
    for (int i = 0; i < N_IDS; i++) ids[i] = 3 + (i * 37) % 41;
    assert_int_equal(stint_session_open(m, &o, &s), STINT_OK);
    assert_int_equal(st_session_prompt(s, 0, ids, N_IDS - 1, N_IDS - 1, NULL), STINT_OK);
    assert_int_equal(
        st_session_step(s, s->precision.steps[0].bits, &sequence, ids + N_IDS - 1, 1, logits),
        STINT_OK);
    assert_int_equal(stint_session_bits(s), schedule ? s->precision.steps[0].bits : 0);
    stint_session_close(s);
}

static void floats_stay_and_fewer_bits_are_the_packages(void **state) {
    (void)state;
    static float plain[8192], exact[8192], four[8192];
    const char *path = ts_built("models/novels-2");
    stint_model *alone, *both, *packed;
    assert_int_equal(open_with(path, NULL, false, &alone), STINT_OK);
    assert_int_equal(open_with(path, package, false, &both), STINT_OK);
    assert_int_equal(open_with(package, NULL, false, &packed), STINT_OK);
    size_t n = alone->config.vocab;
    assert_true(n <= 8192);
    logits_of(alone, NULL, plain);
    logits_of(both, NULL, exact);
    assert_memory_equal(plain, exact, n * sizeof *plain);
    logits_of(both, "uniform:4", four);
    assert_memory_not_equal(plain, four, n * sizeof *plain);
    stint_model_info info = {.size = sizeof info};
    assert_int_equal(stint_model_describe(both, &info), STINT_OK);
    assert_int_equal(info.nested_low, 2);
    assert_int_equal(info.nested_high, 4);
    const struct st_nested_weight *lent = both->weights.layers[1].ffn[0].down.nested,
                                  *own = packed->weights.layers[1].ffn[0].down.nested;
    assert_memory_equal(lent->codes, own->codes,
                        st_nested_code_bytes(own->n_out, own->n_in, own->high));
    stint_model_close(alone);
    stint_model_close(both);
    stint_model_close(packed);
}

static void only_its_own_package_is_taken(void **state) {
    (void)state;
    const char *novels = ts_built("models/novels-2");
    const struct {
        const char *path, *nested;
        bool lazy;
        stint_status status;
        const char *text;
    } cases[] = {
        {novels, without, false, STINT_E_FORMAT, "has no nested weights"},
        {novels, other, false, STINT_E_FORMAT, "was not made from this checkpoint"},
        {ts_built("models/novels-2-drelu"), package, false, STINT_E_FORMAT,
         "was not made from this checkpoint"},
        {novels, novels, false, STINT_E_FORMAT, "has no nested weights"},
        {novels, "/nowhere.stint", false, STINT_E_IO, "nowhere.stint"},
        {package, package, false, STINT_E_ARG, "nested weights of its own"},
        {novels, package, true, STINT_E_UNSUPPORTED, "--memory"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stint_model *m;
        assert_int_equal(open_with(cases[i].path, cases[i].nested, cases[i].lazy, &m),
                         cases[i].status);
        assert_null(m);
        if (!strstr(stint_error_text(), cases[i].text)) fail_msg("%s", stint_error_text());
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_stay_and_fewer_bits_are_the_packages),
        cmocka_unit_test(only_its_own_package_is_taken),
    };
    return cmocka_run_group_tests(tests, make_packages, NULL);
}
