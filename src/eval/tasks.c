// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks.h"

#include "base/clock.h"
#include "base/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct st_task tasks[] = {
    {.name = "ppl",
     .about = "perplexity of a text",
     .run = st_eval_perplexity,
     .places = {"wikitext-2/wiki.test.raw"}},
    {.name = "agreement",
     .about = "a text: same first choice as the reference, divergence from it",
     .run = st_eval_agreement,
     .places = {"wikitext-2/wiki.test.raw"}},
    {.name = "lambada",
     .about = "the last word of passages (JSONL)",
     .read = st_items_read_lambada,
     .run = st_eval_last_word,
     .places = {"lambada/lambada_test.jsonl"}},
    {.name = "hellaswag",
     .about = "how a story goes on (six lines an item)",
     .read = st_items_read_hellaswag,
     .run = st_eval_choices,
     .places = {"hellaswag/hellaswag_val.txt", "hellaswag/hellaswag_val_full.txt"}},
    {.name = "winogrande",
     .about = "whom a sentence means (JSONL or CSV)",
     .read = st_items_read_winogrande,
     .run = st_eval_choices,
     .places = {"winogrande/dev.jsonl", "winogrande/winogrande-eval.csv"}},
    {.name = "openbookqa",
     .about = "elementary science (JSONL)",
     .read = st_items_read_openbookqa,
     .run = st_eval_choices,
     .places = {"openbookqa/test.jsonl"}},
    {.name = "arc_easy",
     .about = "elementary science, ARC's easy questions (JSONL)",
     .read = st_items_read_arc,
     .run = st_eval_choices,
     .places = {"arc/ARC-Easy/ARC-Easy-Test.jsonl", "arc/ARC-Easy-Test.jsonl"}},
    {.name = "arc_challenge",
     .about = "elementary science, ARC's hard questions (JSONL)",
     .read = st_items_read_arc,
     .run = st_eval_choices,
     .places = {"arc/ARC-Challenge/ARC-Challenge-Test.jsonl", "arc/ARC-Challenge-Test.jsonl"}},
    {.name = "piqa",
     .about = "which of two ways reaches a goal (JSONL)",
     .read = st_items_read_piqa,
     .run = st_eval_choices,
     .places = {"piqa/valid.jsonl", "piqa/dev.jsonl"}},
    {.name = "mmlu",
     .about = "exam questions of many subjects (CSV, or a folder of them)",
     .read = st_items_read_mmlu,
     .run = st_eval_choices,
     .places = {"mmlu/test"},
     .folders = true},
    {.name = "generate",
     .about = "what is written after prompts, against references (JSONL)",
     .read = st_items_read_prompts,
     .run = st_eval_generate,
     .n_tokens = 64},
    {.name = "longqa",
     .about = "questions about passages, as LongBench asks them (JSONL, or a folder of them)",
     .read = st_items_read_longqa,
     .run = st_eval_longqa,
     .places = {"longqa"},
     .folders = true,
     .chats = true,
     .n_tokens = 32},
    {.name = "droidtask",
     .about = "steps of tasks on a phone (a folder of two JSON files)",
     .read = st_items_read_droidtask,
     .run = st_eval_droidtask,
     .places = {"droidtask"},
     .folders = true,
     .chats = true,
     .n_tokens = 512},
    {.name = "mt_bench",
     .about = "conversations of two turns, to be judged elsewhere (JSONL)",
     .read = st_items_read_mt_bench,
     .run = st_eval_mt_bench,
     .places = {"mt_bench/question.jsonl"},
     .chats = true,
     .n_tokens = 1024},
};

enum { N_TASKS = sizeof tasks / sizeof *tasks };

const struct st_task *st_task_at(size_t i) {
    return i < N_TASKS ? &tasks[i] : NULL;
}

const char *stint_eval_task(size_t i, const char **about) {
    if (i >= N_TASKS) return NULL;
    if (about) *about = tasks[i].about;
    return tasks[i].name;
}

static stint_status find(const char *name, const struct st_task **task) {
    char known[320] = "";
    size_t used = 0;
    for (size_t i = 0; i < N_TASKS; i++) {
        if (name && strcmp(name, tasks[i].name) == 0) {
            *task = &tasks[i];
            return STINT_OK;
        }
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                 tasks[i].name);
    }
    return st_fail(STINT_E_ARG, "task '%.64s' is not known; known are: %s", name ? name : "",
                   known);
}

static bool exists(const char *path) {
    struct stat info;
    return path && stat(path, &info) == 0;
}

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

// The place below the folder of all data sets, or below the task's own; NULL if it is in neither.
static char *look_below(const char *folder, const char *place) {
    for (const char *rest = place; rest; rest = strchr(rest, '/')) {
        rest += *rest == '/';
        char *path = NULL;
        if (asprintf(&path, "%s/%s", folder, rest) < 0) return NULL;
        if (exists(path)) return path;
        free(path);
    }
    return NULL;
}

stint_status st_task_data(const struct st_task *task, const char *given, char **path) {
    char *found = NULL;
    bool folder = is_folder(given);
    for (size_t i = 0; folder && !found && i < ST_TASK_PLACES && task->places[i]; i++)
        found = look_below(given, task->places[i]);
    if (!found && folder && !task->folders && !task->places[0])
        return st_fail(STINT_E_IO, "%s: is a folder; task '%s' needs a file", given, task->name);
    if (!found && folder && !task->folders)
        return st_fail(STINT_E_IO, "%s: is a folder without %s", given, task->places[0]);
    if (!found) found = strdup(given);
    if (!found) return st_fail(STINT_E_NOMEM, "no memory for a path");
    *path = found;
    return STINT_OK;
}

stint_status st_eval_step(struct st_eval *eval, uint64_t done, uint64_t total) {
    const stint_eval_options *o = eval->options;
    if (o->progress) o->progress(o->context, o->task, done, total);
    if (o->running) o->running(o->context, &eval->result);
    if (o->canceled && o->canceled(o->context)) return st_fail(STINT_E_CANCELED, "canceled");
    return STINT_OK;
}

stint_status stint_eval(const stint_model *model, const stint_eval_options *options,
                        stint_eval_result *result) {
    const struct st_task *task = NULL;
    stint_eval_options o = {0};
    if (!model || !options || !result || result->size == 0)
        return st_fail(STINT_E_ARG, "model and options may not be NULL, sizes must be set");
    memcpy(&o, options, st_min(options->size, sizeof o));
    ST_TRY(find(o.task, &task));
    if (!o.data) return st_fail(STINT_E_ARG, "task '%s' needs data", o.task);
    if (o.limit > SIZE_MAX / 64) return st_fail(STINT_E_ARG, "the limit is out of range");
    if (o.method && !o.reference) o.reference = model;
    struct st_eval eval = {.options = &o, .result = {.size = result->size}};
    uint64_t begun = st_now_ns();
    char *path = NULL;
    ST_TRY(st_task_data(task, o.data, &path));
    o.data = path;
    stint_status status = st_subject_open(model, &o, &eval.subject);
    eval.model = eval.subject.model;
    if (status == STINT_OK) status = task->run(&eval, task);
    st_subject_close(&eval.subject);
    free(path);
    ST_TRY(status);
    eval.result.seconds = (double)(st_now_ns() - begun) * 1e-9;
    memcpy(result, &eval.result, st_min(result->size, sizeof *result));
    return STINT_OK;
}
