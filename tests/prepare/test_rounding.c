// SPDX-License-Identifier: Apache-2.0
// Rounded weights are near the source's, nearer with more bits, and the errors say how near.
#include "prepare/rounding.h"

#include "base/half.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ROWS = 21, K = 150 };

struct problem {
    float w[ROWS * K], importance[K];
    uint16_t rounded[ROWS * K];
    struct st_linear_weight linear;
};

static struct problem *make(void) {
    struct problem *p = calloc(1, sizeof *p);
    for (size_t i = 0; i < ROWS * K; i++) p->w[i] = ts_random_float(-1.0f, 1.0f);
    for (size_t i = 0; i < K; i++) p->importance[i] = ts_random_float(0.1f, 2.0f);
    p->linear = (struct st_linear_weight){.data = p->w,
                                          .row_bytes = K * sizeof(float),
                                          .n_out = ROWS,
                                          .n_in = K,
                                          .dtype = ST_DTYPE_F32};
    return p;
}

static double error_of(const struct problem *p) {
    double error = 0.0, energy = 0.0;
    for (size_t i = 0; i < ROWS * K; i++) {
        double miss = (double)(p->w[i] - st_f32_from_f16(p->rounded[i]));
        error += (double)p->importance[i % K] * miss * miss;
        energy += (double)(p->importance[i % K] * p->w[i] * p->w[i]);
    }
    return error / energy;
}

static void errors_are_those_of_the_rounded_weights(void **state) {
    (void)state;
    struct problem *p = make();
    for (size_t n_threads = 1; n_threads <= 3; n_threads++) {
        struct st_pool *pool = NULL;
        struct st_rounder *rounder = NULL;
        assert_int_equal(st_pool_open(n_threads, &pool), STINT_OK);
        assert_int_equal(st_rounder_open(ROWS, K, pool, &rounder), STINT_OK);
        double last = 1.0;
        for (unsigned bits = 2; bits <= 6; bits++) {
            double error = st_round_linear(rounder, &p->linear, p->importance, bits, 1, p->rounded);
            assert_true(fabs(error - error_of(p)) < 1e-5);
            assert_true(error < 0.4 * last);
            // Of a third of the panels: about the same.
            double part = st_round_linear(rounder, &p->linear, p->importance, bits, 3, NULL);
            assert_true(part > 0.7 * error && part < 1.4 * error);
            last = error;
        }
        st_rounder_close(rounder);
        st_pool_close(pool);
    }
    free(p);
}

static void nothing_is_lost_of_zeros(void **state) {
    (void)state;
    struct problem *p = make();
    struct st_pool *pool = NULL;
    struct st_rounder *rounder = NULL;
    memset(p->w, 0, sizeof p->w);
    assert_int_equal(st_pool_open(1, &pool), STINT_OK);
    assert_int_equal(st_rounder_open(ROWS, K, pool, &rounder), STINT_OK);
    assert_true(st_round_linear(rounder, &p->linear, p->importance, 3, 1, p->rounded) == 0.0);
    for (size_t i = 0; i < ROWS * K; i++) assert_true(st_f32_from_f16(p->rounded[i]) == 0.0f);
    st_rounder_close(rounder);
    st_pool_close(pool);
    free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_those_of_the_rounded_weights),
        cmocka_unit_test(nothing_is_lost_of_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
