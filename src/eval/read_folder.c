// SPDX-License-Identifier: Apache-2.0
#include "eval/items.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_in(const char *name, const char *ending) {
    size_t n = strlen(name), length = strlen(ending);
    return n > length && strcmp(name + n - length, ending) == 0;
}

// Keeps the names that end so; frees the others.
static size_t keep(struct dirent **files, size_t n, const char *ending) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (ends_in(files[i]->d_name, ending))
            files[kept++] = files[i];
        else
            free(files[i]);
    }
    return kept;
}

static stint_status read_one(const char *folder, const char *name, st_items_read_fn *fn,
                             size_t limit, struct st_items *items) {
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return st_fail(STINT_E_NOMEM, "no memory for a path");
    stint_status status = fn(path, limit, items);
    free(path);
    return status;
}

stint_status st_items_read_folder(const char *path, const char *ending, st_items_read_fn *fn,
                                  size_t limit, struct st_items *items) {
    struct stat info;
    struct dirent **files;
    if (stat(path, &info) != 0) return st_fail(STINT_E_IO, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(info.st_mode)) return fn(path, limit, items);
    int found = scandir(path, &files, NULL, alphasort);
    if (found < 0) return st_fail(STINT_E_IO, "%s: %s", path, strerror(errno));
    size_t n = keep(files, (size_t)found, ending);
    stint_status status = n ? STINT_OK : st_fail(STINT_E_IO, "%s: has no %s files", path, ending);
    for (size_t i = 0; i < n; i++) {
        size_t until = limit * (i + 1) / n;
        if (status == STINT_OK && (limit == 0 || until > items->n))
            status = read_one(path, files[i]->d_name, fn, limit ? until : 0, items);
        free(files[i]);
    }
    free(files);
    return status;
}
