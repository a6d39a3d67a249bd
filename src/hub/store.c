// SPDX-License-Identifier: Apache-2.0
#include "hub/store.h"

#include "base/buffer.h"
#include "hub/source.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const endings[] = {"", ".gguf", ".stint"};
enum { N_ENDINGS = sizeof endings / sizeof endings[0] };

stint_status st_hub_folder(char **folder) {
    const char *own = getenv("STINT_MODELS"), *data = getenv("XDG_DATA_HOME"),
               *home = getenv("HOME");
    char *path = NULL;
    int n;
    if (own != NULL && *own != 0)
        n = asprintf(&path, "%s", own);
    else if (data != NULL && *data == '/')
        n = asprintf(&path, "%s/stint/models", data);
    else if (home != NULL && *home == '/')
        n = asprintf(&path, "%s/.local/share/stint/models", home);
    else
        return st_fail(STINT_E_IO, "no folder for models: set STINT_MODELS or HOME");
    if (n < 0) return st_fail(STINT_E_NOMEM, "not enough memory");
    *folder = path;
    return STINT_OK;
}

stint_status st_hub_make_folders(const char *path) {
    char *copy = strdup(path);
    if (copy == NULL) return st_fail(STINT_E_NOMEM, "not enough memory");
    stint_status status = STINT_OK;
    for (char *slash = strchr(copy + 1, '/'); slash != NULL && status == STINT_OK;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(copy, 0777) != 0 && errno != EEXIST)
            status = st_fail(STINT_E_IO, "%s: %s", copy, strerror(errno));
        *slash = '/';
    }
    free(copy);
    return status;
}

static void strip(char *name) {
    for (size_t i = 1; i < N_ENDINGS; i++)
        if (st_hub_ends(name, endings[i])) name[strlen(name) - strlen(endings[i])] = 0;
}

// The bytes below a folder.
static uint64_t folder_bytes(const char *path) {
    char *roots[] = {(char *)(uintptr_t)path, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    uint64_t bytes = 0;
    for (FTSENT *entry; walk != NULL && (entry = fts_read(walk)) != NULL;)
        if (entry->fts_info == FTS_F) bytes += (uint64_t)entry->fts_statp->st_size;
    if (walk != NULL) fts_close(walk);
    return bytes;
}

static stint_status add(struct st_hub_models *models, const char *folder, const FTSENT *entry) {
    const char *path = entry->fts_path;
    const char *relative = path + strlen(folder);
    relative += strspn(relative, "/");
    ST_TRY(st_grow((void **)&models->items, &models->capacity, models->count, 1,
                   sizeof *models->items));
    struct st_hub_model model = {.name = strdup(relative), .path = strdup(path)};
    if (model.name == NULL || model.path == NULL) {
        free(model.name);
        free(model.path);
        return st_fail(STINT_E_NOMEM, "not enough memory");
    }
    model.complete = !st_hub_ends(path, ".part");
    if (!model.complete) model.name[strlen(model.name) - strlen(".part")] = 0;
    strip(model.name);
    bool is_folder = entry->fts_info == FTS_D;
    model.bytes = is_folder ? folder_bytes(path) : (uint64_t)entry->fts_statp->st_size;
    models->items[models->count++] = model;
    return STINT_OK;
}

static bool has_config(const char *path) {
    char *config;
    if (asprintf(&config, "%s/config.json", path) < 0) return false;
    bool has = access(config, F_OK) == 0;
    free(config);
    return has;
}

static bool is_model(const FTSENT *entry) {
    if (entry->fts_level == 0) return false;
    if (entry->fts_info == FTS_D)
        return st_hub_ends(entry->fts_name, ".part") || has_config(entry->fts_path);
    if (entry->fts_info != FTS_F) return false;
    return st_hub_ends(entry->fts_name, ".gguf") || st_hub_ends(entry->fts_name, ".stint") ||
           st_hub_ends(entry->fts_name, ".part");
}

static int by_name(const FTSENT **a, const FTSENT **b) {
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

stint_status st_hub_list_in(const char *folder, struct st_hub_models *models) {
    char *roots[] = {(char *)(uintptr_t)folder, NULL};
    *models = (struct st_hub_models){0};
    FTS *walk = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
    stint_status status =
        walk != NULL ? STINT_OK : st_fail(STINT_E_IO, "%s: %s", folder, strerror(errno));
    for (FTSENT *entry; status == STINT_OK && (entry = fts_read(walk)) != NULL;) {
        if (!is_model(entry)) continue;
        if (entry->fts_info == FTS_D) fts_set(walk, entry, FTS_SKIP);
        status = add(models, folder, entry);
    }
    if (walk != NULL) fts_close(walk);
    if (status != STINT_OK) st_hub_models_free(models);
    return status;
}

stint_status st_hub_list(struct st_hub_models *models) {
    char *folder;
    ST_TRY(st_hub_folder(&folder));
    stint_status status = st_hub_list_in(folder, models);
    free(folder);
    return status;
}

void st_hub_models_free(struct st_hub_models *models) {
    for (size_t i = 0; i < models->count; i++) {
        free(models->items[i].name);
        free(models->items[i].path);
    }
    free(models->items);
    *models = (struct st_hub_models){0};
}

// The path of a complete model of the folder; NULL: there is none, or not enough memory.
static char *find_in_folder(const char *name) {
    char *folder, *path = NULL;
    if (!st_hub_path_safe(name) || st_hub_folder(&folder) != STINT_OK) return NULL;
    for (size_t i = 0; i < N_ENDINGS && path == NULL; i++) {
        struct stat info;
        if (asprintf(&path, "%s/%s%s", folder, name, endings[i]) < 0) path = NULL;
        bool found =
            path != NULL && stat(path, &info) == 0 && (S_ISREG(info.st_mode) || has_config(path));
        if (found) break;
        free(path);
        path = NULL;
    }
    free(folder);
    return path;
}

// The one complete model of a repository that has `wanted` in its name; NULL: none, or several.
static char *find_of_repo(const struct st_hub_source *source) {
    struct st_hub_models models;
    if (st_hub_list(&models) != STINT_OK) return NULL;
    size_t n = strlen(source->repo), matches = 0;
    char *path = NULL;
    for (size_t i = 0; i < models.count; i++) {
        const struct st_hub_model *model = &models.items[i];
        char after = strncmp(model->name, source->repo, n) == 0 ? model->name[n] : 'x';
        if (!model->complete || (after != 0 && after != '/')) continue;
        if (strcasestr(model->path, source->wanted) == NULL || matches++ > 0) continue;
        path = strdup(model->path);
    }
    st_hub_models_free(&models);
    if (matches > 1) {
        free(path);
        path = NULL;
    }
    return path;
}

// Whether `stint pull` would take it; then *path is where it lies, NULL if it does not.
static bool find_source(const char *model, char **path) {
    struct st_hub_catalog *catalog;
    struct st_hub_source source;
    if (st_hub_catalog_load(&catalog) != STINT_OK) return false;
    bool is_source = st_hub_source_parse(catalog, model, &source) == STINT_OK;
    free(catalog);
    if (is_source)
        *path = *source.target != 0 ? find_in_folder(source.target) : find_of_repo(&source);
    return is_source;
}

stint_status st_hub_find(const char *model, char **path) {
    bool is_path = access(model, F_OK) == 0 || errno != ENOENT;
    char *found = is_path ? strdup(model) : find_in_folder(model);
    if (is_path && found == NULL) return st_fail(STINT_E_NOMEM, "not enough memory");
    if (found == NULL) {
        if (!find_source(model, &found))
            return st_fail(STINT_E_IO,
                           "%s: No such file or directory, nor a model of this name; 'stint list' "
                           "shows which there are", model);
        if (found == NULL)
            return st_fail(STINT_E_IO, "%s: is not here; 'stint pull %s' fetches it", model, model);
    }
    *path = found;
    return STINT_OK;
}

static stint_status remove_tree(const char *path) {
    char *roots[] = {(char *)(uintptr_t)path, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (walk == NULL) return st_fail(STINT_E_IO, "%s: %s", path, strerror(errno));
    stint_status status = STINT_OK;
    for (FTSENT *entry; (entry = fts_read(walk)) != NULL;) {
        if (entry->fts_info == FTS_D) continue; // again after what is in it
        bool is_folder = entry->fts_info == FTS_DP;
        if ((is_folder ? rmdir(entry->fts_accpath) : unlink(entry->fts_accpath)) != 0)
            status = st_fail(STINT_E_IO, "%s: %s", entry->fts_path, strerror(errno));
    }
    fts_close(walk);
    return status;
}

stint_status st_hub_remove(const char *name, uint64_t *bytes) {
    struct st_hub_models models;
    ST_TRY(st_hub_list(&models));
    stint_status status = STINT_OK;
    size_t removed = 0;
    uint64_t sum = 0;
    for (size_t i = 0; i < models.count && status == STINT_OK; i++) {
        if (strcmp(models.items[i].name, name) != 0) continue;
        sum += models.items[i].bytes;
        status = remove_tree(models.items[i].path);
        removed++;
    }
    st_hub_models_free(&models);
    if (status == STINT_OK && removed == 0)
        status = st_fail(STINT_E_ARG, "%s: is not here; 'stint list' shows what is", name);
    if (status == STINT_OK) *bytes = sum;
    return status;
}
