// SPDX-License-Identifier: Apache-2.0
// Sessions on devices that are processors of their own: the bits of the host's cores, in one chunk
// and in several, divided over two processors, with room for a part of the model, and when the
// device fails.
#include "device/driver.h"
#include "session/session.h"
#include "support/kinds.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_PROMPT = 17, N_STEPS = 2, N_IDS = N_PROMPT + N_STEPS, IN_THREE = 6 };

static const struct kind {
    const char *source, *target;
} kinds[] = {
    {"fixtures/models/llama2", "sim"}, // static scales, shadow execution
    {"fixtures/models/gemma", "sim"},  // another activation
    {"fixtures/models/mixtral", NULL}, // a scale for each token
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static const struct subject {
    const char *name, *hint;
    const char *faults[9]; // ends with NULL
} subjects[] = {
    {"hexagon",
     "no Hexagon program or emulator: scripts/bootstrap hexagon",
     {"hexagon:fail=3", "hexagon:die=1", "hexagon:die=9", "hexagon:garbage=4", "hexagon:spin=2",
      "hexagon:sleep=5", "hexagon:list=3", "hexagon:timeout=5,spin=4"}},
    // A call while the prompt runs.
    {"opencl",
     "OpenCL finds no device: scripts/bootstrap opencl",
     {"opencl:error=700", "opencl:lose=800", "opencl:timeout=50,hang=1"}},
};

static stint_model *models[N_KINDS];
static int32_t ids[N_IDS];
static float *wanted[N_KINDS]; // [N_IDS, vocab] on the host

struct way {
    const char *device;
    uint32_t chunk, n_threads; // n_threads: of each processor; 0: undivided
    uint64_t npu_memory;
};

static stint_status open_session(int kind, const struct way *way, stint_session **s) {
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 1,
                               .n_context = 64,
                               .chunk_len = way->chunk,
                               .device = way->device,
                               .npu_memory = way->npu_memory,
                               .npu_threads = way->n_threads,
                               .cpu_threads = way->n_threads};
    return stint_session_open(models[kind], &o, s);
}

static size_t logits_bytes(int kind) {
    return N_IDS * (size_t)models[kind]->config.vocab * sizeof(float);
}

// All logits of a prompt, then of single steps.
static stint_status evaluate(stint_session *s, int kind, float *logits) {
    size_t vocab = models[kind]->config.vocab;
    ST_TRY(stint_session_eval(s, 0, ids, N_PROMPT, true, logits));
    for (size_t i = N_PROMPT; i < N_IDS; i++)
        ST_TRY(stint_session_eval(s, 0, ids + i, 1, false, logits + i * vocab));
    return STINT_OK;
}

// Returns how many jobs the host has taken over.
static size_t gives_the_same(int kind, const struct way *way) {
    size_t name = strcspn(way->device, ":");
    stint_session *s = NULL;
    float *logits = malloc(logits_bytes(kind));
    if (open_session(kind, way, &s) != STINT_OK || evaluate(s, kind, logits) != STINT_OK)
        fail_msg("%s: %s", way->device, stint_error_text());
    assert_memory_equal(stint_session_device(s), way->device, name);
    if (memcmp(logits, wanted[kind], logits_bytes(kind)) != 0)
        fail_msg("%s, %s: other bits than on the host", kinds[kind].source, way->device);
    size_t faults = s->npus.faults;
    stint_session_close(s);
    free(logits);
    return faults;
}

static int open_models(void **state) {
    (void)state;
    for (size_t i = 0; i < N_IDS; i++) ids[i] = (int32_t)ts_random_below(40);
    for (int i = 0; i < N_KINDS; i++) {
        const struct way host = {.device = "cpu", .chunk = N_PROMPT};
        models[i] = ts_shadow_package(kinds[i].source, kinds[i].target, false, ids, N_IDS);
        stint_session *s = NULL;
        if (open_session(i, &host, &s) != STINT_OK) fail_msg("%s", stint_error_text());
        wanted[i] = malloc(logits_bytes(i));
        if (evaluate(s, i, wanted[i]) != STINT_OK) fail_msg("%s", stint_error_text());
        stint_session_close(s);
    }
    return 0;
}

static int close_models(void **state) {
    (void)state;
    for (int i = 0; i < N_KINDS; i++) {
        stint_model_close(models[i]);
        free(wanted[i]);
    }
    return 0;
}

static bool is_here(const struct subject *subject) {
    for (size_t i = 0; st_devices[i]; i++)
        if (strcmp(st_devices[i]->name, subject->name) == 0 && st_devices[i]->present())
            return true;
    return false;
}

static void every_chunk_length_gives_the_same_bits(const struct subject *subject) {
    const char *name = subject->name;
    for (int i = 0; i < N_KINDS; i++) {
        assert_int_equal(gives_the_same(i, &(struct way){name, N_PROMPT, 0, 0}), 0);
        assert_int_equal(gives_the_same(i, &(struct way){name, IN_THREE, 0, 0}), 0);
        assert_int_equal(gives_the_same(i, &(struct way){name, IN_THREE, 1, 0}), 0);
    }
}

// A limit with room for the buffers and some of the weights.
static void a_limit_divides_the_model(const struct subject *subject) {
    struct way way = {subject->name, N_PROMPT, 0, 0};
    stint_session *s = NULL;
    assert_int_equal(open_session(0, &way, &s), STINT_OK);
    const struct st_npu *npu = s->group.npu[ST_NPU_DEVICE];
    uint64_t all = st_device_used_bytes(npu->device), weights = 0;
    for (size_t i = 0; i < s->npus.n_linears; i++)
        if (npu->weights[i]) weights += npu->weights[i]->bytes;
    size_t n_units = s->npus.n_units;
    stint_session_close(s);
    assert_true(weights > 0 && weights < all);
    stint_graph_info info = {.size = sizeof info};
    way.npu_memory = all - weights / 2;
    s = NULL;
    assert_int_equal(open_session(0, &way, &s), STINT_OK);
    assert_int_equal(stint_session_graphs(s, &info), STINT_OK);
    assert_true(info.n_graphs > 0 && info.n_graphs < n_units);
    assert_true(st_device_used_bytes(s->group.npu[ST_NPU_DEVICE]->device) <= way.npu_memory);
    stint_session_close(s);
    assert_int_equal(gives_the_same(0, &way), 0);
}

static void the_host_takes_over_a_failed_device(const struct subject *subject) {
    for (size_t i = 0; subject->faults[i]; i++)
        assert_true(gives_the_same(0, &(struct way){subject->faults[i], IN_THREE, 0, 0}) > 0);
}

static void sessions_run_on(const struct subject *subject) {
    if (!is_here(subject)) {
        print_message("%s\n", subject->hint);
        skip();
    }
    every_chunk_length_gives_the_same_bits(subject);
    a_limit_divides_the_model(subject);
    the_host_takes_over_a_failed_device(subject);
}

static void sessions_run_on_hexagon(void **state) {
    (void)state;
    sessions_run_on(&subjects[0]);
}

static void sessions_run_on_opencl(void **state) {
    (void)state;
    sessions_run_on(&subjects[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_run_on_hexagon),
        cmocka_unit_test(sessions_run_on_opencl),
    };
    return cmocka_run_group_tests(tests, open_models, close_models);
}
