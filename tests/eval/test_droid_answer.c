// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "eval/droidtask.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct row {
    const char *answer;
    bool found;
    long long id;
    const char *text;
} rows[] = {
    {"{\"Steps\": \"1\", \"id\": 3, \"action\": \"tap\", \"input_text\": \"N/A\"}", true, 3, "N/A"},
    {"{\"id\": \"12\", \"input_text\": \" John \"}", true, 12, "John"},
    {"{\"id\": \"-1\"}", true, -1, ""},
    {"Sure:\n```json\n{\"id\": -1, \"x\": {\"id\": 4}}\n``` That was it.", true, -1, ""},
    {"{\"Analyses\": \"it is\", \"id\": \"5\", \"action\": \"inp", true, 5, ""}, // cut short
    {"{'id': 6, 'input_text': 'Alice'}", true, 6, "Alice"},                      // not JSON
    {"id=7, input_text=N/A", true, 7, "N/A"},
    {"<button id=8>Save</button>", true, 8, ""},
    {"{\"id\": 3} {\"id\": 4}", true, 3, ""},
    {"{\"id\": \"three\"}", false, 0, ""},
    {"{\"id\": [3]}", false, 0, ""},
    {"{\"id\": null}", false, 0, ""},
    {"{\"grid\": 3, \"my_id\": 2}", false, 0, ""},
    {"{\"id\": \"99999999999999999999\"}", false, 0, ""},
    {"{\"id\"", false, 0, ""},
    {"I would tap the button.", false, 0, ""},
    {"", false, 0, ""},
};

static void answers_name_elements(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct st_droid_answer answer;
        st_droid_read(rows[i].answer, &answer);
        if (answer.found != rows[i].found || answer.id != rows[i].id ||
            strcmp(answer.text, rows[i].text) != 0)
            fail_msg("%s: %d %lld '%s'", rows[i].answer, answer.found, answer.id, answer.text);
    }
}

static void labels_decide(void **state) {
    (void)state;
    struct st_droid_answer answer = {.found = true, .id = 3, .text = "John"};
    assert_true(st_droid_is(&answer, "3", "null"));
    assert_true(st_droid_is(&answer, "3", "John"));
    assert_false(st_droid_is(&answer, "3", "Alice"));
    assert_false(st_droid_is(&answer, "4", "null"));
    answer.found = false;
    assert_false(st_droid_is(&answer, "3", "null"));
}

static void long_texts_are_cut(void **state) {
    (void)state;
    struct st_droid_answer answer;
    char text[2 * ST_DROID_TEXT_BYTES + 40] = "{\"id\": 1, \"input_text\": \"";
    memset(text + strlen(text), 'x', 2 * ST_DROID_TEXT_BYTES);
    strcat(text, "\"}");
    st_droid_read(text, &answer);
    assert_true(answer.found);
    assert_int_equal(strlen(answer.text), ST_DROID_TEXT_BYTES - 1);
}

static bool add(struct st_droid_score *score, const char *answer, char *id, char *text, bool ends) {
    const struct st_item step = {.ending = {id, text}, .n_choices = 2, .ends = ends};
    return st_droid_add(score, answer, &step);
}

// Three tasks: right throughout, wrong at its first step, and one that is cut before its end.
static void steps_and_tasks_are_counted(void **state) {
    (void)state;
    struct st_droid_score score = {0};
    char three[] = "3", done[] = "-1", null[] = "null", john[] = "John";
    assert_true(add(&score, "{\"id\": 3, \"input_text\": \"John\"}", three, john, false));
    assert_true(add(&score, "{\"id\": -1}", done, null, true));
    assert_false(add(&score, "{\"id\": 3, \"input_text\": \"N/A\"}", three, john, false));
    assert_true(add(&score, "{\"id\": -1}", done, null, true));
    assert_false(add(&score, "I cannot.", three, null, false));
    assert_true(score.right.n == 5.0 && score.right.sum == 3.0);
    assert_true(score.found.n == 5.0 && score.found.sum == 4.0);
    assert_true(score.whole.n == 2.0 && score.whole.sum == 1.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_name_elements),
        cmocka_unit_test(labels_decide),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(steps_and_tasks_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
