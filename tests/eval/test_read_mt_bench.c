// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "eval/expect_items.h"

static void questions_have_turns(void **state) {
    (void)state;
    struct st_items items = read_all(
        st_items_read_mt_bench,
        "{\"question_id\": 81, \"category\": \"writing\", \"turns\": [\"One.\", \"Two.\"]}\n"
        "{\"question_id\": 0, \"turns\": [\"Only.\"]}\n",
        0);
    assert_int_equal(items.n, 2);
    assert_int_equal(items.items[0].id, 81);
    assert_int_equal(items.items[0].n_choices, 2);
    assert_choice(&items.items[0], 1, "Two.", "");
    assert_int_equal(items.items[1].n_choices, 1);
    st_items_free(&items);
}

static void others_are_refused(void **state) {
    (void)state;
    refuse(st_items_read_mt_bench, "{\"turns\": [\"One.\"]}", "'question_id' is not a number");
    refuse(st_items_read_mt_bench, "{\"question_id\": -1, \"turns\": [\"a\"]}", "'question_id'");
    refuse(st_items_read_mt_bench, "{\"question_id\": \"1\", \"turns\": [\"a\"]}", "'question_id'");
    refuse(st_items_read_mt_bench, "{\"question_id\": 1, \"turns\": []}", "1 to 8 'turns'");
    refuse(st_items_read_mt_bench, "{\"question_id\": 1, \"turns\": \"a\"}", "1 to 8 'turns'");
    refuse(st_items_read_mt_bench, "{\"question_id\": 1, \"turns\": [1,2,3,4,5,6,7,8,9]}",
           "1 to 8 'turns'");
    refuse(st_items_read_mt_bench, "{\"question_id\": 1, \"turns\": [\"a\", 2]}",
           "a turn is not a text");
    refuse(st_items_read_mt_bench, "{\"question_id\": 1, \"turns\": [\"\"]}",
           "a turn is not a text");
}

static void the_shared_set_is_read(void **state) {
    (void)state;
    struct st_items items = {0};
    assert_int_equal(st_items_read_mt_bench(ts_shared("data/mt_bench/question.jsonl"), 0, &items),
                     STINT_OK);
    assert_int_equal(items.n, 80);
    assert_int_equal(items.items[0].id, 81);
    st_items_free(&items);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions_have_turns),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(the_shared_set_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
