// SPDX-License-Identifier: Apache-2.0
// PIQA: JSONL {"goal", "sol1", "sol2"}. The right solution, 0 or 1, is in a member "label", or on
// the same line of a second file: X-labels.lst beside X.jsonl.
#include "eval/items.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_LABEL = 2 };

static const char *text_of(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

// False if there is one that is not 0 or 1.
static bool read_label(const json_t *object, uint32_t *label) {
    const json_t *value = json_object_get(object, "label");
    const char *text = json_string_value(value);
    *label = NO_LABEL;
    if (!value) return true;
    if (text && (strcmp(text, "0") == 0 || strcmp(text, "1") == 0))
        *label = (uint32_t)(*text - '0');
    else if (json_is_integer(value) && json_integer_value(value) >= 0 &&
             json_integer_value(value) <= 1)
        *label = (uint32_t)json_integer_value(value);
    return *label != NO_LABEL;
}

static stint_status take(const struct st_lines *lines, const json_t *object,
                         struct st_items *items) {
    const char *goal = text_of(object, "goal");
    const char *solutions[] = {text_of(object, "sol1"), text_of(object, "sol2")};
    struct st_item item = {.n_choices = 2};
    if (!goal || !solutions[0] || !solutions[1])
        return st_lines_fail(lines, "has no 'goal', 'sol1' and 'sol2'");
    if (!read_label(object, &item.answer)) return st_lines_fail(lines, "'label' is not 0 or 1");
    for (size_t i = 0; i < 2; i++) {
        if (asprintf(&item.context[i], "Question: %s\nAnswer:", goal) < 0) item.context[i] = NULL;
        if (asprintf(&item.ending[i], " %s", solutions[i]) < 0) item.ending[i] = NULL;
    }
    return st_items_add(items, &item);
}

// Sets the labels that items have not. Items are the lines of their file; `all`: all of them.
static stint_status take_labels(struct st_lines *lines, bool all, struct st_items *items) {
    const char *line;
    size_t n;
    for (size_t i = 0; i < items->n; i++) {
        if (!st_lines_next(lines, &line, &n))
            return st_fail(STINT_E_FORMAT, "%s: has %zu labels for %zu items or more", lines->path,
                           i, items->n);
        if (n != 1 || (*line != '0' && *line != '1'))
            return st_lines_fail(lines, "expected 0 or 1, the number of the right solution");
        if (items->items[i].answer == NO_LABEL) items->items[i].answer = (uint32_t)(*line - '0');
    }
    if (all && st_lines_next(lines, &line, &n) && n)
        return st_lines_fail(lines, "is a label without an item");
    return STINT_OK;
}

static stint_status read_labels(const char *path, bool all, struct st_items *items) {
    size_t n = strlen(path);
    bool jsonl = n > 6 && strcmp(path + n - 6, ".jsonl") == 0;
    char *name = NULL;
    struct st_lines lines;
    if (asprintf(&name, "%.*s-labels.lst", (int)(jsonl ? n - 6 : n), path) < 0)
        return st_fail(STINT_E_NOMEM, "no memory for a path");
    stint_status status = st_lines_open(name, &lines);
    if (status != STINT_OK) {
        st_fail_prefix("%s: has no 'label', nor has it a file of labels: ", path);
    } else {
        status = take_labels(&lines, all, items);
        st_lines_close(&lines);
    }
    free(name);
    return status;
}

stint_status st_items_read_piqa(const char *path, size_t limit, struct st_items *items) {
    ST_TRY(st_items_read_objects(path, limit, take, items));
    for (size_t i = 0; i < items->n; i++)
        if (items->items[i].answer == NO_LABEL) return read_labels(path, !limit, items);
    return STINT_OK;
}
