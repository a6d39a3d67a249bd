// SPDX-License-Identifier: Apache-2.0
// Reads prompts with references from JSONL: {"prompt", "reference"}, DialogSum's {"dialogue",
// "summary"}, or LongBench's {"context", "input", "answers"}. The references become the endings of
// the item.
#include "eval/items.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct shape {
    const char *first, *second; // fields of the prompt; second may be NULL
    const char *references;     // a text, or a list of them
    const char *between, *after;
} shapes[] = {
    {"prompt", NULL, "reference", "", ""},
    {"dialogue", NULL, "summary", "", "\nSummary:"},
    {"context", "input", "answers", "\n\nQuestion: ", "\nAnswer:"},
};

static const char *text_of(const json_t *object, const char *key) {
    return key ? json_string_value(json_object_get(object, key)) : "";
}

uint32_t st_items_add_references(const json_t *value, struct st_item *item) {
    const json_t *list = json_is_array(value) ? value : NULL;
    size_t n = list ? json_array_size(list) : 1;
    for (size_t i = 0; i < n && item->n_choices < ST_EVAL_CHOICES; i++) {
        const char *text = json_string_value(list ? json_array_get(list, i) : value);
        if (!text) continue;
        item->context[item->n_choices] = strdup("");
        item->ending[item->n_choices++] = strdup(text);
    }
    return item->n_choices;
}

static stint_status take(const struct st_lines *lines, const json_t *object,
                         struct st_items *items) {
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct shape *s = &shapes[i];
        const char *first = text_of(object, s->first), *second = text_of(object, s->second);
        struct st_item item = {0};
        char *prompt;
        if (!first || !second) continue;
        if (st_items_add_references(json_object_get(object, s->references), &item) == 0) continue;
        if (asprintf(&prompt, "%s%s%s%s", first, s->between, second, s->after) < 0) prompt = NULL;
        free(item.context[0]);
        item.context[0] = prompt;
        return st_items_add(items, &item);
    }
    return st_lines_fail(lines, "has neither 'prompt' and 'reference', nor 'dialogue' and "
                                "'summary', nor 'context', 'input' and 'answers'");
}

stint_status st_items_read_prompts(const char *path, size_t limit, struct st_items *items) {
    return st_items_read_objects(path, limit, take, items);
}
