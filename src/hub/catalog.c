// SPDX-License-Identifier: Apache-2.0
#include "hub/catalog.h"

#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(key)                                                                                  \
    { #key, offsetof(struct st_hub_entry, key), sizeof(((struct st_hub_entry *)NULL)->key) }

static const struct {
    const char *key;
    size_t offset, size;
} fields[] = {TEXT(source), TEXT(revision), TEXT(sha256), TEXT(licence), TEXT(about)};

static bool copy(char *to, size_t size, const char *text) {
    return (size_t)snprintf(to, size, "%s", text) < size;
}

static bool read_bytes(const char *text, uint64_t *bytes) {
    char *end;
    *bytes = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == 0;
}

// One row of the file; 0 stops inih with the number of its line.
static int take(void *context, const char *section, const char *key, const char *value) {
    struct st_hub_catalog *catalog = context;
    struct st_hub_entry *last = catalog->count > 0 ? &catalog->entries[catalog->count - 1] : NULL;
    if (last == NULL || strcmp(last->name, section) != 0) {
        if (catalog->count == ST_HUB_MAX_ENTRIES || *section == 0) return 0;
        last = &catalog->entries[catalog->count++];
        if (!copy(last->name, sizeof last->name, section)) return 0;
    }
    if (strcmp(key, "bytes") == 0) return read_bytes(value, &last->bytes);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (strcmp(key, fields[i].key) == 0)
            return copy((char *)last + fields[i].offset, fields[i].size, value);
    return 0;
}

stint_status st_hub_catalog_parse(const char *text, struct st_hub_catalog *catalog) {
    *catalog = (struct st_hub_catalog){0};
    int line = ini_parse_string(text, take, catalog);
    if (line == 0) return STINT_OK;
    return st_fail(STINT_E_FORMAT, "models: line %d is not understood", line);
}

stint_status st_hub_catalog_load(struct st_hub_catalog **catalog) {
    struct st_hub_catalog *loaded = malloc(sizeof *loaded);
    if (loaded == NULL) return st_fail(STINT_E_NOMEM, "not enough memory");
    stint_status status = st_hub_catalog_parse(st_hub_texts[0].text, loaded);
    if (status != STINT_OK)
        free(loaded);
    else
        *catalog = loaded;
    return status;
}

const struct st_hub_entry *st_hub_catalog_find(const struct st_hub_catalog *catalog,
                                               const char *name) {
    for (size_t i = 0; i < catalog->count; i++)
        if (strcmp(catalog->entries[i].name, name) == 0) return &catalog->entries[i];
    return NULL;
}
