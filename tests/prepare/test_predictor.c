// SPDX-License-Identifier: Apache-2.0
#include "prepare/predictor.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

// Neurons are active where a mixture of a few directions of the input is large.
static struct st_activity make_activity(size_t hidden, size_t ffn, size_t n,
                                        struct st_arena *arena) {
    enum { DIRECTIONS = 4 };
    struct st_activity a;
    struct st_arena measure = st_arena_measure();
    float directions[DIRECTIONS][64], z[DIRECTIONS];
    float *mixture = malloc(ffn * DIRECTIONS * sizeof *mixture), *x = malloc(hidden * sizeof *x);
    float *middle = malloc(ffn * sizeof *middle);
    st_activity_lay_out(&a, hidden, ffn, n, &measure);
    assert_int_equal(st_arena_open(arena, measure.used), STINT_OK);
    st_activity_lay_out(&a, hidden, ffn, n, arena);
    for (size_t d = 0; d < DIRECTIONS; d++)
        for (size_t i = 0; i < hidden; i++) directions[d][i] = ts_random_float(-1, 1);
    for (size_t i = 0; i < ffn * DIRECTIONS; i++) mixture[i] = ts_random_float(-1, 1);
    for (size_t t = 0; t < n; t++) {
        memset(z, 0, sizeof z);
        for (size_t i = 0; i < hidden; i++) {
            x[i] = ts_random_float(-2, 2);
            for (size_t d = 0; d < DIRECTIONS; d++) z[d] += directions[d][i] * x[i];
        }
        for (size_t f = 0; f < ffn; f++) {
            float sum = -3.0f;
            for (size_t d = 0; d < DIRECTIONS; d++) sum += mixture[f * DIRECTIONS + d] * z[d];
            middle[f] = fmaxf(sum, 0.0f);
        }
        st_activity_see_inputs(&a, x, 1);
        st_activity_see_neurons(&a, middle, 1);
    }
    st_activity_count(&a);
    free(mixture);
    free(x);
    free(middle);
    return a;
}

static void activity_is_counted(void **state) {
    (void)state;
    struct st_arena arena;
    struct st_activity a = make_activity(16, 70, 64, &arena);
    for (size_t f = 0; f < a.ffn; f++) {
        size_t one = 0, two = 0;
        for (size_t t = 0; t < 64; t++) one += st_activity_has(&a, t, f);
        for (size_t t = 0; t < 32; t++)
            two += st_activity_has(&a, t, f) || st_activity_has(&a, t + 32, f);
        assert_true(fabsf(a.rates[f] - (float)one / 64) < 1e-6f);
        assert_true(fabsf(a.rates[a.ffn + f] - (float)two / 32) < 1e-6f);
        assert_true(a.rates[a.ffn + f] >= a.rates[f]);
    }
    for (size_t i = 1; i < a.ffn; i++) {
        float before = a.rates[a.order[i - 1]], now = a.rates[a.order[i]];
        assert_true(before > now || (before == now && a.order[i - 1] < a.order[i]));
    }
    st_activity_see_inputs(&a, a.inputs, 1); // there is no room for more
    st_activity_see_neurons(&a, a.inputs, 1);
    assert_int_equal(a.n, 64);
    st_activity_clear(&a);
    assert_int_equal(a.n, 0);
    assert_false(st_activity_has(&a, 0, 0));
    st_arena_close(&arena);
}

static struct st_predictor open_predictor(const struct st_activity *a, size_t rank,
                                          struct st_pool *pool) {
    struct st_predictor p;
    struct st_predictor_options o = {.rank = rank, .recall = 0.97};
    assert_int_equal(st_predictor_open(a->hidden, a->ffn, &o, pool, &p), STINT_OK);
    return p;
}

static void gradients_are_finite_differences(void **state) {
    (void)state;
    struct st_arena arena;
    struct st_pool *pool = NULL;
    struct st_activity a = make_activity(8, 20, 40, &arena);
    assert_int_equal(st_pool_open(2, &pool), STINT_OK);
    struct st_predictor p = open_predictor(&a, 16, pool);
    const float *in, *out, *bias;
    uint32_t tokens[13];
    for (uint32_t i = 0; i < 13; i++) tokens[i] = 3 * i;
    assert_int_equal(st_predictor_train(&p, &a), STINT_OK); // somewhere on the way
    size_t n = p.rank * p.hidden + p.ffn * p.rank + p.ffn;
    float *copy = malloc(n * sizeof *copy), *w = p.in; // in, out, bias lie side by side
    st_predictor_gradients(&p, &a, tokens, 13, &in, &out, &bias);
    memcpy(copy, in, n * sizeof *copy);
    for (size_t i = 0; i < n; i += 7) {
        float held = w[i], step = 1e-2f;
        w[i] = held + step;
        double above = st_predictor_gradients(&p, &a, tokens, 13, &in, &out, &bias);
        w[i] = held - step;
        double below = st_predictor_gradients(&p, &a, tokens, 13, &in, &out, &bias);
        w[i] = held;
        double wanted = (above - below) / (2.0 * (double)step);
        assert_true(fabs((double)copy[i] - wanted) < 2e-3 + 2e-2 * fabs(wanted));
    }
    free(copy);
    st_predictor_close(&p);
    st_pool_close(pool);
    st_arena_close(&arena);
}

static void a_rule_is_learned_by_any_number_of_threads(void **state) {
    (void)state;
    struct st_arena arena;
    struct st_activity a = make_activity(32, 96, 3000, &arena);
    float *first = NULL;
    size_t active = 0;
    for (size_t t = 0; t < a.n; t++)
        for (size_t f = 0; f < a.ffn; f++) active += st_activity_has(&a, t, f);
    double rate = (double)active / (double)(a.n * a.ffn);
    for (size_t n_threads = 1; n_threads <= 3; n_threads += 2) {
        struct st_pool *pool = NULL;
        assert_int_equal(st_pool_open(n_threads, &pool), STINT_OK);
        struct st_predictor p = open_predictor(&a, 16, pool);
        assert_int_equal(st_predictor_train(&p, &a), STINT_OK);
        assert_int_equal(st_predictor_calibrate(&p, &a), STINT_OK);
        assert_true(p.found > 0.965 && p.found < 0.975);
        assert_true(p.share < 1.5 * rate); // a fair coin would name 97 % of all
        size_t n = p.rank * (p.hidden + p.ffn) + p.ffn;
        if (first) assert_memory_equal(first, p.in, n * sizeof *first);
        if (!first) first = memcpy(malloc(n * sizeof *first), p.in, n * sizeof *first);
        st_predictor_close(&p);
        st_pool_close(pool);
    }
    free(first);
    st_arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activity_is_counted),
        cmocka_unit_test(gradients_are_finite_differences),
        cmocka_unit_test(a_rule_is_learned_by_any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
