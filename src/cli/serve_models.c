// SPDX-License-Identifier: Apache-2.0
#include "cli/serve_models.h"

#include "cli/output.h"
#include "hub/store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct list {
    const struct st_cli_command *command;
    struct st_cli_served_models *models;
};

static bool no_memory(const struct list *list) {
    st_cli_error(list->command->name, "not enough memory");
    return false;
}

static bool add(const struct list *list, const char *name, const char *path, uint64_t bytes) {
    struct st_cli_served_models *models = list->models;
    struct st_server_model *items =
        realloc(models->items, (models->count + 1) * sizeof *models->items);
    if (items == NULL) return no_memory(list);
    models->items = items;
    struct st_server_model model = {.name = strdup(name), .path = strdup(path), .bytes = bytes};
    models->items[models->count++] = model;
    return (model.name != NULL && model.path != NULL) || no_memory(list);
}

// The last part of a path, without the ending of a package or GGUF.
static char *name_of(const char *path) {
    static const char *const endings[] = {".stint", ".gguf"};
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    size_t begin = n;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    for (size_t i = 0; i < 2; i++) {
        size_t k = strlen(endings[i]);
        if (n - begin > k && strncmp(path + n - k, endings[i], k) == 0) n -= k;
    }
    return strndup(path + begin, n - begin);
}

// "x-00002-of-00003" is opened with its first part.
static bool is_later_part(const char *name) {
    const char *of = strstr(name, "-of-");
    return of != NULL && of - name >= 6 && of[-6] == '-' && strspn(of - 5, "0123456789") == 5 &&
           strncmp(of - 5, "00001", 5) != 0;
}

static bool add_folder(const struct list *list, const char *folder) {
    struct st_hub_models found;
    if (st_hub_list_in(folder, &found) != STINT_OK)
        return st_cli_failed(list->command) == ST_CLI_DONE;
    bool ok = true;
    size_t before = list->models->count;
    for (size_t i = 0; i < found.count && ok; i++) {
        const struct st_hub_model *model = &found.items[i];
        if (model->complete && !is_later_part(model->name))
            ok = add(list, model->name, model->path, model->bytes);
    }
    st_hub_models_free(&found);
    if (ok && list->models->count == before) {
        st_cli_error(list->command->name, "%s: there is no model in this folder", folder);
        return false;
    }
    return ok;
}

static bool is_folder_of_models(const char *path, uint64_t *bytes) {
    struct stat info;
    char *config;
    *bytes = 0;
    if (stat(path, &info) != 0) return false; // opening it says why
    *bytes = (uint64_t)info.st_size;
    if (!S_ISDIR(info.st_mode) || asprintf(&config, "%s/config.json", path) < 0) return false;
    bool model = access(config, F_OK) == 0;
    free(config);
    return !model;
}

static bool add_path(const struct list *list, const char *path, const char *name) {
    uint64_t bytes;
    if (is_folder_of_models(path, &bytes)) return add_folder(list, path);
    if (access(path, F_OK) != 0) {
        st_cli_error(list->command->name, "%s: No such file or directory", path);
        return false;
    }
    char *own = name != NULL ? strdup(name) : name_of(path);
    bool ok = own != NULL ? add(list, own, path, bytes) : no_memory(list);
    free(own);
    return ok;
}

static bool add_operand(const struct list *list, const char *operand, const char *name) {
    char *path;
    if (st_hub_find(operand, &path) != STINT_OK) return st_cli_failed(list->command) == ST_CLI_DONE;
    bool ok = add_path(list, path, name);
    free(path);
    return ok;
}

static bool check_names(const struct list *list, const char *name) {
    const struct st_server_model *items = list->models->items;
    size_t n = list->models->count;
    if (name != NULL && n > 1) {
        st_cli_error(list->command->name, "--name is for one model; there are %zu", n);
        return false;
    }
    for (size_t i = 0; i < n * n; i++) {
        const struct st_server_model *a = &items[i / n], *b = &items[i % n];
        if (a >= b || strcmp(a->name, b->name) != 0) continue;
        st_cli_error(list->command->name, "'%s' and '%s' would both be called '%s'", a->path,
                     b->path, a->name);
        return false;
    }
    return true;
}

bool st_cli_served_models(const struct st_cli_command *command, const struct st_cli_common *common,
                          const char *name, struct st_cli_served_models *models) {
    const struct list list = {command, models};
    *models = (struct st_cli_served_models){0};
    bool ok = add_operand(&list, common->model, name);
    for (size_t i = 0; i < common->more.count && ok; i++)
        ok = add_operand(&list, common->more.values[i], NULL);
    return ok && check_names(&list, name);
}

void st_cli_served_models_free(struct st_cli_served_models *models) {
    for (size_t i = 0; i < models->count; i++) {
        free((char *)(uintptr_t)models->items[i].name);
        free((char *)(uintptr_t)models->items[i].path);
    }
    free(models->items);
}
