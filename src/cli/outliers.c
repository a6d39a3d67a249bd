// SPDX-License-Identifier: Apache-2.0
#include "cli/outliers.h"

#include "cli/file.h"
#include "cli/output.h"

#include <stdlib.h>

static double number(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

static int falling_importance(const void *a, const void *b) {
    double x = number(*(json_t *const *)a, "importance");
    double y = number(*(json_t *const *)b, "importance");
    return (x < y) - (x > y);
}

static void print_rows(json_t **linears, size_t n) {
    printf("%-24s %10s %10s %9s %9s %8s %5s\n", "linear", "importance", "threshold", "channels",
           "per token", "hot", "");
    for (size_t i = 0; i < n; i++) {
        const json_t *l = linears[i];
        const char *name = json_string_value(json_object_get(l, "linear"));
        bool shadowed = json_is_true(json_object_get(l, "shadowed"));
        printf("%-24s %10.2f %10.3g %9.0f %9.2f %8.0f %s\n", name != NULL ? name : "?",
               number(l, "importance"), number(l, shadowed ? "threshold" : "clip"),
               number(l, "outlier_channels"), number(l, "per_token"), number(l, "hot_channels"),
               shadowed ? "shadowed" : "pruned");
    }
}

static bool print_table(const json_t *notes) {
    const json_t *list = json_object_get(notes, "linears");
    size_t n = json_array_size(list);
    json_t **linears = calloc(n + 1, sizeof *linears);
    if (linears == NULL) return false;
    for (size_t i = 0; i < n; i++) linears[i] = json_array_get(list, i);
    qsort(linears, n, sizeof *linears, falling_importance);
    print_rows(linears, n);
    free(linears);
    return true;
}

static bool draw(const struct st_cli_command *command, const struct st_cli_view *view,
                 const char *path, const json_t *notes) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    struct st_cli_writer writer;
    bool ok = file != NULL && view->draw(file, notes);
    if (file != NULL) ok = fclose(file) == 0 && ok;
    if (!ok) st_cli_error(command->name, "no memory to draw");
    if (ok) {
        ok = st_cli_writer_open(&writer, command->name, path);
        if (ok) ok = st_cli_writer_close(&writer, st_cli_writer_put(&writer, text, bytes));
    }
    free(text);
    return ok;
}

const struct st_cli_view st_cli_outliers_view = {
    .key = "linears", .hint = "", .print = print_table, .draw = st_cli_outliers_draw};

bool st_cli_view_show(const struct st_cli_command *command, const struct st_cli_common *common,
                      const struct st_cli_view *view, const char *svg, const stint_model *model,
                      json_t *plan) {
    size_t bytes = 0;
    const char *text = stint_model_notes(model, &bytes);
    json_t *notes = text != NULL ? json_loadb(text, bytes, 0, NULL) : NULL;
    if (text == NULL && plan != NULL) notes = json_object(); // a plan needs no package
    if (notes == NULL) {
        json_decref(plan);
        st_cli_error(
            command->name,
            "%s: is not a package; --outliers, --neurons and --svg show what 'stint prepare' found",
            common->model);
        return false;
    }
    if (plan != NULL) json_object_set_new(notes, "plan", plan);
    bool ok = json_object_get(notes, view->key) != NULL;
    if (!ok)
        st_cli_error(command->name, "%s: %s", common->model, view->hint);
    else if (svg != NULL)
        ok = draw(command, view, svg, notes);
    else if (common->json)
        ok = st_cli_print_json(command->name, json_incref(notes));
    else
        ok = view->print(notes);
    json_decref(notes);
    return ok;
}
