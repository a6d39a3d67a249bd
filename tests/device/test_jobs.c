// SPDX-License-Identifier: Apache-2.0
// Jobs of every device: what they come after, canceling, time-outs, and every fault of `sim` at
// every submit and allocation.
#include "device/driver.h"
#include "support/device_cases.h"
#include "support/support.h"

#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct st_device *open_sim(const char *settings, uint32_t timeout_ms) {
    char name[64];
    struct st_device *device;
    snprintf(name, sizeof name, "sim%s%s", *settings ? ":" : "", settings);
    const struct st_device_options options = {.name = name, .timeout_ms = timeout_ms};
    if (st_device_open(&options, &device) != STINT_OK) fail_msg("%s", st_error_text());
    return device;
}

static stint_status submit_quantize(struct ts_bench *b, struct st_job *const *after, size_t n_after,
                                    struct st_job **job) {
    const struct st_quantize_args args = ts_bench_quantize_args(b);
    return st_device_quantize(b->device, &args, after, n_after, job);
}

static void fill_inputs(struct ts_bench *b) {
    struct ts_result result;
    assert_int_equal(ts_bench_run(b, &result), STINT_OK);
    ts_result_drop(b->c, &result);
}

// ---- Every device

static void allocates_nothing(const struct st_device_ops *ops) {
    struct st_pool *workers;
    struct st_device *device;
    struct ts_case c = ts_case_small();
    struct ts_bench b;
    assert_int_equal(st_pool_open(2, &workers), STINT_OK);
    const struct st_device_options options = {.name = ops->name, .workers = workers};
    assert_int_equal(st_device_open(&options, &device), STINT_OK);
    assert_int_equal(ts_bench_open(device, &c, &b), STINT_OK);
    const struct st_graph_args args = ts_bench_graph_args(&b);
    fill_inputs(&b);
    ts_fail_allocation(0);
    for (int i = 0; i < 3 * ST_DEVICE_JOBS; i++) { // and gives every job back
        struct st_job *quantize, *multiply;
        struct st_job_result result;
        assert_int_equal(submit_quantize(&b, NULL, 0, &quantize), STINT_OK);
        assert_int_equal(st_device_submit(b.graph, &args, &quantize, 1, &multiply), STINT_OK);
        st_job_release(quantize);
        if (!st_device_caps(device)->own_processor)
            assert_int_equal(st_job_poll(multiply), ST_JOB_DONE);
        assert_int_equal(st_job_wait(multiply, &result), STINT_OK);
        assert_int_equal(result.failure, ST_FAILURE_NONE);
        assert_int_equal(st_job_poll(multiply), ST_JOB_DONE);
        st_job_cancel(multiply); // too late
        assert_int_equal(st_job_join(multiply, NULL), STINT_OK);
    }
    assert_int_equal(ts_allocations(), 0);
    ts_bench_close(&b);
    st_device_close(device);
    st_pool_close(workers);
    ts_case_drop(&c);
}

static void jobs_allocate_nothing(void **state) {
    (void)state;
    for (size_t i = 0; st_devices[i]; i++)
        if (st_devices[i]->present()) allocates_nothing(st_devices[i]);
}

static void runs_out_of_jobs(const struct st_device_ops *ops) {
    struct st_pool *workers;
    struct st_device *device;
    struct ts_case c = ts_case_small();
    struct ts_bench b;
    struct st_job *jobs[ST_DEVICE_JOBS + 1] = {0};
    assert_int_equal(st_pool_open(1, &workers), STINT_OK);
    const struct st_device_options options = {.name = ops->name, .workers = workers};
    assert_int_equal(st_device_open(&options, &device), STINT_OK);
    assert_int_equal(ts_bench_open(device, &c, &b), STINT_OK);
    for (int i = 0; i < ST_DEVICE_JOBS; i++) // each after the one before it
        assert_int_equal(submit_quantize(&b, &jobs[i ? i - 1 : 0], i > 0, &jobs[i]), STINT_OK);
    assert_int_equal(submit_quantize(&b, NULL, 0, &jobs[ST_DEVICE_JOBS]), STINT_E_LIMIT);
    assert_int_equal(st_job_wait(jobs[ST_DEVICE_JOBS - 1], NULL), STINT_OK);
    assert_int_equal(st_job_poll(jobs[0]), ST_JOB_DONE);
    st_job_release(jobs[3]);
    jobs[3] = NULL;
    assert_int_equal(submit_quantize(&b, jobs + 4, ST_JOB_AFTER + 1, &jobs[3]), STINT_E_INTERNAL);
    assert_int_equal(submit_quantize(&b, jobs + 4, ST_JOB_AFTER, &jobs[3]), STINT_OK);
    for (int i = 0; i < ST_DEVICE_JOBS; i++) assert_int_equal(st_job_join(jobs[i], NULL), STINT_OK);
    ts_bench_close(&b);
    st_device_close(device);
    st_pool_close(workers);
    ts_case_drop(&c);
}

static void jobs_are_limited(void **state) {
    (void)state;
    for (size_t i = 0; st_devices[i]; i++)
        if (st_devices[i]->present()) runs_out_of_jobs(st_devices[i]);
}

static stint_status open_and_run(const char *name, struct st_pool *workers, const struct ts_case *c,
                                 struct ts_result *result) {
    struct st_device *device;
    const struct st_device_options options = {.name = name, .workers = workers};
    ST_TRY(st_device_open(&options, &device));
    stint_status status = ts_case_run(device, c, result);
    st_device_close(device);
    return status;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    struct ts_case c = ts_case_small();
    struct st_pool *workers;
    assert_int_equal(st_pool_open(1, &workers), STINT_OK);
    for (size_t i = 0; st_devices[i]; i++) {
        if (!st_devices[i]->present()) continue;
        for (size_t n = 1;; n++) {
            struct ts_result result;
            ts_fail_allocation(n);
            stint_status status = open_and_run(st_devices[i]->name, workers, &c, &result);
            bool failed = ts_allocation_failed();
            ts_fail_allocation(0);
            assert_int_equal(status, failed ? STINT_E_NOMEM : STINT_OK);
            if (failed) continue;
            ts_result_drop(&c, &result);
            assert_true(n > 8);
            break;
        }
    }
    st_pool_close(workers);
    ts_case_drop(&c);
}

// ---- sim: a processor of its own

static void what_comes_after_a_failure_is_canceled(void **state) {
    (void)state;
    struct ts_case c = ts_case_small();
    struct ts_bench b;
    struct st_job *jobs[3];
    struct st_job_result result;
    struct st_device *device = open_sim("fail=1,delay=2000", 0);
    assert_int_equal(ts_bench_open(device, &c, &b), STINT_OK);
    const struct st_graph_args args = ts_bench_graph_args(&b);
    assert_int_equal(submit_quantize(&b, NULL, 0, &jobs[0]), STINT_OK);
    assert_int_equal(st_device_submit(b.graph, &args, &jobs[0], 1, &jobs[1]), STINT_OK);
    assert_int_equal(st_device_submit(b.graph, &args, &jobs[1], 1, &jobs[2]), STINT_OK);
    assert_int_equal(st_job_wait(jobs[2], &result), STINT_E_CANCELED);
    assert_int_equal(result.failure, ST_FAILURE_CANCELED);
    assert_int_equal(st_job_join(jobs[0], &result), STINT_E_DEVICE);
    assert_int_equal(result.failure, ST_FAILURE_FAULT);
    assert_int_equal(st_job_join(jobs[1], &result), STINT_E_CANCELED);
    assert_int_equal(st_job_poll(jobs[2]), ST_JOB_FAILED);
    struct st_job *late; // after one that has failed already
    assert_int_equal(submit_quantize(&b, &jobs[2], 1, &late), STINT_OK);
    assert_int_equal(st_job_join(late, NULL), STINT_E_CANCELED);
    st_job_release(jobs[2]);
    assert_false(st_device_is_lost(device));
    ts_bench_close(&b);
    st_device_close(device);
    ts_case_drop(&c);
}

static void a_job_that_hangs_can_be_canceled(void **state) {
    (void)state;
    struct ts_case c = ts_case_small();
    struct ts_bench b;
    struct st_job *hung, *queued;
    struct ts_result got, expected = ts_case_expect(&c);
    struct st_device *device = open_sim("hang=1", 0);
    assert_int_equal(ts_bench_open(device, &c, &b), STINT_OK);
    assert_int_equal(submit_quantize(&b, NULL, 0, &hung), STINT_OK);
    assert_int_equal(submit_quantize(&b, &hung, 1, &queued), STINT_OK);
    assert_int_equal(st_job_poll(hung), ST_JOB_PENDING);
    st_job_cancel(queued); // ends although the thread is kept
    assert_int_equal(st_job_join(queued, NULL), STINT_E_CANCELED);
    st_job_cancel(hung);
    assert_int_equal(st_job_join(hung, NULL), STINT_E_CANCELED);
    assert_int_equal(ts_bench_run(&b, &got), STINT_OK); // the device goes on
    ts_result_compare(&c, &expected, &got, "after a hang");
    ts_result_drop(&c, &got);
    ts_result_drop(&c, &expected);
    ts_bench_close(&b);
    st_device_close(device);
    ts_case_drop(&c);
}

static void a_wait_ends_in_one_clear_error(void **state) {
    (void)state;
    struct ts_case c = ts_case_small();
    struct ts_bench b;
    struct st_job *job;
    struct st_job_result result;
    struct st_device *device = open_sim("hang=1", 5);
    assert_int_equal(ts_bench_open(device, &c, &b), STINT_OK);
    assert_int_equal(submit_quantize(&b, NULL, 0, &job), STINT_OK);
    assert_int_equal(st_job_join(job, &result), STINT_E_DEVICE);
    assert_int_equal(result.failure, ST_FAILURE_TIMEOUT);
    assert_string_equal(st_error_text(), "device 'sim': job 1 took longer than 5 ms");
    ts_bench_close(&b);
    st_device_close(device);
    ts_case_drop(&c);
}

static void a_device_closes_over_pending_jobs(void **state) {
    (void)state;
    struct ts_case c = ts_case_small();
    struct ts_bench b;
    struct st_job *jobs[4];
    struct st_device *device = open_sim("hang=1", 0);
    assert_int_equal(ts_bench_open(device, &c, &b), STINT_OK);
    for (int i = 0; i < 4; i++) assert_int_equal(submit_quantize(&b, NULL, 0, &jobs[i]), STINT_OK);
    ts_bench_close(&b);
    st_device_close(device);
    ts_case_drop(&c);
}

static void all_fails_once_the_device_is_lost(void **state) {
    (void)state;
    struct ts_case c = ts_case_small();
    struct ts_bench b;
    struct st_job *first, *second, *third = NULL;
    struct st_job_result result;
    struct st_buffer *buffer;
    struct st_mapping map;
    struct st_device *device = open_sim("hang=1", 0);
    assert_int_equal(ts_bench_open(device, &c, &b), STINT_OK);
    assert_int_equal(submit_quantize(&b, NULL, 0, &first), STINT_OK);
    assert_int_equal(submit_quantize(&b, &first, 1, &second), STINT_OK);
    st_device_lose(device, NULL); // as a driver does
    assert_int_equal(st_job_join(second, &result), STINT_E_DEVICE);
    assert_int_equal(result.failure, ST_FAILURE_LOST);
    assert_int_equal(st_job_join(first, &result), STINT_E_DEVICE);
    assert_int_equal(result.failure, ST_FAILURE_LOST);
    assert_non_null(strstr(st_error_text(), "device was lost"));
    assert_true(st_device_is_lost(device));
    assert_int_equal(submit_quantize(&b, NULL, 0, &third), STINT_E_DEVICE);
    assert_null(third);
    assert_int_equal(st_buffer_allocate(device, 10, &buffer), STINT_E_DEVICE);
    assert_int_equal(st_buffer_map(b.mirror.buffer, 0, 10, ST_MAP_READ, &map), STINT_E_DEVICE);
    assert_int_equal(st_mirror_push(&b.mirror, b.x, 4), STINT_E_DEVICE);
    ts_bench_close(&b);
    st_device_close(device);
    ts_case_drop(&c);
}

// ---- Every fault, everywhere

// Some runs on a device with a fault: where one fails, the CPU takes over. True if none did.
static bool run_all(struct st_device *device, struct st_device *cpu, const struct ts_case *c,
                    const struct ts_result *expected, stint_status failure) {
    struct ts_bench b = {0}, other;
    bool none = true;
    stint_status status = ts_bench_open(device, c, &b);
    bool opened = status == STINT_OK;
    assert_int_equal(ts_bench_open(cpu, c, &other), STINT_OK);
    for (int i = 0; i < 3; i++) {
        struct ts_result got;
        if (opened) status = ts_bench_run(&b, &got);
        if (status != STINT_OK) {
            assert_int_equal(status, failure);
            assert_non_null(strstr(st_error_text(), "device 'sim'"));
            assert_int_equal(ts_bench_run(&other, &got), STINT_OK);
            none = false;
        }
        ts_result_compare(c, expected, &got, "with a fault");
        ts_result_drop(c, &got);
    }
    ts_bench_close(&other);
    ts_bench_close(&b);
    return none;
}

static void every_fault_everywhere(void **state) {
    (void)state;
    const struct {
        const char *name;
        stint_status failure;
        unsigned fewest; // places where it strikes
    } faults[] = {{"fail", STINT_E_DEVICE, 6},
                  {"oom", STINT_E_NOMEM, 6},
                  {"hang", STINT_E_DEVICE, 6},
                  {"lose", STINT_E_DEVICE, 6},
                  {"nomem", STINT_E_NOMEM, 4}};
    struct st_pool *workers;
    struct st_device *cpu;
    struct ts_case c = ts_case_small();
    struct ts_result expected = ts_case_expect(&c);
    assert_int_equal(st_pool_open(2, &workers), STINT_OK);
    const struct st_device_options options = {.name = "cpu", .workers = workers};
    assert_int_equal(st_device_open(&options, &cpu), STINT_OK);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        for (unsigned n = 1;; n++) {
            char settings[32];
            snprintf(settings, sizeof settings, "%s=%u", faults[i].name, n);
            // Only a hang is to meet the time-out.
            bool hangs = strcmp(faults[i].name, "hang") == 0;
            struct st_device *device = open_sim(settings, hangs && n <= faults[i].fewest ? 200 : 0);
            bool none = run_all(device, cpu, &c, &expected, faults[i].failure);
            st_device_close(device);
            assert_int_equal(none, n > faults[i].fewest);
            if (none) break;
        }
    st_device_close(cpu);
    st_pool_close(workers);
    ts_result_drop(&c, &expected);
    ts_case_drop(&c);
}

// ---- Threads

struct user {
    struct st_device *device;
    struct ts_bench bench;
    struct ts_result got[4];
    stint_status status;
    pthread_t thread;
};

static void *use(void *context) {
    struct user *u = context;
    for (int i = 0; i < 4 && u->status == STINT_OK; i++)
        u->status = ts_bench_run(&u->bench, &u->got[i]);
    return NULL;
}

static void threads_share_a_device(void **state) {
    (void)state;
    enum { USERS = 3 };
    struct st_device *device = open_sim("", 0);
    struct user users[USERS];
    struct ts_case cases[USERS];
    for (int i = 0; i < USERS; i++) {
        users[i] = (struct user){.device = device};
        cases[i] = ts_case_random(false);
        assert_int_equal(ts_bench_open(device, &cases[i], &users[i].bench), STINT_OK);
    }
    for (int i = 0; i < USERS; i++)
        assert_int_equal(pthread_create(&users[i].thread, NULL, use, &users[i]), 0);
    for (int i = 0; i < USERS; i++) {
        pthread_join(users[i].thread, NULL);
        assert_int_equal(users[i].status, STINT_OK);
        struct ts_result expected = ts_case_expect(&cases[i]);
        for (int j = 0; j < 4; j++) {
            ts_result_compare(&cases[i], &expected, &users[i].got[j], "on a thread");
            ts_result_drop(&cases[i], &users[i].got[j]);
        }
        ts_result_drop(&cases[i], &expected);
        ts_bench_close(&users[i].bench);
    }
    for (int i = 0; i < USERS; i++) ts_case_drop(&cases[i]);
    st_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_allocate_nothing),
        cmocka_unit_test(jobs_are_limited),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(what_comes_after_a_failure_is_canceled),
        cmocka_unit_test(a_job_that_hangs_can_be_canceled),
        cmocka_unit_test(a_wait_ends_in_one_clear_error),
        cmocka_unit_test(a_device_closes_over_pending_jobs),
        cmocka_unit_test(all_fails_once_the_device_is_lost),
        cmocka_unit_test(every_fault_everywhere),
        cmocka_unit_test(threads_share_a_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
