// SPDX-License-Identifier: Apache-2.0
// stint eval: measures the quality of a model, or its distance from another one.
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/eval_report.h"
#include "cli/file.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/reference.h"
#include "cli/words.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_MAX_BYTES = 64 << 20 };

struct eval_options {
    struct st_cli_common common;
    const char *task, *data, *reference, *items, *method, *methods, *calib;
    uint32_t limit, window, stride, n_tokens;
};

static const struct st_cli_option rows[] = {
    {.name = "task",
     .letter = 't',
     .kind = ST_CLI_TEXT,
     .value = "NAME",
     .help = "ppl, agreement, lambada, hellaswag, winogrande, openbookqa, arc_easy, arc_challenge, "
             "piqa, mmlu, generate, longqa, droidtask or mt_bench; several with commas: a table",
     .offset = offsetof(struct eval_options, task)},
    {.name = "tasks",
     .kind = ST_CLI_TEXT,
     .value = "NAME,NAME...",
     .help = "the same as --task",
     .offset = offsetof(struct eval_options, task)},
    {.name = "data",
     .letter = 'd',
     .kind = ST_CLI_TEXT,
     .value = "FILE",
     .help =
         "the text, or the file of the data set (for mmlu also the folder of its subjects); for "
         "several tasks a file each, with commas, or a folder that holds lambada/, "
         "hellaswag/, ...",
     .offset = offsetof(struct eval_options, data)},
    {.name = "reference",
     .kind = ST_CLI_TEXT,
     .value = "MODEL",
     .help = "agreement: the model to compare with, e.g. the checkpoint of a package",
     .offset = offsetof(struct eval_options, reference)},
    {.name = "method",
     .kind = ST_CLI_TEXT,
     .value = "NAME",
     .help = "quantize a float model first: float, w8a8, clip, shadow, smoothquant, int8(), group, "
             "awq, rotation or prefix",
     .offset = offsetof(struct eval_options, method)},
    {.name = "methods",
     .kind = ST_CLI_TEXT,
     .value = "NAME,NAME...",
     .help = "several methods, as a table",
     .offset = offsetof(struct eval_options, methods)},
    {.name = "calib",
     .kind = ST_CLI_TEXT,
     .value = "FILE",
     .help = "calibration text for the methods; without it one that ships with stint",
     .offset = offsetof(struct eval_options, calib)},
    {.name = "limit",
     .kind = ST_CLI_UINT,
     .value = "N",
     .max = 1e9,
     .help = "maximum number of items, or of windows of a text; 0: all",
     .offset = offsetof(struct eval_options, limit)},
    {.name = "window",
     .kind = ST_CLI_UINT,
     .value = "N",
     .max = 1 << 20,
     .help = "tokens per window of a text; without it 512, or the model's context",
     .offset = offsetof(struct eval_options, window)},
    {.name = "stride",
     .kind = ST_CLI_UINT,
     .value = "N",
     .max = 1 << 20,
     .help = "distance between windows in tokens; without it windows do not overlap",
     .offset = offsetof(struct eval_options, stride)},
    {.name = "tokens",
     .letter = 'n',
     .kind = ST_CLI_UINT,
     .value = "N",
     .max = 4096,
     .help = "maximum tokens of a generated answer; without it 64 for generate, whose answers "
             "end with their line, 32 for longqa, 512 for droidtask, 1024 for mt_bench",
     .offset = offsetof(struct eval_options, n_tokens)},
    {.name = "items",
     .kind = ST_CLI_TEXT,
     .value = "FILE.jsonl",
     .help = "write the scores of each item, one JSON object per line; for mt_bench the answers, "
             "as FastChat's judge reads them",
     .offset = offsetof(struct eval_options, items)},
    {.name = NULL}};

// The context of the library's callbacks.
struct watcher {
    struct st_cli_progress progress;
    struct st_cli_writer *writer; // NULL: items are not written
    const char *task;             // NULL: the only one
    const struct st_cli_eval_run *run;
    bool failed, live;
    double shown;
};

static void show_progress(void *context, const char *what, uint64_t done, uint64_t total) {
    struct watcher *w = context;
    if (!w->live) st_cli_progress_show(&w->progress, what, done, total);
}

// On a terminal: shows the current value and its error a few times per second.
static void show_running(void *context, const stint_eval_result *result) {
    struct watcher *w = context;
    double now = st_cli_seconds();
    if (!w->live || now - w->shown < 0.2) return;
    w->shown = now;
    fprintf(stderr, "\r%s%s%llu items", w->task != NULL ? w->task : "", w->task != NULL ? ": " : "",
            (unsigned long long)result->items);
    for (size_t i = 0; i < STINT_EVAL_METRICS && result->metrics[i].name != NULL; i++)
        fprintf(stderr, ", %s %.4g +- %.2g", result->metrics[i].name, result->metrics[i].value,
                result->metrics[i].error);
    fputs("\033[K", stderr);
    fflush(stderr);
}

// Its items are answers, in a file that another program judges.
static bool is_for_judge(const char *task) {
    return strcmp(task, "mt_bench") == 0;
}

static void write_item(void *context, const stint_eval_item *item) {
    struct watcher *w = context;
    if (w->writer == NULL || w->failed) return;
    json_t *object = is_for_judge(w->run->task) ? st_cli_eval_answers(w->run, item)
                                                : st_cli_eval_item(w->task, item);
    char *line = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
    w->failed = line == NULL || !st_cli_writer_put(w->writer, line, strlen(line)) ||
                !st_cli_writer_put(w->writer, "\n", 1);
    free(line);
    json_decref(object);
}

// The model, data and texts of one call.
struct subject {
    const struct eval_options *options;
    const stint_model *model, *reference;
    struct st_cli_words tasks, data, methods; // data: one for all tasks, or one each
    char *text;                               // calibration text; NULL: stint's own
    size_t text_bytes;
    struct st_cli_writer *writer; // NULL: items are not written
};

static bool evaluate(const struct st_cli_command *command, const struct subject *subject, size_t t,
                     const struct st_cli_eval_run *run, stint_eval_result *result) {
    const struct eval_options *options = subject->options;
    const char *shown = subject->tasks.n > 1 ? run->task : NULL;
    stint_session_options session = st_cli_session_options(&options->common);
    struct watcher w = {
        .live = isatty(STDERR_FILENO), .writer = subject->writer, .task = shown, .run = run};
    stint_eval_options eval = {.size = sizeof eval,
                               .task = run->task,
                               .data = subject->data.at[subject->data.n > 1 ? t : 0],
                               .reference = subject->reference,
                               .limit = options->limit,
                               .window = options->window,
                               .stride = options->stride,
                               .n_tokens = options->n_tokens,
                               .session = &session,
                               .method = run->method,
                               .text = subject->text,
                               .text_bytes = subject->text_bytes,
                               .progress = show_progress,
                               .running = show_running,
                               .item = write_item,
                               .canceled = st_cli_interrupted,
                               .context = &w};
    *result = (stint_eval_result){.size = sizeof *result};
    st_cli_interrupt_note();
    bool ok = stint_eval(subject->model, &eval, result) == STINT_OK;
    st_cli_interrupt_watch(NULL);
    st_cli_progress_end(&w.progress);
    if (w.shown > 0) fputs("\r\033[K", stderr);
    if (!ok && shown != NULL) st_cli_failed_with(command, shown);
    if (!ok && shown == NULL) st_cli_failed(command);
    return ok && !w.failed;
}

// One task with all methods. Adds the results to `table`, and prints those of the only task.
static bool run_task(const struct st_cli_command *command, const struct subject *subject, size_t t,
                     stint_eval_result *results, json_t *table) {
    const struct st_cli_words *methods = &subject->methods;
    bool prints = !subject->options->common.json && subject->tasks.n == 1;
    for (size_t m = 0; m < methods->n; m++) {
        const struct st_cli_eval_run one = {subject->model, subject->options->common.model,
                                            subject->tasks.at[t], methods->at[m]};
        if (!evaluate(command, subject, t, &one, &results[m])) return false;
        json_array_append_new(table, st_cli_eval_describe(&one, &results[m]));
        if (prints && subject->options->methods != NULL)
            st_cli_eval_print_row(methods->at[m], m == 0, &results[m]);
        else if (prints)
            st_cli_eval_print(&results[m]);
    }
    return true;
}

static void print_titles(const struct subject *subject) {
    const char *titles[ST_CLI_WORDS_MAX];
    for (size_t m = 0; m < subject->methods.n; m++)
        titles[m] = st_cli_eval_method(
            &(struct st_cli_eval_run){.model = subject->model, .method = subject->methods.at[m]});
    st_cli_eval_print_titles(titles, subject->methods.n);
}

static bool run_tasks(const struct st_cli_command *command, const struct subject *subject,
                      json_t *table) {
    stint_eval_result results[ST_CLI_WORDS_MAX];
    bool prints = !subject->options->common.json && subject->tasks.n > 1;
    if (prints) print_titles(subject);
    for (size_t t = 0; t < subject->tasks.n; t++) {
        if (!run_task(command, subject, t, results, table)) return false;
        if (prints) st_cli_eval_print_task(subject->tasks.at[t], results, subject->methods.n);
    }
    return true;
}

// A single result is an object of its own, several are rows.
static bool report(const struct st_cli_command *command, const struct subject *subject,
                   json_t *table) {
    bool several = subject->tasks.n > 1 || subject->options->methods != NULL;
    json_t *object =
        several ? json_pack("{s:O}", "rows", table) : json_incref(json_array_get(table, 0));
    return st_cli_print_json(command->name, object);
}

static bool open_all(const struct st_cli_command *command, const struct eval_options *options,
                     stint_model **model, stint_model **reference, struct subject *subject) {
    subject->options = options;
    if (options->calib != NULL) {
        subject->text =
            st_cli_read_all(command->name, options->calib, TEXT_MAX_BYTES, &subject->text_bytes);
        if (subject->text == NULL) return false;
    }
    // Methods are applied to what a model is in float.
    bool exact = (options->methods != NULL || options->method != NULL) &&
                 options->common.exec == STINT_EXEC_DEFAULT;
    *model = exact ? st_cli_open_exact(command, &options->common)
                   : st_cli_open_model(command, &options->common, NULL, NULL);
    subject->model = *model;
    if (*model == NULL || options->reference == NULL) return *model != NULL;
    subject->reference = *reference =
        st_cli_open_reference(command, &options->common, options->reference);
    return *reference != NULL;
}

// With --items: writes to a file that is either complete or missing.
static bool run_all(const struct st_cli_command *command, struct subject *subject) {
    const struct eval_options *options = subject->options;
    struct st_cli_writer writer = {0};
    bool writing = options->items != NULL;
    if (writing && !st_cli_writer_open(&writer, command->name, options->items)) return false;
    subject->writer = writing ? &writer : NULL;
    json_t *table = json_array();
    bool ok = run_tasks(command, subject, table);
    if (ok && options->common.json) ok = report(command, subject, table);
    json_decref(table);
    return writing ? st_cli_writer_close(&writer, ok) && ok : ok;
}

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_task(const char *name) {
    const char *known;
    for (size_t i = 0; (known = stint_eval_task(i, NULL)) != NULL; i++)
        if (strcmp(known, name) == 0) return true;
    return false;
}

// The first of several tasks that is not known, before the others take their time; NULL: none.
static const char *unknown_task(const struct st_cli_words *tasks) {
    for (size_t t = 0; tasks->n > 1 && t < tasks->n; t++)
        if (!is_task(tasks->at[t])) return tasks->at[t];
    return NULL;
}

// Answers for a judge need a file of their own, of one model.
static bool judged_wrongly(const struct eval_options *options, const struct subject *subject) {
    bool alone = subject->tasks.n == 1 && subject->methods.n == 1 && options->items != NULL;
    for (size_t t = 0; t < subject->tasks.n; t++)
        if (is_for_judge(subject->tasks.at[t])) return !alone;
    return false;
}

// Splits the lists of tasks, data and methods; false with a usage error printed.
static bool split_lists(const struct st_cli_command *command, const struct eval_options *options,
                        struct subject *subject) {
    struct st_cli_words *tasks = &subject->tasks, *data = &subject->data;
    bool fits = st_cli_words_split(options->task, tasks);
    st_cli_words_one(options->data, data);
    if (tasks->n > 1 && !is_folder(options->data))
        fits = st_cli_words_split(options->data, data) && fits;
    st_cli_words_one(options->method, &subject->methods);
    if (options->methods != NULL)
        fits = st_cli_words_split(options->methods, &subject->methods) && fits;
    if (!fits)
        st_cli_error(command->name, "a list of tasks, files or methods has at most %d",
                     ST_CLI_WORDS_MAX);
    else if (tasks->n == 0 || subject->methods.n == 0)
        st_cli_error(command->name, "the list of %s is empty",
                     tasks->n == 0 ? "--task" : "--methods");
    else if (unknown_task(tasks) != NULL)
        st_cli_error(command->name, "--task: '%s' is not known; 'stint eval --help' lists them",
                     unknown_task(tasks));
    else if (judged_wrongly(options, subject))
        st_cli_error(command->name,
                     "mt_bench is answered alone: one task, one method, --items FILE.jsonl");
    else if (tasks->n > 1 && data->n != tasks->n && !is_folder(options->data))
        st_cli_error(command->name,
                     "--data: %zu files for %zu tasks; give one for each, or a folder of data sets",
                     data->n, tasks->n);
    else
        return true;
    return false;
}

static void free_subject(struct subject *subject) {
    free(subject->text);
    st_cli_words_free(&subject->tasks);
    st_cli_words_free(&subject->data);
    st_cli_words_free(&subject->methods);
}

static int run(const struct st_cli_command *command, void *target) {
    const struct eval_options *options = target;
    if (options->task == NULL || options->data == NULL) {
        st_cli_error(command->name, "%s is missing",
                     options->task == NULL ? "--task NAME" : "--data FILE");
        return ST_CLI_USAGE;
    }
    if (options->method != NULL && options->methods != NULL) {
        st_cli_error(command->name, "give one of --method and --methods");
        return ST_CLI_USAGE;
    }
    stint_model *model = NULL, *reference = NULL;
    struct subject subject = {0};
    if (!split_lists(command, options, &subject)) {
        free_subject(&subject);
        return ST_CLI_USAGE;
    }
    bool ok =
        open_all(command, options, &model, &reference, &subject) && run_all(command, &subject);
    free_subject(&subject);
    stint_model_close(reference);
    stint_model_close(model);
    return ok ? ST_CLI_DONE : ST_CLI_FAILED;
}

const struct st_cli_command st_cli_eval_command = {
    .name = "eval",
    .summary = "measure quality: perplexity, choices, agreement with another model",
    .operand = "MODEL",
    .about = "Scores a model on a data set in its own format, or on any text. Accuracies are "
             "defined as in lm-evaluation-harness, without examples (zero-shot). "
             "--task agreement compares with --reference: how often the likeliest token is the "
             "same, the mean divergence, and the ratio of perplexities.",
    .example = "stint eval models/novels-10m --task ppl --data README.md --window 256",
    .common = (ST_CLI_COMMON_SESSION & ~ST_CLI_COMMON_CONTEXT) | ST_CLI_COMMON_JSON |
              ST_CLI_COMMON_SCHEDULE | ST_CLI_COMMON_NESTED,
    .options = rows,
    .options_bytes = sizeof(struct eval_options),
    .run = run};
