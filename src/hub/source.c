// SPDX-License-Identifier: Apache-2.0
#include "hub/source.h"

#include <stdio.h>
#include <string.h>

bool st_hub_ends(const char *text, const char *ending) {
    size_t n = strlen(text), m = strlen(ending);
    return n >= m && strcmp(text + n - m, ending) == 0;
}

bool st_hub_path_safe(const char *path) {
    if (*path == 0) return false;
    for (const char *part = path;; part++) {
        size_t n = strcspn(part, "/");
        if (n == 0 || *part == '.') return false;
        for (size_t i = 0; i < n; i++)
            if ((unsigned char)part[i] < 0x20 || part[i] == 0x7f || part[i] == '\\') return false;
        part += n;
        if (*part == 0) return true;
    }
}

// Whether text[0, n) is "ORG/REPO" as the hub allows it.
static bool is_repo(const char *text, size_t n) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t org = strspn(text, allowed);
    if (org == 0 || org >= n || text[org] != '/' || text[0] == '.') return false;
    size_t repo = strspn(text + org + 1, allowed);
    return repo > 0 && org + 1 + repo == n && text[org + 1] != '.';
}

static bool put(char *to, size_t size, const char *text, size_t n) {
    return (size_t)snprintf(to, size, "%.*s", (int)n, text) < size && n < size;
}

static stint_status parse_repo(const char *text, struct st_hub_source *source) {
    size_t n = strcspn(text, ":");
    const char *file = text[n] == ':' ? text + n + 1 : "";
    if (!is_repo(text, n) || !put(source->repo, sizeof source->repo, text, n))
        return st_fail(STINT_E_ARG, "hf:%s: expected hf:ORG/REPO or hf:ORG/REPO:FILE", text);
    bool said = text[n] == ':';
    if (said && (!st_hub_path_safe(file) ||
                 !put(source->wanted, sizeof source->wanted, file, strlen(file))))
        return st_fail(STINT_E_ARG, "hf:%s: '%s' is not a file name", text, file);
    snprintf(source->revision, sizeof source->revision, "main");
    return STINT_OK;
}

static stint_status parse_url(const char *text, struct st_hub_source *source) {
    size_t n = strcspn(text, "?#");
    size_t begin = n;
    while (begin > 0 && text[begin - 1] != '/') begin--;
    if (!put(source->url, sizeof source->url, text, strlen(text)) ||
        !put(source->target, sizeof source->target, text + begin, n - begin) ||
        !st_hub_path_safe(source->target) ||
        !(st_hub_ends(source->target, ".gguf") || st_hub_ends(source->target, ".stint")))
        return st_fail(STINT_E_ARG, "%s: a URL must lead to a .gguf or .stint file", text);
    return STINT_OK;
}

static stint_status parse_entry(const struct st_hub_entry *entry, struct st_hub_source *source) {
    ST_TRY(parse_repo(entry->source + strlen("hf:"), source));
    snprintf(source->target, sizeof source->target, "%s.gguf", entry->name);
    snprintf(source->revision, sizeof source->revision, "%s", entry->revision);
    memcpy(source->sha256, entry->sha256, sizeof source->sha256);
    memcpy(source->licence, entry->licence, sizeof source->licence);
    source->bytes = entry->bytes;
    return STINT_OK;
}

stint_status st_hub_source_parse(const struct st_hub_catalog *catalog, const char *text,
                                 struct st_hub_source *source) {
    *source = (struct st_hub_source){0};
    const struct st_hub_entry *entry = st_hub_catalog_find(catalog, text);
    if (entry != NULL) return parse_entry(entry, source);
    if (strncmp(text, "hf:", 3) == 0) return parse_repo(text + 3, source);
    if (strncmp(text, "https://", 8) == 0 || strncmp(text, "http://", 7) == 0)
        return parse_url(text, source);
    return st_fail(STINT_E_ARG,
                   "%s: is no model that stint knows by name ('stint list' shows them); "
                   "hf:ORG/REPO, hf:ORG/REPO:FILE or a URL can be fetched as well",
                   text);
}
