// SPDX-License-Identifier: Apache-2.0
// Frequencies under each scaling against the published formulas, worked out by hand for single
// pairs.
#include "model/rope.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

enum { DIMS = 8 };

static void assert_near(double got, double wanted) {
    if (!(fabs(got - wanted) <= 1e-12 * fmax(1.0, fabs(wanted))))
        fail_msg("got %.17g, expected %.17g", got, wanted);
}

static struct st_rope plain(void) {
    return (struct st_rope){.theta = 10000.0, .factor = 4.0, .original_context = 100.0};
}

static void unscaled_frequencies_are_powers_of_theta(void **state) {
    (void)state;
    double f[DIMS / 2], magnitude;
    struct st_rope rope = plain();
    st_rope_frequencies(&rope, DIMS, 1000000, f, &magnitude);
    const double wanted[] = {1.0, 0.1, 0.01, 0.001};
    for (int i = 0; i < 4; i++) assert_near(f[i], wanted[i]);
    assert_near(magnitude, 1.0);
}

static void linear_divides_every_frequency(void **state) {
    (void)state;
    double f[DIMS / 2], magnitude;
    struct st_rope rope = plain();
    rope.scaling = ST_ROPE_LINEAR;
    st_rope_frequencies(&rope, DIMS, 1, f, &magnitude);
    assert_near(f[0], 0.25);
    assert_near(f[3], 0.00025);
}

static void dynamic_changes_nothing_within_the_original_context(void **state) {
    (void)state;
    double f[DIMS / 2], magnitude;
    struct st_rope rope = plain();
    rope.scaling = ST_ROPE_DYNAMIC;
    st_rope_frequencies(&rope, DIMS, 100, f, &magnitude);
    assert_near(f[1], 0.1);
    st_rope_frequencies(&rope, DIMS, 200, f, &magnitude);
    double theta = 10000.0 * pow(4.0 * 200.0 / 100.0 - 3.0, 8.0 / 6.0);
    assert_near(f[1], pow(theta, -0.25));
}

static void llama3_keeps_short_waves_and_slows_long_ones(void **state) {
    (void)state;
    double f[DIMS / 2], magnitude;
    struct st_rope rope = plain();
    rope.scaling = ST_ROPE_LLAMA3;
    rope.low_factor = 1.0;
    rope.high_factor = 4.0;
    st_rope_frequencies(&rope, DIMS, 1, f, &magnitude);
    assert_near(f[0], 1.0);                                         // 15.9 turns over 100 tokens
    assert_near(f[2], 0.01 / 4.0);                                  // 0.159 turns
    double smooth = (100.0 * 0.1 / (2.0 * acos(-1.0)) - 1.0) / 3.0; // 1.59 turns
    assert_near(f[1], (1.0 - smooth) * 0.1 / 4.0 + smooth * 0.1);
}

static void yarn_scales_magnitude_with_the_factor(void **state) {
    (void)state;
    double f[DIMS / 2], magnitude;
    struct st_rope rope = plain();
    rope.scaling = ST_ROPE_YARN;
    rope.beta_fast = 32.0;
    rope.beta_slow = 1.0;
    st_rope_frequencies(&rope, DIMS, 1, f, &magnitude);
    assert_near(magnitude, 0.1 * log(4.0) + 1.0);
    assert_near(f[0], 1.0);         // turns often: kept
    assert_near(f[3], 0.001 / 4.0); // turns less than once: interpolated
    rope.attention_factor = 1.5;
    st_rope_frequencies(&rope, DIMS, 1, f, &magnitude);
    assert_near(magnitude, 1.5);
}

static void longrope_switches_factors_past_the_original_context(void **state) {
    (void)state;
    static const float brief[] = {1, 1, 1, 1}, wide[] = {2, 2, 2, 2};
    double f[DIMS / 2], magnitude;
    struct st_rope rope = plain();
    rope.scaling = ST_ROPE_LONGROPE;
    rope.factors[0] = brief;
    rope.factors[1] = wide;
    st_rope_frequencies(&rope, DIMS, 100, f, &magnitude);
    assert_near(f[1], 0.1);
    st_rope_frequencies(&rope, DIMS, 101, f, &magnitude);
    assert_near(f[1], 0.05);
    assert_near(magnitude, sqrt(1.0 + log(4.0) / log(100.0)));
}

static void tables_hold_cosine_and_sine_of_each_position(void **state) {
    (void)state;
    const double f[] = {1.0, 0.5};
    float cosine[6], sine[6];
    st_rope_table(f, 2.0, 4, 7, 3, cosine, sine);
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 2; i++) {
            assert_near((double)cosine[t * 2 + i], (double)(float)(2.0 * cos((7 + t) * f[i])));
            assert_near((double)sine[t * 2 + i], (double)(float)(2.0 * sin((7 + t) * f[i])));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unscaled_frequencies_are_powers_of_theta),
        cmocka_unit_test(linear_divides_every_frequency),
        cmocka_unit_test(dynamic_changes_nothing_within_the_original_context),
        cmocka_unit_test(llama3_keeps_short_waves_and_slows_long_ones),
        cmocka_unit_test(yarn_scales_magnitude_with_the_factor),
        cmocka_unit_test(longrope_switches_factors_past_the_original_context),
        cmocka_unit_test(tables_hold_cosine_and_sine_of_each_position),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
