// SPDX-License-Identifier: Apache-2.0
// OpenBookQA and ARC: JSONL as AI2 released them, {"question": {"stem", "choices": [{"text",
// "label"}]}, "answerKey"}, or as Hugging Face's rows, {"question" or "question_stem", "choices":
// {"text": [], "label": []}, "answerKey"}. Labels are letters or numbers, whatever the key is one
// of.
#include "eval/items.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

static const char *stem_of(const json_t *object) {
    const char *stem = text_of(json_object_get(object, "question"), "stem");
    if (!stem) stem = text_of(object, "question");
    return stem ? stem : text_of(object, "question_stem");
}

static const json_t *choices_of(const json_t *object) {
    const json_t *choices = json_object_get(json_object_get(object, "question"), "choices");
    return choices ? choices : json_object_get(object, "choices");
}

static size_t n_choices_of(const json_t *choices) {
    return json_array_size(json_is_array(choices) ? choices : json_object_get(choices, "text"));
}

// "text" or "label" of one choice; NULL if it is no text.
static const char *choice(const json_t *choices, size_t i, const char *key) {
    if (json_is_array(choices)) return text_of(json_array_get(choices, i), key);
    return json_string_value(json_array_get(json_object_get(choices, key), i));
}

// The stem stands between `before` and `after`.
static stint_status take(const struct st_lines *lines, const json_t *object, const char *before,
                         const char *after, struct st_items *items) {
    const json_t *choices = choices_of(object);
    const char *stem = stem_of(object), *key = text_of(object, "answerKey");
    size_t n = n_choices_of(choices);
    struct st_item item = {.n_choices = (uint32_t)n, .answer = ST_EVAL_CHOICES};
    if (!stem || !key || n < 2 || n > ST_EVAL_CHOICES)
        return st_lines_fail(lines, "has no question with stem, choices and 'answerKey'");
    for (size_t i = 0; i < n; i++) {
        const char *label = choice(choices, i, "label");
        if (!choice(choices, i, "text")) return st_lines_fail(lines, "a choice has no text");
        if (label && item.answer == ST_EVAL_CHOICES && strcmp(label, key) == 0)
            item.answer = (uint32_t)i;
    }
    if (item.answer == ST_EVAL_CHOICES)
        return st_lines_fail(lines, "no choice has the label that 'answerKey' says");
    for (size_t i = 0; i < n; i++) {
        if (asprintf(&item.context[i], "%s%s%s", before, stem, after) < 0) item.context[i] = NULL;
        if (asprintf(&item.ending[i], " %s", choice(choices, i, "text")) < 0) item.ending[i] = NULL;
    }
    return st_items_add(items, &item);
}

static stint_status take_openbookqa(const struct st_lines *lines, const json_t *object,
                                    struct st_items *items) {
    return take(lines, object, "", "", items);
}

stint_status st_items_read_openbookqa(const char *path, size_t limit, struct st_items *items) {
    return st_items_read_objects(path, limit, take_openbookqa, items);
}

static stint_status take_arc(const struct st_lines *lines, const json_t *object,
                             struct st_items *items) {
    return take(lines, object, "Question: ", "\nAnswer:", items);
}

stint_status st_items_read_arc(const char *path, size_t limit, struct st_items *items) {
    return st_items_read_objects(path, limit, take_arc, items);
}
