// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "eval/expect_items.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

// One item for each line of a file.
static stint_status take_lines(const char *path, size_t limit, struct st_items *items) {
    return st_items_read_lambada(path, limit, items);
}

static void make_folder(char folder[256], const char *name) {
    snprintf(folder, 256, "%s/%s", ts_temp_folder(), name);
    assert_int_equal(mkdir(folder, 0700), 0);
}

static void names_give_the_order(void **state) {
    (void)state;
    char folder[256];
    struct st_items items = {0};
    make_folder(folder, "f");
    ts_write_text("f/b.x", "{\"text\": \"b 1\"}\n{\"text\": \"b 2\"}\n");
    ts_write_text("f/a.x", "{\"text\": \"a 1\"}\n{\"text\": \"a 2\"}\n");
    ts_write_text("f/c.y", "not read");
    ts_write_text("f/.x", "not read");
    assert_int_equal(st_items_read_folder(folder, ".x", take_lines, 0, &items), STINT_OK);
    assert_int_equal(items.n, 4);
    assert_string_equal(items.items[0].context[0], "a");
    assert_string_equal(items.items[3].context[0], "b");
    st_items_free(&items);
    assert_int_equal(st_items_read_folder(folder, ".x", take_lines, 2, &items), STINT_OK);
    assert_int_equal(items.n, 2); // one of each
    assert_string_equal(items.items[1].context[0], "b");
    st_items_free(&items);
    assert_failure(st_items_read_folder(folder, ".y", take_lines, 0, &items), STINT_E_FORMAT,
                   "/f/c.y: line 1: ");
    assert_failure(st_items_read_folder(folder, ".z", take_lines, 0, &items), STINT_E_IO,
                   "/f: has no .z files");
    assert_failure(st_items_read_folder("/no/such", ".x", take_lines, 0, &items), STINT_E_IO,
                   "/no/such: ");
    st_items_free(&items);
}

static stint_status read_lines(const char *path, size_t limit, struct st_items *items) {
    return st_items_read_folder(path, ".x", take_lines, limit, items);
}

static void memory_fails(void **state) {
    (void)state;
    char folder[256];
    make_folder(folder, "g");
    ts_write_text("g/a.x", "{\"text\": \"a 1\"}\n");
    fail_allocations(read_lines, folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_give_the_order),
        cmocka_unit_test(memory_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
