// SPDX-License-Identifier: Apache-2.0
// Descent lowers the error of outputs whose inputs correlate, and keeps what cannot be better.
#include "prepare/descent.h"

#include "base/cpu.h"
#include "prepare/quantize.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MAX_K = 120, ROWS = ST_DESCENT_ROWS, FEW = ST_DESCENT_FEW_ROWS, TOKENS = 300 };

struct case_of {
    size_t k, n_rows;
    float w[MAX_K * ROWS], value[MAX_K * ROWS], x[TOKENS * MAX_K], *h;
};

static void select_whole(void *context, size_t element, const float *target, float *value) {
    const struct case_of *c = context;
    assert_true(element < c->k);
    for (size_t r = 0; r < c->n_rows; r++) value[r] = rintf(target[r]);
}

// `common`: how far what all channels share reaches.
static struct case_of *make(size_t k, float common) {
    struct case_of *c = calloc(1, sizeof *c);
    c->k = k;
    c->n_rows = ROWS;
    c->h = calloc(st_moments_floats(k), sizeof *c->h);
    for (size_t i = 0; i < k * ROWS; i++) {
        c->w[i] = ts_random_float(-9.0f, 9.0f);
        c->value[i] = rintf(c->w[i]);
    }
    for (size_t t = 0; t < TOKENS; t++) {
        float shared = ts_random_float(-common, common);
        for (size_t i = 0; i < k; i++) c->x[t * k + i] = shared + ts_random_float(-1.0f, 1.0f);
        for (size_t i = 0; i < k; i++)
            for (size_t j = i; j < k; j++) c->h[i * k + j] += c->x[t * k + i] * c->x[t * k + j];
    }
    assert_true(st_moments_finish(c->h, k, 1000000, 0.01));
    return c;
}

static void drop(struct case_of *c) {
    free(c->h);
    free(c);
}

static void run(struct case_of *c, const struct st_tile *tile) {
    float *scratch = malloc(st_descent_scratch(tile, c->k, c->n_rows) * sizeof *scratch);
    const float max[MAX_K] = {0};
    struct st_descent d = {.n_rows = c->n_rows,
                           .w = c->w,
                           .k = c->k,
                           .slopes = &(struct st_slopes){.k = c->k, .moments = c->h, .tile = tile},
                           .max = max,
                           .select = select_whole,
                           .context = c,
                           .value = c->value};
    st_descent_run(&d, scratch);
    free(scratch);
}

static double output_error(const struct case_of *c) {
    double sum = 0.0;
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t r = 0; r < ROWS; r++) {
            double miss = 0.0;
            for (size_t i = 0; i < c->k; i++)
                miss += (double)(c->value[i * ROWS + r] - c->w[i * ROWS + r]) *
                        (double)c->x[t * c->k + i];
            sum += miss * miss;
        }
    return sum;
}

static void the_error_of_outputs_falls(void **state) {
    (void)state;
    for (const struct st_tile *tile = st_tiles; tile->name; tile++) {
        if ((tile->isa & st_cpu_flags()) != tile->isa) continue;
        double rounded = 0.0, descended = 0.0;
        for (size_t k = MAX_K - 8; k <= MAX_K; k++) {
            struct case_of *c = make(k, 2.0f);
            rounded += output_error(c);
            run(c, tile);
            descended += output_error(c);
            for (size_t i = 0; i < k * ROWS; i++) assert_true(c->value[i] == rintf(c->value[i]));
            drop(c);
        }
        print_message("%s: %.3f of the error\n", tile->name, descended / rounded);
        assert_true(descended < 0.5 * rounded);
    }
}

// Without correlations the nearest is best; weights that can be met are met.
static void nothing_to_gain_changes_nothing(void **state) {
    (void)state;
    struct case_of *c = make(70, 0.0f);
    memset(c->h, 0, st_moments_floats(c->k) * sizeof *c->h);
    for (size_t i = 0; i < c->k; i++) c->h[i * c->k + i] = 1.0f + (float)i;
    run(c, st_tile_select(st_cpu_flags()));
    for (size_t i = 0; i < c->k * ROWS; i++) assert_true(c->value[i] == rintf(c->w[i]));
    drop(c);
    c = make(70, 2.0f);
    for (size_t i = 0; i < c->k * ROWS; i++) c->w[i] = c->value[i];
    run(c, st_tile_select(st_cpu_flags()));
    for (size_t i = 0; i < c->k * ROWS; i++) assert_true(c->value[i] == c->w[i]);
    drop(c);
}

static void take_rows(const float *from, size_t k, size_t first, float *to) {
    for (size_t i = 0; i < k; i++) memcpy(to + i * FEW, from + i * ROWS + first, FEW * sizeof *to);
}

static void few_rows_have_the_same_bits(void **state) {
    (void)state;
    for (const struct st_tile *tile = st_tiles; tile->name; tile++) {
        if ((tile->isa & st_cpu_flags()) != tile->isa) continue;
        struct case_of *whole = make(MAX_K - 3, 2.0f), *few = calloc(1, sizeof *few);
        float expected[MAX_K * ROWS];
        for (size_t first = 0; first < ROWS; first += FEW) {
            struct case_of all = *whole;
            *few = *whole;
            few->n_rows = FEW;
            take_rows(all.w, all.k, first, few->w);
            take_rows(all.value, all.k, first, few->value);
            run(&all, tile);
            run(few, tile);
            take_rows(all.value, all.k, first, expected);
            assert_memory_equal(few->value, expected, all.k * FEW * sizeof(float));
        }
        free(few);
        drop(whole);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_error_of_outputs_falls),
        cmocka_unit_test(nothing_to_gain_changes_nothing),
        cmocka_unit_test(few_rows_have_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
