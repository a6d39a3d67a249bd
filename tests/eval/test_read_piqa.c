// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "eval/expect_items.h"

#include <stdio.h>

static void piqa_has_labels(void **state) {
    (void)state;
    struct st_items items =
        read_all(st_items_read_piqa,
                 "{\"goal\": \"Dry.\", \"sol1\": \"Sun.\", \"sol2\": \"Rain.\", \"label\": 0}\n"
                 "{\"goal\": \"g\", \"sol1\": \"a\", \"sol2\": \"b\", \"label\": \"1\"}\n",
                 0);
    assert_int_equal(items.n, 2);
    assert_choice(&items.items[0], 0, "Question: Dry.\nAnswer:", " Sun.");
    assert_choice(&items.items[0], 1, "Question: Dry.\nAnswer:", " Rain.");
    assert_int_equal(items.items[0].answer, 0);
    assert_int_equal(items.items[1].answer, 1);
    st_items_free(&items);
    refuse(st_items_read_piqa, "{\"goal\": \"g\", \"sol1\": \"a\"}", "has no 'goal'");
    for (const char *const *label = (const char *[]){"2", "\"01\"", "-1", "1.0", "[]", NULL};
         *label; label++) {
        char text[128];
        snprintf(text, sizeof text,
                 "{\"goal\": \"g\", \"sol1\": \"a\", \"sol2\": \"b\", \"label\": %s}", *label);
        refuse(st_items_read_piqa, text, "'label' is not 0 or 1");
    }
}

static const char *const two = "{\"goal\": \"g\", \"sol1\": \"a\", \"sol2\": \"b\"}\n"
                               "{\"goal\": \"h\", \"sol1\": \"c\", \"sol2\": \"d\"}\n";

static void piqa_has_a_file_of_labels(void **state) {
    (void)state;
    struct st_items items = {0};
    ts_write_text("valid-labels.lst", "1\n0\n");
    const char *path = ts_write_text("valid.jsonl", two);
    assert_int_equal(st_items_read_piqa(path, 0, &items), STINT_OK);
    assert_int_equal(items.n, 2);
    assert_int_equal(items.items[0].answer, 1);
    assert_int_equal(items.items[1].answer, 0);
    st_items_free(&items);
    assert_int_equal(st_items_read_piqa(path, 1, &items), STINT_OK);
    assert_int_equal(items.n, 1);
    st_items_free(&items);
}

static void refuse_labels(const char *labels, const char *piece) {
    struct st_items items = {0};
    ts_write_text("valid-labels.lst", labels);
    const char *path = ts_write_text("valid.jsonl", two);
    assert_failure(st_items_read_piqa(path, 0, &items), STINT_E_FORMAT, piece);
    assert_failure(STINT_E_FORMAT, STINT_E_FORMAT, "valid-labels.lst: ");
    st_items_free(&items);
}

static void piqa_refuses_labels(void **state) {
    (void)state;
    refuse_labels("1\n", "has 1 labels for 2 items");
    refuse_labels("", "has 0 labels for 2 items");
    refuse_labels("1\n2\n", "line 2: expected 0 or 1");
    refuse_labels("1\n\n", "line 2: expected 0 or 1");
    refuse_labels("1\n0\n1\n", "line 3: is a label without an item");
    struct st_items items = {0};
    const char *path = ts_write_text("alone", two);
    assert_failure(st_items_read_piqa(path, 0, &items), STINT_E_IO,
                   "/alone: has no 'label', nor has it a file of labels: ");
    st_items_free(&items);
}

static void memory_fails(void **state) {
    (void)state;
    ts_write_text("valid-labels.lst", "1\n0\n");
    const char *path = ts_write_text("valid.jsonl", two);
    fail_allocations(st_items_read_piqa, path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(piqa_has_labels),
        cmocka_unit_test(piqa_has_a_file_of_labels),
        cmocka_unit_test(piqa_refuses_labels),
        cmocka_unit_test(memory_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
