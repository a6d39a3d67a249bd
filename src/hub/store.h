// SPDX-License-Identifier: Apache-2.0
// The folder of fetched models: $STINT_MODELS, or $XDG_DATA_HOME/stint/models, by default
// ~/.local/share/stint/models. A model's name is its path in there without .gguf or .stint. What
// ends in .part is not complete.
#ifndef ST_HUB_STORE_H
#define ST_HUB_STORE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct st_hub_model {
    char *name, *path;
    uint64_t bytes; // on disk
    bool complete;
};

struct st_hub_models {
    struct st_hub_model *items;
    size_t count, capacity;
};

// *folder is *returned*; free() it. STINT_E_IO without a home.
stint_status st_hub_folder(char **folder);

// The models of the folder, by name. A folder that does not exist has none. Free with
// st_hub_models_free.
stint_status st_hub_list(struct st_hub_models *models);
// The same of any folder. STINT_E_IO: it cannot be read.
stint_status st_hub_list_in(const char *folder, struct st_hub_models *models);
void st_hub_models_free(struct st_hub_models *models);

// The path of MODEL on a command line: MODEL itself where such a file exists, else the model of
// this name in the folder. STINT_E_IO: there is neither; the text says whether 'stint pull' would
// fetch it. *path is *returned*; free() it.
stint_status st_hub_find(const char *model, char **path);

// Removes a model of the folder, complete or not. STINT_E_ARG: there is none of this name.
stint_status st_hub_remove(const char *name, uint64_t *bytes);

// Makes the folders above `path`.
stint_status st_hub_make_folders(const char *path);

#endif
