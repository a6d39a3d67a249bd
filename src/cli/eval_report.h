// SPDX-License-Identifier: Apache-2.0
// What `stint eval` prints: one result, the methods of one task as a table, or a table of tasks and
// methods.
#ifndef ST_CLI_EVAL_REPORT_H
#define ST_CLI_EVAL_REPORT_H

#include "cli/common.h"

// Which result it is. `method`: NULL: the model as it is.
struct st_cli_eval_run {
    const stint_model *model;
    const char *path, *task, *method;
};

json_t *st_cli_eval_describe(const struct st_cli_eval_run *run, const stint_eval_result *result);
// The method's name, also of a model as it is.
const char *st_cli_eval_method(const struct st_cli_eval_run *run);

void st_cli_eval_print(const stint_eval_result *result);
// One method of one task; the first one also prints the column titles.
void st_cli_eval_print_row(const char *method, bool first, const stint_eval_result *result);
// One task of several, a line for each metric and a column for each of the n methods.
void st_cli_eval_print_titles(const char *const *methods, size_t n);
void st_cli_eval_print_task(const char *task, const stint_eval_result *results, size_t n);

// A line of --items: the item's scores, with its task where there are several (else NULL).
json_t *st_cli_eval_item(const char *task, const stint_eval_item *item);
// The same for "mt_bench": a line of an answer file of FastChat, whose model is named after the
// file of the model, and the method if there is one.
json_t *st_cli_eval_answers(const struct st_cli_eval_run *run, const stint_eval_item *item);

#endif
