// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/expect.h"
#include "format/files.h"
#include "support/support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void files_of_a_folder(void **state) {
    (void)state;
    struct st_files files = {ts_temp_folder(), NULL};
    struct st_file file;
    ts_write_text("a.json", "{}");
    assert_true(st_files_has(&files, "a.json"));
    assert_false(st_files_has(&files, "b.json"));
    assert_int_equal(st_files_open(&files, "a.json", &file), STINT_OK);
    assert_int_equal(file.map.bytes, 2);
    assert_memory_equal(file.map.data, "{}", 2);
    assert_true(strncmp(file.name, files.path, strlen(files.path)) == 0);
    st_file_close(&file);
    st_file_close(&file);
    assert_failure(st_files_open(&files, "b.json", &file), STINT_E_IO, "/b.json: No such file");
    assert_null(file.name);
}

static void files_of_the_current_folder(void **state) {
    (void)state;
    char before[4096];
    struct st_files here = {"", NULL};
    struct st_file file;
    ts_write_text("here.txt", "x");
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(ts_temp_folder()), 0);
    assert_int_equal(st_files_open(&here, "here.txt", &file), STINT_OK);
    assert_string_equal(file.name, "here.txt");
    st_file_close(&file);
    assert_int_equal(chdir(before), 0);
}

static void blobs_of_a_package(void **state) {
    (void)state;
    char path[512];
    struct st_package_writer *writer = NULL;
    struct st_package *package = NULL;
    struct st_map map;
    struct st_file file;
    const float one = 1.0f;
    const struct st_section blob = {"a.json", ST_SECTION_BLOB, ST_DTYPE_F32, 1, {2, 1, 1, 1}, "{}",
                                    2};
    const struct st_section empty = {"empty", ST_SECTION_BLOB, ST_DTYPE_F32, 1, {0, 1, 1, 1}, "",
                                     0};
    const struct st_section scale = {"scale", ST_SECTION_F32, ST_DTYPE_F32, 1, {1, 1, 1, 1}, &one,
                                     4};
    snprintf(path, sizeof path, "%s/x.stint", ts_temp_folder());
    assert_int_equal(st_package_create(path, &writer), STINT_OK);
    st_package_add(writer, &blob);
    st_package_add(writer, &empty);
    st_package_add(writer, &scale);
    assert_int_equal(st_package_finish(writer), STINT_OK);
    assert_int_equal(st_map_open(path, &map), STINT_OK);
    assert_int_equal(st_package_open("x.stint", &map, &package), STINT_OK);
    struct st_files files = {"x.stint", package};
    assert_true(st_files_has(&files, "a.json"));
    assert_false(st_files_has(&files, "scale")); // no blob
    assert_int_equal(st_files_open(&files, "a.json", &file), STINT_OK);
    assert_string_equal(file.name, "x.stint: a.json");
    assert_memory_equal(file.map.data, "{}", 2);
    st_file_close(&file);
    assert_int_equal(st_files_open(&files, "empty", &file), STINT_OK);
    assert_null(file.map.data);
    st_file_close(&file);
    assert_failure(st_files_open(&files, "b.json", &file), STINT_E_IO, "x.stint: b.json: ");
    st_package_close(package);
    st_map_close(&map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_a_folder),
        cmocka_unit_test(files_of_the_current_folder),
        cmocka_unit_test(blobs_of_a_package),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
