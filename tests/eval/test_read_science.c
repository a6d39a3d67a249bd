// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "eval/expect_items.h"

static void arc_as_released(void **state) {
    (void)state;
    struct st_items items = read_all(
        st_items_read_arc,
        "{\"id\": \"a\", \"question\": {\"stem\": \"Why?\", \"choices\": [{\"text\": \"p\", "
        "\"label\": \"A\"}, {\"text\": \"q\", \"label\": \"B\"}, {\"text\": \"r\", \"label\": "
        "\"C\"}]}, \"answerKey\": \"C\"}\n"
        "{\"question\": {\"stem\": \"s\", \"choices\": [{\"text\": \"p\", \"label\": \"1\"}, "
        "{\"text\": \"q\", \"label\": \"2\"}]}, \"answerKey\": \"2\"}\n",
        0);
    assert_int_equal(items.n, 2);
    assert_int_equal(items.items[0].n_choices, 3);
    assert_int_equal(items.items[0].answer, 2);
    assert_choice(&items.items[0], 0, "Question: Why?\nAnswer:", " p");
    assert_choice(&items.items[0], 2, "Question: Why?\nAnswer:", " r");
    assert_int_equal(items.items[1].answer, 1);
    st_items_free(&items);
}

static void arc_as_rows(void **state) {
    (void)state;
    const char *row = "{\"id\": \"a\", \"question\": \"Why?\", \"choices\": {\"text\": [\"p\", "
                      "\"q\"], \"label\": [\"A\", \"B\"]}, \"answerKey\": \"B\"}";
    struct st_items items = read_all(st_items_read_arc, row, 0);
    assert_choice(&items.items[0], 1, "Question: Why?\nAnswer:", " q");
    assert_int_equal(items.items[0].answer, 1);
    st_items_free(&items);
    items = read_all(st_items_read_openbookqa,
                     "{\"question_stem\": \"s\", \"choices\": {\"text\": [\"p\", \"q\"], "
                     "\"label\": [\"A\", \"B\"]}, \"answerKey\": \"A\"}",
                     0);
    assert_choice(&items.items[0], 0, "s", " p");
    st_items_free(&items);
}

static void arc_refuses(void **state) {
    (void)state;
    refuse(st_items_read_arc, "{\"question\": \"s\", \"answerKey\": \"A\"}", "has no question");
    refuse(st_items_read_arc,
           "{\"question\": 1, \"choices\": {\"text\": [\"p\", \"q\"]}, \"answerKey\": \"A\"}",
           "has no question");
    refuse(st_items_read_arc,
           "{\"question\": \"s\", \"choices\": {\"text\": [\"p\"]}, \"answerKey\": \"A\"}",
           "has no question");
    refuse(st_items_read_arc,
           "{\"question\": \"s\", \"choices\": {\"text\": [1, 2, 3, 4, 5, 6, 7, 8, 9]}, "
           "\"answerKey\": \"A\"}",
           "has no question");
    refuse(st_items_read_arc,
           "{\"question\": \"s\", \"choices\": {\"text\": [\"p\", 2], \"label\": [\"A\", \"B\"]}, "
           "\"answerKey\": \"A\"}",
           "a choice has no text");
    refuse(st_items_read_arc,
           "{\"question\": \"s\", \"choices\": {\"text\": [\"p\", \"q\"], \"label\": [\"A\"]}, "
           "\"answerKey\": \"B\"}",
           "no choice has the label");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arc_as_released),
        cmocka_unit_test(arc_as_rows),
        cmocka_unit_test(arc_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
