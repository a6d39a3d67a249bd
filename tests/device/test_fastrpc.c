// SPDX-License-Identifier: Apache-2.0
// The DSP through FastRPC, with a library of ours in its place (mock_cdsprpc.c): the calls, and
// what follows where one of them fails or the session is lost.
#include "device/hexagon/hexagon.h"
#include "support/device_cases.h"
#include "support/support.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define MOCK STINT_TESTS_DIR "/libmock_cdsprpc.so"

// The mock's own; it stays loaded once a device has used it.
static struct {
    int (*open)(void);
    atomic_int *calls, *kills;
} mock;

static void find(void *library, const char *name, void *to) {
    void *found = dlsym(library, name);
    assert_non_null(found);
    memcpy(to, &found, sizeof found);
}

static int load(void **state) {
    (void)state;
    if (access(MOCK, R_OK) != 0) return 0;
    void *library = dlopen(MOCK, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    find(library, "st_mock_open", &mock.open);
    find(library, "st_mock_calls", &mock.calls);
    find(library, "st_mock_kills", &mock.kills);
    return setenv("STINT_CDSPRPC", MOCK, 1);
}

static void begin(const char *fault) {
    if (!mock.open || !st_hexagon_process.present()) {
        print_message("no clang with lld when this was built, or no qemu-hexagon: "
                      "scripts/bootstrap hexagon\n");
        skip();
    }
    setenv("STINT_MOCK_FAULT", fault, 1);
    atomic_store(mock.calls, 0);
    atomic_store(mock.kills, 0);
}

// Nothing is left: no handle, map, queue, memory or process.
static void end(void) {
    assert_int_equal(mock.open(), 0);
    assert_true(waitpid(-1, NULL, WNOHANG) < 0);
    setenv("STINT_MOCK_FAULT", "", 1);
}

// A machine that others keep busy takes long to emulate a program; one that is to get nowhere has
// the time that `settings` give it.
static stint_status open_with(const char *settings, struct st_device **device) {
    char name[80];
    bool given = strstr(settings, "patience") != NULL;
    snprintf(name, sizeof name, "hexagon:%s%s%s", given ? "" : "patience=600000",
             given || !*settings ? "" : ",", settings);
    const struct st_device_options options = {.name = name, .memory_limit = 64 << 20};
    return st_device_open(&options, device);
}

static void jobs_run_with_the_bits_of_the_formulas(void **state) {
    (void)state;
    struct st_device *device;
    begin("");
    assert_string_equal(st_hexagon_transport_find()->name, "fastrpc");
    if (open_with("", &device) != STINT_OK) fail_msg("%s", st_error_text());
    for (int i = 0; i < 12; i++) {
        struct ts_case c = i ? ts_case_random(true) : ts_case_small();
        struct ts_result wanted = ts_case_expect(&c), got;
        if (ts_case_run(device, &c, &got) != STINT_OK) fail_msg("%s", st_error_text());
        ts_result_compare(&c, &wanted, &got, "fastrpc");
        ts_result_drop(&c, &wanted);
        ts_result_drop(&c, &got);
        ts_case_drop(&c);
    }
    assert_true(mock.open() == 4 && atomic_load(mock.calls) > 10);
    st_device_close(device);
    assert_int_equal(atomic_load(mock.kills), 0); // an end in peace: the session may have others
    end();
}

// A call that fails while the device opens.
static void fails_to_open(const char *function, stint_status wanted, const char *text) {
    struct st_device *device = NULL;
    begin(function);
    assert_int_equal(open_with("", &device), wanted);
    assert_null(device);
    if (!strstr(st_error_text(), text)) fail_msg("%s: %s", function, st_error_text());
    end();
}

static void a_call_that_fails_is_one_clear_error(void **state) {
    (void)state;
    fails_to_open("rpcmem_alloc", STINT_E_NOMEM, "ask for less with --npu-memory");
    fails_to_open("rpcmem_to_fd", STINT_E_NOMEM, "ask for less with --npu-memory");
    fails_to_open("remote_handle64_open", STINT_E_DEVICE, "libstint_skel.so does not load");
    fails_to_open("fastrpc_mmap", STINT_E_DEVICE, "cannot map the memory (error 0x1)");
    fails_to_open("dspqueue_create", STINT_E_DEVICE, "no queue to the DSP");
    fails_to_open("dspqueue_export", STINT_E_DEVICE, "no queue to the DSP");
    fails_to_open("remote_handle64_invoke", STINT_E_DEVICE, "the program does not start");
    fails_to_open("dspqueue_read", STINT_E_DEVICE, "its program ended at its start");
}

static void signed_programs_alone_may_be_allowed(void **state) {
    (void)state;
    struct st_device *device;
    begin("remote_session_control");
    assert_int_equal(open_with("", &device), STINT_OK);
    st_device_close(device);
    end();
}

// The program takes jobs without a bell until it sleeps; one that has ended never will.
static void wait_until_it_sleeps(struct st_device *device) {
    const struct wire_dsp *dsp = &((struct hexagon_device *)device)->queue->dsp;
    for (int i = 0; i < 2000 && !__atomic_load_n(&dsp->sleeps, __ATOMIC_SEQ_CST); i++) usleep(1000);
}

// A device that is lost during its first or second run, or a later one: a program that says that it
// sleeps looks for jobs once more.
static void is_lost(const char *settings, const char *fault, const char *text) {
    struct ts_case c = ts_case_small();
    struct st_device *device;
    struct ts_bench b;
    stint_status status = STINT_OK;
    begin("");
    assert_int_equal(open_with(settings, &device), STINT_OK);
    assert_int_equal(ts_bench_open(device, &c, &b), STINT_OK);
    setenv("STINT_MOCK_FAULT", fault, 1);
    for (int i = 0; i < 20 && status == STINT_OK; i++) {
        struct ts_result got;
        wait_until_it_sleeps(device);
        status = ts_bench_run(&b, &got);
        if (status == STINT_OK) ts_result_drop(&c, &got);
    }
    if (status != STINT_E_DEVICE) fail_msg("%s%s goes unnoticed", settings, fault);
    if (!strstr(st_error_text(), text)) fail_msg("%s%s: %s", settings, fault, st_error_text());
    assert_true(st_device_is_lost(device));
    assert_int_equal(atomic_load(mock.kills), 1);
    ts_bench_close(&b);
    st_device_close(device);
    ts_case_drop(&c);
    end();
}

static void a_lost_session_is_noticed(void **state) {
    (void)state;
    is_lost("die=1", "", "its program has ended");
    is_lost("die=3", "", "its program has ended");
    is_lost("garbage=2", "", "its program wrote what cannot be");
    is_lost("list=2", "", "its program wrote what cannot be");
    is_lost("patience=3000,spin=2", "", "its program does not get on");
    is_lost("patience=3000,sleep=1", "", "its program does not get on");
    is_lost("", "dspqueue_read", "its program has ended");
    is_lost("patience=3000", "dspqueue_write", "its program does not get on"); // bells are lost
}

static void a_device_closes_over_jobs(void **state) {
    (void)state;
    struct ts_case c = ts_case_small();
    struct st_device *device;
    struct ts_bench b;
    struct st_job *job;
    begin("");
    assert_int_equal(open_with("spin=1", &device), STINT_OK);
    assert_int_equal(ts_bench_open(device, &c, &b), STINT_OK);
    const struct st_quantize_args args = ts_bench_quantize_args(&b);
    assert_int_equal(st_device_quantize(device, &args, NULL, 0, &job), STINT_OK);
    st_job_release(job);
    ts_bench_close(&b);
    st_device_close(device);
    assert_int_equal(atomic_load(mock.kills), 1);
    ts_case_drop(&c);
    end();
}

static void without_the_library_there_is_another_way_or_none(void **state) {
    (void)state;
    begin("");
    setenv("STINT_CDSPRPC", "/nowhere/libcdsprpc.so", 1);
    assert_false(st_hexagon_fastrpc.present());
    assert_string_equal(st_hexagon_transport_find()->name, "process");
    setenv("STINT_CDSPRPC", "libm.so.6", 1); // a library without these functions
    assert_false(st_hexagon_fastrpc.present());
    char *path = strdup(getenv("PATH"));
    struct st_device *device = NULL;
    setenv("PATH", "/nowhere", 1);
    assert_int_equal(open_with("", &device), STINT_E_DEVICE);
    assert_non_null(strstr(st_error_text(), "this machine has none"));
    setenv("PATH", path, 1);
    free(path);
    setenv("STINT_CDSPRPC", MOCK, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_run_with_the_bits_of_the_formulas),
        cmocka_unit_test(a_call_that_fails_is_one_clear_error),
        cmocka_unit_test(signed_programs_alone_may_be_allowed),
        cmocka_unit_test(a_lost_session_is_noticed),
        cmocka_unit_test(a_device_closes_over_jobs),
        cmocka_unit_test(without_the_library_there_is_another_way_or_none),
    };
    return cmocka_run_group_tests(tests, load, NULL);
}
