// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks.h"

#include "base/clock.h"
#include "base/size.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct st_task tasks[] = {
    {"ppl", "perplexity of a text", NULL, st_eval_perplexity},
    {"agreement", "a text: same first choice as the reference, divergence from it", NULL,
     st_eval_agreement},
    {"lambada", "the last word of passages (JSONL)", st_items_read_lambada, st_eval_last_word},
    {"hellaswag", "how a story goes on (six lines an item)", st_items_read_hellaswag,
     st_eval_choices},
    {"winogrande", "whom a sentence means (JSONL or CSV)", st_items_read_winogrande,
     st_eval_choices},
    {"openbookqa", "elementary science (JSONL)", st_items_read_openbookqa, st_eval_choices},
    {"mmlu", "exam questions of many subjects (CSV, or a folder of them)", st_items_read_mmlu,
     st_eval_choices},
    {"generate", "what is written after prompts, against references (JSONL)", st_items_read_prompts,
     st_eval_generate},
};

enum { N_TASKS = sizeof tasks / sizeof *tasks };

const char *stint_eval_task(size_t i, const char **about) {
    if (i >= N_TASKS) return NULL;
    if (about) *about = tasks[i].about;
    return tasks[i].name;
}

static stint_status find(const char *name, const struct st_task **task) {
    char known[256] = "";
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

stint_status st_eval_step(struct st_eval *eval, uint64_t done, uint64_t total) {
    const stint_eval_options *o = eval->options;
    if (o->progress) o->progress(o->context, o->task, done, total);
    if (o->running) o->running(o->context, &eval->result);
    if (o->canceled && o->canceled(o->context)) return st_fail(STINT_E_CANCELED, "canceled");
    return STINT_OK;
}

void st_mean_add(struct st_mean *mean, double value) {
    mean->n += 1.0;
    mean->sum += value;
    mean->squares += value * value;
}

double st_mean_value(const struct st_mean *mean) {
    return mean->n > 0.0 ? mean->sum / mean->n : 0.0;
}

double st_mean_error(const struct st_mean *mean) {
    if (mean->n < 2.0) return 0.0;
    double value = st_mean_value(mean);
    return sqrt(fmax(mean->squares / mean->n - value * value, 0.0) / (mean->n - 1.0));
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
    ST_TRY(st_subject_open(model, &o, &eval.subject));
    eval.model = eval.subject.model;
    stint_status status = task->run(&eval, task);
    st_subject_close(&eval.subject);
    ST_TRY(status);
    eval.result.seconds = (double)(st_now_ns() - begun) * 1e-9;
    memcpy(result, &eval.result, st_min(result->size, sizeof *result));
    return STINT_OK;
}
