// SPDX-License-Identifier: Apache-2.0
// Slopes in integers of 16 bits are those of floats but for a hundredth, whatever the sizes of
// channels, and however what is missed grows and shrinks.
#include "prepare/slopes.h"

#include "base/cpu.h"
#include "prepare/quantize.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { TOKENS = 60, ROUNDS = 4, GROUP = ST_NESTED_GROUP, ROWS = GROUP + ST_TILE_MAX_M };

// Second moments of inputs that correlate, of channels from a thousandth to a thousand.
static float *random_moments(size_t k) {
    float *h = calloc(st_moments_floats(k), sizeof *h), *x = malloc(k * sizeof *x);
    float *sizes = malloc(k * sizeof *sizes);
    for (size_t i = 0; i < k; i++) sizes[i] = powf(10.0f, ts_random_float(-3.0f, 3.0f));
    for (size_t t = 0; t < TOKENS; t++) {
        float shared = ts_random_float(-2.0f, 2.0f);
        for (size_t i = 0; i < k; i++) x[i] = sizes[i] * (shared + ts_random_float(-1.0f, 1.0f));
        for (size_t i = 0; i < k; i++)
            for (size_t j = i; j < k; j++) h[i * k + j] += x[i] * x[j];
    }
    assert_true(st_moments_finish(h, k, 1000000, 1e-9));
    free(x);
    free(sizes);
    return h;
}

struct pair {
    struct st_slopes exact, slopes;
    struct st_missed wanted, missed;
    float *memory[2];
};

static void put(struct pair *p, size_t first, float size) {
    size_t k = p->slopes.k, lanes = p->missed.lanes, n = st_min(GROUP, k - first);
    float missed[GROUP * ST_TILE_MAX_WIDTH];
    for (size_t i = 0; i < n; i++)
        for (size_t lane = 0; lane < lanes; lane++)
            missed[i * lanes + lane] = size * ts_random_float(-1.0f, 1.0f) /
                                       sqrtf(p->slopes.moments[(first + i) * k + first + i]);
    st_missed_put(&p->wanted, first, n, missed, lanes);
    st_missed_put(&p->missed, first, n, missed, lanes);
}

// Relative to the slopes of channels of any size.
static double difference(const struct pair *p) {
    static float wanted[ROWS * ST_TILE_MAX_WIDTH], got[ROWS * ST_TILE_MAX_WIDTH];
    size_t k = p->slopes.k, row = p->missed.padded;
    double sum = 0.0, all = 0.0;
    for (size_t first = 0; first < k; first += GROUP) {
        size_t n = st_min(GROUP, k - first);
        st_missed_slopes(&p->wanted, first, n, k, wanted, row);
        st_missed_slopes(&p->missed, first, n, k, got, row);
        for (size_t i = 0; i < n; i++)
            for (size_t lane = 0; lane < p->missed.lanes; lane++) {
                double size = (double)p->slopes.moments[(first + i) * k + first + i];
                double is = (double)wanted[i * row + lane];
                sum += pow((double)got[i * row + lane] - is, 2) / size;
                all += is * is / size;
            }
    }
    return sqrt(sum / all);
}

// Channels behind `end`, of which nothing is missed yet, add nothing.
static void put_in_turns(struct pair *p, float size) {
    static float all[ROWS * ST_TILE_MAX_WIDTH], got[ROWS * ST_TILE_MAX_WIDTH];
    size_t k = p->slopes.k, row = p->missed.padded;
    for (size_t first = 0; first < k; first += GROUP) {
        size_t n = st_min(GROUP, k - first);
        st_missed_slopes(&p->missed, first, n, k, all, row);
        st_missed_slopes(&p->missed, first, n, first, got, row);
        assert_memory_equal(got, all, n * row * sizeof *got);
        put(p, first, size);
    }
}

static double check(size_t k, size_t lanes, uint64_t flags, struct st_pool *pool) {
    struct pair p;
    double most = 0.0;
    float *h = random_moments(k);
    assert_int_equal(st_slopes_open(k + ts_random_below(9), flags, &p.slopes), STINT_OK);
    st_slopes_set(&p.slopes, h, k, pool);
    p.exact = (struct st_slopes){.k = k, .moments = h, .tile = p.slopes.tile};
    for (int i = 0; i < 2; i++)
        p.memory[i] = malloc(st_missed_floats(p.slopes.tile, k, lanes) * sizeof(float));
    st_missed_begin(&p.exact, lanes, p.memory[0], &p.wanted);
    st_missed_begin(&p.slopes, lanes, p.memory[1], &p.missed);
    for (int round = 0; round < ROUNDS; round++) {
        float size = powf(10.0f, ts_random_float(-0.5f, 1.0f));
        if (round == 0) put_in_turns(&p, size);
        for (size_t first = 0; first < k && round; first += GROUP) put(&p, first, size);
        most = fmax(most, difference(&p));
    }
    for (int i = 0; i < 2; i++) free(p.memory[i]);
    st_slopes_close(&p.slopes);
    free(h);
    return most;
}

static void integers_follow_floats(void **state) {
    (void)state;
    const uint64_t sets[] = {0, ST_CPU_AVX2, UINT64_MAX};
    const size_t lengths[] = {2, 33, 62, 300, 576, 1400};
    struct st_pool *pool;
    assert_int_equal(st_pool_open(2, &pool), STINT_OK);
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            static const size_t lanes[] = {8, 16, 24, 40, 48};
            uint64_t flags = st_cpu_flags() & sets[s];
            double miss = check(lengths[i], lanes[ts_random_below(5)], flags, pool);
            assert_true(miss < 0.01);
            // Where there are integers they are used: floats would be the same.
            bool integers = st_int16_select(flags) && lengths[i] % 2 == 0;
            assert_int_equal(miss > 0.0, integers);
        }
    st_pool_close(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(integers_follow_floats)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
