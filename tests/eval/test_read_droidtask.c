// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "eval/droidtask.h"
#include "eval/expect_items.h"

#include <stdio.h>
#include <string.h>

static const char *const prompts = "{\"clock\": {\"t1\": [\"one\", \"two\"], \"t2\": [\"three\"]}}";
static const char *const labels =
    "{\"clock\": {\"t1\": {\"task\": \"Do it\", \"profile\": [{\"label\": [7, \"null\"]}, "
    "{\"label\": "
    "[-1, \"null\"]}]}, \"t2\": {\"profile\": [{\"label\": [0, \"John\"]}]}}}";

static stint_status read_both(const char *a, const char *b, size_t limit, struct st_items *items) {
    ts_write_text("ground_truth.json", b);
    return st_items_read_droidtask(ts_write_text("prompts_data.json", a), limit, items);
}

static void steps_have_labels(void **state) {
    (void)state;
    struct st_items items = {0};
    assert_int_equal(read_both(prompts, labels, 0, &items), STINT_OK);
    assert_int_equal(items.n, 3);
    assert_string_equal(items.items[0].context[0], "one");
    assert_string_equal(items.items[0].ending[0], "7");
    assert_string_equal(items.items[0].ending[1], "null");
    assert_false(items.items[0].ends);
    assert_string_equal(items.items[1].ending[0], "-1");
    assert_true(items.items[1].ends);
    assert_string_equal(items.items[2].ending[1], "John");
    assert_true(items.items[2].ends);
    st_items_free(&items);
    assert_int_equal(st_items_read_droidtask(ts_temp_folder(), 1, &items), STINT_OK);
    assert_int_equal(items.n, 1);
    assert_false(items.items[0].ends);
    st_items_free(&items);
}

static void refuse_both(const char *a, const char *b, const char *piece) {
    struct st_items items = {0};
    assert_failure(read_both(a, b, 0, &items), STINT_E_FORMAT, piece);
    st_items_free(&items);
}

static void others_are_refused(void **state) {
    (void)state;
    refuse_both("{", labels, "/prompts_data.json: line 1: ");
    refuse_both("", labels, "/prompts_data.json: ");
    refuse_both("[]", labels, "/prompts_data.json: is not an object of apps");
    refuse_both("{\"clock\": []}", labels, "/prompts_data.json: clock: is not an object of tasks");
    refuse_both("{\"clock\": {\"t1\": \"one\"}}", labels,
                "/prompts_data.json: clock, task 't1': has no list of prompts");
    refuse_both("{\"clock\": {\"t2\": [3]}}", labels, "task 't2': a prompt is not a text");
    refuse_both("{\"clock\": {\"t2\": [\"a\", \"b\"]}}", labels,
                "/ground_truth.json: clock, task 't2': 'profile' has not one step for each prompt");
    refuse_both("{\"clock\": {\"t3\": [\"a\"]}}", labels, "/ground_truth.json: clock, task 't3': ");
    refuse_both(prompts, "[1]", "/ground_truth.json: clock, task 't1': ");
    for (const char *const *label = (const char *[]){"[\"7\", \"null\"]", "[7]", "7", "[7, 8]",
                                                     "[7, \"a\", 9]", "[7.5, \"a\"]", NULL};
         *label; label++) {
        char text[128];
        snprintf(text, sizeof text, "{\"clock\": {\"t2\": {\"profile\": [{\"label\": %s}]}}}",
                 *label);
        refuse_both("{\"clock\": {\"t2\": [\"a\"]}}", text,
                    "task 't2': a label is not [element id, text]");
    }
    struct st_items items = {0};
    assert_failure(st_items_read_droidtask("/no/such", 0, &items), STINT_E_IO, "/no/such: ");
}

static void the_shared_set_is_read(void **state) {
    (void)state;
    struct st_items items = {0};
    size_t tasks = 0;
    assert_int_equal(st_items_read_droidtask(ts_shared("data/droidtask"), 0, &items), STINT_OK);
    assert_int_equal(items.n, 471);
    for (size_t i = 0; i < items.n; i++) tasks += items.items[i].ends;
    assert_int_equal(tasks, 106);
    st_items_free(&items);
}

static void memory_fails(void **state) {
    (void)state;
    ts_write_text("ground_truth.json", labels);
    const char *path = ts_write_text("prompts_data.json", prompts);
    fail_allocations(st_items_read_droidtask, path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_have_labels),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(the_shared_set_is_read),
        cmocka_unit_test(memory_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
