// SPDX-License-Identifier: Apache-2.0
#include "format/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

// NULL without memory.
static char *join(const struct st_files *files, const char *name) {
    char *path;
    const char *between = files->package ? ": " : *files->path ? "/" : "";
    return asprintf(&path, "%s%s%s", files->path, between, name) < 0 ? NULL : path;
}

static const struct st_section *find_blob(const struct st_files *files, const char *name) {
    const struct st_section *s = st_package_find(files->package, name);
    return s && s->type == ST_SECTION_BLOB ? s : NULL;
}

bool st_files_has(const struct st_files *files, const char *name) {
    struct stat info;
    if (files->package) return find_blob(files, name) != NULL;
    char *path = join(files, name);
    bool missing = path && stat(path, &info) != 0 && (errno == ENOENT || errno == ENAMETOOLONG);
    free(path);
    return !missing;
}

stint_status st_files_open(const struct st_files *files, const char *name, struct st_file *file) {
    struct st_file f = {.name = join(files, name), .borrowed = files->package != NULL};
    stint_status status = STINT_OK;
    *file = (struct st_file){0};
    if (!f.name) return st_fail(STINT_E_NOMEM, "%s: no memory to open it", name);
    if (f.borrowed) {
        const struct st_section *s = find_blob(files, name);
        if (s)
            f.map = (struct st_map){s->bytes ? s->data : NULL, s->bytes};
        else
            status = st_fail(STINT_E_IO, "%s: is not there", f.name);
    } else {
        status = st_map_open(f.name, &f.map);
    }
    if (status == STINT_OK)
        *file = f;
    else
        free(f.name);
    return status;
}

void st_file_close(struct st_file *file) {
    if (!file->borrowed) st_map_close(&file->map);
    free(file->name);
    *file = (struct st_file){0};
}

stint_status st_files_json(const struct st_files *files, const char *name, json_t **json) {
    struct st_file file;
    *json = NULL;
    if (!st_files_has(files, name)) return STINT_OK;
    ST_TRY(st_files_open(files, name, &file));
    stint_status status = st_json_parse(file.name, file.map.data, file.map.bytes, json);
    st_file_close(&file);
    return status;
}
