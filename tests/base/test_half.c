// SPDX-License-Identifier: Apache-2.0
// All 65536 values of both formats, and the ways in which rounding can go wrong.
#include "base/half.h"

#include "support/support.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

static void half_every_f16_survives_the_way_there_and_back(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = st_f32_from_f16((uint16_t)h);
        if (isnan(f))
            assert_true((h & 0x7c00) == 0x7c00 && (h & 0x3ff) != 0);
        else
            assert_int_equal(st_f16_from_f32(f), h);
    }
}

static void half_every_bf16_survives_the_way_there_and_back(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = st_f32_from_bf16((uint16_t)h);
        if (isnan(f))
            assert_true(isnan(st_f32_from_bf16(st_bf16_from_f32(f))));
        else
            assert_int_equal(st_bf16_from_f32(f), h);
    }
}

static void half_f16_values_are_what_the_standard_says(void **state) {
    (void)state;
    assert_true(st_f32_from_f16(0x3c00) == 1);
    assert_true(st_f32_from_f16(0xc000) == -2);
    assert_true(st_f32_from_f16(0x7bff) == 65504);
    assert_true(st_f32_from_f16(0x0001) == 0x1p-24f);
    assert_true(st_f32_from_f16(0x03ff) == 1023 * 0x1p-24f);
    assert_true(st_f32_from_f16(0x0400) == 0x1p-14f);
    assert_true(isinf(st_f32_from_f16(0xfc00)) && st_f32_from_f16(0xfc00) < 0);
    assert_true(signbit(st_f32_from_f16(0x8000)) && st_f32_from_f16(0x8000) == 0);
}

static void half_f16_rounds_to_nearest_even(void **state) {
    (void)state;
    assert_int_equal(st_f16_from_f32(1 + 0x1p-11f), 0x3c00);     // a tie, down to even
    assert_int_equal(st_f16_from_f32(1 + 3 * 0x1p-11f), 0x3c02); // a tie, up to even
    assert_int_equal(st_f16_from_f32(1 + 0x1p-11f + 0x1p-20f), 0x3c01);
    assert_int_equal(st_f16_from_f32(65519.996f), 0x7bff);
    assert_int_equal(st_f16_from_f32(65520), 0x7c00); // halfway beyond the largest
    assert_int_equal(st_f16_from_f32(-1e30f), 0xfc00);
    assert_int_equal(st_f16_from_f32(0x1p-25f), 0); // a tie with zero
    assert_int_equal(st_f16_from_f32(0x1.000002p-25f), 1);
    assert_int_equal(st_f16_from_f32(0x1.ffcp-15f), 0x0400); // the last subnormal carries over
    assert_int_equal(st_f16_from_f32(-0x1p-60f), 0x8000);
    assert_true(isnan(st_f32_from_f16(st_f16_from_f32(NAN))));
}

static void half_bf16_rounds_to_nearest_even(void **state) {
    (void)state;
    assert_int_equal(st_bf16_from_f32(st_float_from_bits(0x3f808000)), 0x3f80);
    assert_int_equal(st_bf16_from_f32(st_float_from_bits(0x3f818000)), 0x3f82);
    assert_int_equal(st_bf16_from_f32(st_float_from_bits(0x3f808001)), 0x3f81);
    assert_int_equal(st_bf16_from_f32(st_float_from_bits(0x7f7fffff)), 0x7f80);
    assert_true(isnan(st_f32_from_bf16(st_bf16_from_f32(st_float_from_bits(0x7f800001)))));
}

// No neighbour is nearer than the value chosen.
static void half_random_floats_go_to_the_nearest_f16(void **state) {
    (void)state;
    for (int i = 0; i < 100000; i++) {
        float f = ldexpf(ts_random_float(-1, 1), (int)ts_random_below(40) - 25);
        uint16_t h = st_f16_from_f32(f);
        if ((h & 0x7fff) == 0 || (h & 0x7fff) >= 0x7bff) continue;
        double off = fabs((double)st_f32_from_f16(h) - (double)f);
        assert_true(off <= fabs((double)st_f32_from_f16((uint16_t)(h + 1)) - (double)f));
        assert_true(off <= fabs((double)st_f32_from_f16((uint16_t)(h - 1)) - (double)f));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_every_f16_survives_the_way_there_and_back),
        cmocka_unit_test(half_every_bf16_survives_the_way_there_and_back),
        cmocka_unit_test(half_f16_values_are_what_the_standard_says),
        cmocka_unit_test(half_f16_rounds_to_nearest_even),
        cmocka_unit_test(half_bf16_rounds_to_nearest_even),
        cmocka_unit_test(half_random_floats_go_to_the_nearest_f16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
