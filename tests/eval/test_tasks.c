// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "eval/tasks.h"
#include "format/expect.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct st_task *named(const char *name) {
    const struct st_task *task;
    for (size_t i = 0; (task = st_task_at(i)) != NULL; i++)
        if (strcmp(task->name, name) == 0) return task;
    fail_msg("no task %s", name);
    return NULL;
}

// A folder of data sets with one file for LAMBADA.
static void make_data(char folder[256]) {
    char name[300];
    snprintf(folder, 256, "%s/data", ts_temp_folder());
    mkdir(folder, 0700);
    snprintf(name, sizeof name, "%s/lambada", folder);
    mkdir(name, 0700);
    snprintf(name, sizeof name, "%s/mmlu", folder);
    mkdir(name, 0700);
    ts_write_text("data/lambada/lambada_test.jsonl", "{}");
}

static void assert_data(const char *task, const char *given, const char *end) {
    char *path = NULL;
    assert_int_equal(st_task_data(named(task), given, &path), STINT_OK);
    assert_true(strlen(path) >= strlen(end));
    assert_string_equal(path + strlen(path) - strlen(end), end);
    free(path);
}

static void folders_have_places(void **state) {
    (void)state;
    char folder[256], own[300], *path = NULL;
    make_data(folder);
    snprintf(own, sizeof own, "%s/lambada", folder);
    assert_data("lambada", folder, "/data/lambada/lambada_test.jsonl");
    assert_data("lambada", own, "/data/lambada/lambada_test.jsonl");
    assert_data("mmlu", folder, "/data"); // which it reads as a folder of subjects
    assert_failure(st_task_data(named("hellaswag"), folder, &path), STINT_E_IO,
                   "is a folder without hellaswag/hellaswag_val.txt");
    assert_failure(st_task_data(named("generate"), folder, &path), STINT_E_IO,
                   "is a folder; task 'generate' needs a file");
    assert_null(path);
}

static void files_stay_as_given(void **state) {
    (void)state;
    assert_data("lambada", "/no/such", "/no/such");
    const char *file = ts_write_text("text", "words");
    assert_data("ppl", file, file);
}

static void memory_fails(void **state) {
    (void)state;
    char folder[256], *path = NULL;
    make_data(folder);
    ts_fail_allocation(1);
    assert_int_equal(st_task_data(named("lambada"), "/no/such", &path), STINT_E_NOMEM);
    ts_fail_allocation(0);
    assert_null(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_have_places),
        cmocka_unit_test(files_stay_as_given),
        cmocka_unit_test(memory_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
