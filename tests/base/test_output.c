// SPDX-License-Identifier: Apache-2.0
// Streams into files that appear whole: kept, dropped, failed, and what is no regular file.
#include "base/output.h"
#include "support/support.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

static void assert_content(const char *path, const char *wanted) {
    unsigned char *text = ts_read(path, NULL);
    assert_string_equal(text, wanted);
    free(text);
}

static void a_file_is_replaced_when_it_is_complete(void **state) {
    (void)state;
    const char *path = ts_write_text("file", "old");
    struct st_output o;
    assert_int_equal(st_output_open(path, 0600, &o), STINT_OK);
    assert_true(fputs("new", o.file) >= 0);
    fflush(o.file);
    assert_content(path, "old");
    assert_int_equal(st_output_close(&o, true), STINT_OK);
    assert_content(path, "new");
    assert_int_equal(st_output_close(&o, true), STINT_OK); // closed already
}

static void what_is_dropped_or_failed_leaves_the_old_file(void **state) {
    (void)state;
    const char *path = ts_write_text("file", "old");
    struct st_output o;
    assert_int_equal(st_output_open(path, 0600, &o), STINT_OK);
    fputs("new", o.file);
    assert_int_equal(st_output_close(&o, false), STINT_OK);
    assert_content(path, "old");
    struct rlimit before, small = {2, 2};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(st_output_open(path, 0600, &o), STINT_OK);
    fputs("new", o.file);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    stint_status full = st_output_close(&o, true);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(full, STINT_E_IO);
    assert_non_null(strstr(stint_error_text(), path));
    assert_content(path, "old");
}

// A failure that later writes outlive: the stream is whole again, the file is not.
static void a_failure_in_the_middle_is_not_forgotten(void **state) {
    (void)state;
    const char *path = ts_write_text("file", "old");
    struct rlimit before, small = {0, 0};
    struct st_output o;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(st_output_open(path, 0600, &o), STINT_OK);
    fputs("lost", o.file);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    fflush(o.file);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    fputs("written", o.file);
    assert_int_equal(st_output_close(&o, true), STINT_E_IO);
    assert_content(path, "old");
}

static void a_pipe_or_a_device_is_written_as_it_is(void **state) {
    (void)state;
    struct st_output o;
    assert_int_equal(st_output_open("/dev/null", 0600, &o), STINT_OK);
    fputs("text", o.file);
    assert_int_equal(st_output_close(&o, true), STINT_OK);
    assert_int_equal(st_output_open("/dev/full", 0600, &o), STINT_OK);
    fputs("text", o.file);
    assert_int_equal(st_output_close(&o, true), STINT_E_IO);
    assert_int_equal(st_output_open("/no/such/folder/file", 0600, &o), STINT_E_IO);
    assert_int_equal(st_output_open(ts_temp_folder(), 0600, &o), STINT_E_IO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_replaced_when_it_is_complete),
        cmocka_unit_test(what_is_dropped_or_failed_leaves_the_old_file),
        cmocka_unit_test(a_failure_in_the_middle_is_not_forgotten),
        cmocka_unit_test(a_pipe_or_a_device_is_written_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
