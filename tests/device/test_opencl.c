// SPDX-License-Identifier: Apache-2.0
// The OpenCL device beyond what holds for all (test_conformance.c, test_jobs.c): other cuts of the
// work, all activations, weights that stay where they are, and calls that fail one after the other.
#include "base/cpu.h"
#include "device/opencl/opencl.h"
#include "support/device_cases.h"
#include "support/support.h"

#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void skip_without(void) {
    if (st_device_opencl.present()) return;
    print_message("OpenCL finds no device: scripts/bootstrap opencl\n");
    skip();
}

static stint_status open_with(const char *settings, struct st_device **device) {
    char name[64];
    snprintf(name, sizeof name, "opencl%s%s", *settings ? ":" : "", settings);
    const struct st_device_options options = {.name = name};
    return st_device_open(&options, device);
}

static struct st_device *must_open(const char *settings) {
    struct st_device *device;
    if (open_with(settings, &device) != STINT_OK) fail_msg("%s", st_error_text());
    return device;
}

static void run_on(struct st_device *device, const struct ts_case *c, struct ts_result *got) {
    if (ts_case_run(device, c, got) != STINT_OK) fail_msg("%s", st_error_text());
}

// ---- Numbers

// The whole range of an activation: some sums become large.
static struct ts_case activated(int i) {
    struct ts_case c = ts_case_make(
        &(struct ts_case_options){.n_rows = 1 + ts_random_below(9),
                                  .n_in = 1 + (uint32_t)ts_random_below(100),
                                  .n_middle = 1 + (uint32_t)ts_random_below(200),
                                  .n_parts = 1,
                                  .rows = {1 + (uint32_t)ts_random_below(90)},
                                  .epilogue = i < ST_N_ACTS ? ST_EPILOGUE_GATED : ST_EPILOGUE_ACT,
                                  .act = (enum st_act)(i % ST_N_ACTS),
                                  .two_term = i % 2,
                                  .row_scales = {true, true}});
    for (size_t r = 0; r < st_linear_op_rows(&c.linears[0].linear_op); r++)
        c.linears[0].factor[r] *= r % 3 == 0 ? 30.0f : 1.0f;
    return c;
}

// Another cut of the work, copied weights, division in software: nothing changes a bit.
static void every_way_has_the_bits_of_the_host(void **state) {
    (void)state;
    skip_without();
    if (st_elementwise_select(st_cpu_flags())->isa == 0) skip(); // plain C takes exp from libm
    const char *ways[] = {"", "steps=1,copy=1", "items=3,tokens=1"};
    struct st_pool *workers;
    struct st_device *cpu;
    assert_int_equal(st_pool_open(1, &workers), STINT_OK);
    const struct st_device_options options = {.name = "cpu", .workers = workers};
    assert_int_equal(st_device_open(&options, &cpu), STINT_OK);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        struct st_device *device = must_open(ways[w]);
        for (int i = 0; i < 2 * ST_N_ACTS; i++) {
            struct ts_case c = activated(i);
            struct ts_result wanted, got;
            run_on(cpu, &c, &wanted);
            run_on(device, &c, &got);
            ts_result_compare(&c, &wanted, &got, ways[w]);
            ts_result_drop(&c, &wanted);
            ts_result_drop(&c, &got);
            ts_case_drop(&c);
        }
        st_device_close(device);
    }
    st_device_close(cpu);
    st_pool_close(workers);
}

// ---- Memory and time

static const void *host_memory(const struct st_device_weights *w) {
    const struct opencl_device *d = (const struct opencl_device *)w->device;
    void *memory = NULL;
    assert_int_equal(d->cl.clGetMemObjectInfo(((const struct opencl_weights *)w)->panels,
                                              CL_MEM_HOST_PTR, sizeof memory, &memory, NULL),
                     CL_SUCCESS);
    return memory;
}

static void weights_stay_where_they_are(void **state) {
    (void)state;
    skip_without();
    struct ts_case c = ts_case_small();
    const struct st_int8_weight *w = &c.subgraph.linear_ops[0].weight;
    for (int copy = 0; copy < 2; copy++) {
        struct st_device *device = must_open(copy ? "copy=1" : "");
        bool shared = ((struct opencl_device *)device)->unified;
        struct st_device_weights *weights;
        assert_true(!copy || !shared);
        assert_int_equal(st_device_import_weights(device, w, false, &weights), STINT_OK);
        assert_ptr_equal(host_memory(weights), shared ? w->panels : NULL);
        st_device_free_weights(weights);
        st_device_close(device);
    }
    ts_case_drop(&c);
}

static void what_no_buffer_can_hold_stays_on_the_host(void **state) {
    (void)state;
    skip_without();
    struct st_device *device = must_open("");
    struct opencl_device *d = (struct opencl_device *)device;
    struct ts_case c = ts_case_small();
    size_t bytes = st_device_weights_bytes(device, &c.subgraph.linear_ops[0].weight);
    d->max_allocation = bytes;
    assert_true(st_device_supports(device, &c.subgraph));
    d->max_allocation = bytes - 1;
    assert_false(st_device_supports(device, &c.subgraph));
    st_device_close(device);
    ts_case_drop(&c);
}

static void jobs_say_how_long_they_took(void **state) {
    (void)state;
    skip_without();
    struct st_device *device = must_open("");
    struct ts_case c = ts_case_small();
    struct ts_bench b;
    struct ts_result result;
    struct st_job *job;
    struct st_job_result done;
    assert_int_equal(ts_bench_open(device, &c, &b), STINT_OK);
    assert_int_equal(ts_bench_run(&b, &result), STINT_OK);
    ts_result_drop(&c, &result);
    const struct st_graph_args args = ts_bench_graph_args(&b);
    assert_int_equal(st_device_submit(b.graph, &args, NULL, 0, &job), STINT_OK);
    assert_int_equal(st_job_join(job, &done), STINT_OK);
    assert_true(done.device_ns > 0);
    ts_bench_close(&b);
    st_device_close(device);
    ts_case_drop(&c);
}

// ---- Failures

// True if the call that was to fail was never made. What fails is one clear error, and a device
// that is lost stays so.
static bool meets_fault(const char *fault, unsigned n, const struct ts_case *c,
                        const struct ts_result *expected) {
    char settings[32];
    struct st_device *device = NULL;
    struct ts_result got;
    bool lost = strcmp(fault, "lose") == 0;
    snprintf(settings, sizeof settings, "%s=%u", fault, n);
    stint_status status = open_with(settings, &device);
    if (status == STINT_OK) {
        status = ts_case_run(device, c, &got);
        bool none = atomic_load(&((struct opencl_device *)device)->n_calls) < n;
        if (status == STINT_OK) {
            ts_result_compare(c, expected, &got, settings);
            ts_result_drop(c, &got);
        }
        // Weights that may not stay where they are are copied.
        assert_true(status == STINT_OK || !none);
        assert_true(!lost || none || st_device_is_lost(device));
        st_device_close(device);
        if (none) return true;
    }
    if (status == STINT_OK) return false;
    assert_int_equal(status, lost ? STINT_E_DEVICE : STINT_E_NOMEM);
    assert_non_null(strstr(st_error_text(), "device 'opencl'"));
    return false;
}

static void every_call_may_fail(void **state) {
    (void)state;
    skip_without();
    const struct {
        const char *name;
        unsigned step; // the way is the same: not all of them again
    } faults[] = {{"error", 1}, {"lose", 7}};
    struct ts_case c = ts_case_small();
    struct ts_result expected = ts_case_expect(&c);
    for (size_t i = 0; i < 2; i++) {
        unsigned n = 1;
        while (!meets_fault(faults[i].name, n, &c, &expected)) n += faults[i].step;
        assert_true(n > 60);
    }
    ts_result_drop(&c, &expected);
    ts_case_drop(&c);
}

static void a_job_that_never_ends_loses_the_device(void **state) {
    (void)state;
    skip_without();
    struct st_device *device = must_open("hang=2");
    struct ts_case c = ts_case_small();
    struct ts_bench b;
    struct st_job *jobs[3], *late;
    struct st_job_result result;
    assert_int_equal(ts_bench_open(device, &c, &b), STINT_OK);
    const struct st_quantize_args args = ts_bench_quantize_args(&b);
    for (int i = 0; i < 3; i++)
        assert_int_equal(st_device_quantize(device, &args, NULL, 0, &jobs[i]), STINT_OK);
    assert_int_equal(st_job_join(jobs[0], NULL), STINT_OK);
    device->timeout_ms = 1;
    assert_int_equal(st_job_join(jobs[1], &result), STINT_E_DEVICE);
    assert_int_equal(result.failure, ST_FAILURE_LOST);
    assert_non_null(strstr(st_error_text(), "does not end a job"));
    assert_int_equal(st_job_join(jobs[2], NULL), STINT_E_DEVICE); // behind it in the queue
    assert_int_equal(st_device_quantize(device, &args, NULL, 0, &late), STINT_E_DEVICE);
    ts_bench_close(&b);
    st_device_close(device);
    ts_case_drop(&c);
}

static void what_comes_after_a_canceled_job_is_canceled(void **state) {
    (void)state;
    skip_without();
    struct st_device *device = must_open("hang=1");
    struct opencl_device *d = (struct opencl_device *)device;
    struct ts_case c = ts_case_small();
    struct ts_bench b;
    struct st_job *jobs[3];
    assert_int_equal(ts_bench_open(device, &c, &b), STINT_OK);
    const struct st_quantize_args args = ts_bench_quantize_args(&b);
    for (int i = 0; i < 3; i++)
        assert_int_equal(st_device_quantize(device, &args, jobs + (i == 2), i == 2, &jobs[i]),
                         STINT_OK);
    pthread_mutex_lock(&device->mutex);
    jobs[1]->canceled = true; // as st_job_cancel() does before it asks the device
    pthread_mutex_unlock(&device->mutex);
    assert_int_equal(d->cl.clSetUserEventStatus(d->hold, CL_COMPLETE), CL_SUCCESS);
    assert_int_equal(st_job_join(jobs[0], NULL), STINT_OK);
    assert_int_equal(st_job_join(jobs[2], NULL), STINT_E_CANCELED);
    assert_int_equal(st_job_join(jobs[1], NULL), STINT_E_CANCELED);
    assert_false(st_device_is_lost(device));
    ts_bench_close(&b);
    st_device_close(device);
    ts_case_drop(&c);
}

// ---- Settings and device files

static void bad_settings_are_refused(void **state) {
    (void)state;
    skip_without();
    struct st_device *device = NULL;
    const char *bad[] = {"items=2000", "tokens=65", "device=99", "what=1", "items"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(open_with(bad[i], &device), STINT_E_ARG);
    assert_null(device);
}

static void a_device_file_is_found_by_name(void **state) {
    (void)state;
    struct opencl_tuning pocl, other, gpu;
    assert_int_equal(st_opencl_tuning("Portable Computing Language", "pthread-x", &pocl), STINT_OK);
    assert_int_equal(st_opencl_tuning("a platform", "a device", &other), STINT_OK);
    assert_int_equal(st_opencl_tuning("a portable computing language", "", &gpu), STINT_OK);
    assert_true(pocl.items != other.items && gpu.items == pocl.items);
    assert_true(other.items > 0 && other.tokens > 0);
}

// Attention of prompts is the CPU's where nobody has measured it on a device.
static void what_nobody_measured_is_off(void **state) {
    (void)state;
    static const char *const names[][2] = {{"QUALCOMM Snapdragon(TM)", "QUALCOMM Adreno(TM)"},
                                           {"ARM Platform", "Mali-G715"},
                                           {"Portable Computing Language", "pthread-x"},
                                           {"a platform", "a device"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct opencl_tuning tuning = {.attention = 2};
        assert_int_equal(st_opencl_tuning(names[i][0], names[i][1], &tuning), STINT_OK);
        assert_int_equal(tuning.attention, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_has_the_bits_of_the_host),
        cmocka_unit_test(weights_stay_where_they_are),
        cmocka_unit_test(what_no_buffer_can_hold_stays_on_the_host),
        cmocka_unit_test(jobs_say_how_long_they_took),
        cmocka_unit_test(every_call_may_fail),
        cmocka_unit_test(a_job_that_never_ends_loses_the_device),
        cmocka_unit_test(what_comes_after_a_canceled_job_is_canceled),
        cmocka_unit_test(bad_settings_are_refused),
        cmocka_unit_test(a_device_file_is_found_by_name),
        cmocka_unit_test(what_nobody_measured_is_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
