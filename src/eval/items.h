// SPDX-License-Identifier: Apache-2.0
// The items that are scored, texts with one or more endings, and the readers of the data sets' own
// file formats.
#ifndef ST_EVAL_ITEMS_H
#define ST_EVAL_ITEMS_H

#include "base/json.h"
#include "base/map.h"

#include <stdbool.h>
#include <stdint.h>

enum { ST_EVAL_CHOICES = 8 };

// Every choice has a context and an ending; contexts may be equal.
struct st_item {
    char *context[ST_EVAL_CHOICES], *ending[ST_EVAL_CHOICES]; // owned
    uint32_t n_choices;
    uint32_t answer; // the correct one
    bool ends;       // a step of a task: the last one
    uint64_t id;     // of a question, where the data set numbers them
};

struct st_items {
    struct st_item *items; // owned
    size_t n, capacity;
};

void st_items_free(struct st_items *items);
// *Takes* the item, also on failure. STINT_E_NOMEM also if one of its texts is NULL.
stint_status st_items_add(struct st_items *items, struct st_item *item);

// Reads at most `limit` items (0: all) of a file or folder. STINT_E_FORMAT names file and line.
typedef stint_status st_items_read_fn(const char *path, size_t limit, struct st_items *items);

st_items_read_fn st_items_read_lambada;    // JSONL {"text"}: the last word is the ending
st_items_read_fn st_items_read_hellaswag;  // six lines: context, answer, four endings
st_items_read_fn st_items_read_winogrande; // JSONL or CSV: a sentence with _, two options
st_items_read_fn st_items_read_openbookqa; // JSONL: stem, two to eight choices
st_items_read_fn st_items_read_arc;        // the same
st_items_read_fn st_items_read_piqa; // JSONL: a goal, two solutions; labels in it or beside it
st_items_read_fn st_items_read_mmlu; // CSV: question, A, B, C, D, letter or number; or a folder

st_items_read_fn st_items_read_prompts;  // JSONL: prompts and the references after them
st_items_read_fn st_items_read_longqa;   // JSONL: context, input, answers; or a folder
st_items_read_fn st_items_read_mt_bench; // JSONL: the contexts are the turns of a conversation
// A folder, or its file of prompts. The endings are the element's id and the text to type.
st_items_read_fn st_items_read_droidtask;

// Reads a file with fn, or all files of a folder whose names end so, in the order of their names. A
// limit is divided among them.
stint_status st_items_read_folder(const char *path, const char *ending, st_items_read_fn *fn,
                                  size_t limit, struct st_items *items);

// Adds one text, or all texts of a list, as endings of an item, each with an empty context; at most
// ST_EVAL_CHOICES. Their number.
uint32_t st_items_add_references(const json_t *value, struct st_item *item);

// ---- Reading lines

struct st_lines {
    const char *path;
    struct st_map map;
    size_t at;
    size_t number; // of the last line read, from 1
};

stint_status st_lines_open(const char *path, struct st_lines *lines);
void st_lines_close(struct st_lines *lines);
// The next line without its end; false after the last one.
bool st_lines_next(struct st_lines *lines, const char **line, size_t *n);
// STINT_E_FORMAT "path: line N: text".
stint_status st_lines_fail(const struct st_lines *lines, const char *text);

// Makes items from one object of a JSONL file.
typedef stint_status st_item_object_fn(const struct st_lines *lines, const json_t *object,
                                       struct st_items *items);
// Calls fn for each line that is not empty; the rest is as for a st_items_read_fn.
stint_status st_items_read_objects(const char *path, size_t limit, st_item_object_fn *fn,
                                   struct st_items *items);

// Splits a record at `separator` into at most `max` malloc'ed fields. Fields in double quotes may
// contain separators, doubled quotes and line ends. *n is 0 after the last record.
stint_status st_lines_record(struct st_lines *lines, char separator, char **fields, size_t max,
                             size_t *n);

#endif
