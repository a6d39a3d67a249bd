// SPDX-License-Identifier: Apache-2.0
// DroidTask (Wen et al. 2024): steps of tasks on a phone. prompts_data.json has {app: {task:
// [a prompt for each step]}}, ground_truth.json beside it the same keys with {"profile": [{"label":
// [element id, text to type]}]}: -1 where the task is finished, "null" where nothing is typed.
#include "eval/droidtask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char prompts_name[] = "prompts_data.json", labels_name[] = "ground_truth.json";

struct reader {
    const struct st_droidtask *files;
    size_t limit;
    struct st_items *items;
    const char *app, *task; // that are read
};

static stint_status fail(const struct reader *r, const char *file, const char *text) {
    return st_fail(STINT_E_FORMAT, "%s: %.64s, task '%.64s': %s", file, r->app, r->task, text);
}

static bool is_full(const struct reader *r) {
    return r->limit && r->items->n >= r->limit;
}

static stint_status read_step(const struct reader *r, const json_t *prompt, const json_t *step,
                              bool ends) {
    const json_t *label = json_object_get(step, "label"), *id = json_array_get(label, 0);
    const char *text = json_string_value(json_array_get(label, 1));
    struct st_item item = {.n_choices = 2, .ends = ends};
    if (!json_is_string(prompt)) return fail(r, r->files->prompts_name, "a prompt is not a text");
    if (!json_is_integer(id) || !text || json_array_size(label) != 2)
        return fail(r, r->files->labels_name, "a label is not [element id, text]");
    item.context[0] = strdup(json_string_value(prompt));
    item.context[1] = strdup("");
    item.ending[1] = strdup(text);
    if (asprintf(&item.ending[0], "%lld", (long long)json_integer_value(id)) < 0)
        item.ending[0] = NULL;
    return st_items_add(r->items, &item);
}

static stint_status read_task(const struct reader *r, const json_t *prompts) {
    const json_t *app = json_object_get(r->files->labels, r->app);
    const json_t *steps = json_object_get(json_object_get(app, r->task), "profile");
    size_t n = json_array_size(prompts);
    if (n == 0) return fail(r, r->files->prompts_name, "has no list of prompts");
    if (json_array_size(steps) != n)
        return fail(r, r->files->labels_name, "'profile' has not one step for each prompt");
    for (size_t i = 0; i < n && !is_full(r); i++)
        ST_TRY(read_step(r, json_array_get(prompts, i), json_array_get(steps, i), i + 1 == n));
    return STINT_OK;
}

static stint_status read_app(struct reader *r, json_t *tasks) {
    json_t *prompts;
    if (!json_is_object(tasks))
        return st_fail(STINT_E_FORMAT, "%s: %.64s: is not an object of tasks",
                       r->files->prompts_name, r->app);
    json_object_foreach(tasks, r->task, prompts) {
        if (is_full(r)) break;
        ST_TRY(read_task(r, prompts));
    }
    return STINT_OK;
}

stint_status st_droidtask_read(const struct st_droidtask *files, size_t limit,
                               struct st_items *items) {
    struct reader r = {.files = files, .limit = limit, .items = items};
    json_t *tasks;
    if (!json_is_object(files->prompts))
        return st_fail(STINT_E_FORMAT, "%s: is not an object of apps", files->prompts_name);
    json_object_foreach((json_t *)files->prompts, r.app, tasks) {
        if (is_full(&r)) break;
        ST_TRY(read_app(&r, tasks));
    }
    return STINT_OK;
}

static stint_status load(const char *path, json_t **json) {
    struct st_map map;
    ST_TRY(st_map_open(path, &map));
    stint_status status = st_json_parse(path, map.data, map.bytes, json);
    st_map_close(&map);
    return status;
}

// Both files of a folder, or of the folder that holds a file.
static stint_status find(const char *path, char *paths[2]) {
    struct stat info;
    if (stat(path, &info) != 0) return st_fail(STINT_E_IO, "%s: %s", path, strerror(errno));
    const char *slash = strrchr(path, '/');
    bool folder = S_ISDIR(info.st_mode);
    int n = folder ? (int)strlen(path) : slash ? (int)(slash - path) : 0;
    const char *between = folder || slash ? "/" : "";
    if (folder && asprintf(&paths[0], "%s/%s", path, prompts_name) < 0) paths[0] = NULL;
    if (!folder) paths[0] = strdup(path);
    if (asprintf(&paths[1], "%.*s%s%s", n, path, between, labels_name) < 0) paths[1] = NULL;
    return paths[0] && paths[1] ? STINT_OK : st_fail(STINT_E_NOMEM, "no memory for a path");
}

stint_status st_items_read_droidtask(const char *path, size_t limit, struct st_items *items) {
    char *paths[2] = {NULL, NULL};
    json_t *json[2] = {NULL, NULL};
    stint_status status = find(path, paths);
    for (size_t i = 0; i < 2 && status == STINT_OK; i++) status = load(paths[i], &json[i]);
    if (status == STINT_OK)
        status = st_droidtask_read(&(struct st_droidtask){paths[0], paths[1], json[0], json[1]},
                                   limit, items);
    for (size_t i = 0; i < 2; i++) {
        json_decref(json[i]);
        free(paths[i]);
    }
    return status;
}
