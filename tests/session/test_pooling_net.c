// SPDX-License-Identifier: Apache-2.0
// The scheduler's gradients against finite differences.
#include "session/precision/learned.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { HEADS = 2, DIM = 6, HIDDEN = 5, CHOICES = 3, TOKENS = 7 };

struct problem {
    struct st_pooling_net net, grad;
    struct st_pooling_state state, back;
    struct st_pooling_input input;
    struct st_arena arena;
    float *keys, *values;
};

static void lay_out(struct problem *p, struct st_arena *arena) {
    size_t n = st_pooling_net_size(&p->net), floats = (size_t)HEADS * DIM * TOKENS;
    float *weights = ST_TAKE(arena, float, n), *grads = ST_TAKE(arena, float, n);
    p->grad = p->net;
    if (weights && grads) {
        st_pooling_net_place(&p->net, weights);
        st_pooling_net_place(&p->grad, grads);
    }
    st_pooling_state_take(&p->net, TOKENS, arena, &p->state);
    st_pooling_state_take(&p->net, TOKENS, arena, &p->back);
    p->keys = ST_TAKE(arena, float, floats);
    p->values = ST_TAKE(arena, float, floats);
}

static void open_problem(struct problem *p) {
    struct st_arena measure = st_arena_measure();
    *p = (struct problem){
        .net = {.n_heads = HEADS, .head_dim = DIM, .n_hidden = HIDDEN, .n_choices = CHOICES}};
    lay_out(p, &measure);
    assert_int_equal(st_arena_open(&p->arena, measure.used), STINT_OK);
    lay_out(p, &p->arena);
    for (size_t i = 0; i < st_pooling_net_size(&p->net); i++)
        p->net.query[i] = ts_random_float(-1.0f, 1.0f);
    for (size_t i = 0; i < (size_t)HEADS * DIM * TOKENS; i++) {
        p->keys[i] = ts_random_float(-1.0f, 1.0f);
        p->values[i] = ts_random_float(-1.0f, 1.0f);
    }
    p->input = (struct st_pooling_input){p->keys, p->values, TOKENS, (size_t)DIM * TOKENS};
}

static double loss(struct problem *p, size_t label) {
    double sum = 0.0;
    st_pooling_forward(&p->net, &p->input, &p->state);
    for (size_t i = 0; i < CHOICES; i++)
        sum += exp((double)p->state.logits[i] - (double)p->state.logits[label]);
    return log(sum);
}

static void gradients_are_those_of_the_loss(void **state) {
    (void)state;
    for (int round = 0; round < 5; round++) {
        struct problem p;
        open_problem(&p);
        size_t label = ts_random_below(CHOICES);
        double before = loss(&p, label);
        double told = st_pooling_backward(&p.net, &p.input, &p.state, label, &p.back, &p.grad);
        assert_true(fabs(told - before) < 1e-5);
        size_t n = st_pooling_net_size(&p.net), compared = 0;
        for (size_t i = 0; i < n; i++) {
            const float step = 2e-3f;
            float kept = p.net.query[i];
            p.net.query[i] = kept + step;
            double up = loss(&p, label);
            p.net.query[i] = kept - step;
            double down = loss(&p, label), slope = (up - down) / (2.0 * (double)step);
            double bend = fabs(up + down - 2.0 * before) / (double)step;
            p.net.query[i] = kept;
            if (bend > 2e-3 + 0.02 * fabs(slope)) continue; // a hidden unit turns on or off here
            compared++;
            if (fabs(slope - (double)p.grad.query[i]) > 4e-3 + 0.04 * fabs(slope))
                fail_msg("parameter %zu: slope %g, gradient %g", i, slope, (double)p.grad.query[i]);
        }
        assert_true(compared > n * 3 / 4);
        st_arena_close(&p.arena);
    }
}

static void gradients_add_up(void **state) {
    (void)state;
    struct problem p;
    open_problem(&p);
    size_t n = st_pooling_net_size(&p.net);
    float *once = malloc(n * sizeof *once);
    loss(&p, 0);
    st_pooling_backward(&p.net, &p.input, &p.state, 0, &p.back, &p.grad);
    for (size_t i = 0; i < n; i++) once[i] = p.grad.query[i];
    st_pooling_backward(&p.net, &p.input, &p.state, 0, &p.back, &p.grad);
    for (size_t i = 0; i < n; i++) assert_true(fabsf(p.grad.query[i] - 2.0f * once[i]) < 1e-5f);
    free(once);
    st_arena_close(&p.arena);
}

// The rule: one of the tokens has a large first key element in the first head, and the sign of the
// first element of its value is the answer. Plain descent finds it.
static void the_network_learns_a_rule(void **state) {
    (void)state;
    struct problem p;
    size_t right = 0;
    open_problem(&p);
    size_t n = st_pooling_net_size(&p.net);
    for (int step = 0; step < 6000; step++) {
        bool positive = ts_random_below(2) != 0, count = step >= 5500;
        for (size_t i = 0; i < (size_t)HEADS * DIM * TOKENS; i++) {
            p.keys[i] = ts_random_float(-1.0f, 1.0f);
            p.values[i] = ts_random_float(-1.0f, 1.0f);
        }
        size_t token = ts_random_below(TOKENS);
        p.keys[token * DIM] = 4.0f;
        p.values[token * DIM] = positive ? 2.0f : -2.0f;
        st_pooling_forward(&p.net, &p.input, &p.state);
        right += count && (p.state.logits[1] > p.state.logits[0]) == positive;
        for (size_t i = 0; i < n; i++) p.grad.query[i] = 0.0f;
        st_pooling_backward(&p.net, &p.input, &p.state, positive, &p.back, &p.grad);
        for (size_t i = 0; i < n; i++) p.net.query[i] -= 0.05f * p.grad.query[i];
    }
    assert_true(right > 450); // of 500, where guessing gets 250
    st_arena_close(&p.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_the_loss),
        cmocka_unit_test(gradients_add_up),
        cmocka_unit_test(the_network_learns_a_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
