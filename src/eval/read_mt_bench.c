// SPDX-License-Identifier: Apache-2.0
// MT-Bench's questions: JSONL {"question_id", "turns": [text]}.
#include "eval/items.h"

#include <string.h>

static stint_status take(const struct st_lines *lines, const json_t *object,
                         struct st_items *items) {
    const json_t *id = json_object_get(object, "question_id");
    const json_t *turns = json_object_get(object, "turns");
    size_t n = json_array_size(turns);
    struct st_item item = {.n_choices = (uint32_t)n};
    if (!json_is_integer(id) || json_integer_value(id) < 0)
        return st_lines_fail(lines, "'question_id' is not a number from 0 on");
    if (n < 1 || n > ST_EVAL_CHOICES) return st_lines_fail(lines, "has not 1 to 8 'turns'");
    for (size_t i = 0; i < n; i++) {
        const char *turn = json_string_value(json_array_get(turns, i));
        if (!turn || !*turn) return st_lines_fail(lines, "a turn is not a text");
    }
    item.id = (uint64_t)json_integer_value(id);
    for (size_t i = 0; i < n; i++) {
        item.context[i] = strdup(json_string_value(json_array_get(turns, i)));
        item.ending[i] = strdup("");
    }
    return st_items_add(items, &item);
}

stint_status st_items_read_mt_bench(const char *path, size_t limit, struct st_items *items) {
    return st_items_read_objects(path, limit, take, items);
}
