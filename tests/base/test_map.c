// SPDX-License-Identifier: Apache-2.0
#include "base/map.h"
#include "support/support.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static void map_shows_the_files_bytes(void **state) {
    (void)state;
    struct st_map map;
    assert_int_equal(st_map_open(ts_write_text("text", "hello"), &map), STINT_OK);
    assert_int_equal(map.bytes, 5);
    assert_memory_equal(map.data, "hello", 5);
    st_map_close(&map);
    assert_null(map.data);
    st_map_close(&map);
}

static void map_of_an_empty_file_has_no_bytes(void **state) {
    (void)state;
    struct st_map map = {.bytes = 9};
    assert_int_equal(st_map_open(ts_write_text("empty", ""), &map), STINT_OK);
    assert_int_equal(map.bytes, 0);
    assert_null(map.data);
    st_map_close(&map);
}

static void expect_refusal(const char *path) {
    struct st_map map = {.bytes = 9};
    assert_int_equal(st_map_open(path, &map), STINT_E_IO);
    assert_non_null(strstr(stint_error_text(), path));
    assert_int_equal(map.bytes, 9);
}

static void map_refuses_what_is_no_readable_file(void **state) {
    (void)state;
    char path[512];
    expect_refusal(ts_temp_folder());
    snprintf(path, sizeof path, "%s/absent", ts_temp_folder());
    expect_refusal(path);
    snprintf(path, sizeof path, "%s/fifo", ts_temp_folder());
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refusal(path);
    if (geteuid() == 0) return; // root reads everything
    const char *secret = ts_write_text("secret", "x");
    assert_int_equal(chmod(secret, 0), 0);
    expect_refusal(secret);
}

static void map_reports_that_mapping_failed(void **state) {
    (void)state;
    const char *path = ts_write_text("mapped", "x");
    ts_fail_allocation(1);
    expect_refusal(path);
    ts_fail_allocation(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(map_shows_the_files_bytes),
        cmocka_unit_test(map_of_an_empty_file_has_no_bytes),
        cmocka_unit_test(map_refuses_what_is_no_readable_file),
        cmocka_unit_test(map_reports_that_mapping_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
