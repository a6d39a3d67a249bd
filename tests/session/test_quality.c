// SPDX-License-Identifier: Apache-2.0
// A quality in words takes the fewest bits whose noted loss it allows.
#include "session/precision/quality.h"

#include "session/precision/schedule.h"
#include "support/kinds.h"
#include "support/support.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static stint_model *package; // of 2 to 4 bits
static json_t *notes;

static int open_package(void **state) {
    (void)state;
    size_t bytes;
    stint_prepare_options o = {
        .size = sizeof o, .n_tokens = 1500, .bits_low = 2, .bits_high = 4, .quantizer = "uniform"};
    package = ts_package(ts_built("models/novels-2"), "quality", &o);
    const char *text = stint_model_notes(package, &bytes);
    notes = json_loadb(text, bytes, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(notes, "losses")), 3);
    return 0;
}

static int close_package(void **state) {
    (void)state;
    json_decref(notes);
    stint_model_close(package);
    return 0;
}

static bool is_below(unsigned bits, double limit) {
    size_t i;
    json_t *loss;
    json_array_foreach(
        json_object_get(notes, "losses"), i,
        loss) if (json_integer_value(json_object_get(loss, "bits")) ==
                  bits) return json_number_value(json_object_get(loss, "divergence")) < limit &&
        json_number_value(json_object_get(loss, "perplexity_ratio")) < 1.0 + limit;
    fail_msg("no loss at %u bits", bits);
    return false;
}

static void the_fewest_bits_are_taken(void **state) {
    (void)state;
    const struct {
        const char *word;
        double loss;
    } words[] = {{"high", 0.01}, {"fast", 0.1}};
    for (int i = 0; i < 2; i++) {
        unsigned bits = st_precision_quality(package, words[i].word);
        for (unsigned fewer = 2; fewer < bits && fewer <= 4; fewer++)
            assert_false(is_below(fewer, words[i].loss));
        assert_true(bits == 8 || is_below(bits, words[i].loss));
    }
    assert_true(st_precision_quality(package, "fast") < 8);
    assert_int_equal(st_precision_quality(package, "quick"), 0);
}

static void prompts_stay_in_int8(void **state) {
    (void)state;
    struct st_precision_schedule s = {0};
    assert_int_equal(st_schedule_load(package, "fast", &s), STINT_OK);
    assert_int_equal(s.precision.prefill, 8);
    assert_int_equal(s.precision.steps[0].bits, st_precision_quality(package, "fast"));
    assert_int_equal(st_schedule_load(package, "none", &s), STINT_OK);
    assert_int_equal(s.precision.steps[0].bits, 8);
}

static void without_nested_weights_all_bits_are_taken(void **state) {
    (void)state;
    stint_model *m = NULL;
    struct st_precision_schedule s = {0};
    assert_int_equal(stint_model_open(ts_built("models/novels-2"), NULL, &m), STINT_OK);
    assert_int_equal(st_precision_quality(m, "high"), 8);
    assert_int_equal(st_schedule_load(m, "high", &s), STINT_OK);
    assert_int_equal(s.precision.steps[0].bits, 8);
    stint_model_close(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fewest_bits_are_taken),
        cmocka_unit_test(prompts_stay_in_int8),
        cmocka_unit_test(without_nested_weights_all_bits_are_taken),
    };
    return cmocka_run_group_tests(tests, open_package, close_package);
}
