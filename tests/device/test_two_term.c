// SPDX-License-Identifier: Apache-2.0
// Two-term INT8: how near they come, on every row of kernels.
#include "kernels/elementwise.h"
#include "base/cpu.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { LONGEST = 300 };

static float value_of(uint8_t byte, uint8_t zero) {
    return (float)(int8_t)(byte - zero);
}

static void check_row(const struct st_elementwise *e, const float *x, size_t n, float scale,
                      uint8_t zero) {
    uint8_t q[LONGEST + 1], rest[LONGEST + 1], alone[LONGEST + 1];
    q[n] = rest[n] = 77;
    size_t clipped = e->quantize_two(x, n, scale, zero, q, rest), wanted = 0;
    e->quantize(x, n, scale, zero, alone);
    assert_memory_equal(q, alone, n);
    assert_true(q[n] == 77 && rest[n] == 77);
    for (size_t i = 0; i < n; i++) {
        bool fits = fabsf(x[i]) <= 127.0f * scale;
        float near = scale * (value_of(q[i], zero) + value_of(rest[i], zero) / 254.0f);
        wanted += !fits;
        if (fits)
            assert_true(fabsf(x[i] - near) <= scale / 508.0f + fabsf(x[i]) * 1e-6f);
        else
            assert_true(rest[i] == zero && fabsf(value_of(q[i], zero)) == 127.0f);
        if (x[i] == 0.0f) assert_true(q[i] == zero && rest[i] == zero);
    }
    assert_int_equal(clipped, wanted);
}

static void two_terms_come_near(void **state) {
    (void)state;
    float x[LONGEST];
    for (const struct st_elementwise *const *e = st_elementwises; *e; e++) {
        if (((*e)->isa & st_cpu_flags()) != (*e)->isa) continue;
        for (size_t n = 0; n <= LONGEST; n += n < 70 ? 1 : 23) {
            float scale = ts_random_float(0.001f, 0.3f);
            for (size_t i = 0; i < n; i++) {
                float steps = ts_random_float(-140.0f, 140.0f);
                if (ts_random_below(8) == 0) steps = truncf(steps) + 0.5f; // between two numbers
                x[i] = ts_random_below(8) == 0 ? 0.0f : scale * steps;
            }
            check_row(*e, x, n, scale, 0);
            check_row(*e, x, n, scale, 128);
        }
    }
}

// Also where neither a float nor 32 bits hold the sum of both.
static void products_are_joined(void **state) {
    (void)state;
    const size_t k = 65536;
    const float step = 1.0f / 254.0f;
    const int32_t first[] = {10, -2, 300000000, 128}, second[] = {127, 254, 1, 254};
    const int32_t row_sums[] = {1, 0, 0, 1};
    const float scale[] = {1.0f, 2.0f, 1.0f, 1.0f}, bias[] = {0.25f, 0.5f, 0.0f, 1.0f};
    for (const struct st_elementwise *const *e = st_elementwises; *e; e++) {
        if (((*e)->isa & st_cpu_flags()) != (*e)->isa) continue;
        float y[4], plain[4];
        (*e)->dequantize_two(first, second, row_sums, 0, k, 1.0f, scale, NULL, 4, plain);
        assert_true(plain[0] == 2667.0f * step && plain[1] == -254.0f * (step * 2.0f));
        assert_true(plain[2] == 76200000001.0f * step && plain[3] == 32766.0f * step);
        (*e)->dequantize_two(first, second, row_sums, 0, k, 1.0f, scale, bias, 4, y);
        for (size_t i = 0; i < 4; i++) assert_true(y[i] == plain[i] + bias[i]);
        float both[4];
        for (size_t i = 0; i < 4; i++) both[i] = (float)(254.0 * first[i] + second[i]);
        (*e)->dequantize_joint(both, 1.0f, scale, bias, 4, y);
        for (size_t i = 0; i < 4; i++) assert_true(y[i] == plain[i] + bias[i]);
        (*e)->dequantize_two(first, second, row_sums, 128, k, 1.0f, scale, bias, 4, y);
        assert_true(y[3] == 126.0f * step + 1.0f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_terms_come_near),
                                       cmocka_unit_test(products_are_joined)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
