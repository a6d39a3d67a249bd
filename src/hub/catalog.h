// SPDX-License-Identifier: Apache-2.0
// The models that stint was tried with: share/models/tested.ini, which the build embeds.
#ifndef ST_HUB_CATALOG_H
#define ST_HUB_CATALOG_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct st_hub_text {
    const char *name, *text;
};
extern const struct st_hub_text st_hub_texts[]; // ends with a NULL name

enum { ST_HUB_SHA256_TEXT = 65, ST_HUB_MAX_ENTRIES = 64 };

struct st_hub_entry {
    char name[64], source[256], revision[64], sha256[ST_HUB_SHA256_TEXT], licence[48], about[128];
    uint64_t bytes;
};

struct st_hub_catalog {
    struct st_hub_entry entries[ST_HUB_MAX_ENTRIES];
    size_t count;
};

// Parses the text of such a file. STINT_E_FORMAT names the line.
stint_status st_hub_catalog_parse(const char *text, struct st_hub_catalog *catalog);
// The embedded one. *catalog is *returned*; free() it.
stint_status st_hub_catalog_load(struct st_hub_catalog **catalog);
// NULL: there is none of this name.
const struct st_hub_entry *st_hub_catalog_find(const struct st_hub_catalog *catalog,
                                               const char *name);

#endif
