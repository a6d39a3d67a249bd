// SPDX-License-Identifier: Apache-2.0
// Bits go where they lower the loss most, within each precision's budget, and are never taken back.
#include "prepare/allocate.h"

#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MAX = 40 };

// A bit more divides the loss by five.
static struct st_allocation linear_of(uint64_t n_weights, double loss) {
    struct st_allocation l = {.n_weights = n_weights};
    for (unsigned b = ST_NESTED_LOWEST; b <= ST_NESTED_HIGHEST; b++, loss /= 5.0) l.loss[b] = loss;
    return l;
}

static double loss_of(const struct st_allocation *linears, size_t n, unsigned precision) {
    double loss = 0.0;
    for (size_t i = 0; i < n; i++) loss += linears[i].loss[linears[i].bits[precision]];
    return loss;
}

static void budgets_are_kept_and_bits_never_fall(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct st_allocation linears[MAX];
        size_t n = 1 + ts_random_below(MAX);
        unsigned low = 2 + (unsigned)ts_random_below(5);
        unsigned high = low + (unsigned)ts_random_below(8 - low);
        for (size_t i = 0; i < n; i++)
            linears[i] = linear_of(1 + ts_random_below(1000), (double)ts_random_float(0.01f, 1.0f));
        assert_int_equal(st_allocate_bits(linears, n, low, high), STINT_OK);
        for (unsigned at = low; at <= high; at++) {
            assert_true(st_allocation_mean(linears, n, at) <= st_allocation_budget(at));
            for (size_t i = 0; i < n; i++) {
                assert_in_range(linears[i].bits[at], ST_NESTED_LOWEST, st_allocation_most(high));
                if (at > low) assert_true(linears[i].bits[at] >= linears[i].bits[at - 1]);
            }
        }
    }
}

static void budgets_are_used_where_linears_are_small(void **state) {
    (void)state;
    struct st_allocation linears[MAX];
    for (size_t i = 0; i < MAX; i++)
        linears[i] = linear_of(100, (double)ts_random_float(0.1f, 1.0f));
    assert_int_equal(st_allocate_bits(linears, MAX, 2, 4), STINT_OK);
    for (unsigned at = 2; at <= 4; at++)
        assert_true(st_allocation_mean(linears, MAX, at) >
                    st_allocation_budget(at) - 1.0 / MAX - 1e-9);
}

// Any move of a bit from one linear to another of the same size makes the loss larger.
static void no_exchange_lowers_the_loss(void **state) {
    (void)state;
    struct st_allocation l[MAX];
    for (size_t i = 0; i < MAX; i++) l[i] = linear_of(64, (double)ts_random_float(0.001f, 1.0f));
    assert_int_equal(st_allocate_bits(l, MAX, 3, 3), STINT_OK);
    double loss = loss_of(l, MAX, 3);
    for (size_t i = 0; i < MAX; i++)
        for (size_t j = 0; j < MAX; j++) {
            if (i == j || l[i].bits[3] == ST_NESTED_LOWEST || l[j].bits[3] == 4) continue;
            l[i].bits[3]--;
            l[j].bits[3]++;
            assert_true(loss_of(l, MAX, 3) >= loss * 0.999999);
            l[i].bits[3]++;
            l[j].bits[3]--;
        }
}

// A source of four bits gains nothing from a fifth.
static void bits_that_gain_nothing_are_not_spent(void **state) {
    (void)state;
    struct st_allocation linears[4];
    for (size_t i = 0; i < 4; i++) {
        linears[i] = linear_of(100, 1.0);
        linears[i].loss[5] = linears[i].loss[4];
    }
    assert_int_equal(st_allocate_bits(linears, 4, 2, 4), STINT_OK);
    for (size_t i = 0; i < 4; i++) assert_int_equal(linears[i].bits[4], 4);
}

// Of equal linears the first one gets the bit that is left, and a budget is used to its last bit.
static void equal_gains_go_to_the_first(void **state) {
    (void)state;
    struct st_allocation linears[] = {linear_of(100, 1.0), linear_of(100, 1.0)};
    assert_int_equal(st_allocate_bits(linears, 2, 4, 4), STINT_OK);
    assert_int_equal(linears[0].bits[4], 5);
    assert_int_equal(linears[1].bits[4], 4);
}

// A fourth bit that gains more than the third one waits for it.
static void bits_come_in_their_order(void **state) {
    (void)state;
    struct st_allocation linears[] = {linear_of(100, 1.0), linear_of(100, 1.0)};
    linears[0].loss[3] = 0.9;
    assert_int_equal(st_allocate_bits(linears, 2, 4, 4), STINT_OK);
    assert_int_equal(linears[0].bits[4], 5);
}

// A head of a quarter of all weights gets its bit though others gain more for each weight and would
// leave too little for it.
static void a_large_linear_gets_its_turn(void **state) {
    (void)state;
    struct st_allocation linears[11];
    for (size_t i = 0; i < 10; i++) linears[i] = linear_of(75, 0.8);
    linears[10] = linear_of(250, 2.5);
    assert_int_equal(st_allocate_bits(linears, 11, 4, 4), STINT_OK);
    assert_int_equal(linears[10].bits[4], 5);
}

// What a model loses at the least budget decides whether it gets more.
static void easy_models_get_the_least(void **state) {
    (void)state;
    struct st_allocation easy[MAX], hard[MAX];
    for (size_t i = 0; i < MAX; i++) {
        easy[i] = linear_of(100, 0.01);
        hard[i] = linear_of(100, 1.0);
    }
    assert_int_equal(st_allocate_bits(easy, MAX, 4, 4), STINT_OK);
    assert_int_equal(st_allocate_bits(hard, MAX, 4, 4), STINT_OK);
    assert_true(st_allocation_mean(easy, MAX, 4) <= 4.5);
    assert_true(st_allocation_mean(hard, MAX, 4) > 4.6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(budgets_are_kept_and_bits_never_fall),
        cmocka_unit_test(budgets_are_used_where_linears_are_small),
        cmocka_unit_test(no_exchange_lowers_the_loss),
        cmocka_unit_test(bits_that_gain_nothing_are_not_spent),
        cmocka_unit_test(equal_gains_go_to_the_first),
        cmocka_unit_test(bits_come_in_their_order),
        cmocka_unit_test(a_large_linear_gets_its_turn),
        cmocka_unit_test(easy_models_get_the_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
