// SPDX-License-Identifier: Apache-2.0
// stint eval: how good a model is, or how near to another one.
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/file.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct eval_options {
    struct st_cli_common common;
    const char *task, *data, *reference, *items;
    uint32_t limit, window, stride;
};

static const struct st_cli_option rows[] = {
    {.name = "task",
     .letter = 't',
     .kind = ST_CLI_TEXT,
     .value = "NAME",
     .help = "ppl, agreement, lambada, hellaswag, winogrande, openbookqa or mmlu",
     .offset = offsetof(struct eval_options, task)},
    {.name = "data",
     .letter = 'd',
     .kind = ST_CLI_TEXT,
     .value = "FILE",
     .help = "the text, or the data set's own file (mmlu also: the folder of its subjects)",
     .offset = offsetof(struct eval_options, data)},
    {.name = "reference",
     .kind = ST_CLI_TEXT,
     .value = "MODEL",
     .help = "agreement: the model to compare with, e.g. the checkpoint of a package",
     .offset = offsetof(struct eval_options, reference)},
    {.name = "limit",
     .kind = ST_CLI_UINT,
     .value = "N",
     .most = 1e9,
     .help = "at most N items, or windows of a text; 0: all",
     .offset = offsetof(struct eval_options, limit)},
    {.name = "window",
     .kind = ST_CLI_UINT,
     .value = "N",
     .most = 1 << 20,
     .help = "tokens of a text at once; without it 512, or the model's context",
     .offset = offsetof(struct eval_options, window)},
    {.name = "stride",
     .kind = ST_CLI_UINT,
     .value = "N",
     .most = 1 << 20,
     .help = "by which windows move on; without it a whole one",
     .offset = offsetof(struct eval_options, stride)},
    {.name = "items",
     .kind = ST_CLI_TEXT,
     .value = "FILE.jsonl",
     .help = "write each item's scores, one JSON object a line",
     .offset = offsetof(struct eval_options, items)},
    {.name = NULL}};

// What the library calls back into.
struct watcher {
    struct st_cli_progress progress;
    struct st_cli_writer writer;
    bool writing, failed, live;
    double shown;
};

static void show_progress(void *context, const char *what, uint64_t done, uint64_t total) {
    struct watcher *w = context;
    if (!w->live) st_cli_progress_show(&w->progress, what, done, total);
}

// On a terminal: the running value with its error, some times a second.
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

static void write_item(void *context, const stint_eval_item *item) {
    struct watcher *w = context;
    if (!w->writing || w->failed) return;
    json_t *scores = json_array(), *lengths = json_array();
    for (uint32_t i = 0; i < item->n_choices; i++) {
        json_array_append_new(scores, json_real(item->log_likelihood[i]));
        json_array_append_new(lengths, json_integer(item->lengths[i]));
    }
    json_t *object = json_pack("{s:I, s:o, s:o, s:I, s:b}", "item", (json_int_t)item->index,
                               "log_likelihood", scores, "characters", lengths, "answer",
                               (json_int_t)item->answer, "greedy", item->greedy);
    char *line = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
    w->failed = line == NULL || !st_cli_writer_put(&w->writer, line, strlen(line)) ||
                !st_cli_writer_put(&w->writer, "\n", 1);
    free(line);
    json_decref(object);
}

static bool evaluate(const struct st_cli_command *command, const struct eval_options *options,
                     const stint_model *model, const stint_model *reference,
                     stint_eval_result *result) {
    stint_session_options session = st_cli_session_options(&options->common);
    struct watcher w = {.live = isatty(STDERR_FILENO)};
    stint_eval_options eval = {.size = sizeof eval,
                               .task = options->task,
                               .data = options->data,
                               .reference = reference,
                               .limit = options->limit,
                               .window = options->window,
                               .stride = options->stride,
                               .session = &session,
                               .progress = show_progress,
                               .running = show_running,
                               .item = write_item,
                               .canceled = st_cli_interrupted,
                               .context = &w};
    w.writing = options->items != NULL;
    if (w.writing && !st_cli_writer_open(&w.writer, command->name, options->items)) return false;
    st_cli_interrupt_note();
    bool ok = stint_eval(model, &eval, result) == STINT_OK;
    st_cli_interrupt_watch(NULL);
    st_cli_progress_end(&w.progress);
    if (w.shown > 0) fputs("\r\033[K", stderr);
    if (!ok) st_cli_failed(command);
    if (w.writing) ok = st_cli_writer_close(&w.writer, ok && !w.failed) && ok && !w.failed;
    return ok;
}

static bool report(const struct st_cli_command *command, const struct eval_options *options,
                   const stint_model *model, const stint_eval_result *result) {
    stint_model_info info = {.size = sizeof info};
    if (stint_model_describe(model, &info) != STINT_OK) return st_cli_failed(command), false;
    bool npu = info.exec == STINT_EXEC_NPU;
    json_t *values = json_object(), *errors = json_object();
    for (size_t i = 0; i < STINT_EVAL_METRICS && result->metrics[i].name != NULL; i++) {
        const stint_eval_metric *m = &result->metrics[i];
        if (!options->common.json) printf("%-10s %.6g +- %.2g\n", m->name, m->value, m->error);
        json_object_set_new(values, m->name, json_real(m->value));
        json_object_set_new(errors, m->name, json_real(m->error));
    }
    json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:f}", "model",
                               options->common.model, "exec", npu ? "npu" : "float", "task",
                               options->task, "method", npu ? "shadow" : "float", "items",
                               (json_int_t)result->items, "tokens", (json_int_t)result->tokens,
                               "metrics", values, "stderr", errors, "seconds", result->seconds);
    if (options->common.json) return st_cli_print_json(command->name, object);
    json_decref(object);
    fprintf(stderr, "%llu items, %llu tokens scored in %.1f s\n", (unsigned long long)result->items,
            (unsigned long long)result->tokens, result->seconds);
    return true;
}

static int run(const struct st_cli_command *command, void *target) {
    const struct eval_options *options = target;
    if (options->task == NULL || options->data == NULL) {
        st_cli_error(command->name, "%s is missing",
                     options->task == NULL ? "--task NAME" : "--data FILE");
        return ST_CLI_USAGE;
    }
    stint_model *model = st_cli_open_model(command, &options->common, NULL), *reference = NULL;
    bool ok = model != NULL;
    if (ok && options->reference != NULL) {
        struct st_cli_common common = options->common;
        common.model = options->reference;
        common.exec = ST_CLI_EXEC_AUTO;
        reference = st_cli_open_model(command, &common, NULL);
        ok = reference != NULL;
    }
    stint_eval_result result = {.size = sizeof result};
    ok = ok && evaluate(command, options, model, reference, &result) &&
         report(command, options, model, &result);
    stint_model_close(reference);
    stint_model_close(model);
    return ok ? ST_CLI_DONE : ST_CLI_FAILED;
}

const struct st_cli_command st_cli_eval_command = {
    .name = "eval",
    .summary = "measure quality: perplexity, choices, agreement with another model",
    .operand = "MODEL",
    .about = "Scores a model on a data set in its own format, or on any text. Accuracies are "
             "defined as in lm-evaluation-harness, without examples before the question. "
             "--task agreement compares with --reference: how often the likeliest token is the "
             "same, and the mean divergence.",
    .example = "stint eval models/novels-10m --task ppl --data README.md --window 256",
    .common = ST_CLI_COMMON_SESSION - ST_CLI_COMMON_CONTEXT + ST_CLI_COMMON_JSON,
    .options = rows,
    .options_bytes = sizeof(struct eval_options),
    .run = run};
