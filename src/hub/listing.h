// SPDX-License-Identifier: Apache-2.0
// The files of a repository, as the hub's API lists them (GET /api/models/ORG/REPO?blobs=true), and
// which of them make a model.
#ifndef ST_HUB_LISTING_H
#define ST_HUB_LISTING_H

#include "hub/source.h"

enum { ST_HUB_MAX_FILES = 512 };

struct st_hub_file {
    char path[ST_HUB_PATH_BYTES];
    char sha256[ST_HUB_SHA256_TEXT]; // "": the hub does not say
    uint64_t bytes;                  // 0: the hub does not say
};

struct st_hub_listing {
    struct st_hub_file files[ST_HUB_MAX_FILES];
    size_t count;
    bool folder;       // a Hugging Face folder, not one file
    char revision[64]; // the commit
    char licence[48];  // "": the hub does not say
};

// Selects from the API's answer text[0, n): the file that `wanted` names or is a part of, else
// config.json, safetensors and tokenizer, else the only GGUF file or the one of type Q4_K_M.
// STINT_E_FORMAT: not such an answer; E_ARG: nothing or too much fits, with what there is.
stint_status st_hub_listing_read(const char *text, size_t n, const struct st_hub_source *source,
                                 struct st_hub_listing *listing);

#endif
