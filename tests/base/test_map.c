// SPDX-License-Identifier: Apache-2.0
#include "base/map.h"
#include "base/size.h"
#include "support/support.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

static void copy_stays_when_the_file_changes(void **state) {
    (void)state;
    enum { N = 3 * 4096 + 5 };
    unsigned char bytes[N];
    struct st_map map;
    for (size_t i = 0; i < N; i++) bytes[i] = (unsigned char)ts_random_below(256);
    const char *path = ts_write("changing", bytes, N);
    assert_int_equal(st_map_copy(path, N, &map), STINT_OK);
    assert_int_equal(map.bytes, N);
    assert_int_equal(truncate(path, 0), 0);
    assert_memory_equal(map.data, bytes, N);
    st_map_forget(map.data, map.bytes);
    assert_memory_equal(map.data, bytes, N);
    st_map_close(&map);
}

static void copy_has_a_limit(void **state) {
    (void)state;
    struct st_map map = {.bytes = 9};
    const char *path = ts_write_text("long", "hello");
    assert_int_equal(st_map_copy(path, 4, &map), STINT_E_LIMIT);
    assert_non_null(strstr(stint_error_text(), path));
    assert_int_equal(map.bytes, 9);
    assert_int_equal(st_map_copy(ts_write_text("empty", ""), 0, &map), STINT_OK);
    assert_int_equal(map.bytes, 0);
    st_map_close(&map);
}

static void hear_bytes(void *context, const char *what, uint64_t done, uint64_t total) {
    uint64_t *last = context;
    assert_string_equal(what, "reading");
    assert_true(done >= *last && done <= total);
    *last = done;
}

static void renewed_file_is_as_it_was_and_in_memory(void **state) {
    (void)state;
    enum { N = (40 << 20) + 5 };
    unsigned char *bytes = malloc(N), resident[N / 4096 + 1];
    assert_non_null(bytes);
    for (size_t i = 0; i < N; i++) bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    const char *path = ts_write("written", bytes, N);
    int file = open(path, O_RDONLY);
    assert_int_equal(fsync(file), 0);
    close(file);
    uint64_t last = 0;
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    st_map_renew(path, hear_bytes, &last);
    getrusage(RUSAGE_SELF, &after);
    assert_int_equal(last, N);
    assert_true(after.ru_maxrss - before.ru_maxrss < (30 << 10)); // KiB
    struct st_map map;
    assert_int_equal(st_map_open(path, &map), STINT_OK);
    assert_int_equal(map.bytes, N);
    assert_int_equal(mincore((void *)map.data, N, resident), 0);
    size_t pages = st_ceil_div(N, (size_t)sysconf(_SC_PAGESIZE));
    for (size_t i = 0; i < pages; i++) assert_true(resident[i] & 1);
    assert_memory_equal(map.data, bytes, N);
    st_map_close(&map);
    free(bytes);
}

static void renewing_what_is_no_file_does_nothing(void **state) {
    (void)state;
    uint64_t last = 0;
    char path[512];
    snprintf(path, sizeof path, "%s/absent", ts_temp_folder());
    st_map_renew(path, hear_bytes, &last);
    st_map_renew(ts_temp_folder(), hear_bytes, &last);
    st_map_renew(ts_write_text("nothing", ""), hear_bytes, &last);
    assert_int_equal(last, 0);
}

static void expect_refusal(const char *path) {
    struct st_map map = {.bytes = 9};
    assert_int_equal(st_map_open(path, &map), STINT_E_IO);
    assert_non_null(strstr(stint_error_text(), path));
    assert_int_equal(st_map_copy(path, 9, &map), STINT_E_IO);
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
    struct st_map map = {.bytes = 9};
    for (int copied = 0; copied < 2; copied++) {
        ts_fail_allocation(1);
        stint_status status = copied ? st_map_copy(path, 1, &map) : st_map_open(path, &map);
        ts_fail_allocation(0);
        assert_int_equal(status, STINT_E_IO);
        assert_non_null(strstr(stint_error_text(), path));
        assert_int_equal(map.bytes, 9);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(map_shows_the_files_bytes),
        cmocka_unit_test(map_of_an_empty_file_has_no_bytes),
        cmocka_unit_test(copy_stays_when_the_file_changes),
        cmocka_unit_test(copy_has_a_limit),
        cmocka_unit_test(renewed_file_is_as_it_was_and_in_memory),
        cmocka_unit_test(renewing_what_is_no_file_does_nothing),
        cmocka_unit_test(map_refuses_what_is_no_readable_file),
        cmocka_unit_test(map_reports_that_mapping_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
