// SPDX-License-Identifier: Apache-2.0
// A prompt over three processors, the CPU and two devices: any static subgraph of any chunk on any
// of them, in hundreds of random orders, with the bits of the host's cores; also where a device has
// room for a part of the model, and where one or both of them fail.
#include "device/driver.h"
#include "session/linear/int8.h"
#include "session/pass.h"
#include "support/kinds.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

// Four chunks: as many as have buffers, so that one run computes them all.
enum { N_IDS = 23, CHUNK = 6, N_ORDERS = 200 };

// Of the emulated DSP and of PoCL: N_ORDERS in the long mode.
static int n_orders_of_real_ones(void) {
    return (int)ts_how_many(5, 40, N_ORDERS);
}

#define HEXAGON "hexagon:patience=60000" // however busy the machine is

static const struct kind {
    const char *source, *target;
} kinds[] = {
    {"fixtures/models/llama2", "sim"}, // static scales, shadow execution
    {"fixtures/models/mixtral", NULL}, // a scale for each token, experts
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static stint_model *models[N_KINDS];
static int32_t ids[N_IDS];
static float *wanted[N_KINDS]; // [N_IDS, vocab] on the host

static stint_status open_session(int kind, const char *device, uint64_t memory, stint_session **s) {
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 1,
                               .n_context = 64,
                               .chunk_len = CHUNK,
                               .device = device,
                               .npu_memory = memory};
    return stint_session_open(models[kind], &o, s);
}

static stint_session *opened(int kind, const char *device, uint64_t memory) {
    stint_session *s = NULL;
    if (open_session(kind, device, memory, &s) != STINT_OK)
        fail_msg("%s: %s", device, stint_error_text());
    return s;
}

static size_t logits_bytes(int kind) {
    return N_IDS * (size_t)models[kind]->config.vocab * sizeof(float);
}

static void gives_the_same(stint_session *s, int kind) {
    float *logits = malloc(logits_bytes(kind));
    assert_int_equal(stint_session_truncate(s, 0, 0), STINT_OK);
    if (stint_session_eval(s, 0, ids, N_IDS, true, logits) != STINT_OK)
        fail_msg("%s", stint_error_text());
    if (memcmp(logits, wanted[kind], logits_bytes(kind)) != 0)
        fail_msg("%s, %s: other bits than on the host", kinds[kind].source,
                 stint_session_device(s));
    free(logits);
}

static int open_models(void **state) {
    (void)state;
    for (size_t i = 0; i < N_IDS; i++) ids[i] = (int32_t)ts_random_below(40);
    for (int i = 0; i < N_KINDS; i++) {
        models[i] = ts_shadow_package(kinds[i].source, kinds[i].target, false, ids, N_IDS);
        wanted[i] = calloc(1, logits_bytes(i));
        stint_session *s = opened(i, "cpu", 0);
        if (stint_session_eval(s, 0, ids, N_IDS, true, wanted[i]) != STINT_OK)
            fail_msg("%s", stint_error_text());
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

static bool are_here(void) {
    size_t n = 0;
    for (size_t i = 0; st_devices[i]; i++)
        if (strcmp(st_devices[i]->name, "hexagon") == 0 ||
            strcmp(st_devices[i]->name, "opencl") == 0)
            n += st_devices[i]->present();
    if (n == 2) return true;
    print_message("not both of Hexagon and OpenCL: scripts/bootstrap hexagon opencl\n");
    return false;
}

// ---- Random orders

static uint64_t order_seed;

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static double any_score(const struct st_schedule *schedule, uint32_t node) {
    (void)schedule;
    return (double)(mix(order_seed + node) >> 11);
}

static const struct st_policy any_order = {.name = "any", .score = any_score};

// Times decide which processor runs what, so random ones send subgraphs anywhere.
static void shuffle(stint_session *s) {
    order_seed = ts_random_below(UINT32_MAX);
    s->split.policy = &any_order;
    for (int p = 0; p < ST_MAX_PROCESSORS; p++)
        for (int kind = 0; kind < ST_N_SUBGRAPHS; kind++)
            s->split.profile[p][kind] = 1e-6f * (float)(1 + ts_random_below(1000));
}

struct seen {
    uint64_t orders[N_ORDERS];
    size_t n_orders;                             // that differ
    size_t n[ST_MAX_PROCESSORS][ST_N_SUBGRAPHS]; // nodes
};

static void note(const stint_session *s, struct seen *seen) {
    uint64_t order = 0;
    for (uint32_t i = 0; i < s->timeline.n; i++) {
        const struct st_event *e = &s->timeline.events[i];
        order = mix(order + e->node * ST_MAX_PROCESSORS + e->processor);
        if (e->kind < ST_N_SUBGRAPHS) seen->n[e->processor][e->kind]++;
    }
    for (size_t i = 0; i < seen->n_orders; i++)
        if (seen->orders[i] == order) return;
    seen->orders[seen->n_orders++] = order;
}

static void check_orders(int kind, const char *device, int n_orders) {
    stint_session *s = opened(kind, device, 0);
    struct seen seen = {.n_orders = 0};
    for (int i = 0; i < n_orders; i++) {
        shuffle(s);
        gives_the_same(s, kind);
        note(s, &seen);
    }
    assert_true(seen.n_orders > (size_t)n_orders * 9 / 10);
    for (int p = 0; p < ST_MAX_PROCESSORS; p++)
        for (int k = 0; k < ST_N_SUBGRAPHS; k++) {
            bool runs = p == ST_PROCESSOR_CPU || st_subgraphs[k].processor == ST_PROCESSOR_NPU ||
                        (k == ST_SUBGRAPH_ATTENTION && st_kv_processors(s, 0) >> p & 1);
            if (n_orders == N_ORDERS || !runs) // a few may leave one out
                assert_int_equal(seen.n[p][k] > 0, runs);
        }
    assert_int_equal(s->npus.faults, 0);
    stint_session_close(s);
}

static void any_order_gives_the_same_bits(void **state) {
    (void)state;
    int n = (int)ts_how_many(20, N_ORDERS, N_ORDERS);
    for (int kind = 0; kind < N_KINDS; kind++) check_orders(kind, "sim+sim", n);
}

static void any_order_on_hexagon_and_opencl_too(void **state) {
    (void)state;
    if (!are_here()) skip();
    check_orders(0, HEXAGON "+opencl", n_orders_of_real_ones());
    check_orders(1, "opencl+" HEXAGON, 10);
    check_orders(0, HEXAGON "+opencl:attention=1", n_orders_of_real_ones());
}

// ---- What is measured, and said

// A prompt may end before each processor has met work. On a busy machine that may go on while the
// processors' stated times stay as they are, so each prompt gets others.
static void all_take_part(stint_session *s) {
    for (int prompt = 0; prompt < 100; prompt++) {
        bool busy[ST_MAX_PROCESSORS] = {false};
        shuffle(s);
        gives_the_same(s, 0);
        for (uint32_t i = 0; i < s->timeline.n; i++)
            busy[s->timeline.events[i].processor] |=
                s->timeline.events[i].kind != ST_SUBGRAPH_SHADOW;
        if (busy[ST_PROCESSOR_CPU] && busy[ST_PROCESSOR_NPU] && busy[ST_PROCESSOR_SECOND]) return;
    }
    fail_msg("%s: of 100 prompts none had work for all processors", stint_session_device(s));
}

static void a_prompt_says_who_was_busy(void **state) {
    (void)state;
    stint_session *s = opened(0, "sim+sim", 0);
    stint_prefill_info info = {.size = sizeof info};
    assert_string_equal(stint_session_device(s), "sim+sim");
    for (int p = 0; p < ST_MAX_PROCESSORS; p++)
        for (int kind = 0; kind < ST_N_SUBGRAPHS; kind++) {
            bool runs = p == ST_PROCESSOR_CPU || st_subgraphs[kind].processor == ST_PROCESSOR_NPU;
            assert_int_equal(s->split.profile[p][kind] > 0.0f, runs);
        }
    all_take_part(s);
    assert_int_equal(stint_session_prefill(s, &info), STINT_OK);
    assert_true(info.cpu_seconds > 0.0 && info.npu_seconds > 0.0 && info.second_seconds > 0.0);
    assert_true(info.bubble_rate >= 0.0 && info.bubble_rate < 1.0);
    assert_true(info.clock_seconds == 0.0); // all clocks are the host's
    stint_session_close(s);
}

static void emulated_devices_state_their_own_time(void **state) {
    (void)state;
    if (!are_here()) skip();
    stint_session *s = opened(0, HEXAGON "+opencl", 0);
    stint_prefill_info info = {.size = sizeof info};
    assert_true(s->group.npu[ST_NPU_DEVICE]->sync_seconds > 0.0f);
    assert_true(s->group.npu[ST_NPU_SECOND]->sync_seconds == 0.0f); // its clock is the host's
    all_take_part(s);
    size_t n[ST_MAX_PROCESSORS] = {0}, longer = 0; // on the device than on the host
    for (uint32_t i = 0; i < s->timeline.n; i++) {
        const struct st_event *e = &s->timeline.events[i];
        if (e->processor == ST_PROCESSOR_CPU || e->kind == ST_SUBGRAPH_SHADOW) continue;
        bool emulated = e->processor == ST_PROCESSOR_NPU;
        n[e->processor]++;
        assert_true(e->time.device > 0.0f && e->time.sync >= 0.0f);
        assert_int_equal(fabsf(e->time.excess) > 0.0f, emulated);
        longer += !emulated && (double)e->time.device > e->end - e->begin;
    }
    assert_true(n[ST_PROCESSOR_NPU] > 0 && n[ST_PROCESSOR_SECOND] > 0);
    assert_true(2 * longer < n[ST_PROCESSOR_SECOND]); // few, whose inputs were early
    assert_int_equal(stint_session_prefill(s, &info), STINT_OK);
    assert_int_equal(s->split.replay.n, s->timeline.n);
    assert_true(info.clock_seconds > 0.0);
    assert_true(info.clock_bubble_rate >= 0.0 && info.clock_bubble_rate < 1.0);
    stint_session_close(s);
}

// One wait for a quantization and the product that reads it, unless the shadow reads outliers.
static void a_quantized_input_is_not_waited_for(void **state) {
    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++) {
        stint_session *s = opened(kind, "sim", 0);
        struct st_batch batch = {.n = CHUNK, .n_total = CHUNK};
        struct st_run run = st_session_run(s, ST_PHASE_PREFILL, ST_PRECISION_INT8, &batch);
        bool shadowed = st_run_linear_op(&run, ST_INT8_QKV, 0)->weight.shadowed;
        struct st_job *const *job = &run.buffers->quantizing;
        st_pass_rotations(&run);
        for (int i = 0; i < ST_DEVICE_JOBS + 1; i++) { // each gives up the one before it
            assert_int_equal(st_pass_subgraph(&run, ST_SUBGRAPH_ATTN_NORM), STINT_OK);
            assert_int_equal(*job == NULL, shadowed);
        }
        assert_int_equal(st_pass_subgraph(&run, ST_SUBGRAPH_QKV), STINT_OK);
        assert_null(*job);
        assert_int_equal(s->npus.faults, 0);
        assert_int_equal(st_pass_subgraph(&run, ST_SUBGRAPH_ATTN_NORM), STINT_OK);
        stint_session_close(s); // with a job that nobody has waited for
    }
}

// ---- Room for a part of the model

static size_t units_on(const stint_session *s, enum st_npu_kind kind) {
    size_t n = 0;
    for (size_t i = 0; i < s->npus.n_units; i++) n += s->npus.held[i] >> kind & 1;
    return n;
}

static void check_limit(const char *device) {
    stint_session *s = opened(0, device, 0);
    const struct st_npu *npu = s->group.npu[ST_NPU_DEVICE];
    uint64_t all = st_device_used_bytes(npu->device), weights = 0;
    for (size_t i = 0; i < s->npus.n_linears; i++)
        if (npu->weights[i]) weights += npu->weights[i]->bytes;
    size_t n_units = units_on(s, ST_NPU_DEVICE);
    assert_int_equal(units_on(s, ST_NPU_SECOND), n_units);
    stint_session_close(s);
    s = opened(0, device, all - weights / 2);
    assert_true(units_on(s, ST_NPU_DEVICE) > 0 && units_on(s, ST_NPU_DEVICE) < n_units);
    for (int i = 0; i < 5; i++) {
        shuffle(s);
        gives_the_same(s, 0);
    }
    stint_session_close(s);
}

static void a_limit_leaves_units_to_the_host(void **state) {
    (void)state;
    check_limit("sim+sim");
    if (are_here()) check_limit(HEXAGON "+opencl");
}

// ---- Failures

// Which of the devices gets how many jobs depends on which is free: it takes some prompts until the
// job is met that fails.
static void check_fault(const char *device) {
    stint_session *s = opened(0, device, 0);
    for (int i = 0; i < 3 || (s->npus.faults == 0 && i < 60); i++) {
        shuffle(s);
        gives_the_same(s, 0);
    }
    if (s->npus.faults == 0) fail_msg("%s: nothing failed", device);
    stint_session_close(s);
}

static void the_others_go_on_without_a_failed_device(void **state) {
    (void)state;
    check_fault("sim:fail=9+sim");
    check_fault("sim:lose=20+sim");
    check_fault("sim+sim:lose=20");
    check_fault("sim:lose=30+sim:lose=40");
    if (!are_here()) return;
    check_fault("hexagon:die=20+opencl");
    check_fault("opencl+hexagon:garbage=25");
    check_fault("hexagon:spin=30+opencl");
    check_fault("hexagon:sleep=9+opencl:lose=800");
}

static void pairs_are_two_devices_beside_the_host(void **state) {
    (void)state;
    static const char *const bad[][2] = {{"sim+", "written A+B"},
                                         {"+sim", "written A+B"},
                                         {"sim+sim+sim", "written A+B"},
                                         {"cpu+sim", "runs on the CPU's cores"},
                                         {"sim+cpu", "runs on the CPU's cores"},
                                         {"sim+none", "is not known"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stint_session *s = NULL;
        assert_int_equal(open_session(0, bad[i][0], 0, &s), STINT_E_ARG);
        if (!strstr(stint_error_text(), bad[i][1]))
            fail_msg("%s: %s", bad[i][0], stint_error_text());
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_gives_the_same_bits),
        cmocka_unit_test(any_order_on_hexagon_and_opencl_too),
        cmocka_unit_test(a_prompt_says_who_was_busy),
        cmocka_unit_test(emulated_devices_state_their_own_time),
        cmocka_unit_test(a_quantized_input_is_not_waited_for),
        cmocka_unit_test(a_limit_leaves_units_to_the_host),
        cmocka_unit_test(the_others_go_on_without_a_failed_device),
        cmocka_unit_test(pairs_are_two_devices_beside_the_host),
    };
    return cmocka_run_group_tests(tests, open_models, close_models);
}
