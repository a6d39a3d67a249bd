// SPDX-License-Identifier: Apache-2.0
#include "eval/fake_quantize.h"

#include "support/support.h"

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void int8_is_within_half_a_step(void **state) {
    (void)state;
    for (int i = 0; i < 1000; i++) {
        float scale = ts_random_float(1e-3f, 2.0f), x = ts_random_float(-300.0f, 300.0f), y;
        st_fake_int8(&x, 1, scale, &y);
        float held = fminf(fmaxf(x, -127.0f * scale), 127.0f * scale);
        assert_true(fabsf(y - held) <= 0.5001f * scale);
        assert_true(fabsf(y / scale - rintf(y / scale)) < 1e-4f);
    }
}

static void groups_have_scales_of_their_own(void **state) {
    (void)state;
    enum { N = 70, GROUP = 32 };
    float x[N], y[N];
    for (size_t i = 0; i < N; i++)
        x[i] = ts_random_float(-1.0f, 1.0f) * (i < GROUP ? 1000.0f : i < 2 * GROUP ? 1.0f : 0.0f);
    st_fake_int8_groups(x, N, GROUP, y);
    for (size_t i = 0; i < N; i++)
        assert_true(fabsf(x[i] - y[i]) <= (i < GROUP ? 1000.0f : 1.0f) * 0.5001f / 127.0f);
    for (size_t i = 2 * GROUP; i < N; i++) assert_true(y[i] == 0.0f);
    // A group of one is exact but for rounding.
    st_fake_int8_groups(x, N, 1, y);
    for (size_t i = 0; i < N; i++) assert_true(fabsf(x[i] - y[i]) <= 1e-6f * fabsf(x[i]));
}

// Columns of the rotation's matrix are orthonormal, whatever the factors of n.
static void rotations_are_orthogonal(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 2, 3, 8, 12, 35, 96};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t n = sizes[s];
        struct st_rotation r;
        float *m = calloc(n * n, sizeof *m), *scratch = calloc(n, sizeof *scratch);
        assert_int_equal(st_rotation_open(n, 7, &r), 0);
        for (size_t i = 0; i < n; i++) {
            m[i * n + i] = 1.0f;
            st_rotation_apply(&r, m + i * n, scratch);
        }
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j <= i; j++) {
                double sum = 0.0;
                for (size_t c = 0; c < n; c++) sum += (double)m[i * n + c] * (double)m[j * n + c];
                assert_true(fabs(sum - (i == j)) < 1e-5);
            }
        st_rotation_close(&r);
        free(m);
        free(scratch);
    }
}

static void a_rotation_spreads_an_outlier(void **state) {
    (void)state;
    enum { N = 256 };
    float x[N] = {0}, scratch[1];
    struct st_rotation r;
    x[17] = 160.0f;
    assert_int_equal(st_rotation_open(N, 3, &r), 0);
    st_rotation_apply(&r, x, scratch);
    for (size_t i = 0; i < N; i++) assert_true(fabsf(fabsf(x[i]) - 10.0f) < 1e-3f);
    st_rotation_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(int8_is_within_half_a_step),
        cmocka_unit_test(groups_have_scales_of_their_own),
        cmocka_unit_test(rotations_are_orthogonal),
        cmocka_unit_test(a_rotation_spreads_an_outlier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
