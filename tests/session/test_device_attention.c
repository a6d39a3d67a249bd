// SPDX-License-Identifier: Apache-2.0
// Prompts whose attention a device computes: whatever becomes of the cache between them, each logit
// has the bits of a session that runs on the host alone.
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

// Two tiles of keys, and a part of one.
enum { CONTEXT = 160, N_IDS = 40, SEQUENCES = 2, ROUNDS = 24, LONGEST = 40 };

#define ATTENTION "opencl:attention=1"

// Scales for each token; several query heads for each key; sliding windows.
static const char *const sources[] = {"fixtures/models/llama2", "fixtures/models/qwen3",
                                      "fixtures/models/gemma3"};
enum { N_MODELS = sizeof sources / sizeof *sources };

static stint_model *models[N_MODELS];

static bool is_here(void) {
    struct st_device *device = NULL;
    const struct st_device_options options = {.name = ATTENTION};
    const struct st_device_attention plain = {.n_heads = 1, .n_kv = 1, .dim = 4, .scale = 1.0f};
    bool here = st_device_open(&options, &device) == STINT_OK && st_device_attends(device, &plain);
    st_device_close(device);
    return here;
}

static void skip_without(void) {
    if (is_here()) return;
    print_message("no device attends here: scripts/bootstrap opencl\n");
    skip();
}

static int open_models(void **state) {
    int32_t ids[N_IDS];
    (void)state;
    for (int i = 0; i < N_IDS; i++) ids[i] = (int32_t)ts_random_below(TS_PAIR_IDS);
    for (int i = 0; i < N_MODELS; i++)
        models[i] = ts_shadow_package(sources[i], i ? NULL : "sim", false, ids, N_IDS);
    return 0;
}

static int close_models(void **state) {
    (void)state;
    for (int i = 0; i < N_MODELS; i++) stint_model_close(models[i]);
    return 0;
}

struct way {
    const char *device, *kv;
    uint32_t chunk, n_threads;
    uint64_t npu_memory;
};

static struct ts_pair open_pair(const stint_model *model, const struct way *way) {
    const stint_session_options o = {.size = sizeof o,
                                     .n_threads = 1,
                                     .n_context = CONTEXT,
                                     .n_sequences = SEQUENCES,
                                     .chunk_len = way->chunk,
                                     .kv = way->kv,
                                     .device = way->device,
                                     .npu_memory = way->npu_memory,
                                     .npu_threads = way->n_threads,
                                     .cpu_threads = way->n_threads};
    struct ts_pair p = ts_pair_open(model, &o, LONGEST);
    for (int i = 0; i < 2; i++)
        p.sessions[i]->kernels.pairs = NULL; // the device computes in floats
    return p;
}

static void step(struct ts_pair *p) {
    const uint32_t sequences[] = {0, 1};
    int32_t ids[] = {(int32_t)ts_random_below(TS_PAIR_IDS), (int32_t)ts_random_below(TS_PAIR_IDS)};
    for (int i = 0; i < 2; i++)
        assert_int_equal(stint_session_step(p->sessions[i], sequences, ids, 2, p->logits[i]),
                         STINT_OK);
    ts_pair_expect_same(p, 2);
}

static void copy(struct ts_pair *p, size_t n) {
    for (int i = 0; i < 2; i++) st_session_copy(p->sessions[i], 0, 1, n);
}

static void anything(struct ts_pair *p, int round) {
    uint32_t sequence = (uint32_t)ts_random_below(SEQUENCES);
    size_t length = stint_session_length(p->sessions[0], sequence);
    size_t first = stint_session_length(p->sessions[0], 0);
    switch (round % 6) {
    case 1:
        step(p);
        break;
    case 3:
        ts_pair_truncate(p, sequence, ts_random_below(length + 1));
        break;
    case 4:
        ts_pair_save_and_load(p);
        break;
    case 5:
        copy(p, ts_random_below(first + 1));
        break;
    default:
        if (length + LONGEST + ROUNDS > CONTEXT) ts_pair_truncate(p, sequence, 0);
        ts_pair_prompt(p, sequence, 5 + ts_random_below(LONGEST - 4));
    }
}

static size_t n_told(const stint_session *s) {
    size_t n = 0;
    for (uint32_t i = 0; s->kv.device.device && i < SEQUENCES * s->model->config.n_layers; i++)
        n += s->kv.device.held[i];
    return n;
}

static void logits_have_the_bits_of_the_host(void **state) {
    (void)state;
    skip_without();
    const struct way ways[] = {{ATTENTION, "f32", LONGEST, 0, 0},
                               {ATTENTION, "f16", 11, 0, 0},
                               {ATTENTION ",copy=1", "f16", 11, 0, 0},
                               {ATTENTION, "f16", 11, 1, 0}};
    for (size_t m = 0; m < N_MODELS; m++)
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            struct ts_pair p = open_pair(models[m], &ways[w]);
            ts_pair_prompt(&p, 0, LONGEST);
            assert_true(n_told(p.sessions[1]) > 0 || ways[w].n_threads);
            for (int round = 0; round < ROUNDS; round++) anything(&p, round);
            assert_int_equal(p.sessions[1]->npus.faults, 0);
            ts_pair_close(&p);
        }
}

// Two processors: each can compute attention, and the schedule says which does.
static void either_processor_computes_attention(void **state) {
    (void)state;
    skip_without();
    const struct way way = {ATTENTION, "f32", 11, 1, 0};
    for (int slow = 0; slow < 2; slow++) {
        struct ts_pair p = open_pair(models[0], &way);
        struct st_split *split = &p.sessions[1]->split;
        assert_int_equal(st_kv_processors(p.sessions[1], 0),
                         1 << ST_PROCESSOR_CPU | 1 << ST_PROCESSOR_NPU);
        for (int i = 0; i < 2; i++)
            split->profile[i][ST_SUBGRAPH_ATTENTION] = i == slow ? 1.0f : 1e-9f;
        ts_pair_prompt(&p, 0, LONGEST);
        assert_true((n_told(p.sessions[1]) > 0) == (slow == ST_PROCESSOR_CPU));
        for (uint32_t i = 0; i < split->dag.n; i++)
            if (split->dag.nodes[i].kind == ST_SUBGRAPH_ATTENTION)
                assert_int_equal(split->dag.nodes[i].processor, !slow);
        ts_pair_close(&p);
    }
}

static void the_host_attends_where_the_device_cannot(void **state) {
    (void)state;
    skip_without();
    const struct way ways[] = {{ATTENTION, "q8", LONGEST, 0, 0}, {"sim", "f32", LONGEST, 0, 0}};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        struct ts_pair p = open_pair(models[0], &ways[w]);
        assert_null(p.sessions[1]->kv.device.device);
        ts_pair_prompt(&p, 0, LONGEST);
        ts_pair_close(&p);
    }
}

static void a_limit_leaves_attention_to_the_host(void **state) {
    (void)state;
    skip_without();
    struct way way = {ATTENTION ",copy=1", "f32", LONGEST, 0, 0};
    struct ts_pair all = open_pair(models[0], &way);
    const struct st_kv_device *d = &all.sessions[1]->kv.device;
    assert_non_null(d->device);
    way.npu_memory = st_device_used_bytes(d->device) - 1;
    struct ts_pair less = open_pair(models[0], &way);
    assert_null(less.sessions[1]->kv.device.device);
    ts_pair_prompt(&less, 0, LONGEST);
    assert_int_equal(less.sessions[1]->npus.faults, 0);
    ts_pair_close(&all);
    ts_pair_close(&less);
}

// Whatever fails while a prompt runs: each job is one of the session's.
static void the_host_goes_on_where_attention_fails(void **state) {
    (void)state;
    skip_without();
    const char *const faults[] = {"error", "lose", "hang=5,timeout"};
    for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
        char name[64];
        const struct way way = {name, "f32", LONGEST, 0, 0};
        snprintf(name, sizeof name, ATTENTION ",%s=%d", faults[f], f < 2 ? 700 : 50);
        struct ts_pair p = open_pair(models[0], &way);
        for (int i = 0; i < 4; i++) {
            ts_pair_truncate(&p, 0, 0);
            ts_pair_prompt(&p, 0, LONGEST);
        }
        assert_true(p.sessions[1]->npus.faults > 0);
        ts_pair_close(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_have_the_bits_of_the_host),
        cmocka_unit_test(either_processor_computes_attention),
        cmocka_unit_test(the_host_attends_where_the_device_cannot),
        cmocka_unit_test(a_limit_leaves_attention_to_the_host),
        cmocka_unit_test(the_host_goes_on_where_attention_fails),
    };
    return cmocka_run_group_tests(tests, open_models, close_models);
}
