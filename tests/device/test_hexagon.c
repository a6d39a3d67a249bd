// SPDX-License-Identifier: Apache-2.0
// The Hexagon device beyond what holds for all (test_conformance.c, test_jobs.c): how linears are
// cut for VTCM, all activations, and a program that fails in every way.
#include "base/cpu.h"
#include "device/hexagon/hexagon.h"
#include "device/hexagon/tiles.h"
#include "support/device_cases.h"
#include "support/support.h"

#include "base/thread.h"

#include <dirent.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static const struct st_device_ops *hexagon(void) {
    for (size_t i = 0; st_devices[i]; i++)
        if (strcmp(st_devices[i]->name, "hexagon") == 0) return st_devices[i];
    return NULL;
}

static void skip_without(void) {
    if (hexagon()->present()) return;
    print_message("no clang with lld when this was built, or no qemu-hexagon: "
                  "scripts/bootstrap hexagon\n");
    skip();
}

static struct st_device *open_with(const char *settings, uint64_t memory_limit) {
    char name[64];
    struct st_device *device;
    snprintf(name, sizeof name, "hexagon%s%s", *settings ? ":" : "", settings);
    const struct st_device_options options = {.name = name, .memory_limit = memory_limit};
    if (st_device_open(&options, &device) != STINT_OK) fail_msg("%s", st_error_text());
    return device;
}

static void check_case(struct st_device *device, const struct ts_case_options *o) {
    struct ts_case c = ts_case_make(o);
    struct ts_result expected = ts_case_expect(&c), got;
    if (ts_case_run(device, &c, &got) != STINT_OK) fail_msg("%s", st_error_text());
    ts_result_compare(&c, &expected, &got, "hexagon");
    ts_result_drop(&c, &expected);
    ts_result_drop(&c, &got);
    ts_case_drop(&c);
}

// ---- Tiles

static void tiles_fit_vtcm(void **state) {
    (void)state;
    const uint32_t sums = TILE_STEP * TILE_GROUP * sizeof(int32_t);
    for (int i = 0; i < 5000; i++) {
        uint32_t k = 1 + (uint32_t)ts_random_below(ST_INT8_MAX_K);
        uint32_t padded = (uint32_t)st_round_up(k, TILE_K), vtcm = 1u << (16 + ts_random_below(8));
        struct tile_plan p;
        if (!tile_plan_make(k, vtcm, &p)) {
            assert_true(padded * TILE_GROUP + sums > vtcm);
            continue;
        }
        assert_int_equal(p.k, padded);
        assert_int_equal(p.group_bytes, padded * TILE_GROUP);
        assert_true(p.group_bytes + sums == p.vtcm_bytes && p.vtcm_bytes <= vtcm);
        assert_true(p.rows > 0 && p.rows <= TILE_ROWS && p.rows % TILE_STEP == 0);
        assert_true(p.rows * p.k <= TILE_INPUT_BYTES);
    }
}

static void linears_take_several_tiles(void **state) {
    (void)state;
    skip_without();
    struct st_device *device = open_with("", 0);
    struct ts_case_options o = {.n_rows = 150,
                                .n_in = 4000 + (uint32_t)ts_random_below(100), // 128 rows a tile
                                .n_parts = 1,
                                .rows = {70},
                                .two_term = true};
    check_case(device, &o);
    o.n_rows = TILE_ROWS + 1 + ts_random_below(20);
    o.n_in = 60;
    o.two_term = false;
    check_case(device, &o);
    st_device_close(device);
}

static void what_vtcm_cannot_hold_stays_on_the_host(void **state) {
    (void)state;
    skip_without();
    struct st_device *device = open_with("", 0);
    struct ts_case c =
        ts_case_make(&(struct ts_case_options){.n_rows = 1, .n_in = 8, .n_parts = 1, .rows = {16}});
    struct st_int8_weight *w = &c.subgraph.linear_ops[0].weight;
    w->n_in = (TILE_VTCM_BYTES - TILE_STEP * TILE_GROUP * 4) / TILE_GROUP;
    assert_true(st_device_supports(device, &c.subgraph));
    w->n_in += TILE_K;
    assert_false(st_device_supports(device, &c.subgraph));
    st_device_close(device);
    ts_case_drop(&c);
}

// ---- Activations

static struct ts_result run_on(struct st_device *device, const struct ts_case *c) {
    struct ts_result got;
    if (ts_case_run(device, c, &got) != STINT_OK) fail_msg("%s", st_error_text());
    return got;
}

static void activations_have_the_bits_of_the_host(void **state) {
    (void)state;
    skip_without();
    if (st_elementwise_select(st_cpu_flags())->isa == 0) skip(); // plain C takes them from libm
    struct st_pool *workers;
    struct st_device *cpu, *device = open_with("", 0);
    assert_int_equal(st_pool_open(1, &workers), STINT_OK);
    const struct st_device_options options = {.name = "cpu", .workers = workers};
    assert_int_equal(st_device_open(&options, &cpu), STINT_OK);
    for (int i = 0; i < 2 * ST_N_ACTS; i++) {
        struct ts_case c = ts_case_make(&(struct ts_case_options){
            .n_rows = 1 + ts_random_below(9),
            .n_in = 1 + (uint32_t)ts_random_below(100),
            .n_middle = 1 + (uint32_t)ts_random_below(200),
            .n_parts = 1,
            .rows = {1 + (uint32_t)ts_random_below(90)},
            .epilogue = i < ST_N_ACTS ? ST_EPILOGUE_GATED : ST_EPILOGUE_ACT,
            .act = (enum st_act)(i % ST_N_ACTS),
            .row_scales = {true, true}}); // the whole range of an activation
        for (size_t r = 0; r < st_linear_op_rows(&c.linears[0].linear_op); r++)
            c.linears[0].factor[r] *= r % 3 == 0 ? 30.0f : 1.0f;
        struct ts_result wanted = run_on(cpu, &c), got = run_on(device, &c);
        ts_result_compare(&c, &wanted, &got, "hexagon");
        ts_result_drop(&c, &wanted);
        ts_result_drop(&c, &got);
        ts_case_drop(&c);
    }
    st_device_close(cpu);
    st_device_close(device);
    st_pool_close(workers);
}

// ---- Memory

static void parts_of_the_memory_do_not_overlap(void **state) {
    (void)state;
    skip_without();
    enum { N = 24, MOST = 5000 };
    struct st_buffer *buffers[N] = {0};
    struct st_device *device = open_with("", 0);
    assert_true(st_device_caps(device)->memory_limit == UINT64_C(1) << 31);
    for (int i = 0; i < 400; i++) {
        size_t at = ts_random_below(N);
        struct st_mapping map;
        if (!buffers[at]) {
            size_t bytes = 1 + ts_random_below(MOST);
            assert_int_equal(st_buffer_allocate(device, bytes, &buffers[at]), STINT_OK);
            assert_int_equal(st_buffer_map(buffers[at], 0, bytes, ST_MAP_WRITE, &map), STINT_OK);
            for (size_t j = 0; j < bytes; j++) assert_int_equal(((unsigned char *)map.data)[j], 0);
            memset(map.data, (int)at + 1, bytes);
        } else {
            size_t bytes = st_buffer_bytes(buffers[at]);
            assert_int_equal(st_buffer_map(buffers[at], 0, bytes, ST_MAP_READ, &map), STINT_OK);
            for (size_t j = 0; j < bytes; j++)
                assert_int_equal(((unsigned char *)map.data)[j], at + 1);
            st_buffer_free(buffers[at]);
            buffers[at] = NULL;
            continue;
        }
        assert_int_equal(st_buffer_unmap(&map), STINT_OK);
    }
    for (int i = 0; i < N; i++) st_buffer_free(buffers[i]);
    assert_int_equal(st_device_used_bytes(device), 0);
    st_device_close(device);
}

// ---- The queue

static pid_t find_child(void);

static void one_bell_serves_many_jobs(void **state) {
    (void)state;
    skip_without();
    enum { N = ST_DEVICE_JOBS };
    struct ts_case c = ts_case_small();
    struct ts_bench b;
    struct ts_result expected = ts_case_expect(&c), got;
    struct st_job *jobs[N];
    struct st_device *device = open_with("patience=600000", 0);
    atomic_uint *n_bells = &((struct hexagon_device *)device)->n_bells;
    assert_int_equal(ts_bench_open(device, &c, &b), STINT_OK);
    assert_int_equal(ts_bench_run(&b, &got), STINT_OK);
    ts_result_drop(&c, &got);
    const struct st_quantize_args quantize = ts_bench_quantize_args(&b);
    const struct st_graph_args args = ts_bench_graph_args(&b);
    pid_t child = find_child();
    while (!((struct hexagon_device *)device)->queue->dsp.sleeps) sched_yield();
    unsigned before = atomic_load(n_bells);
    assert_int_equal(kill(child, SIGSTOP), 0);
    for (size_t i = 0; i < N; i++) { // each after the one before it
        struct st_job *const *after = i ? &jobs[i - 1] : NULL;
        assert_int_equal(i % 2 ? st_device_submit(b.graph, &args, after, 1, &jobs[i])
                               : st_device_quantize(device, &quantize, after, i > 0, &jobs[i]),
                         STINT_OK);
    }
    assert_int_equal(atomic_load(n_bells), before + 1);
    assert_int_equal(kill(child, SIGCONT), 0);
    for (size_t i = 0; i < N; i++) assert_int_equal(st_job_join(jobs[i], NULL), STINT_OK);
    assert_int_equal(ts_bench_run(&b, &got), STINT_OK);
    ts_result_compare(&c, &expected, &got, "after many jobs");
    ts_result_drop(&c, &got);
    ts_result_drop(&c, &expected);
    ts_bench_close(&b);
    st_device_close(device);
    ts_case_drop(&c);
}

// Of the emulator's counter: what a job takes depends on nothing else, and no program multiplies
// faster than two vrmpy a packet.
static void jobs_state_their_packets(void **state) {
    (void)state;
    skip_without();
    enum { ROWS = 40, IN = 200, OUT = 128 };
    struct ts_case c = ts_case_make(
        &(struct ts_case_options){.n_rows = ROWS, .n_in = IN, .n_parts = 1, .rows = {OUT}});
    struct st_device *device = open_with("", 0);
    struct ts_bench b;
    struct ts_result got;
    uint64_t first = 0;
    assert_true(st_device_caps(device)->virtual_clock);
    assert_int_equal(ts_bench_open(device, &c, &b), STINT_OK);
    assert_int_equal(ts_bench_run(&b, &got), STINT_OK);
    ts_result_drop(&c, &got);
    const struct st_graph_args args = ts_bench_graph_args(&b);
    for (int i = 0; i < 3; i++) {
        struct st_job *job;
        struct st_job_result result;
        assert_int_equal(st_device_submit(b.graph, &args, NULL, 0, &job), STINT_OK);
        assert_int_equal(st_job_join(job, &result), STINT_OK);
        assert_true(result.device_ns > ROWS * IN * OUT / 256);
        assert_true(result.device_ns < 100 * ROWS * IN * OUT / 256);
        if (i == 0) first = result.device_ns;
        assert_true(result.device_ns == first);
    }
    ts_bench_close(&b);
    st_device_close(device);
    ts_case_drop(&c);
}

// ---- Failures

static size_t open_files(void) {
    DIR *folder = opendir("/proc/self/fd");
    size_t n = 0;
    assert_non_null(folder);
    while (readdir(folder)) n++;
    closedir(folder);
    return n;
}

static void fails_with(const char *settings, const char *text, bool lost) {
    struct ts_case c = ts_case_small();
    struct ts_result expected = ts_case_expect(&c), got;
    struct ts_bench b;
    size_t files = open_files();
    struct st_device *device = open_with(settings, 0);
    assert_int_equal(ts_bench_open(device, &c, &b), STINT_OK);
    stint_status status = STINT_OK;
    for (int i = 0; i < 3 && status == STINT_OK; i++) {
        status = ts_bench_run(&b, &got);
        if (status != STINT_OK) break;
        ts_result_compare(&c, &expected, &got, settings);
        ts_result_drop(&c, &got);
    }
    assert_int_equal(status, STINT_E_DEVICE);
    if (!strstr(st_error_text(), text)) fail_msg("%s: %s", settings, st_error_text());
    assert_int_equal(st_device_is_lost(device), lost);
    status = ts_bench_run(&b, &got);
    assert_int_equal(status, lost ? STINT_E_DEVICE : STINT_OK);
    if (!lost) {
        ts_result_compare(&c, &expected, &got, "after a failure");
        ts_result_drop(&c, &got);
    }
    ts_bench_close(&b);
    st_device_close(device);
    ts_result_drop(&c, &expected);
    ts_case_drop(&c);
    assert_int_equal(open_files(), files);
    assert_true(waitpid(-1, NULL, WNOHANG) < 0); // no process is left
}

static void a_program_that_fails_is_one_clear_error(void **state) {
    (void)state;
    skip_without();
    fails_with("fail=1", "job 2 was canceled", false); // which came after it
    fails_with("fail=4", "job 4 failed", false);
    fails_with("die=1", "its program has ended", true);
    fails_with("die=2", "its program has ended", true);
    fails_with("garbage=1", "its program wrote what cannot be", true);
    fails_with("garbage=4", "its program wrote what cannot be", true);
    fails_with("list=3", "its program wrote what cannot be", true);
    fails_with("list=2", "its program wrote what cannot be", true);
    fails_with("spin=3", "its program does not get on", true);
    fails_with("sleep=2", "its program does not get on", true);
    fails_with("patience=600000,timeout=5,spin=2", "left a canceled job unfinished", true);
}

// Of this process, by the system's table.
static pid_t find_child(void) {
    DIR *folder = opendir("/proc");
    pid_t child = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[300];
        int pid = atoi(entry->d_name), parent = 0;
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        FILE *file = pid > 0 ? fopen(path, "r") : NULL;
        if (!file) continue;
        if (fscanf(file, "%*d (%*[^)]) %*c %d", &parent) == 1 && parent == getpid()) child = pid;
        fclose(file);
    }
    closedir(folder);
    assert_true(child > 0);
    return child;
}

static void dies_by(int signal, const char *text) {
    struct ts_case c = ts_case_small();
    struct ts_result got;
    struct ts_bench b;
    struct st_device *device = open_with("", 0);
    assert_int_equal(ts_bench_open(device, &c, &b), STINT_OK);
    assert_int_equal(ts_bench_run(&b, &got), STINT_OK);
    ts_result_drop(&c, &got);
    assert_int_equal(kill(find_child(), signal), 0);
    assert_int_equal(ts_bench_run(&b, &got), STINT_E_DEVICE);
    if (!strstr(st_error_text(), text)) fail_msg("%s", st_error_text());
    assert_true(st_device_is_lost(device));
    ts_bench_close(&b);
    st_device_close(device);
    assert_true(waitpid(-1, NULL, WNOHANG) < 0);
    ts_case_drop(&c);
}

static void a_killed_or_stopped_process_is_noticed(void **state) {
    (void)state;
    skip_without();
    dies_by(SIGKILL, "its program has ended");
    dies_by(SIGSTOP, "its program does not get on");
}

static void a_device_closes_over_jobs(void **state) {
    (void)state;
    skip_without();
    struct ts_case c = ts_case_small();
    struct ts_bench b;
    struct st_device *device = open_with("spin=1", 0);
    assert_int_equal(ts_bench_open(device, &c, &b), STINT_OK);
    for (int i = 0; i < 4; i++) {
        const struct st_quantize_args args = ts_bench_quantize_args(&b);
        struct st_job *job;
        assert_int_equal(st_device_quantize(device, &args, NULL, 0, &job), STINT_OK);
        st_job_release(job);
    }
    ts_bench_close(&b);
    st_device_close(device);
    assert_true(waitpid(-1, NULL, WNOHANG) < 0);
    ts_case_drop(&c);
}

static void without_an_emulator_there_is_none(void **state) {
    (void)state;
    skip_without();
    char *path = strdup(getenv("PATH"));
    struct st_device *device = NULL;
    setenv("PATH", "/nowhere:", 1);
    assert_false(hexagon()->present());
    assert_int_equal(st_device_open(&(struct st_device_options){.name = "hexagon"}, &device),
                     STINT_E_DEVICE);
    assert_non_null(strstr(st_error_text(), "this machine has none"));
    setenv("PATH", path, 1);
    free(path);
}

// In place of the emulator, a script.
static void begins_with(const char *script, const char *text) {
    char path[700];
    struct st_device *device = NULL;
    size_t files = open_files();
    char *before = strdup(getenv("PATH"));
    const char *emulator = ts_write_text("qemu-hexagon", script);
    assert_int_equal(chmod(emulator, 0755), 0);
    snprintf(path, sizeof path, "%s:%s", ts_temp_folder(), before);
    setenv("PATH", path, 1);
    assert_int_equal(st_device_open(&(struct st_device_options){.name = "hexagon"}, &device),
                     STINT_E_DEVICE);
    if (!strstr(st_error_text(), text)) fail_msg("%s: %s", script, st_error_text());
    setenv("PATH", before, 1);
    free(before);
    assert_int_equal(unlink(emulator), 0);
    assert_int_equal(open_files(), files);
    assert_true(waitpid(-1, NULL, WNOHANG) < 0);
}

// Not under qemu-user, where vfork is fork; what is left of the process there may take its time.
static bool spawn_tells_of_exec(void) {
    char *arguments[] = {(char[]){"none"}, NULL}, *environment[] = {NULL};
    pid_t pid;
    if (posix_spawn(&pid, "/nowhere/none", NULL, NULL, arguments, environment) != 0) return true;
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return false;
}

static void an_emulator_that_fails_is_one_clear_error(void **state) {
    (void)state;
    skip_without();
    begins_with("#!/bin/sh\nexit 0\n", "its program ended at its start");
    begins_with("#!/bin/sh\nexec sleep 600\n", "its program does not begin");
    begins_with("#!/nowhere/sh\n",
                spawn_tells_of_exec() ? "cannot be started" : "device 'hexagon': its program ");
}

static void wrong_settings_are_refused(void **state) {
    (void)state;
    skip_without();
    const char *bad[] = {"hexagon:", "hexagon:die", "hexagon:die=x", "hexagon:die=1,",
                         "hexagon:delay=1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct st_device *device = NULL;
        assert_int_equal(st_device_open(&(struct st_device_options){.name = bad[i]}, &device),
                         STINT_E_ARG);
        assert_non_null(strstr(st_error_text(), "is not NAME=NUMBER"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_fit_vtcm),
        cmocka_unit_test(linears_take_several_tiles),
        cmocka_unit_test(what_vtcm_cannot_hold_stays_on_the_host),
        cmocka_unit_test(activations_have_the_bits_of_the_host),
        cmocka_unit_test(parts_of_the_memory_do_not_overlap),
        cmocka_unit_test(one_bell_serves_many_jobs),
        cmocka_unit_test(jobs_state_their_packets),
        cmocka_unit_test(a_program_that_fails_is_one_clear_error),
        cmocka_unit_test(a_killed_or_stopped_process_is_noticed),
        cmocka_unit_test(a_device_closes_over_jobs),
        cmocka_unit_test(without_an_emulator_there_is_none),
        cmocka_unit_test(an_emulator_that_fails_is_one_clear_error),
        cmocka_unit_test(wrong_settings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
