// SPDX-License-Identifier: Apache-2.0
// stint eval: measures the quality of a model, or its distance from another one.
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/file.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
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
     .help = "ppl, agreement, lambada, hellaswag, winogrande, openbookqa, mmlu or generate",
     .offset = offsetof(struct eval_options, task)},
    {.name = "data",
     .letter = 'd',
     .kind = ST_CLI_TEXT,
     .value = "FILE",
     .help = "the text, or the file of the data set (for mmlu also the folder of its subjects)",
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
     .preset = "64",
     .max = 4096,
     .help = "generate: maximum tokens of an answer, which ends with its line",
     .offset = offsetof(struct eval_options, n_tokens)},
    {.name = "items",
     .kind = ST_CLI_TEXT,
     .value = "FILE.jsonl",
     .help = "write the scores of each item, one JSON object per line",
     .offset = offsetof(struct eval_options, items)},
    {.name = NULL}};

// The context of the library's callbacks.
struct watcher {
    struct st_cli_progress progress;
    struct st_cli_writer *writer; // NULL: items are not written
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
    fprintf(stderr, "\r%llu items", (unsigned long long)result->items);
    for (size_t i = 0; i < STINT_EVAL_METRICS && result->metrics[i].name != NULL; i++)
        fprintf(stderr, ", %s %.4g +- %.2g", result->metrics[i].name, result->metrics[i].value,
                result->metrics[i].error);
    fputs("\033[K", stderr);
    fflush(stderr);
}

static json_t *describe_choices(const stint_eval_item *item) {
    json_t *scores = json_array(), *lengths = json_array();
    for (uint32_t i = 0; i < item->n_choices; i++) {
        json_array_append_new(scores, json_real(item->log_likelihood[i]));
        json_array_append_new(lengths, json_integer(item->lengths[i]));
    }
    return json_pack("{s:I, s:o, s:o, s:I, s:b}", "item", (json_int_t)item->index, "log_likelihood",
                     scores, "characters", lengths, "answer", (json_int_t)item->answer, "greedy",
                     item->greedy);
}

static json_t *describe_window(const stint_eval_item *item) {
    json_t *object = json_pack("{s:I, s:I}", "item", (json_int_t)item->index, "tokens",
                               (json_int_t)item->tokens);
    for (size_t i = 0; i < STINT_EVAL_METRICS && item->metrics[i].name != NULL; i++)
        json_object_set_new(object, item->metrics[i].name, json_real(item->metrics[i].value));
    return object;
}

static json_t *describe_item(const stint_eval_item *item) {
    if (item->n_choices > 0) return describe_choices(item);
    if (item->text == NULL) return describe_window(item);
    return json_pack("{s:I, s:s+, s:f, s:f}", "item", (json_int_t)item->index, "text", item->text,
                     "", "rouge_l", item->rouge_l, "token_f1", item->token_f1);
}

static void write_item(void *context, const stint_eval_item *item) {
    struct watcher *w = context;
    if (w->writer == NULL || w->failed) return;
    json_t *object = describe_item(item);
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
    char *text; // calibration text; NULL: stint's own
    size_t text_bytes;
};

static bool evaluate(const struct st_cli_command *command, const struct subject *subject,
                     const char *method, struct st_cli_writer *writer, stint_eval_result *result) {
    const struct eval_options *options = subject->options;
    stint_session_options session = st_cli_session_options(&options->common);
    struct watcher w = {.live = isatty(STDERR_FILENO), .writer = writer};
    stint_eval_options eval = {.size = sizeof eval,
                               .task = options->task,
                               .data = options->data,
                               .reference = subject->reference,
                               .limit = options->limit,
                               .window = options->window,
                               .stride = options->stride,
                               .n_tokens = options->n_tokens,
                               .session = &session,
                               .method = method,
                               .text = subject->text,
                               .text_bytes = subject->text_bytes,
                               .progress = show_progress,
                               .running = show_running,
                               .item = write_item,
                               .canceled = st_cli_interrupted,
                               .context = &w};
    st_cli_interrupt_note();
    bool ok = stint_eval(subject->model, &eval, result) == STINT_OK;
    st_cli_interrupt_watch(NULL);
    st_cli_progress_end(&w.progress);
    if (w.shown > 0) fputs("\r\033[K", stderr);
    if (!ok) st_cli_failed(command);
    return ok && !w.failed;
}

static json_t *describe(const struct subject *subject, const char *method,
                        const stint_eval_result *result) {
    stint_model_info info = {.size = sizeof info};
    const char *exec =
        stint_model_describe(subject->model, &info) == STINT_OK ? stint_exec_name(info.exec) : "";
    json_t *values = json_object(), *errors = json_object();
    for (size_t i = 0; i < STINT_EVAL_METRICS && result->metrics[i].name != NULL; i++) {
        json_object_set_new(values, result->metrics[i].name, json_real(result->metrics[i].value));
        json_object_set_new(errors, result->metrics[i].name, json_real(result->metrics[i].error));
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:f}", "model",
                     subject->options->common.model, "exec", exec, "task", subject->options->task,
                     "method",
                     method != NULL                ? method
                     : info.exec == STINT_EXEC_NPU ? "shadow"
                                                   : exec,
                     "items", (json_int_t)result->items, "tokens", (json_int_t)result->tokens,
                     "metrics", values, "stderr", errors, "seconds", result->seconds);
}

static void print_metrics(const stint_eval_result *result) {
    for (size_t i = 0; i < STINT_EVAL_METRICS && result->metrics[i].name != NULL; i++)
        printf("%-10s %.6g +- %.2g\n", result->metrics[i].name, result->metrics[i].value,
               result->metrics[i].error);
    fflush(stdout);
    fprintf(stderr, "%llu items, %llu tokens scored in %.1f s\n", (unsigned long long)result->items,
            (unsigned long long)result->tokens, result->seconds);
}

// One line of the table; the first one also prints the column titles.
static void print_row(const char *method, bool first, const stint_eval_result *result) {
    const stint_eval_metric *m = result->metrics;
    if (first) {
        printf("%-12s", "method");
        for (size_t i = 0; i < STINT_EVAL_METRICS && m[i].name != NULL; i++)
            printf(" %20s", m[i].name);
        putchar('\n');
    }
    printf("%-12s", method);
    for (size_t i = 0; i < STINT_EVAL_METRICS && m[i].name != NULL; i++)
        printf(" %10.5g +- %-6.2g", m[i].value, m[i].error);
    putchar('\n');
    fflush(stdout);
}

static bool run_one(const struct st_cli_command *command, const struct subject *subject,
                    struct st_cli_writer *writer) {
    stint_eval_result result = {.size = sizeof result};
    const char *method = subject->options->method;
    if (!evaluate(command, subject, method, writer, &result)) return false;
    if (subject->options->common.json)
        return st_cli_print_json(command->name, describe(subject, method, &result));
    print_metrics(&result);
    return true;
}

static bool run_methods(const struct st_cli_command *command, const struct subject *subject,
                        struct st_cli_writer *writer) {
    char *names = strdup(subject->options->methods), *rest = NULL;
    bool json = subject->options->common.json, ok = names != NULL;
    json_t *table = json_array();
    for (char *name = ok ? strtok_r(names, ",", &rest) : NULL; name != NULL && ok;
         name = strtok_r(NULL, ",", &rest)) {
        stint_eval_result result = {.size = sizeof result};
        ok = evaluate(command, subject, name, writer, &result);
        if (ok && !json) print_row(name, json_array_size(table) == 0, &result);
        if (ok) json_array_append_new(table, describe(subject, name, &result));
    }
    free(names);
    if (ok && json) return st_cli_print_json(command->name, json_pack("{s:o}", "rows", table));
    json_decref(table);
    return ok;
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
static bool run_all(const struct st_cli_command *command, const struct subject *subject) {
    const struct eval_options *options = subject->options;
    struct st_cli_writer writer = {0};
    bool writing = options->items != NULL;
    if (writing && !st_cli_writer_open(&writer, command->name, options->items)) return false;
    struct st_cli_writer *to = writing ? &writer : NULL;
    bool ok = options->methods != NULL ? run_methods(command, subject, to)
                                       : run_one(command, subject, to);
    return writing ? st_cli_writer_close(&writer, ok) && ok : ok;
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
    bool ok =
        open_all(command, options, &model, &reference, &subject) && run_all(command, &subject);
    free(subject.text);
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
