// SPDX-License-Identifier: Apache-2.0
// Hybrid steps: hot clusters on a second processor, the other neurons on the host. The same bits as
// on the host alone, and as on the device alone, whichever job fails.
#include "device/driver.h"
#include "session/weights/bounded.h"
#include "support/bounded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct ts_bounded_variant variants[] = {
    {"hybrid", "models/novels-10m-drelu", 8, 512, 0, 0},
    {"hybrid, 4 bits", "models/novels-2-drelu", 4, 512, 0, 0},
};

static stint_session *open_with_share(const stint_model *model, const char *device, uint64_t memory,
                                      uint64_t npu_memory, bool predict, float share) {
    ts_bounded_make_hot();
    stint_session_options o = ts_bounded_options(memory);
    o.device = device;
    o.npu_memory = npu_memory;
    o.npu_hot = share;
    o.leave_out = predict ? 0 : STINT_LEAVE_PREDICTOR;
    stint_session *s = NULL;
    if (stint_session_open(model, &o, &s) != STINT_OK)
        fail_msg("%s: %s", device, stint_error_text());
    return s;
}

static stint_session *open_on(const stint_model *model, const char *device, uint64_t memory,
                              uint64_t npu_memory, bool predict) {
    return open_with_share(model, device, memory, npu_memory, predict, 1.0f);
}

// Without a predictor all neurons are computed, so all ways agree.
static void host_device_and_both_agree(void **state) {
    (void)state;
    stint_session *s = open_on(ts_bounded.whole, "sim:delay=0", 0, 0, false);
    ts_bounded_assert_same(s, ts_bounded.wanted, "device only");
    stint_session_close(s);
    const uint64_t bounds[] = {200 << 20, ts_bounded_min(1)};
    for (size_t i = 0; i < 2; i++) {
        s = open_on(ts_bounded.lazy, NULL, bounds[i], 0, false);
        ts_bounded_assert_same(s, ts_bounded.wanted, "host only");
        stint_session_close(s);
        s = open_on(ts_bounded.lazy, "sim", bounds[i], 0, false);
        ts_bounded_assert_same(s, ts_bounded.wanted, "hybrid");
        assert_true(i || s->bounded->hybrid.computed > 0);
        assert_int_equal(s->npus.faults, 0);
        stint_session_close(s);
    }
}

static void the_host_alone(float *logits, uint64_t memory) {
    stint_session *s = open_on(ts_bounded.lazy, NULL, memory, 0, true);
    assert_int_equal(ts_bounded_eval(s, logits), STINT_OK);
    stint_session_close(s);
}

// What a predictor leaves out is left out by both.
static void predictions_count_the_same(void **state) {
    (void)state;
    float *wanted = malloc(ts_bounded_logits_bytes());
    static const float shares[] = {0.5f, 1.0f, 1.4f, 2.0f};
    const uint64_t bounds[] = {200 << 20, ts_bounded_min(1)};
    uint64_t before = 0;
    for (size_t i = 0; i < 8; i++) {
        uint64_t bound = bounds[i / 4];
        if (i % 4 == 0) {
            the_host_alone(wanted, bound);
            before = 0;
        }
        stint_session *s =
            open_with_share(ts_bounded.lazy, "sim:delay=300", bound, 0, true, shares[i % 4]);
        ts_bounded_assert_same(s, wanted, "hybrid");
        assert_true(s->bounded->hybrid.computed > before || (i / 4 && shares[i % 4] <= 1.0f));
        before = s->bounded->hybrid.computed;
        stint_session_close(s);
    }
    free(wanted);
}

// With all clusters on the device, the host computes none, and what the device adds is only what is
// named: more neurons are computed, and the result is the same.
static void a_device_leaves_out_what_is_not_named(void **state) {
    (void)state;
    float *wanted = malloc(ts_bounded_logits_bytes()), *got = malloc(ts_bounded_logits_bytes());
    the_host_alone(wanted, 200 << 20);
    stint_session *s = open_with_share(ts_bounded.lazy, "sim:delay=0", 200 << 20, 0, true, 2.0f);
    ts_bounded_assert_same(s, wanted, "all clusters");
    struct st_neurons *n = &s->bounded->neurons;
    assert_true(s->bounded->hybrid.computed > 0);
    assert_int_equal(s->bounded->hybrid.computed, n->computed);
    assert_int_equal(n->computed, n->possible);
    stint_session_close(s);
    s = open_with_share(ts_bounded.lazy, "sim:delay=0", 200 << 20, 0, false, 2.0f);
    assert_int_equal(ts_bounded_eval(s, got), STINT_OK);
    assert_true(memcmp(got, wanted, ts_bounded_logits_bytes()) != 0); // something is left out
    stint_session_close(s);
    free(wanted);
    free(got);
}

static bool is_here(const char *name) {
    for (size_t i = 0; st_devices[i]; i++)
        if (strcmp(st_devices[i]->name, name) == 0) return st_devices[i]->present();
    return false;
}

// A DSP under emulation, and what OpenCL finds.
static void dsp_and_gpu_give_the_same(void **state) {
    (void)state;
    static const struct {
        const char *name, *device;
    } devices[] = {{"hexagon", "hexagon:patience=60000"}, {"opencl", "opencl"}};
    static const float shares[] = {1.0f, 1.3f, 0.0f};
    float *wanted = malloc(ts_bounded_logits_bytes());
    the_host_alone(wanted, 200 << 20);
    for (size_t i = 0; i < 6; i++) {
        const char *device = devices[i / 3].device;
        float share = shares[i % 3];
        if (!is_here(devices[i / 3].name)) continue;
        stint_session *s = open_with_share(ts_bounded.lazy, device, 200 << 20, 0, true, share);
        ts_bounded_assert_same(s, wanted, device);
        assert_true(s->bounded->hybrid.computed > 0 || share <= 0.0f);
        assert_int_equal(s->npus.faults, 0);
        stint_session_close(s);
    }
    free(wanted);
}

static void the_share_follows_the_speeds(void **state) {
    (void)state;
    const float all[] = {10, 10, 10, 10, 10, 10, 10, 10, 10, 10};
    const float few[] = {10, 9, 6, 3, 2, 1, 1, 1, 1, 1};
    struct st_hybrid_rates rates = {.device_neuron = 1.0, .host_neuron = 1.0};
    assert_int_equal(st_hybrid_clusters(&rates, all, 10, 10), 5);
    assert_int_equal(st_hybrid_clusters(&rates, few, 10, 10), 2);
    assert_int_equal(st_hybrid_clusters(&rates, all, 0, 10), 0);
    rates.device_neuron = 4.0;
    assert_int_equal(st_hybrid_clusters(&rates, all, 10, 10), 2);
    assert_int_equal(st_hybrid_clusters(&rates, few, 10, 10), 0); // 40 against 35 in all
    rates.device_neuron = 0.01;
    assert_int_equal(st_hybrid_clusters(&rates, all, 10, 10), 10);
    rates.device_neuron = 4.0;
    rates.device_block = 61.0; // a cluster more, and it is the longer one
    assert_int_equal(st_hybrid_clusters(&rates, all, 10, 10), 0);
    rates.device_block = 1000.0;
    assert_int_equal(st_hybrid_clusters(&rates, all, 10, 10), 0);
    rates = (struct st_hybrid_rates){0};
    assert_int_equal(st_hybrid_clusters(&rates, all, 10, 10), 0);
}

// Whatever is measured; and of a device that fails meanwhile, nothing is.
static void a_measured_share_gives_the_same(void **state) {
    (void)state;
    static const struct {
        const char *device;
        float share;
        bool measured, used;
    } ways[] = {{"sim:delay=0", 0.0f, true, true},
                {"sim:delay=0,fail=2", 0.0f, false, false},
                {"sim:delay=0", -1.0f, false, false}};
    float *wanted = malloc(ts_bounded_logits_bytes());
    the_host_alone(wanted, 200 << 20);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        stint_session *s =
            open_with_share(ts_bounded.lazy, ways[i].device, 200 << 20, 0, true, ways[i].share);
        stint_memory_info info = {.size = sizeof info};
        ts_bounded_assert_same(s, wanted, ways[i].device);
        assert_int_equal(stint_session_memory(s, &info), STINT_OK);
        assert_int_equal(info.cpu_neuron_seconds > 0.0, ways[i].measured);
        assert_int_equal(s->bounded->hybrid.device != NULL, ways[i].used);
        assert_true(info.on_npu >= 0.0 && info.on_npu < 1.0);
        stint_session_close(s);
    }
    free(wanted);
}

// What the device has no room for, the host computes.
static void little_memory_of_the_device_is_enough(void **state) {
    (void)state;
    float *wanted = malloc(ts_bounded_logits_bytes());
    the_host_alone(wanted, 200 << 20);
    stint_session *s = open_on(ts_bounded.lazy, "sim:delay=0", 200 << 20, 0, true);
    uint64_t all = st_device_used_bytes(s->group.npu[ST_NPU_DEVICE]->device);
    ts_bounded_assert_same(s, wanted, "hybrid");
    uint64_t computed = s->bounded->hybrid.computed;
    stint_session_close(s);
    uint64_t some = all - all / 8;
    s = open_on(ts_bounded.lazy, "sim:delay=0", 200 << 20, some, true);
    assert_true(st_device_used_bytes(s->group.npu[ST_NPU_DEVICE]->device) <= some);
    ts_bounded_assert_same(s, wanted, "hybrid");
    assert_true(s->bounded->hybrid.computed < computed);
    stint_session_close(s);
    free(wanted);
}

// True if a job failed.
static bool survives(const char *fault, int n, const float *wanted) {
    char device[64];
    snprintf(device, sizeof device, "sim:delay=0,%s=%d", fault, n);
    stint_session *s = open_with_share(ts_bounded.lazy, device, 200 << 20, 0, true, 1.2f);
    ts_bounded_assert_same(s, wanted, device);
    bool struck = s->npus.faults > 0;
    ts_bounded_assert_same(s, wanted, "afterwards");
    stint_session_close(s);
    return struck;
}

static void a_failed_job_is_done_by_the_host(void **state) {
    (void)state;
    static const char *const faults[] = {"fail", "oom", "lose", "timeout=5,hang"};
    float *wanted = malloc(ts_bounded_logits_bytes());
    the_host_alone(wanted, 200 << 20);
    int n_jobs = 0;
    stint_session *s = open_with_share(ts_bounded.lazy, "sim:delay=0", 200 << 20, 0, true, 1.2f);
    ts_bounded_assert_same(s, wanted, "hybrid");
    n_jobs = (int)s->group.npu[ST_NPU_DEVICE]->device->n_submits;
    stint_session_close(s);
    assert_true(n_jobs > 4);
    for (int n = 1; n <= n_jobs; n++) assert_true(survives(faults[n % 4], n, wanted));
    free(wanted);
}

// A device has copies. Where its job fails, the host reads what it has not: the damage is found.
static void damaged_clusters_are_found(void **state) {
    (void)state;
    float *wanted = malloc(ts_bounded_logits_bytes()), *got = malloc(ts_bounded_logits_bytes());
    static const char *const devices[] = {"sim:delay=0", "sim:delay=0,fail=1"};
    the_host_alone(wanted, 200 << 20);
    for (size_t i = 0; i < 2; i++) {
        stint_session *s = open_on(ts_bounded.lazy, devices[i], 200 << 20, 0, true);
        ts_bounded_flip("layers.0.neurons", 100);
        if (i == 0) {
            ts_bounded_assert_same(s, wanted, "with copies");
        } else {
            assert_int_equal(ts_bounded_eval(s, got), STINT_E_FORMAT);
            assert_non_null(strstr(stint_error_text(), "section 'layers.0.neurons'"));
        }
        stint_session_options o = {
            .size = sizeof o, .memory = 200 << 20, .device = "sim", .npu_hot = 1.0f};
        stint_session *other = NULL;
        assert_int_equal(stint_session_open(ts_bounded.lazy, &o, &other), STINT_E_FORMAT);
        assert_non_null(strstr(stint_error_text(), "section 'layers.0.neurons'"));
        ts_bounded_flip("layers.0.neurons", 100);
        ts_bounded_assert_same(s, wanted, "whole again");
        stint_session_close(s);
    }
    free(wanted);
    free(got);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_device_and_both_agree),
        cmocka_unit_test(predictions_count_the_same),
        cmocka_unit_test(a_device_leaves_out_what_is_not_named),
        cmocka_unit_test(the_share_follows_the_speeds),
        cmocka_unit_test(dsp_and_gpu_give_the_same),
        cmocka_unit_test(a_measured_share_gives_the_same),
        cmocka_unit_test(little_memory_of_the_device_is_enough),
        cmocka_unit_test(damaged_clusters_are_found),
        cmocka_unit_test(a_failed_job_is_done_by_the_host),
    };
    // Every job is made to fail where there are few.
    return ts_bounded_run(&variants[0], false, tests, 8) |
           ts_bounded_run(&variants[1], false, tests, 9);
}
