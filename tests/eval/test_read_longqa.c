// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "eval/expect_items.h"

#include <string.h>

static void prompts_hold_passages_and_question(void **state) {
    (void)state;
    struct st_items items = read_all(st_items_read_longqa,
                                     "{\"input\": \"Who?\", \"context\": \"Passage 1:\\nA man.\", "
                                     "\"answers\": [\"He\", \"a man\"], "
                                     "\"length\": 3, \"all_classes\": null}",
                                     0);
    assert_int_equal(items.n, 1);
    const char *ask =
        "Answer the question based on the given passages. Only give me the answer and "
        "do not output any other words.";
    const char *prompt = items.items[0].context[0];
    assert_memory_equal(prompt, ask, strlen(ask));
    const char *rest =
        strstr(prompt, "\n\nThe following are given passages.\nPassage 1:\nA man.\n\n");
    assert_non_null(rest);
    assert_non_null(strstr(rest, ask));
    assert_non_null(strstr(rest, " words.\n\nQuestion: Who?\nAnswer:"));
    assert_string_equal(prompt + strlen(prompt) - 8, "\nAnswer:");
    assert_int_equal(items.items[0].n_choices, 2);
    assert_string_equal(items.items[0].ending[0], "He");
    assert_choice(&items.items[0], 1, "", "a man");
    st_items_free(&items);
}

static void others_are_refused(void **state) {
    (void)state;
    refuse(st_items_read_longqa, "{\"input\": \"Who?\", \"answers\": [\"He\"]}",
           "has no 'context'");
    refuse(st_items_read_longqa, "{\"input\": 1, \"context\": \"\", \"answers\": [\"He\"]}",
           "has no 'context' and 'input'");
    refuse(st_items_read_longqa, "{\"input\": \"Who?\", \"context\": \"c\", \"answers\": [1]}",
           "has no 'answers'");
    refuse(st_items_read_longqa, "{\"input\": \"Who?\", \"context\": \"c\"}", "has no 'answers'");
    refuse(st_items_read_longqa, "[]", "line 1");
}

static void the_shared_sets_are_read(void **state) {
    (void)state;
    struct st_items items = {0};
    assert_int_equal(st_items_read_longqa(ts_shared("data/longqa"), 0, &items), STINT_OK);
    assert_int_equal(items.n, 14 + 20 + 20);
    st_items_free(&items);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_hold_passages_and_question),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(the_shared_sets_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
