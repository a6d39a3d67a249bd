// SPDX-License-Identifier: Apache-2.0
// DroidTask's files and the answers to its steps. Pure functions.
#ifndef ST_EVAL_DROIDTASK_H
#define ST_EVAL_DROIDTASK_H

#include "eval/tasks.h"

// The items of both files, whose names stand in error texts: prompts {app: {task: [text]}}, labels
// {app: {task: {"profile": [{"label": [id, text]}]}}}.
struct st_droidtask {
    const char *prompts_name, *labels_name;
    const json_t *prompts, *labels;
};
stint_status st_droidtask_read(const struct st_droidtask *files, size_t limit,
                               struct st_items *items);

enum { ST_DROID_TEXT_BYTES = 256 };

struct st_droid_answer {
    bool found; // it names an element
    long long id;
    char text[ST_DROID_TEXT_BYTES]; // to type; cut where it is longer
};

// Reads {"id": 3, "input_text": "..."}, the id also as a text, from the first JSON object of an
// answer; where there is none that is whole, from what stands behind these words.
void st_droid_read(const char *answer, struct st_droid_answer *out);

// Whether the answer is that of the label: the same element, and the same text where the label has
// one ("null": none).
bool st_droid_is(const struct st_droid_answer *answer, const char *id, const char *text);

// What the answers to steps come to.
struct st_droid_score {
    struct st_mean right, found; // of steps
    struct st_mean whole;        // of tasks: all steps are right
    bool missed;                 // a step of this task
};
// Adds one step, in the order of the steps of a task; true if it is right.
bool st_droid_add(struct st_droid_score *score, const char *answer, const struct st_item *step);

#endif
