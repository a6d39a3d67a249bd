// SPDX-License-Identifier: Apache-2.0
// Files that are written completely or not at all, with a name and without one until then.
#include "base/temporary.h"
#include "support/support.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char path[600];

static int set_path(void **state) {
    (void)state;
    snprintf(path, sizeof path, "%s/file", ts_temp_folder());
    unlink(path);
    return 0;
}

static int count_files(void) {
    int n = 0;
    DIR *folder = opendir(ts_temp_folder());
    for (struct dirent *entry; (entry = readdir(folder));) n += entry->d_name[0] != '.';
    closedir(folder);
    return n;
}

static void it_appears_whole(void **state) {
    (void)state;
    for (int named = 0; named < 2; named++) {
        struct st_temporary t;
        struct stat info;
        assert_int_equal(st_temporary_open(path, 0600, named, &t), STINT_OK);
        assert_int_equal(write(t.file, "whole", 5), 5);
        assert_int_equal(access(path, F_OK), named ? 0 : -1); // the first round's
        char *again = st_temporary_path(&t);
        size_t n;
        unsigned char *bytes = ts_read(again, &n);
        assert_int_equal(n, 5);
        free(bytes);
        free(again);
        assert_int_equal(st_temporary_keep(&t), STINT_OK);
        close(t.file);
        st_temporary_drop(&t);
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(info.st_size, 5);
        assert_int_equal(info.st_mode & 0777, 0600);
        assert_int_equal(count_files(), 1);
    }
}

static void what_is_dropped_leaves_nothing(void **state) {
    (void)state;
    for (int named = 0; named < 2; named++) {
        struct st_temporary t;
        assert_int_equal(st_temporary_open(path, 0666, named, &t), STINT_OK);
        assert_int_equal(count_files(), named && t.name ? 1 : t.name != NULL);
        close(t.file);
        st_temporary_drop(&t);
        assert_int_equal(count_files(), 0);
    }
}

// Two processes of the same number, as in containers, and one that was killed.
static void what_a_killed_process_left_is_removed(void **state) {
    (void)state;
    char name[700];
    snprintf(name, sizeof name, "%s.tmp-%ld", path, (long)getpid());
    int left = open(name, O_CREAT | O_WRONLY, 0600);
    assert_true(left >= 0);
    close(left);
    pid_t child = fork();
    if (child == 0) { // writes under a name until it is killed
        struct st_temporary t;
        if (st_temporary_open(path, 0600, true, &t) == STINT_OK) raise(SIGKILL);
        _exit(1);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(count_files(), 1); // the child removed the first and left its own
    struct st_temporary first, second;
    assert_int_equal(st_temporary_open(path, 0600, true, &first), STINT_OK);
    assert_int_equal(count_files(), 1);
    // The first one is being written: it stays.
    assert_int_equal(st_temporary_open(path, 0600, true, &second), STINT_OK);
    assert_int_equal(count_files(), 2);
    assert_int_equal(st_temporary_keep(&second), STINT_OK);
    assert_int_equal(st_temporary_keep(&first), STINT_OK);
    close(first.file);
    close(second.file);
    st_temporary_drop(&first);
    st_temporary_drop(&second);
    assert_int_equal(count_files(), 1);
}

static void files_of_others_stay(void **state) {
    (void)state;
    static const char *const names[] = {"file.tmp-notes", "file.tmp-", "other.tmp-12", "file.tmp"};
    struct st_temporary t;
    for (size_t i = 0; i < 4; i++) ts_write(names[i], "x", 1);
    assert_int_equal(st_temporary_open(path, 0600, false, &t), STINT_OK);
    close(t.file);
    st_temporary_drop(&t);
    assert_int_equal(count_files(), 4);
    char name[700];
    for (size_t i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s/%s", ts_temp_folder(), names[i]);
        assert_int_equal(unlink(name), 0);
    }
}

static void a_folder_that_is_not_there_is_an_error(void **state) {
    (void)state;
    struct st_temporary t = {.file = -1};
    assert_int_equal(st_temporary_open("/no/such/folder/file", 0600, false, &t), STINT_E_IO);
    st_temporary_drop(&t);
}

static void a_folder_in_its_place_is_an_error(void **state) {
    (void)state;
    struct st_temporary t = {.file = -1};
    assert_int_equal(st_temporary_open(ts_temp_folder(), 0600, false, &t), STINT_E_IO);
    assert_non_null(strstr(stint_error_text(), "is a folder"));
    st_temporary_drop(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(it_appears_whole, set_path),
        cmocka_unit_test_setup(what_is_dropped_leaves_nothing, set_path),
        cmocka_unit_test_setup(what_a_killed_process_left_is_removed, set_path),
        cmocka_unit_test_setup(files_of_others_stay, set_path),
        cmocka_unit_test_setup(a_folder_that_is_not_there_is_an_error, set_path),
        cmocka_unit_test(a_folder_in_its_place_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
