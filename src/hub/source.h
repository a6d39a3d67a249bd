// SPDX-License-Identifier: Apache-2.0
// Where a model comes from: a name of the catalog, "hf:ORG/REPO[:FILE]" or a URL.
#ifndef ST_HUB_SOURCE_H
#define ST_HUB_SOURCE_H

#include "hub/catalog.h"

#include <stdbool.h>

enum { ST_HUB_PATH_BYTES = 512 };

struct st_hub_source {
    char repo[ST_HUB_PATH_BYTES];    // "ORG/REPO", or "": a URL
    char wanted[ST_HUB_PATH_BYTES];  // a file of it, or a part of a file's name; "": not said
    char revision[64];               // a branch or commit of it
    char url[4 * ST_HUB_PATH_BYTES]; // "": a repository
    char target[ST_HUB_PATH_BYTES];  // path below the model folder; "": depends on its files
    char sha256[ST_HUB_SHA256_TEXT]; // "": not known yet
    char licence[48];                // "": not known yet
    uint64_t bytes;                  // 0: not known yet
};

// STINT_E_ARG: it is none of the three, or would lead out of the model folder.
stint_status st_hub_source_parse(const struct st_hub_catalog *catalog, const char *text,
                                 struct st_hub_source *source);

// True for a relative path without empty, "." or ".." components, hidden names, control
// characters or backslashes.
bool st_hub_path_safe(const char *path);
bool st_hub_ends(const char *text, const char *ending);

#endif
