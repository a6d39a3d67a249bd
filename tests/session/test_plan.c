// SPDX-License-Identifier: Apache-2.0
// What a plan of memory says against what a session does; and what is measured for it.
#include "session/session.h"
#include "support/kinds.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { CONTEXT = 256, CHUNK = 8, WARM = 24, TOKENS = 60 };

#define DENSE  "models/novels-10m"
#define SPARSE "models/novels-10m-drelu"

static const char *model_name;
static bool is_shadowed; // with the outliers of the tokens that are stepped through: random ones
static stint_model *whole, *lazy;

static int open_models(void **state) {
    (void)state;
    char path[600];
    const char *source = ts_shared(model_name);
    int32_t ids[512];
    for (size_t i = 0; i < 512; i++) ids[i] = (int32_t)ts_random_below(4000);
    snprintf(path, sizeof path, "%s/m.stint", ts_temp_folder());
    stint_prepare_options o = {.size = sizeof o,
                               .n_tokens = 512,
                               .outliers = is_shadowed ? STINT_OUTLIERS_SHARE : STINT_OUTLIERS_NONE,
                               .ids = is_shadowed ? ids : NULL,
                               .n_ids = is_shadowed ? 512 : 0,
                               .neurons = strcmp(model_name, SPARSE) == 0};
    ts_prepare(source, path, &o);
    stint_model_options pieces = {.size = sizeof pieces, .lazy = true};
    assert_int_equal(stint_model_open(path, &pieces, &lazy), STINT_OK);
    assert_int_equal(stint_model_open(path, NULL, &whole), STINT_OK);
    return 0;
}

static int close_models(void **state) {
    (void)state;
    stint_model_close(whole);
    stint_model_close(lazy);
    return 0;
}

static bool is_sparse(void) {
    return lazy->neurons.layers != NULL;
}

static stint_session_options options_of(uint64_t memory) {
    return (stint_session_options){.size = sizeof(stint_session_options),
                                   .n_threads = 2,
                                   .n_context = CONTEXT,
                                   .chunk_len = CHUNK,
                                   .memory = memory,
                                   .leave_out = STINT_LEAVE_PREDICTOR};
}

static stint_memory_plan plan_for(uint64_t memory, uint32_t leave_out, const stint_storage *storage,
                                  stint_memory_layer *layers) {
    stint_session_options o = options_of(memory);
    stint_memory_plan plan = {.size = sizeof plan};
    o.leave_out = leave_out;
    if (stint_session_plan(lazy, &o, storage, &plan, layers) != STINT_OK)
        fail_msg("%s", stint_error_text());
    return plan;
}

static uint64_t min_memory(void) {
    stint_session_options o = options_of(1);
    stint_memory_plan plan = {.size = sizeof plan, .slices = 77};
    unsigned long long min = 0;
    assert_int_equal(stint_session_plan(lazy, &o, NULL, &plan, NULL), STINT_E_LIMIT);
    assert_int_equal(plan.slices, 77);
    assert_int_equal(sscanf(stint_error_text(), "memory: at least %llu MiB", &min), 1);
    return min << 20;
}

static void step(stint_session *s, size_t n) {
    for (size_t i = 0; i < n; i++) {
        int32_t id = (int32_t)ts_random_below(lazy->config.vocab);
        float *logits = malloc(lazy->config.vocab * sizeof *logits);
        assert_int_equal(stint_session_eval(s, 0, &id, 1, false, logits), STINT_OK);
        free(logits);
    }
}

// Within a quarter of what happened; where that is little, within a part of all. How many columns
// are read for shadow execution depends on the tokens, which are random here.
static bool is_near(double expected, double read, double all) {
    return fabs(expected - read) <= fmax(0.25 * read, (is_shadowed ? 0.15 : 0.04) * all);
}

// Where the bound goes is the same; what a token reads once the caches are full, about.
static void a_session_does_as_planned(void **state) {
    (void)state;
    uint64_t min = min_memory();
    for (uint64_t more = 1; more < 15; more += 8) {
        stint_memory_plan plan = plan_for(min + (more << 20), STINT_LEAVE_PREDICTOR, NULL, NULL);
        stint_memory_info begun = {.size = sizeof begun}, done = begun;
        stint_session_options o = options_of(min + (more << 20));
        stint_session *s = NULL;
        assert_int_equal(stint_session_open(lazy, &o, &s), STINT_OK);
        step(s, WARM);
        assert_int_equal(stint_session_memory(s, &begun), STINT_OK);
        step(s, TOKENS);
        assert_int_equal(stint_session_memory(s, &done), STINT_OK);
        stint_session_close(s);
        assert_int_equal(plan.budget_bytes, done.budget_bytes);
        assert_int_equal(plan.fixed_bytes, done.fixed_bytes);
        assert_int_equal(plan.hot_bytes, done.hot_bytes);
        assert_int_equal(plan.cold_bytes, done.cold_bytes);
        assert_int_equal(plan.kv_bytes, done.kv_bytes);
        double read = (double)(done.bytes_read - begun.bytes_read) / TOKENS;
        double all = (double)stint_model_bytes_per_token(lazy, 8);
        if (!is_near(plan.bytes_per_token, read, all))
            fail_msg("%llu MiB more: expected %.0f bytes a token of %.0f, the session reads %.0f",
                     (unsigned long long)more, plan.bytes_per_token, all, read);
        double reads = (double)(done.reads - begun.reads) / TOKENS;
        assert_int_equal(plan.shadow_columns > 0, is_shadowed);
        if (is_shadowed && fabs(reads - plan.reads_per_token) > 0.35 * reads)
            fail_msg("%llu MiB more: expected %.1f reads a token, the session has %.1f",
                     (unsigned long long)more, plan.reads_per_token, reads);
    }
}

static const char text[] =
    "It was a dark and stormy night; the rain fell in torrents, except at occasional intervals, "
    "when "
    "it was checked by a violent gust of wind which swept up the streets, rattling along the "
    "housetops, and fiercely agitating the scanty flame of the lamps that struggled against the "
    "darkness. He had been told that the old house by the river was empty, and he walked on "
    "without "
    "looking round, until he came to the gate. There he stopped, and listened, and heard nothing "
    "but the water. The door was open. A woman stood in the hall with a candle in her hand, and "
    "she "
    "looked at him for a long time before she spoke.";

// With the neurons that a predictor names, in a text like that of the calibration.
static void predicted_steps_read_as_planned(void **state) {
    (void)state;
    enum { MAX_IDS = 400 };
    int32_t ids[MAX_IDS];
    size_t n = 0;
    if (!is_sparse()) return;
    float *logits = malloc(lazy->config.vocab * sizeof *logits);
    assert_int_equal(
        stint_tokenize(stint_model_tokenizer(lazy), text, sizeof text - 1, 0, ids, MAX_IDS, &n),
        STINT_OK);
    assert_true(n > 2 * WARM && n < CONTEXT);
    for (uint64_t more = 2; more < 12; more += 3) {
        stint_session_options o = options_of(min_memory() + (more << 20));
        o.leave_out = 0;
        stint_memory_plan plan = plan_for(o.memory, 0, NULL, NULL);
        stint_memory_info begun = {.size = sizeof begun}, done = begun;
        stint_session *s = NULL;
        assert_int_equal(stint_session_open(lazy, &o, &s), STINT_OK);
        for (size_t i = 0; i < n; i++) {
            if (i == 2 * WARM) assert_int_equal(stint_session_memory(s, &begun), STINT_OK);
            assert_int_equal(stint_session_step(s, &(uint32_t){0}, &ids[i], 1, logits), STINT_OK);
        }
        assert_int_equal(stint_session_memory(s, &done), STINT_OK);
        stint_session_close(s);
        double read = (double)(done.bytes_read - begun.bytes_read) / (double)(n - 2 * WARM);
        double all = (double)stint_model_bytes_per_token(lazy, 8);
        if (!is_near(plan.bytes_per_token, read, all))
            fail_msg("%llu MiB more: expected %.0f bytes a token of %.0f, the session reads %.0f",
                     (unsigned long long)more, plan.bytes_per_token, all, read);
    }
    free(logits);
}

static void more_memory_reads_less(void **state) {
    (void)state;
    uint64_t min = min_memory();
    uint32_t n_layers = lazy->config.n_layers;
    stint_memory_layer *layers = calloc(n_layers, sizeof *layers);
    double before = INFINITY;
    for (uint64_t more = 0; more <= 40; more += 2) {
        stint_memory_plan plan = plan_for(min + (more << 20), 0, NULL, layers);
        assert_true(plan.bytes_per_token <= before * 1.001);
        assert_true(plan.hit_rate >= 0 && plan.hit_rate <= 1);
        assert_true(plan.tokens_per_second == 0); // no speeds are known
        assert_int_equal(plan.neurons != 0, is_sparse());
        before = plan.bytes_per_token;
        for (uint32_t i = 0; i < n_layers && is_sparse(); i++) {
            const stint_memory_layer *l = &layers[i];
            assert_true(l->active > 0 && l->active < 0.5 && l->predicted >= 0.9 * l->active);
            assert_true(l->hot + l->cold <= 1.0001 && l->hot + l->wanted <= 1.0001);
            assert_true(l->misses >= 0 && l->misses <= l->wanted + 1e-9);
            assert_true(l->hit_rate >= 0 && l->hit_rate <= 1);
        }
    }
    assert_true(before == 0);
    free(layers);
    if (!is_sparse()) return;
    stint_memory_plan all = plan_for(min, STINT_LEAVE_PREDICTOR, NULL, NULL);
    stint_memory_plan named = plan_for(min, 0, NULL, NULL);
    assert_true(fabs(all.computed - 1) < 1e-6 && named.computed < 0.9);
    assert_true(named.bytes_per_token < all.bytes_per_token);
}

// With speeds of a device that does not exist.
static void time_follows_from_speeds(void **state) {
    (void)state;
    stint_storage slow = {.size = sizeof slow,
                          .sequential_block = {1 << 20},
                          .sequential_per_second = {100},
                          .random_block = {1 << 20},
                          .random_depth = {1, 32},
                          .random_per_second = {{100}, {1000}},
                          .dense_bytes_per_second = 1e9,
                          .neuron_seconds = 1e-6};
    stint_memory_plan plan = plan_for(min_memory(), STINT_LEAVE_PREDICTOR, &slow, NULL);
    double seconds = fmax(plan.read_seconds, plan.compute_seconds) + plan.wait_seconds;
    assert_true(fabs(plan.tokens_per_second * seconds - 1) < 1e-9);
    assert_true(plan.read_seconds > 0 && plan.compute_seconds > 0);
    assert_int_equal(plan.wait_seconds > 0, is_sparse());
    slow.sequential_per_second[0] *= 2;
    slow.random_per_second[1][0] *= 2;
    stint_memory_plan faster = plan_for(min_memory(), STINT_LEAVE_PREDICTOR, &slow, NULL);
    assert_true(fabs(faster.read_seconds * 2 - plan.read_seconds) < 1e-9);
    assert_true(faster.wait_seconds == plan.wait_seconds);
    plan = plan_for(min_memory() + (100 << 20), STINT_LEAVE_PREDICTOR, &slow, NULL);
    assert_true(plan.read_seconds == 0 && plan.wait_seconds == 0);
    double dense = plan.compute_seconds * slow.dense_bytes_per_second;
    double all = (double)stint_model_bytes_per_token(lazy, 8);
    assert_true(is_sparse() ? dense > 0 : fabs(dense - all) < 1e-6 * all);
}

// The smallest bound, in whole MiB, in which all slices stay.
static uint64_t memory_of_slices(void) {
    uint64_t memory = min_memory();
    for (;; memory += 1 << 20) {
        stint_memory_plan plan = plan_for(memory, STINT_LEAVE_PREDICTOR, NULL, NULL);
        if (plan.slices == plan.resident_slices) return memory;
    }
}

// Every linear with cold columns has to wait for those that do not stay, whatever else does.
static void columns_take_time(void **state) {
    (void)state;
    stint_storage slow = {.size = sizeof slow,
                          .sequential_block = {1 << 20},
                          .sequential_per_second = {1e6},
                          .random_block = {1 << 20},
                          .random_depth = {1, 32},
                          .random_per_second = {{100}, {100}},
                          .dense_bytes_per_second = 1e9};
    uint64_t enough = memory_of_slices();
    stint_memory_plan plan = plan_for(enough, STINT_LEAVE_PREDICTOR, &slow, NULL);
    assert_true(plan.slices == plan.resident_slices && plan.reads_per_token > 0);
    assert_true(plan.reads_per_token <= plan.shadow_columns);
    assert_true(plan.bytes_per_token >= plan.shadow_columns * 256);
    assert_true(fabs(plan.read_seconds - plan.reads_per_token / 100) < 1e-9);
    assert_true(plan.wait_seconds > 0 && plan.wait_seconds >= plan.read_seconds - 1e-9);
    double seconds = plan.compute_seconds + plan.wait_seconds;
    assert_true(fabs(plan.tokens_per_second * seconds - 1) < 1e-9);
    slow.random_per_second[0][0] = slow.random_per_second[1][0] = 200;
    stint_memory_plan faster = plan_for(enough, STINT_LEAVE_PREDICTOR, &slow, NULL);
    assert_true(fabs(faster.wait_seconds * 2 - plan.wait_seconds) < 1e-9);
    // More memory holds more slices, and then columns too.
    stint_memory_plan min = plan_for(min_memory(), STINT_LEAVE_PREDICTOR, &slow, NULL);
    assert_true(min.shadow_columns >= plan.shadow_columns);
    assert_true(min.reads_per_token > plan.reads_per_token);
    stint_memory_plan all = plan_for(enough + (100 << 20), STINT_LEAVE_PREDICTOR, &slow, NULL);
    assert_true(all.shadow_columns == 0 && all.reads_per_token == 0 && all.wait_seconds == 0);
}

static void what_cannot_be_planned(void **state) {
    (void)state;
    stint_session_options o = options_of(0);
    stint_memory_plan plan = {.size = sizeof plan};
    stint_storage storage = {.size = sizeof storage};
    stint_model *source = NULL;
    assert_int_equal(stint_session_plan(lazy, &o, NULL, &plan, NULL), STINT_E_ARG);
    o.memory = 100 << 20;
    assert_int_equal(stint_session_plan(whole, &o, NULL, &plan, NULL), STINT_E_ARG);
    plan.size = 0;
    assert_int_equal(stint_session_plan(lazy, &o, NULL, &plan, NULL), STINT_E_ARG);
    plan.size = sizeof plan;
    assert_int_equal(stint_model_open(ts_shared(model_name), NULL, &source), STINT_OK);
    assert_int_equal(stint_session_plan(source, &o, NULL, &plan, NULL), STINT_E_ARG);
    stint_model_close(source);
    const stint_model fileless = {0};
    assert_int_equal(stint_storage_measure(&fileless, NULL, &storage), STINT_E_UNSUPPORTED);
    assert_non_null(strstr(stint_error_text(), "in no file"));
    stint_storage_options unknown = {.size = sizeof unknown, .device = "abacus", .seconds = 0.01};
    assert_int_equal(stint_storage_measure(lazy, &unknown, &storage), STINT_E_ARG);
    assert_true(storage.seconds == 0);
}

static void count_progress(void *context, const char *what, uint64_t done, uint64_t total) {
    uint64_t *last = context;
    assert_string_equal(what, "measuring");
    assert_true(done == *last + 1 && done <= total);
    *last = done;
}

static void the_device_is_measured(void **state) {
    (void)state;
    uint64_t last = 0;
    stint_storage s = {.size = sizeof s};
    stint_storage_options o = {.size = sizeof o,
                               .n_threads = 2,
                               .seconds = 0.05,
                               .progress = count_progress,
                               .progress_context = &last};
    assert_int_equal(stint_storage_measure(lazy, &o, &s), STINT_OK);
    assert_int_equal(s.file_bytes, lazy->checkpoint.maps->bytes);
    for (int b = 0; b < STINT_STORAGE_BLOCKS; b++) {
        assert_true(s.sequential_per_second[b] > 0 && s.sequential_block[b] % 4096 == 0);
        for (int d = 0; d < STINT_STORAGE_DEPTHS; d++) assert_true(s.random_per_second[d][b] > 0);
    }
    assert_true(s.dense_bytes_per_second > 0 && s.seconds > 0 && last > 0);
    assert_int_equal(s.neuron_seconds > 0, is_sparse());
    stint_memory_plan plan = plan_for(min_memory(), 0, &s, NULL);
    assert_true(plan.tokens_per_second > 0);
}

// In the long mode each allocation fails, else some do.
static size_t next_allocation(size_t n) {
    return n + 1 + (ts_is_long() ? 0 : ts_random_below(7));
}

// Whatever fails to be allocated is an error, or, within jansson, makes no difference.
static void no_memory_for_a_plan_is_an_error(void **state) {
    (void)state;
    stint_session_options o = options_of(100 << 20);
    stint_memory_plan wanted = plan_for(100 << 20, STINT_LEAVE_PREDICTOR, NULL, NULL);
    bool failed = true;
    for (size_t n = 1; failed; n = next_allocation(n)) {
        stint_memory_plan plan = {.size = sizeof plan};
        ts_fail_allocation(n);
        stint_status status = stint_session_plan(lazy, &o, NULL, &plan, NULL);
        failed = ts_allocation_failed();
        ts_fail_allocation(0);
        assert_true(status == STINT_OK || (failed && status == STINT_E_NOMEM));
        if (status == STINT_OK) assert_memory_equal(&plan, &wanted, sizeof plan);
        if (status != STINT_OK) assert_int_equal(plan.slices, 0);
    }
}

static void no_memory_to_measure_is_an_error(void **state) {
    (void)state;
    stint_storage_options o = {.size = sizeof o, .n_threads = 2, .seconds = 1e-4};
    bool failed = true;
    for (size_t n = 1; failed; n = next_allocation(n)) {
        stint_storage storage = {.size = sizeof storage};
        ts_fail_allocation(n);
        stint_status status = stint_storage_measure(lazy, &o, &storage);
        failed = ts_allocation_failed();
        ts_fail_allocation(0);
        assert_int_equal(status, failed ? STINT_E_NOMEM : STINT_OK);
        if (failed) assert_true(storage.seconds == 0);
    }
}

static int run(const char *name, bool all) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_does_as_planned),
        cmocka_unit_test(predicted_steps_read_as_planned),
        cmocka_unit_test(more_memory_reads_less),
        cmocka_unit_test(time_follows_from_speeds),
        cmocka_unit_test(what_cannot_be_planned),
        cmocka_unit_test(the_device_is_measured),
        cmocka_unit_test(no_memory_for_a_plan_is_an_error),
        cmocka_unit_test(no_memory_to_measure_is_an_error), // the last: it takes long
    };
    const size_t n = sizeof tests / sizeof *tests - !all;
    model_name = name;
    return _cmocka_run_group_tests(name, tests, n, open_models, close_models);
}

static int run_shadowed(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_does_as_planned),
        cmocka_unit_test(columns_take_time),
        cmocka_unit_test(no_memory_for_a_plan_is_an_error),
    };
    model_name = DENSE;
    is_shadowed = true;
    return cmocka_run_group_tests_name("shadowed", tests, open_models, close_models);
}

int main(void) {
    return run(DENSE, false) || run(SPARSE, true) || run_shadowed();
}
