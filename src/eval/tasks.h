// SPDX-License-Identifier: Apache-2.0
// The tasks of `stint eval`: one row each.
#ifndef ST_EVAL_TASKS_H
#define ST_EVAL_TASKS_H

#include "eval/mean.h"
#include "eval/score.h"

struct st_eval {
    const struct stint_model *model; // the subject's
    struct st_subject subject;
    const stint_eval_options *options;
    stint_eval_result result;
};

enum { ST_TASK_PLACES = 2 };

struct st_task {
    const char *name, *about;
    st_items_read_fn *read; // NULL: the data is a text
    stint_status (*run)(struct st_eval *eval, const struct st_task *task);
    const char *places[ST_TASK_PLACES]; // its data in a folder of data sets; NULL: nowhere
    bool folders;                       // it also reads a folder
    bool chats;                         // prompts are what a user says, in the chat template
    uint32_t n_tokens;                  // of a generated answer, unless the options say it
};

// The i-th task; NULL past the last.
const struct st_task *st_task_at(size_t i);

// *Returns* the path of the task's data, malloc'ed: `given`, or where that is a folder, the first
// of the task's places in it. A place is looked for below the folder of all data sets and below the
// task's own one ("lambada/lambada_test.jsonl" and "lambada_test.jsonl"). STINT_E_IO if a folder
// has none and the task reads none.
stint_status st_task_data(const struct st_task *task, const char *given, char **path);

stint_status st_eval_choices(struct st_eval *eval, const struct st_task *task);
stint_status st_eval_droidtask(struct st_eval *eval, const struct st_task *task);
stint_status st_eval_generate(struct st_eval *eval, const struct st_task *task);
stint_status st_eval_longqa(struct st_eval *eval, const struct st_task *task);
stint_status st_eval_last_word(struct st_eval *eval, const struct st_task *task);
stint_status st_eval_mt_bench(struct st_eval *eval, const struct st_task *task);
stint_status st_eval_perplexity(struct st_eval *eval, const struct st_task *task);
stint_status st_eval_agreement(struct st_eval *eval, const struct st_task *task);

// Call after each item: reports progress and the result so far. STINT_E_CANCELED if the caller asks
// to stop.
stint_status st_eval_step(struct st_eval *eval, uint64_t done, uint64_t total);

#endif
