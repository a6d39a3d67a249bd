// SPDX-License-Identifier: Apache-2.0
// A model of two layers whose neurons' activity is chosen by hand: of the first layer a quarter is
// nearly always active, of the second nothing is often.
#include "neuron/neurons.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

enum { LAYERS = 2, NEURONS = 640, CLUSTERS = 16, STEP = NEURONS / CLUSTERS };

static struct stint_model model;
static struct st_layer_neurons layers[LAYERS];
static float rates[LAYERS][ST_NEURON_RATES][NEURONS];
static uint32_t hot[ST_NEURON_RATES * LAYERS], elsewhere[ST_NEURON_RATES * LAYERS], kept[LAYERS];
static struct st_neurons neurons;

static int set_up(void **state) {
    (void)state;
    for (size_t b = 0; b < ST_NEURON_RATES; b++)
        for (size_t i = 0; i < NEURONS; i++) {
            rates[0][b][i] = i < NEURONS / 4 ? 0.9f : 0.02f * (float)(b + 1);
            rates[1][b][i] = b < 2 ? 0.1f : i < NEURONS / 2 ? 0.7f : 0.2f;
        }
    for (size_t i = 0; i < LAYERS; i++) {
        layers[i] = (struct st_layer_neurons){.rates = rates[i][0], .predicted = true};
        kept[i] = 0;
    }
    for (size_t i = 0; i < ST_NEURON_RATES * LAYERS; i++) hot[i] = elsewhere[i] = 0;
    model.config.n_layers = LAYERS;
    // So wide that each neuron is an entry of its own.
    model.neurons.layout = st_neuron_layout(NEURONS, 3, 4096, ST_NEURON_LEVELS);
    model.neurons.layers = layers;
    neurons = (struct st_neurons){
        .model = &model, .hot_clusters = hot, .elsewhere = elsewhere, .kept = kept};
    st_neurons_plan(&model, &neurons.plan);
    assert_int_equal(neurons.plan.n_clusters, CLUSTERS);
    return 0;
}

static void divide(uint32_t n_hot, uint32_t n_cold) {
    neurons.plan.n_hot = n_hot;
    neurons.plan.n_cold = n_cold;
    st_neurons_divide(&neurons);
}

static void often_active_clusters_are_hot(void **state) {
    (void)state;
    assert_int_equal(st_neurons_hot_clusters(&model, &neurons.plan, 1), CLUSTERS / 4);
    assert_int_equal(st_neurons_hot_clusters(&model, &neurons.plan, 8), CLUSTERS * 3 / 4);
    divide(CLUSTERS, 0);
    assert_int_equal(st_neurons_dense(&neurons, 0, 1), CLUSTERS / 4);
    assert_int_equal(st_neurons_dense(&neurons, 1, 2), 0);
    assert_int_equal(st_neurons_dense(&neurons, 1, 3), CLUSTERS / 2);
    assert_int_equal(st_neurons_resident_clusters(&neurons, 1), CLUSTERS / 2);
}

// With less room the most active ones stay, of whatever layer.
static void little_room_is_for_the_most_active(void **state) {
    (void)state;
    divide(CLUSTERS / 4, 0);
    assert_int_equal(st_neurons_dense(&neurons, 0, 8), CLUSTERS / 4);
    assert_int_equal(st_neurons_dense(&neurons, 1, 8), 0);
    divide(0, 0);
    assert_int_equal(st_neurons_dense(&neurons, 0, 8), 0);
}

static void all_of_the_dense_are_expected(void **state) {
    (void)state;
    const struct st_clusters all = {0, CLUSTERS}, two = {0, 2}, next = {CLUSTERS / 4, CLUSTERS};
    divide(CLUSTERS, 0);
    assert_float_equal(st_neurons_expected(&neurons, 0, two, 1), 2 * STEP, 1e-6);
    double behind = st_neurons_expected(&neurons, 0, next, 1);
    assert_float_equal(behind, 3 * 0.02 * NEURONS * 3 / 4, 1e-3); // three predicted for an active
    assert_float_equal(st_neurons_expected(&neurons, 0, all, 1), NEURONS / 4 + behind, 1e-3);
    neurons.plan.no_predictors = true;
    assert_float_equal(st_neurons_expected(&neurons, 0, all, 1), NEURONS, 1e-6);
}

// The room is for what hot clusters and another processor leave.
static void what_is_elsewhere_needs_no_room(void **state) {
    (void)state;
    for (size_t i = 0; i < NEURONS; i++) rates[1][0][i] = 0.1f - 1e-4f * (float)i;
    divide(CLUSTERS / 4, NEURONS);
    assert_int_equal(st_neurons_first_cold(&neurons, 0), NEURONS / 4);
    assert_int_equal(st_neurons_first_cold(&neurons, 1), 0);
    uint32_t before = kept[1];
    assert_true(before >= NEURONS / 4 && before < NEURONS);
    elsewhere[1] = CLUSTERS / 2;
    st_neurons_keep(&neurons);
    assert_int_equal(st_neurons_first_cold(&neurons, 1), NEURONS / 2);
    assert_true(kept[1] >= NEURONS / 2 && kept[1] > before);
    elsewhere[0] = 1; // hot there, too
    assert_int_equal(st_neurons_first_cold(&neurons, 0), NEURONS / 4);
}

static void a_step_takes_the_expected_number_of_a_layer(void **state) {
    (void)state;
    double first = NEURONS / 4 + 3 * 0.02 * NEURONS * 3 / 4, second = 3 * 0.1 * NEURONS;
    double passing = (double)st_neurons_passing(&model, &neurons.plan);
    assert_true(passing >= first && passing >= second);
    assert_true(passing <= (first > second ? first : second) + 1.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(often_active_clusters_are_hot, set_up),
        cmocka_unit_test_setup(little_room_is_for_the_most_active, set_up),
        cmocka_unit_test_setup(all_of_the_dense_are_expected, set_up),
        cmocka_unit_test_setup(what_is_elsewhere_needs_no_room, set_up),
        cmocka_unit_test_setup(a_step_takes_the_expected_number_of_a_layer, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
