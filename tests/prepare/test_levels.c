// SPDX-License-Identifier: Apache-2.0
#include "prepare/levels.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MAX = 5 * ST_NEURON_K };

static struct st_levels levels;

static int fill(void **state) {
    (void)state;
    st_levels_fill(&levels);
    return 0;
}

// Sums of a few numbers lie about zero, as weights do.
static int8_t random_weight(int max) {
    int sum = 0;
    for (int i = 0; i < 4; i++) sum += (int)ts_random_below(2 * (size_t)max + 1) - max;
    return (int8_t)(sum / 4);
}

static long error_of(const int8_t *w, const int8_t *rounded, size_t n, size_t step) {
    long sum = 0;
    for (size_t i = 0; i < n * step; i += step) sum += (w[i] - rounded[i]) * (w[i] - rounded[i]);
    return sum;
}

// By trying all scales.
static long min_error(const int8_t *w, size_t n, size_t step) {
    long min = -1;
    for (size_t s = 0; s < ST_NEURON_SCALES; s++) {
        long sum = 0;
        for (size_t i = 0; i < n * step; i += step) {
            long nearest = 1 << 20;
            for (size_t q = 0; q < 16; q++) {
                long d = st_neuron_levels[s][q] - w[i];
                if (d * d < nearest) nearest = d * d;
            }
            sum += nearest;
        }
        if (min < 0 || sum < min) min = sum;
    }
    return min;
}

static void groups_take_the_best_scale(void **state) {
    (void)state;
    int8_t w[3 * ST_NEURON_K], rounded[3 * ST_NEURON_K];
    long all = 0, all_least = 0;
    for (int round = 0; round < 2000; round++) {
        size_t step = 1 + ts_random_below(3), n = 1 + ts_random_below(ST_NEURON_K);
        int max = 1 + (int)ts_random_below(127);
        for (size_t i = 0; i < sizeof w; i++) w[i] = random_weight(max);
        memcpy(rounded, w, sizeof w);
        st_levels_round(&levels, rounded, n, step);
        for (size_t i = 0; i < sizeof w; i++)
            if (i % step || i >= n * step || w[i] == 0) assert_int_equal(rounded[i], w[i]);
        long min = min_error(w, n, step), got = error_of(w, rounded, n, step);
        assert_true(got >= min);
        all += got;
        all_least += min;
    }
    assert_true(all <= all_least + all_least / 50); // some scales are not looked at
}

static void what_is_stored_comes_back(void **state) {
    (void)state;
    int8_t w[MAX], back[MAX];
    uint8_t row[MAX];
    for (int round = 0; round < 2000; round++) {
        size_t n = 1 + ts_random_below(MAX), k = st_round_up(n, ST_NEURON_K);
        int max = 1 + (int)ts_random_below(127);
        for (size_t i = 0; i < n; i++) w[i] = random_weight(max);
        if (round % 10 == 0) memset(w, round % 20 ? 127 : -127, n);
        for (size_t i = 0; i < n; i += ST_NEURON_K)
            st_levels_round(&levels, w + i, st_min(ST_NEURON_K, n - i), 1);
        st_levels_store(&levels, w, n, k, row);
        for (size_t i = 0; i < k; i += ST_NEURON_K) st_neuron_dequantize(row, k, i, back + i);
        assert_memory_equal(back, w, n);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_take_the_best_scale),
        cmocka_unit_test(what_is_stored_comes_back),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
