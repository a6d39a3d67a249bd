// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "eval/expect_items.h"
#include "eval/tasks.h"
#include "support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void lambada(void **state) {
    (void)state;
    struct st_items items =
        read_all(st_items_read_lambada, "{\"text\": \"a b c\"}\n\n{\"text\": \"d e\"}", 0);
    assert_int_equal(items.n, 2);
    assert_choice(&items.items[0], 0, "a b", " c");
    assert_choice(&items.items[1], 0, "d", " e");
    st_items_free(&items);
    items = read_all(st_items_read_lambada, "{\"text\": \"a b\"}\nbad", 1);
    assert_int_equal(items.n, 1);
    st_items_free(&items);
    refuse(st_items_read_lambada, "{\"text\": \"a b\"}\nbad", "line 2: is not a JSON object");
    refuse(st_items_read_lambada, "{\"text\": \"word\"}", "two words");
    refuse(st_items_read_lambada, "{\"text\": 7}", "two words");
    refuse(st_items_read_lambada, "{\"text\": \"ends in \"}", "two words");
}

static void prompts(void **state) {
    (void)state;
    struct st_items items = read_all(
        st_items_read_prompts,
        "{\"prompt\": \"a\", \"reference\": \"b\"}\n{\"dialogue\": \"x\", \"summary\": \"y\"}\n"
        "{\"context\": \"c\", \"input\": \"q?\", \"answers\": [\"1\", 2, \"3\"]}\n",
        0);
    assert_int_equal(items.n, 3);
    assert_choice(&items.items[0], 0, "a", "b");
    assert_choice(&items.items[1], 0, "x\nSummary:", "y");
    assert_choice(&items.items[2], 0, "c\n\nQuestion: q?\nAnswer:", "1");
    assert_choice(&items.items[2], 1, "", "3");
    assert_int_equal(items.items[2].n_choices, 2);
    st_items_free(&items);
    refuse(st_items_read_prompts, "{\"prompt\": \"a\"}", "has neither 'prompt'");
    refuse(st_items_read_prompts, "{\"prompt\": \"a\", \"reference\": []}", "has neither");
    refuse(st_items_read_prompts, "{\"prompt\": 3, \"reference\": \"b\"}", "has neither");
    refuse(st_items_read_prompts, "[1]", "line 1");
}

static void hellaswag(void **state) {
    (void)state;
    struct st_items items =
        read_all(st_items_read_hellaswag, "ctx\r\n2\r\na\r\nb\r\nc\r\nd\r\nnext\n0\n1\n2\n3\n4", 0);
    assert_int_equal(items.n, 2);
    assert_int_equal(items.items[0].answer, 2);
    assert_choice(&items.items[0], 3, "ctx", " d");
    assert_choice(&items.items[1], 0, "next", " 1");
    st_items_free(&items);
    refuse(st_items_read_hellaswag, "ctx\n4\na\nb\nc\nd\n", "line 2: expected the number");
    refuse(st_items_read_hellaswag, "ctx\n1\na\nb\n", "ends inside an item");
    refuse(st_items_read_hellaswag, "ctx", "expected the number");
}

static void winogrande(void **state) {
    (void)state;
    struct st_items items = read_all(
        st_items_read_winogrande,
        "{\"sentence\": \"x _ y.\", \"option1\": \"A\", \"option2\": \"B\", \"answer\": \"2\"}", 0);
    assert_choice(&items.items[0], 0, "x A", " y.");
    assert_choice(&items.items[0], 1, "x B", " y.");
    assert_int_equal(items.items[0].answer, 1);
    st_items_free(&items);
    items = read_all(st_items_read_winogrande, "0,\"x, \"\"_\"\" y\",A,B,1\n1,_ z,C,D,2\n", 0);
    assert_int_equal(items.n, 2);
    assert_choice(&items.items[0], 1, "x, \"B", "\" y");
    assert_choice(&items.items[1], 0, "C", " z");
    st_items_free(&items);
    refuse(st_items_read_winogrande, "0,no blank,A,B,1\n", "is not a sentence with _");
    refuse(st_items_read_winogrande, "0,_,A,B,3\n", "is not a sentence with _");
    refuse(st_items_read_winogrande, "0,_,A,1\n", "has not 5 fields");
    refuse(st_items_read_winogrande, "0,_,\"A,B,1\n", "has no end");
    refuse(st_items_read_winogrande, ",,,,,,,,,,,,,,,,,,,,\n", "too many fields");
    refuse(st_items_read_winogrande, "{\"sentence\": \"_\"}", "is not a sentence with _");
}

static void openbookqa(void **state) {
    (void)state;
    const char *good =
        "{\"question\": {\"stem\": \"s\", \"choices\": [{\"text\": \"p\", \"label\": "
        "\"A\"}, {\"text\": \"q\", \"label\": \"B\"}]}, \"answerKey\": \"B\"}";
    struct st_items items = read_all(st_items_read_openbookqa, good, 0);
    assert_int_equal(items.items[0].n_choices, 2);
    assert_int_equal(items.items[0].answer, 1);
    assert_choice(&items.items[0], 0, "s", " p");
    st_items_free(&items);
    refuse(st_items_read_openbookqa, "{\"question\": {\"stem\": \"s\"}, \"answerKey\": \"B\"}",
           "has no question");
    refuse(st_items_read_openbookqa,
           "{\"question\": {\"stem\": \"s\", \"choices\": [{\"text\": \"p\", \"label\": \"A\"}, "
           "{\"text\": \"q\", \"label\": \"B\"}]}, \"answerKey\": \"C\"}",
           "no choice has the label");
}

static void mmlu(void **state) {
    (void)state;
    struct st_items items = read_all(st_items_read_mmlu,
                                     "question,choice0,choice1,choice2,choice3,answer\n"
                                     "\"1 + 1,\nor?\",0,1,2,3,2\nq,a,b,c,d,D\n",
                                     0);
    assert_int_equal(items.n, 2);
    assert_choice(&items.items[0], 1, "1 + 1,\nor?\nA. 0\nB. 1\nC. 2\nD. 3\nAnswer:", " B");
    assert_int_equal(items.items[0].answer, 2);
    assert_int_equal(items.items[1].answer, 3);
    st_items_free(&items);
    refuse(st_items_read_mmlu, "q,a,b,c,d,E\n", "has not 6 fields");
    refuse(st_items_read_mmlu, "q,a,b,c,d,\n", "has not 6 fields");
    refuse(st_items_read_mmlu, "q,a\n", "has not 6 fields");
    struct st_items none = {0};
    assert_failure(st_items_read_mmlu("/no/such", 0, &none), STINT_E_IO, "/no/such");
}

static void a_folder_gives_of_every_subject(void **state) {
    (void)state;
    struct st_items items = {0};
    const char *folder = ts_shared("data/mmlu/test");
    assert_int_equal(st_items_read_mmlu(folder, 64, &items), STINT_OK);
    assert_int_equal(items.n, 64);
    st_items_free(&items);
}

// Whatever a file holds: a status, and nothing leaks or is read past its end.
static void any_bytes(void **state) {
    (void)state;
    st_items_read_fn *const readers[] = {st_items_read_lambada,    st_items_read_hellaswag,
                                         st_items_read_winogrande, st_items_read_openbookqa,
                                         st_items_read_arc,        st_items_read_piqa,
                                         st_items_read_mmlu};
    const char letters[] = "a,\"\n\r0123_{}:[ ";
    for (int round = 0; round < 2000; round++) {
        char text[200];
        size_t n = ts_random_below(sizeof text);
        for (size_t i = 0; i < n; i++) text[i] = letters[ts_random_below(sizeof letters)];
        const char *path = ts_write("bytes", text, n);
        for (size_t r = 0; r < sizeof readers / sizeof *readers; r++) {
            struct st_items items = {0};
            (void)readers[r](path, 0, &items);
            st_items_free(&items);
        }
    }
}

static void means_have_errors(void **state) {
    (void)state;
    struct st_mean m = {0};
    assert_true(st_mean_value(&m) == 0.0 && st_mean_error(&m) == 0.0);
    for (int i = 0; i < 4; i++) st_mean_add(&m, i);
    assert_true(st_mean_value(&m) == 1.5);
    assert_true(fabs(st_mean_error(&m) - sqrt(1.25 / 3.0)) < 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lambada),
        cmocka_unit_test(prompts),
        cmocka_unit_test(hellaswag),
        cmocka_unit_test(winogrande),
        cmocka_unit_test(openbookqa),
        cmocka_unit_test(mmlu),
        cmocka_unit_test(a_folder_gives_of_every_subject),
        cmocka_unit_test(any_bytes),
        cmocka_unit_test(means_have_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
