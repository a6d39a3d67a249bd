// SPDX-License-Identifier: Apache-2.0
// Questions about passages: LongBench's JSONL {"context", "input", "answers"}, with the prompt of
// its tasks HotpotQA, 2WikiMultihopQA and MuSiQue (Bai et al. 2023).
#include "eval/items.h"

#include <stdio.h>
#include <stdlib.h>

static const char ask[] =
    "Answer the question based on the given passages. Only give me the answer "
    "and do not output any other words.";

static stint_status take(const struct st_lines *lines, const json_t *object,
                         struct st_items *items) {
    const char *context = json_string_value(json_object_get(object, "context"));
    const char *question = json_string_value(json_object_get(object, "input"));
    struct st_item item = {0};
    char *prompt;
    if (!context || !question) return st_lines_fail(lines, "has no 'context' and 'input'");
    if (st_items_add_references(json_object_get(object, "answers"), &item) == 0)
        return st_lines_fail(lines, "has no 'answers'");
    if (asprintf(&prompt,
                 "%s\n\nThe following are given passages.\n%s\n\n%s\n\nQuestion: %s\nAnswer:", ask,
                 context, ask, question) < 0)
        prompt = NULL;
    free(item.context[0]);
    item.context[0] = prompt;
    return st_items_add(items, &item);
}

static stint_status read_file(const char *path, size_t limit, struct st_items *items) {
    return st_items_read_objects(path, limit, take, items);
}

stint_status st_items_read_longqa(const char *path, size_t limit, struct st_items *items) {
    return st_items_read_folder(path, ".jsonl", read_file, limit, items);
}
