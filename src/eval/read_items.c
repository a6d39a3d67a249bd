// SPDX-License-Identifier: Apache-2.0
// Readers of the data sets' own formats. Prompts are those of lm-evaluation-harness without
// examples. WinoGrande is scored by the text after the blank (Trinh and Le 2018, "partial
// evaluation").
#include "base/json.h"
#include "eval/items.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// NULL if there is no memory.
static char *format(const char *text, ...) __attribute__((format(printf, 1, 2)));
static char *format(const char *text, ...) {
    char *out;
    va_list values;
    va_start(values, text);
    int n = vasprintf(&out, text, values);
    va_end(values);
    return n < 0 ? NULL : out;
}

static bool is_full(const struct st_items *items, size_t limit) {
    return limit && items->n >= limit;
}

// Makes an item from one record of separated values.
typedef stint_status fields_fn(const struct st_lines *lines, char **fields, size_t n,
                               struct st_items *items);

static stint_status read_objects(struct st_lines *lines, size_t limit, st_item_object_fn *fn,
                                 struct st_items *items) {
    const char *line;
    size_t n;
    while (!is_full(items, limit) && st_lines_next(lines, &line, &n)) {
        json_t *object = NULL;
        if (n == 0) continue;
        if (st_json_parse("a record", line, n, &object) != STINT_OK)
            return st_lines_fail(lines, "is not a JSON object");
        stint_status status = fn(lines, object, items);
        json_decref(object);
        if (status != STINT_OK) return status;
    }
    return STINT_OK;
}

static stint_status read_records(struct st_lines *lines, char separator, size_t limit,
                                 fields_fn *fn, struct st_items *items) {
    enum { MAX_FIELDS = 16 };
    char *fields[MAX_FIELDS];
    size_t n;
    while (!is_full(items, limit)) {
        ST_TRY(st_lines_record(lines, separator, fields, MAX_FIELDS, &n));
        if (n == 0) break;
        stint_status status = fn(lines, fields, n, items);
        for (size_t i = 0; i < n; i++) free(fields[i]);
        if (status != STINT_OK) return status;
    }
    return STINT_OK;
}

static bool is_jsonl(const struct st_lines *lines) {
    return lines->map.bytes && lines->map.data[0] == '{';
}

// Reads JSONL with `object`, other files as separated values with `fields`.
static stint_status read_either(const char *path, size_t limit, st_item_object_fn *object,
                                char separator, fields_fn *fields, struct st_items *items) {
    struct st_lines lines;
    ST_TRY(st_lines_open(path, &lines));
    stint_status status = is_jsonl(&lines) || !fields
                              ? read_objects(&lines, limit, object, items)
                              : read_records(&lines, separator, limit, fields, items);
    st_lines_close(&lines);
    return status;
}

stint_status st_items_read_objects(const char *path, size_t limit, st_item_object_fn *fn,
                                   struct st_items *items) {
    return read_either(path, limit, fn, 0, NULL, items);
}

static const char *text_of(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

// ---- LAMBADA

static stint_status lambada_object(const struct st_lines *lines, const json_t *object,
                                   struct st_items *items) {
    const char *text = text_of(object, "text");
    const char *space = text ? strrchr(text, ' ') : NULL;
    if (!space || !space[1]) return st_lines_fail(lines, "has no 'text' of two words");
    struct st_item item = {.n_choices = 1};
    item.context[0] = strndup(text, (size_t)(space - text));
    item.ending[0] = strdup(space);
    return st_items_add(items, &item);
}

stint_status st_items_read_lambada(const char *path, size_t limit, struct st_items *items) {
    return st_items_read_objects(path, limit, lambada_object, items);
}

// ---- HellaSwag

static stint_status hellaswag_item(struct st_lines *lines, const char *context, size_t n,
                                   struct st_items *items) {
    struct st_item item = {.n_choices = 4};
    const char *line;
    size_t length;
    stint_status status = STINT_OK;
    if (!st_lines_next(lines, &line, &length) || length != 1 || *line < '0' || *line > '3')
        return st_lines_fail(lines, "expected the number of the right ending, 0 to 3");
    item.answer = (uint32_t)(*line - '0');
    for (size_t i = 0; i < 4 && status == STINT_OK; i++) {
        if (!st_lines_next(lines, &line, &length)) {
            status = st_lines_fail(lines, "the file ends inside an item");
            break;
        }
        item.context[i] = strndup(context, n);
        item.ending[i] = format(" %.*s", (int)length, line);
    }
    if (status == STINT_OK) return st_items_add(items, &item);
    for (size_t i = 0; i < 4; i++) {
        free(item.context[i]);
        free(item.ending[i]);
    }
    return status;
}

stint_status st_items_read_hellaswag(const char *path, size_t limit, struct st_items *items) {
    struct st_lines lines;
    const char *context;
    size_t n;
    ST_TRY(st_lines_open(path, &lines));
    stint_status status = STINT_OK;
    while (status == STINT_OK && !is_full(items, limit) && st_lines_next(&lines, &context, &n))
        if (n) status = hellaswag_item(&lines, context, n, items);
    st_lines_close(&lines);
    return status;
}

// ---- WinoGrande

static stint_status winogrande_item(const struct st_lines *lines, const char *sentence,
                                    const char *const *options, const char *answer,
                                    struct st_items *items) {
    const char *blank = sentence ? strchr(sentence, '_') : NULL;
    if (!blank || !options[0] || !options[1] || !answer || (*answer != '1' && *answer != '2'))
        return st_lines_fail(lines, "is not a sentence with _, two options and an answer 1 or 2");
    struct st_item item = {.n_choices = 2, .answer = (uint32_t)(*answer - '1')};
    for (size_t i = 0; i < 2; i++) {
        item.context[i] = format("%.*s%s", (int)(blank - sentence), sentence, options[i]);
        item.ending[i] = strdup(blank + 1);
    }
    return st_items_add(items, &item);
}

static stint_status winogrande_object(const struct st_lines *lines, const json_t *object,
                                      struct st_items *items) {
    const char *options[] = {text_of(object, "option1"), text_of(object, "option2")};
    return winogrande_item(lines, text_of(object, "sentence"), options, text_of(object, "answer"),
                           items);
}

static stint_status winogrande_fields(const struct st_lines *lines, char **fields, size_t n,
                                      struct st_items *items) {
    if (n != 5) return st_lines_fail(lines, "has not 5 fields: index, sentence, options, answer");
    const char *options[] = {fields[2], fields[3]};
    return winogrande_item(lines, fields[1], options, fields[4], items);
}

stint_status st_items_read_winogrande(const char *path, size_t limit, struct st_items *items) {
    return read_either(path, limit, winogrande_object, ',', winogrande_fields, items);
}

// ---- MMLU

static stint_status mmlu_fields(const struct st_lines *lines, char **f, size_t n,
                                struct st_items *items) {
    const char *letters = "ABCD0123", *answer = n == 6 && *f[5] ? strchr(letters, *f[5]) : NULL;
    if (n == 6 && strcmp(f[0], "question") == 0) return STINT_OK; // a header
    if (!answer || f[5][1])
        return st_lines_fail(lines, "has not 6 fields: question, A, B, C, D, the right letter");
    struct st_item item = {.n_choices = 4, .answer = (uint32_t)(answer - letters) % 4};
    for (int i = 0; i < 4; i++) {
        item.context[i] =
            format("%s\nA. %s\nB. %s\nC. %s\nD. %s\nAnswer:", f[0], f[1], f[2], f[3], f[4]);
        item.ending[i] = format(" %c", 'A' + i);
    }
    return st_items_add(items, &item);
}

static stint_status mmlu_file(const char *path, size_t limit, struct st_items *items) {
    struct st_lines lines;
    ST_TRY(st_lines_open(path, &lines));
    stint_status status = read_records(&lines, ',', limit, mmlu_fields, items);
    st_lines_close(&lines);
    return status;
}

stint_status st_items_read_mmlu(const char *path, size_t limit, struct st_items *items) {
    return st_items_read_folder(path, ".csv", mmlu_file, limit, items);
}
