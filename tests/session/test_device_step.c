// SPDX-License-Identifier: Apache-2.0
// Steps that a device computes as one job: whatever becomes of the cache between them, logits have
// the bits of a session whose host adds sums of products in the order of the scalar kernel.
// STINT_CI_LONG=1 has each model in all ways.
#include "device/driver.h"
#include "session/kv/copy.h"
#include "session/session.h"
#include "support/kinds.h"
#include "support/pair.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { CONTEXT = 100, N_IDS = 40, SEQUENCES = 2, ROUNDS = 40, LONGEST = 30, LOW = 2, HIGH = 5 };

#define STEPS "opencl:decode=1"

// Plain; biases of q, k and v; norms of heads; a window; an activation that is not SiLU; several
// blocks of each input.
static const char *const sources[] = {"fixtures/models/llama2", "fixtures/models/qwen2",
                                      "fixtures/models/qwen3",  "qwen2-window",
                                      "fixtures/models/gemma",  "models/novels-10m"};
enum { N_MODELS = sizeof sources / sizeof *sources };

static stint_model *models[N_MODELS];

static void skip_without(void) {
    struct st_device *device = NULL;
    const struct st_device_options options = {.name = STEPS};
    bool here = st_device_open(&options, &device) == STINT_OK && device->caps.programs;
    st_device_close(device);
    if (here) return;
    print_message("no device computes steps here: scripts/bootstrap opencl\n");
    skip();
}

static stint_model *nested_package(const char *source, unsigned number, const int32_t *ids) {
    char name[32], path[600];
    const stint_prepare_options o = {.size = sizeof o,
                                     .outliers = STINT_OUTLIERS_NONE,
                                     .bits_low = LOW,
                                     .bits_high = HIGH,
                                     .ids = ids,
                                     .n_ids = N_IDS};
    snprintf(name, sizeof name, "steps-%u", number);
    if (strchr(source, '/')) return ts_package(ts_shared(source), name, &o);
    snprintf(path, sizeof path, "tests/golden/models/%s", source);
    return ts_package(ts_source(path), name, &o);
}

static int open_models(void **state) {
    int32_t ids[N_IDS];
    (void)state;
    for (int i = 0; i < N_IDS; i++) ids[i] = (int32_t)ts_random_below(TS_PAIR_IDS);
    for (unsigned i = 0; i < N_MODELS; i++) models[i] = nested_package(sources[i], i, ids);
    return 0;
}

static int close_models(void **state) {
    (void)state;
    for (int i = 0; i < N_MODELS; i++) stint_model_close(models[i]);
    return 0;
}

struct way {
    const char *device, *kv;
    uint64_t npu_memory;
    unsigned context; // 0: CONTEXT
};

static stint_session_options options_of(const struct way *way) {
    return (stint_session_options){.size = sizeof(stint_session_options),
                                   .n_threads = 1,
                                   .n_context = way->context ? way->context : CONTEXT,
                                   .n_sequences = SEQUENCES,
                                   .chunk_len = LONGEST,
                                   .kv = way->kv,
                                   .device = way->device,
                                   .npu_memory = way->npu_memory};
}

// NULL: it cannot be opened.
static stint_session *open_session(const stint_model *model, const struct way *way) {
    const stint_session_options o = options_of(way);
    stint_session *s = NULL;
    return stint_session_open(model, &o, &s) == STINT_OK ? s : NULL;
}

static bool opens(const stint_model *model, const struct way *way) {
    stint_session *s = open_session(model, way);
    stint_session_close(s);
    return s != NULL;
}

static struct ts_pair open_pair(const stint_model *model, const struct way *way) {
    const stint_session_options o = options_of(way);
    struct ts_pair p = ts_pair_open(model, &o, LONGEST);
    for (int i = 0; i < 2; i++) p.sessions[i]->kernels.nested = st_nested_select(0);
    return p;
}

// Returns the jobs of the device.
static unsigned step(struct ts_pair *p, unsigned bits, const uint32_t *sequences, size_t n,
                     bool logits) {
    const int32_t ids[SEQUENCES] = {(int32_t)ts_random_below(TS_PAIR_IDS),
                                    (int32_t)ts_random_below(TS_PAIR_IDS)};
    const struct st_device *device = p->sessions[1]->stored.device;
    unsigned before = device->n_submits;
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            st_session_step(p->sessions[i], bits, sequences, ids, n, logits ? p->logits[i] : NULL),
            STINT_OK);
    if (logits) ts_pair_expect_same(p, n);
    return device->n_submits - before;
}

// The same by stint_session_eval(), at the precision of prompts.
static unsigned eval_one(struct ts_pair *p, uint32_t sequence, unsigned bits) {
    const stint_precision own = {
        .size = sizeof own, .prefill = 8, .n_steps = 1, .steps = {{.bits = 8}}};
    stint_precision precision = own;
    const struct st_device *device = p->sessions[1]->stored.device;
    const int32_t id = (int32_t)ts_random_below(TS_PAIR_IDS);
    unsigned before = device->n_submits;
    precision.prefill = precision.steps[0].bits = bits;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(stint_session_set_precision(p->sessions[i], &precision), STINT_OK);
        assert_int_equal(stint_session_eval(p->sessions[i], sequence, &id, 1, true, p->logits[i]),
                         STINT_OK);
        assert_int_equal(stint_session_set_precision(p->sessions[i], &own), STINT_OK);
    }
    ts_pair_expect_same(p, 1);
    return device->n_submits - before;
}

// Returns the jobs of a step of one token, or 0.
static unsigned anything(struct ts_pair *p) {
    static const uint32_t both[] = {0, 1};
    uint32_t sequence = (uint32_t)ts_random_below(SEQUENCES);
    unsigned bits = LOW + (unsigned)ts_random_below(HIGH - LOW + 1);
    size_t length = stint_session_length(p->sessions[0], sequence);
    size_t first = stint_session_length(p->sessions[0], 0);
    switch (ts_random_below(12)) {
    case 0:
        if (length + LONGEST + ROUNDS > CONTEXT) ts_pair_truncate(p, sequence, 0);
        ts_pair_prompt(p, sequence, 5 + ts_random_below(LONGEST - 4));
        return 0;
    case 1:
        step(p, bits, both, 2, true);
        return 0;
    case 2:
        ts_pair_truncate(p, sequence, ts_random_below(length + 1));
        return 0;
    case 3:
        ts_pair_save_and_load(p);
        return 0;
    case 4:
        for (int i = 0; i < 2; i++) st_session_copy(p->sessions[i], 0, 1, first / 2);
        return 0;
    case 5:
        return eval_one(p, sequence, bits);
    default:
        return step(p, bits, &sequence, 1, ts_random_below(4) > 0);
    }
}

static void steps_are_one_job_with_the_bits_of_the_host(void **state) {
    (void)state;
    skip_without();
    const struct way ways[] = {
        {STEPS, "f32", 0, 0}, {STEPS ",copy=1", "f16", 0, 0}, {STEPS ",attention=1", "f16", 0, 0}};
    const size_t n_ways = sizeof ways / sizeof *ways;
    const int rounds = ts_is_long() ? ROUNDS : ROUNDS / 2;
    unsigned jobs = 0, done = 0;
    for (size_t m = 0; m < N_MODELS; m++)
        for (size_t w = 0; w < n_ways; w++) {
            if (!ts_is_long() && w != m % n_ways) continue;
            struct ts_pair p = open_pair(models[m], &ways[w]);
            if (w == 2)
                for (int i = 0; i < 2; i++) p.sessions[i]->kernels.pairs = NULL;
            assert_non_null(p.sessions[1]->device_step);
            ts_pair_prompt(&p, 0, LONGEST);
            for (int round = 0; round < rounds; round++, done++) {
                unsigned more = anything(&p);
                assert_true(more <= 1);
                jobs += more;
            }
            assert_int_equal(p.sessions[1]->npus.faults, 0);
            ts_pair_close(&p);
        }
    assert_true(4 * jobs > done);
}

// A group reads the keys in tiles, and its items share the reading.
static void long_texts_have_the_same_bits(void **state) {
    (void)state;
    skip_without();
    enum { PROMPTS = 7, LONG = PROMPTS * LONGEST + ROUNDS };
    const struct way ways[] = {{STEPS, "f16", 0, LONG},
                               {STEPS ",decode_items=1", "f32", 0, LONG},
                               {STEPS ",decode_items=300", "f32", 0, LONG},
                               {STEPS ",decode_items=1024,copy=1", "f16", 0, LONG}};
    const uint32_t sequence = 0;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (size_t m = 3; m < N_MODELS; m += 2) { // with a window and without
            if (!ts_is_long() && m / 2 % 2 == w % 2) continue;
            struct ts_pair p = open_pair(models[m], &ways[w]);
            for (int i = 0; i < PROMPTS; i++) ts_pair_prompt(&p, sequence, LONGEST);
            for (int i = 0; i < 3; i++) {
                ts_pair_truncate(&p, sequence, PROMPTS * LONGEST - 40 * (size_t)i);
                assert_int_equal(step(&p, HIGH, &sequence, 1, true), 1);
            }
            ts_pair_close(&p);
        }
}

static void the_host_computes_what_no_program_can(void **state) {
    (void)state;
    skip_without();
    const struct way ways[] = {{STEPS, "q8", 0, 0}, {"opencl:decode=0", "f16", 0, 0}};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        stint_session *s = open_session(models[0], &ways[w]);
        assert_non_null(s);
        assert_null(s->device_step);
        stint_session_close(s);
    }
}

static void a_limit_leaves_steps_to_the_host(void **state) {
    (void)state;
    skip_without();
    struct way way = {STEPS ",copy=1", "f32", 0, 0};
    struct ts_pair all = open_pair(models[0], &way);
    way.npu_memory = st_device_used_bytes(all.sessions[1]->stored.device) - 1;
    struct ts_pair less = open_pair(models[0], &way);
    assert_non_null(all.sessions[1]->device_step);
    assert_null(less.sessions[1]->device_step);
    const uint32_t sequence = 0;
    for (int i = 0; i < 3; i++) step(&less, HIGH, &sequence, 1, true);
    assert_int_equal(less.sessions[1]->npus.faults, 0);
    ts_pair_close(&all);
    ts_pair_close(&less);
}

// Whatever fails while a program is made, or runs: calls of OpenCL beyond those that open a
// session, and whole jobs.
static void the_host_goes_on_where_a_step_fails(void **state) {
    (void)state;
    skip_without();
    static const char *const faults[] = {"error", "lose"};
    enum { FIRST_CALL = 300, LAST_CALL = 900 };
    const unsigned jump = ts_is_long() ? 19 : 53;
    unsigned tried = 0, struck = 0;
    const uint32_t sequence = 0;
    for (unsigned call = FIRST_CALL; call < LAST_CALL; call += jump) {
        char name[80];
        const struct way way = {name, "f16", 0, 0};
        if (tried % 5 == 4)
            snprintf(name, sizeof name, STEPS ",timeout=50,hang=%u", tried);
        else
            snprintf(name, sizeof name, STEPS ",copy=%u,%s=%u", tried % 2, faults[tried / 2 % 2],
                     call);
        tried++;
        if (!opens(models[0], &way)) continue;
        struct ts_pair p = open_pair(models[0], &way);
        ts_pair_prompt(&p, 0, 5);
        for (int i = 0; i < 5; i++) step(&p, HIGH, &sequence, 1, true);
        ts_pair_truncate(&p, 0, 6);
        for (int i = 0; i < 3; i++) step(&p, HIGH, &sequence, 1, true);
        ts_pair_prompt(&p, 0, 7);
        struck += p.sessions[1]->npus.faults > 0;
        ts_pair_close(&p);
    }
    assert_true(3 * struck > tried);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_one_job_with_the_bits_of_the_host),
        cmocka_unit_test(long_texts_have_the_same_bits),
        cmocka_unit_test(the_host_computes_what_no_program_can),
        cmocka_unit_test(a_limit_leaves_steps_to_the_host),
        cmocka_unit_test(the_host_goes_on_where_a_step_fails),
    };
    return cmocka_run_group_tests(tests, open_models, close_models);
}
