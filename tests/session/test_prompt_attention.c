// SPDX-License-Identifier: Apache-2.0
// Where a package's prompts compute attention with pairs of BF16: near what floats give, the same
// where floats are promised. That chunks do not matter is in test_npu.c.
#include "base/cpu.h"
#include "stint.h"
#include "support/kinds.h"
#include "support/support.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_IDS = 300, FIRST_TILE = 64 };

static const uint64_t WITHOUT = ~(uint64_t)ST_CPU_AVX512BF16;
static stint_model *model;
static int32_t ids[N_IDS];
static uint32_t vocab;

static int open_package(void **state) {
    (void)state;
    model = ts_package(ts_built("models/novels-2"), "novels", NULL);
    stint_model_info info = {.size = sizeof info};
    assert_int_equal(stint_model_describe(model, &info), STINT_OK);
    vocab = info.vocab;
    for (size_t i = 0; i < N_IDS; i++) ids[i] = (int32_t)ts_random_below(4000);
    return 0;
}

static int close_package(void **state) {
    (void)state;
    stint_model_close(model);
    return 0;
}

// Logits of every position, on a CPU that has `allowed` of this one.
static float *evaluate(uint64_t allowed, const char *kv) {
    stint_session *s = NULL;
    stint_session_options options = {.size = sizeof options, .n_context = 512, .kv = kv};
    float *logits = malloc((size_t)N_IDS * vocab * sizeof *logits);
    assert_non_null(logits);
    st_cpu_mask(allowed);
    if (stint_session_open(model, &options, &s) != STINT_OK ||
        stint_session_eval(s, 0, ids, N_IDS, true, logits) != STINT_OK)
        fail_msg("%s", stint_error_text());
    st_cpu_mask(UINT64_MAX);
    stint_session_close(s);
    return logits;
}

static void skip_without_pairs(void) {
    if (!(st_cpu_flags() & ST_CPU_AVX512BF16)) skip();
}

// Rounding to BF16 moves inputs of linears by a step of INT8 here and there; W8A8 itself is a few
// hundredths away from floats in the same measure.
static void pairs_are_near_floats(void **state) {
    (void)state;
    skip_without_pairs();
    float *pairs = evaluate(UINT64_MAX, "f16"), *floats = evaluate(WITHOUT, "f16");
    double error = 0, power = 0;
    for (size_t i = FIRST_TILE * (size_t)vocab; i < (size_t)N_IDS * vocab; i++) {
        error += pow((double)pairs[i] - (double)floats[i], 2);
        power += (double)floats[i] * (double)floats[i];
    }
    print_message("root of error over power: %.2g\n", sqrt(error / power));
    assert_true(error > 0 && error < 5e-3 * power);
    free(pairs);
    free(floats);
}

static void the_first_tile_is_of_floats(void **state) {
    (void)state;
    skip_without_pairs();
    float *pairs = evaluate(UINT64_MAX, "f16"), *floats = evaluate(WITHOUT, "f16");
    assert_memory_equal(pairs, floats, FIRST_TILE * (size_t)vocab * sizeof *pairs);
    free(pairs);
    free(floats);
}

static void a_cache_of_floats_is_computed_in_floats(void **state) {
    (void)state;
    skip_without_pairs();
    float *with = evaluate(UINT64_MAX, "f32"), *without = evaluate(WITHOUT, "f32");
    assert_memory_equal(with, without, (size_t)N_IDS * vocab * sizeof *with);
    free(with);
    free(without);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_near_floats),
        cmocka_unit_test(the_first_tile_is_of_floats),
        cmocka_unit_test(a_cache_of_floats_is_computed_in_floats),
    };
    return cmocka_run_group_tests(tests, open_package, close_package);
}
