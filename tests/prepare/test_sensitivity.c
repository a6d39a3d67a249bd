// SPDX-License-Identifier: Apache-2.0
// Every linear gets a loss that falls with its bits, the same from any number of threads, and the
// model is as it was before.
#include "prepare/sensitivity.h"

#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_IDS = 40, N_LAYERS = 2, N_LINEARS = 7 * N_LAYERS + 1, V_OF_LAYER_0 = 2 };

static stint_model *model;

static int open_model(void **state) {
    (void)state;
    stint_model_options options = {.size = sizeof options, .exec = STINT_EXEC_FLOAT};
    return stint_model_open(ts_built("models/novels-2"), &options, &model) == STINT_OK ? 0 : -1;
}

static int close_model(void **state) {
    (void)state;
    stint_model_close(model);
    return 0;
}

static void measure(uint32_t n_threads, size_t n_ids, struct st_allocation out[N_LINEARS]) {
    int32_t ids[N_IDS];
    stint_prepare_options options = {
        .size = sizeof options, .n_threads = n_threads, .bits_low = 2, .bits_high = 4};
    struct st_prepare_job job = {.model = model,
                                 .options = &options,
                                 .ids = {.data = ids, .count = n_ids},
                                 .n_observed = n_ids};
    struct st_allocation *linears = NULL;
    uint32_t n = 0;
    for (size_t i = 0; i < N_IDS; i++) ids[i] = (int32_t)(i * 97 % 4000);
    assert_int_equal(st_sensitivity_measure(&job, &linears, &n), STINT_OK);
    assert_int_equal(n, N_LINEARS);
    memcpy(out, linears, N_LINEARS * sizeof *out);
    free(linears);
}

static void losses_fall_with_bits(void **state) {
    (void)state;
    struct st_layer before = model->weights.layers[N_LAYERS - 1];
    struct st_linear_weight head = model->weights.head;
    struct st_allocation linears[N_LINEARS], again[N_LINEARS];
    uint64_t n_weights = 0;
    measure(1, N_IDS, linears);
    for (size_t i = 0; i < N_LINEARS; i++) {
        n_weights += linears[i].n_weights;
        for (unsigned b = ST_NESTED_LOWEST; b < st_allocation_most(4); b++)
            assert_true(linears[i].loss[b] > linears[i].loss[b + 1]);
        assert_true(linears[i].loss[st_allocation_most(4)] > 0.0);
    }
    assert_int_equal(linears[N_LINEARS - 1].n_weights, (uint64_t)head.n_out * head.n_in);
    assert_true(n_weights > 2000000);
    measure(3, N_IDS, again);
    assert_memory_equal(linears, again, sizeof linears);
    assert_memory_equal(&before, &model->weights.layers[N_LAYERS - 1], sizeof before);
    assert_memory_equal(&head, &model->weights.head, sizeof head);
}

// Zeros are the same with any number of bits; so what others lose together is theirs alone.
static void a_linear_that_rounds_exactly_loses_nothing(void **state) {
    (void)state;
    struct st_linear_weight *v = &model->weights.layers[0].v, kept = *v;
    struct st_allocation linears[N_LINEARS];
    float *zeros = calloc((size_t)v->n_out * v->n_in, sizeof *zeros);
    v->data = zeros;
    v->dtype = ST_DTYPE_F32;
    v->row_bytes = v->n_in * sizeof *zeros;
    measure(2, N_IDS, linears);
    *v = kept;
    free(zeros);
    for (unsigned b = ST_NESTED_LOWEST; b <= st_allocation_most(4); b++)
        assert_true(linears[V_OF_LAYER_0].loss[b] == 0.0);
    assert_true(linears[V_OF_LAYER_0 + 7].loss[2] > 0.0);
}

// One token predicts nothing: losses are those of rounding.
static void a_text_of_one_token_will_do(void **state) {
    (void)state;
    struct st_allocation linears[N_LINEARS];
    measure(2, 1, linears);
    for (size_t i = 0; i < N_LINEARS; i++) assert_true(linears[i].loss[2] > linears[i].loss[5]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_fall_with_bits),
        cmocka_unit_test(a_linear_that_rounds_exactly_loses_nothing),
        cmocka_unit_test(a_text_of_one_token_will_do),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
