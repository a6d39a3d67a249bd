// SPDX-License-Identifier: Apache-2.0
// Fetches a model into the model folder.
#ifndef ST_HUB_PULL_H
#define ST_HUB_PULL_H

#include "hub/source.h"

struct st_hub_pulled {
    char *path;                   // free() it
    char name[ST_HUB_PATH_BYTES]; // how commands may call it
    char licence[48];             // "": not known
    uint64_t bytes;               // fetched now; 0: it was here already
};

// `what`: see st_hub_source_parse. A model that is complete is not fetched again.
stint_status st_hub_pull(const char *what, stint_progress_fn *progress, void *progress_context,
                         struct st_hub_pulled *pulled);

#endif
