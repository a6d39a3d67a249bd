// SPDX-License-Identifier: Apache-2.0
// What is expected of a cache against what the cache does, with pieces that are drawn at random.
#include "base/size.h"
#include "neuron/cache.h"
#include "neuron/expect.h"
#include "support/support.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { LAYERS = 6, ENTRIES = 80, TOKENS = 400, WARM = 100 };

struct world {
    struct st_arena arena;
    struct st_cache cache;
    struct st_loader *loader;
    int file;
};

// There is nothing to read: which pieces are there is the question.
static ssize_t read_nothing(void *context, int file, void *to, size_t bytes, off_t offset) {
    (void)context, (void)file, (void)to, (void)offset;
    return (ssize_t)bytes;
}

static struct world open_world(uint32_t n_ids, uint32_t n_entries) {
    struct world w = {
        .cache = {.entry_bytes = ST_LOAD_BLOCK, .n_entries = n_entries, .n_ids = n_ids}};
    struct st_arena measure = st_arena_measure();
    w.file = open(ts_write_text("nothing", "x"), O_RDONLY);
    st_cache_lay_out(&w.cache, &measure);
    assert_int_equal(st_arena_open(&w.arena, measure.used), STINT_OK);
    st_cache_lay_out(&w.cache, &w.arena);
    struct st_loader_options options = {.files = &(struct st_loader_file){w.file, "nothing"},
                                        .n_files = 1,
                                        .n_threads = 1,
                                        .read = read_nothing};
    assert_int_equal(st_loader_open(&options, &w.loader), STINT_OK);
    st_cache_open(&w.cache, w.loader);
    return w;
}

static void close_world(struct world *w) {
    st_loader_drain(w->loader);
    st_loader_close(w->loader);
    st_arena_close(&w->arena);
    close(w->file);
}

static void take(struct world *w, uint32_t id) {
    assert_int_not_equal(st_cache_take(&w->cache, id, (struct st_extent){.bytes = ST_LOAD_BLOCK}),
                         ST_CACHE_NONE);
}

static void give(struct world *w, uint32_t id, enum st_evict when) {
    st_cache_give(&w->cache, w->cache.entry_of[id], when);
}

static void assert_near(double got, double wanted, double share, const char *what) {
    if (fabs(got - wanted) > share * fmax(got, wanted))
        fail_msg("%s: expected %g, the cache does %g", what, got, wanted);
}

static double misses_of_rounds(uint32_t n, uint32_t entries, uint32_t held) {
    enum { ROUNDS = 300 };
    struct world w = open_world(n, entries);
    for (uint32_t i = 0; i + 1 < held; i++) take(&w, i);
    for (uint32_t i = 0; i < ROUNDS * n; i++) {
        take(&w, (i + held - 1) % n);
        give(&w, i % n, ST_EVICT_FIRST);
    }
    double misses = ((double)w.cache.misses - entries) / ROUNDS;
    close_world(&w);
    return misses;
}

static void what_comes_in_turn(void **state) {
    (void)state;
    static const uint32_t sizes[][3] = {{40, 4, 1}, {40, 20, 1}, {50, 30, 9}, {41, 39, 3}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint32_t n = sizes[i][0], entries = sizes[i][1], held = sizes[i][2];
        assert_near(st_expect_cyclic(n, entries, held), misses_of_rounds(n, entries, held), 0.03,
                    "pieces in turn");
    }
    assert_true(st_expect_cyclic(10, 10, 4) == 0 && st_expect_cyclic(10, 12, 20) == 0);
    assert_true(st_expect_cyclic(10, 4, 4) == 10 && st_expect_cyclic(10, 3, 9) == 10);
}

// A token after another: of each layer what it wants, all at once.
static void run_tokens(struct world *w, const struct st_cold_region *r, double *misses) {
    memset(misses, 0, LAYERS * sizeof *misses);
    for (size_t t = 0; t < TOKENS + WARM; t++)
        for (uint32_t i = 0; i < LAYERS; i++) {
            uint8_t wanted[ENTRIES] = {0};
            uint64_t before = w->cache.misses;
            for (uint32_t e = r->first[i]; e < ENTRIES; e++)
                wanted[e] = ts_random_float(0, 1) < r->rates[i * ENTRIES + e];
            for (uint32_t e = 0; e < ENTRIES; e++)
                if (wanted[e]) take(w, i * ENTRIES + e);
            if (t >= WARM) misses[i] += (double)(w->cache.misses - before) / TOKENS;
            for (uint32_t e = 0; e < ENTRIES; e++)
                if (wanted[e])
                    give(w, i * ENTRIES + e, e < r->kept[i] ? ST_EVICT_LAST : ST_EVICT_FIRST);
        }
}

// Those of all layers that are wanted most, as many as fit.
static void keep_most_wanted(struct st_cold_region *r, uint32_t n_cold, uint32_t *kept) {
    memcpy(kept, r->first, LAYERS * sizeof *kept);
    r->kept = kept;
    for (uint32_t n = 0; n < n_cold; n++) {
        uint32_t best = LAYERS;
        for (uint32_t i = 0; i < LAYERS; i++)
            if (kept[i] < ENTRIES && (best == LAYERS || r->rates[i * ENTRIES + kept[i]] >
                                                            r->rates[best * ENTRIES + kept[best]]))
                best = i;
        if (best < LAYERS) kept[best]++;
    }
}

static void assert_expected(const struct st_cold_region *r, uint32_t n_cold, const char *what) {
    double expected[LAYERS], got[LAYERS], sum = 0.0, all = 0.0, wanted = 0.0;
    struct world w = open_world(LAYERS * ENTRIES, n_cold);
    run_tokens(&w, r, got);
    close_world(&w);
    st_expect_cold(r, n_cold, expected);
    for (uint32_t i = 0; i < LAYERS; i++) {
        sum += expected[i];
        all += got[i];
        wanted += st_expect_wanted(r, i);
    }
    if (fabs(sum - all) > 0.05 * wanted)
        fail_msg("%s, %u fit: expected %g of %g, the cache misses %g", what, n_cold, sum, wanted,
                 all);
}

static void cold_neurons(void **state) {
    (void)state;
    float rates[LAYERS * ENTRIES];
    uint32_t first[LAYERS], kept[LAYERS], all[LAYERS];
    for (uint32_t i = 0; i < LAYERS; i++) { // some skewed more than others, some with hot clusters
        float skew = ts_random_float(0.3f, 1.0f), max = ts_random_float(0.3f, 0.9f);
        first[i] = (uint32_t)(5 * ts_random_below(4));
        all[i] = ENTRIES;
        for (uint32_t e = 0; e < ENTRIES; e++)
            rates[i * ENTRIES + e] = max * powf((float)e + 1.0f, -skew);
    }
    struct st_cold_region r = {rates, LAYERS, ENTRIES, first, NULL};
    for (uint32_t n_cold = 50; n_cold <= LAYERS * ENTRIES; n_cold += 90) {
        keep_most_wanted(&r, n_cold, kept);
        assert_expected(&r, n_cold, "the most wanted stay");
        r.kept = all; // where there is room for several tokens
        if (n_cold > 200) assert_expected(&r, n_cold, "all may stay");
    }
}

static void the_edges(void **state) {
    (void)state;
    float rates[4] = {1.0f, 0.5f, 0.0f, NAN};
    const uint32_t first = 0, kept = 4, none = 0;
    double misses;
    struct st_cold_region r = {rates, 1, 4, &first, &kept};
    assert_true(isinf(st_expect_age(&r, 2)));
    assert_true(st_expect_age(&r, 0) == 0.0);
    st_expect_cold(&r, 2, &misses);
    assert_true(misses == 0.0);
    st_expect_cold(&r, 0, &misses);
    assert_true(misses == 1.5 && st_expect_wanted(&r, 0) == 1.5);
    r.kept = &none; // nothing stays, however much fits
    st_expect_cold(&r, 100, &misses);
    assert_true(misses == 1.5);
}

// Any mean that the neurons that are ever active can give; the order stays.
static void what_predictors_name(void **state) {
    (void)state;
    float rates[200];
    for (int round = 0; round < 20; round++) {
        double mean = 0.05 + 0.9 * (double)ts_random_float(0, 1), sum = 0.0, last = 0.0;
        for (size_t i = 0; i < 200; i++) rates[i] = 0.001f + 0.004f * (float)i;
        double exponent = st_expect_exponent(rates, 200, mean);
        for (size_t i = 0; i < 200; i++) {
            double predicted = st_expect_predicted((double)rates[i], exponent);
            assert_true(predicted >= last && predicted <= 1.0);
            sum += last = predicted;
        }
        assert_near(sum / 200, mean, 1e-6, "a mean");
    }
    memset(rates, 0, sizeof rates);
    double exponent = st_expect_exponent(rates, 200, 0.5); // never active: cannot be told
    assert_true(st_expect_predicted((double)rates[0], exponent) == 0.0);
    assert_true(st_expect_predicted(1.0, st_expect_exponent(rates, 0, 0.5)) == 1.0);
}

static void compare_columns(size_t bytes, float rate) {
    enum { CHANNELS = 1000000 }; // of which at least 2,000 are read: 15 % are six deviations
    double reads = 0.0, read = 0.0;
    uint64_t end = 0;
    char what[64];
    for (uint64_t c = 0; c < CHANNELS; c++) {
        if (ts_random_float(0.0f, 1.0f) >= rate) continue;
        uint64_t first = c * bytes / ST_LOAD_BLOCK * ST_LOAD_BLOCK;
        uint64_t last = st_round_up((c + 1) * bytes, ST_LOAD_BLOCK);
        bool meets = end > 0 && first <= end;
        reads += !meets;
        read += (double)(last - (meets ? end : first));
        end = last;
    }
    struct st_expected_reads e = st_expect_columns(bytes, (double)rate);
    snprintf(what, sizeof what, "%zu bytes, rate %g", bytes, (double)rate);
    assert_near(e.reads * CHANNELS + 100.0, reads + 100.0, 0.15, what);
    assert_near(e.bytes * CHANNELS, read, 0.15, what);
}

static void columns_that_lie_together_are_one_read(void **state) {
    (void)state;
    static const size_t widths[] = {64, 576, 1536, 4096, 5008, 9728};
    static const float rates[] = {0.002f, 0.03f, 0.2f, 0.7f};
    for (size_t w = 0; w < 6; w++)
        for (size_t r = 0; r < 4; r++) compare_columns(widths[w], rates[r]);
    assert_true(st_expect_columns(576, 0.0).reads == 0.0);
    assert_true(st_expect_columns(576, 0.0).bytes == 0.0);
    assert_true(st_expect_columns(576, 1.0).reads == 0.0); // all of them in one
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_that_lie_together_are_one_read),
        cmocka_unit_test(what_comes_in_turn),
        cmocka_unit_test(cold_neurons),
        cmocka_unit_test(the_edges),
        cmocka_unit_test(what_predictors_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
