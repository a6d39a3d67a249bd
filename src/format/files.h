// SPDX-License-Identifier: Apache-2.0
// Files that belong together, by their plain names: those of a folder, or the blobs of a package.
#ifndef ST_FORMAT_FILES_H
#define ST_FORMAT_FILES_H

#include "base/json.h"
#include "format/package.h"

struct st_files {
    const char *path;                 // of the folder, "" for the current one; or of the package
    const struct st_package *package; // NULL: a folder
};

struct st_file {
    char *name; // with its folder, as error texts give it; owned
    struct st_map map;
    bool borrowed; // lies in a package
};

// A file that is there but cannot be read counts: opening it gives the better text.
bool st_files_has(const struct st_files *files, const char *name);
// Zeroed *file on failure. STINT_E_IO, E_NOMEM.
stint_status st_files_open(const struct st_files *files, const char *name, struct st_file *file);
void st_file_close(struct st_file *file); // accepts a zeroed one
// New reference in *json; NULL where there is no such file.
stint_status st_files_json(const struct st_files *files, const char *name, json_t **json);

#endif
