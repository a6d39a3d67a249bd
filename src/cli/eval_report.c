// SPDX-License-Identifier: Apache-2.0
#include "cli/eval_report.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

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

static json_t *add_metrics(const stint_eval_item *item, json_t *object) {
    for (size_t i = 0; i < STINT_EVAL_METRICS && item->metrics[i].name != NULL; i++)
        json_object_set_new(object, item->metrics[i].name, json_real(item->metrics[i].value));
    return object;
}

static json_t *describe_window(const stint_eval_item *item) {
    return add_metrics(item, json_pack("{s:I, s:I}", "item", (json_int_t)item->index, "tokens",
                                       (json_int_t)item->tokens));
}

static json_t *describe_text(const stint_eval_item *item) {
    return add_metrics(
        item, json_pack("{s:I, s:s}", "item", (json_int_t)item->index, "text", item->text));
}

static json_t *describe_item(const stint_eval_item *item) {
    if (item->n_choices > 0) return describe_choices(item);
    return item->text == NULL ? describe_window(item) : describe_text(item);
}

json_t *st_cli_eval_item(const char *task, const stint_eval_item *item) {
    json_t *object = describe_item(item);
    if (object != NULL && task != NULL) json_object_set_new(object, "task", json_string(task));
    return object;
}

// The last part of a path, without the ending of a model file.
static void name_model(const struct st_cli_eval_run *run, char *name, size_t bytes) {
    size_t n = strlen(run->path);
    while (n > 1 && run->path[n - 1] == '/') n--;
    size_t from = n;
    while (from > 0 && run->path[from - 1] != '/') from--;
    const char *const endings[] = {".gguf", ".stint"};
    for (size_t i = 0; i < 2; i++) {
        size_t length = strlen(endings[i]);
        if (n - from > length && memcmp(run->path + n - length, endings[i], length) == 0)
            n -= length;
    }
    snprintf(name, bytes, "%.*s%s%s", (int)(n - from), run->path + from,
             run->method != NULL ? "-" : "", run->method != NULL ? run->method : "");
}

json_t *st_cli_eval_answers(const struct st_cli_eval_run *run, const stint_eval_item *item) {
    char model[256], id[300];
    json_int_t question = (json_int_t)item->index;
    name_model(run, model, sizeof model);
    snprintf(id, sizeof id, "%s-%lld", model, (long long)question);
    return json_pack("{s:I, s:s, s:s, s:[{s:i, s:o}], s:f}", "question_id", question, "answer_id",
                     id, "model_id", model, "choices", "index", 0, "turns",
                     json_loads(item->text, 0, NULL), "tstamp", (double)time(NULL));
}

const char *st_cli_eval_method(const struct st_cli_eval_run *run) {
    stint_model_info info = {.size = sizeof info};
    if (run->method != NULL) return run->method;
    if (stint_model_describe(run->model, &info) != STINT_OK) return "";
    return info.exec == STINT_EXEC_NPU ? "shadow" : stint_exec_name(info.exec);
}

json_t *st_cli_eval_describe(const struct st_cli_eval_run *run, const stint_eval_result *result) {
    stint_model_info info = {.size = sizeof info};
    const char *exec =
        stint_model_describe(run->model, &info) == STINT_OK ? stint_exec_name(info.exec) : "";
    json_t *values = json_object(), *errors = json_object();
    for (size_t i = 0; i < STINT_EVAL_METRICS && result->metrics[i].name != NULL; i++) {
        json_object_set_new(values, result->metrics[i].name, json_real(result->metrics[i].value));
        json_object_set_new(errors, result->metrics[i].name, json_real(result->metrics[i].error));
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:f}", "model", run->path, "exec",
                     exec, "task", run->task, "method", st_cli_eval_method(run), "items",
                     (json_int_t)result->items, "tokens", (json_int_t)result->tokens, "metrics",
                     values, "stderr", errors, "seconds", result->seconds);
}

void st_cli_eval_print(const stint_eval_result *result) {
    for (size_t i = 0; i < STINT_EVAL_METRICS && result->metrics[i].name != NULL; i++)
        printf("%-10s %.6g +- %.2g\n", result->metrics[i].name, result->metrics[i].value,
               result->metrics[i].error);
    fflush(stdout);
    fprintf(stderr, "%llu items, %llu tokens scored in %.1f s\n", (unsigned long long)result->items,
            (unsigned long long)result->tokens, result->seconds);
}

void st_cli_eval_print_row(const char *method, bool first, const stint_eval_result *result) {
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

void st_cli_eval_print_titles(const char *const *methods, size_t n) {
    printf("%-14s %-10s", "task", "metric");
    for (size_t m = 0; m < n; m++) printf(" %20s", methods[m]);
    putchar('\n');
    fflush(stdout);
}

void st_cli_eval_print_task(const char *task, const stint_eval_result *results, size_t n) {
    for (size_t i = 0; i < STINT_EVAL_METRICS && results[0].metrics[i].name != NULL; i++) {
        printf("%-14s %-10s", task, results[0].metrics[i].name);
        for (size_t m = 0; m < n; m++)
            printf(" %10.5g +- %-6.2g", results[m].metrics[i].value, results[m].metrics[i].error);
        putchar('\n');
    }
    fflush(stdout);
}
