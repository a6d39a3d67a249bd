// SPDX-License-Identifier: Apache-2.0
#include "hub/listing.h"

#include "base/json.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char *const folder_files[] = {"config.json",
                                           "generation_config.json",
                                           "model.safetensors",
                                           "tokenizer.json",
                                           "tokenizer.model",
                                           "model.safetensors.index.json",
                                           "tokenizer_config.json",
                                           "vocab.json",
                                           "merges.txt",
                                           "chat_template.jinja",
                                           "added_tokens.json",
                                           "special_tokens_map.json",
                                           "modules.json",
                                           "1_Pooling/config.json"};

static bool of_folder(const char *path) {
    for (size_t i = 0; i < sizeof folder_files / sizeof folder_files[0]; i++)
        if (strcmp(path, folder_files[i]) == 0) return true;
    return strncmp(path, "model-", 6) == 0 && st_hub_ends(path, ".safetensors") &&
           strchr(path, '/') == NULL;
}

static bool is_sha256(const char *text) {
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static stint_status read_file(const json_t *sibling, struct st_hub_file *file) {
    const char *path = NULL, *sha256 = NULL;
    int64_t bytes = 0;
    *file = (struct st_hub_file){0};
    ST_TRY(st_json_string(sibling, "rfilename", &path));
    ST_TRY(st_json_int(sibling, "size", 0, INT64_MAX, &bytes));
    const json_t *lfs = json_object_get(sibling, "lfs");
    if (json_is_object(lfs)) ST_TRY(st_json_string(lfs, "sha256", &sha256));
    if (path == NULL || !st_hub_path_safe(path) || strlen(path) >= sizeof file->path)
        return STINT_OK; // nothing that could be fetched
    if (sha256 != NULL && !is_sha256(sha256))
        return st_fail(STINT_E_FORMAT, "%s: '%s' is not a SHA-256", path, sha256);
    snprintf(file->path, sizeof file->path, "%s", path);
    snprintf(file->sha256, sizeof file->sha256, "%s", sha256 != NULL ? sha256 : "");
    file->bytes = (uint64_t)bytes;
    return STINT_OK;
}

typedef bool st_fits_fn(const char *path, const char *wanted);

static bool fits_exactly(const char *path, const char *wanted) {
    return strcmp(path, wanted) == 0;
}

// The type alone is enough: a repository has a GGUF file for each. Parts of one are not files of
// their own.
static bool fits_partly(const char *path, const char *wanted) {
    return st_hub_ends(path, ".gguf") && strcasestr(path, wanted) != NULL &&
           strstr(path, "-of-0") == NULL;
}

static bool fits_folder(const char *path, const char *wanted) {
    (void)wanted;
    return of_folder(path);
}

// Sets the listing to the siblings that fit.
static stint_status gather(const json_t *siblings, st_fits_fn *fits, const char *wanted,
                           struct st_hub_listing *listing) {
    listing->count = 0;
    for (size_t i = 0; i < json_array_size(siblings); i++) {
        struct st_hub_file file;
        ST_TRY(read_file(json_array_get(siblings, i), &file));
        if (*file.path == 0 || !fits(file.path, wanted)) continue;
        if (listing->count == ST_HUB_MAX_FILES)
            return st_fail(STINT_E_FORMAT, "has more than %d files", ST_HUB_MAX_FILES);
        listing->files[listing->count++] = file;
    }
    return STINT_OK;
}

static bool has_weights(const struct st_hub_listing *listing) {
    bool config = false, weights = false;
    for (size_t i = 0; i < listing->count; i++) {
        config = config || strcmp(listing->files[i].path, "config.json") == 0;
        weights = weights || st_hub_ends(listing->files[i].path, ".safetensors");
    }
    return config && weights;
}

// What could have been asked for, as the end of an error text.
static stint_status undecided(const json_t *siblings, struct st_hub_listing *listing) {
    char names[700] = "";
    size_t used = 0;
    ST_TRY(gather(siblings, fits_partly, "", listing));
    for (size_t i = 0; i < listing->count && used < sizeof names - 1; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "",
                                 listing->files[i].path);
    if (listing->count == 0)
        return st_fail(STINT_E_ARG, "has neither such a file nor safetensors or GGUF weights");
    return st_fail(STINT_E_ARG, "name one of its files after a colon: %s", names);
}

static stint_status select_files(const json_t *siblings, const char *wanted,
                                 struct st_hub_listing *listing) {
    if (*wanted != 0) {
        ST_TRY(gather(siblings, fits_exactly, wanted, listing));
        if (listing->count == 1) return STINT_OK;
        ST_TRY(gather(siblings, fits_partly, wanted, listing));
        return listing->count == 1 ? STINT_OK : undecided(siblings, listing);
    }
    ST_TRY(gather(siblings, fits_folder, "", listing));
    listing->folder = has_weights(listing);
    if (listing->folder) return STINT_OK;
    ST_TRY(gather(siblings, fits_partly, "", listing));
    if (listing->count != 1) ST_TRY(gather(siblings, fits_partly, "Q4_K_M", listing));
    return listing->count == 1 ? STINT_OK : undecided(siblings, listing);
}

static stint_status read_answer(const json_t *answer, const struct st_hub_source *source,
                                struct st_hub_listing *listing) {
    const char *revision = source->revision, *licence = "";
    const json_t *siblings = json_object_get(answer, "siblings");
    const json_t *card = json_object_get(answer, "cardData");
    const json_t *said = json_is_object(card) ? json_object_get(card, "license") : NULL;
    if (json_is_array(said)) said = json_array_get(said, 0);
    if (json_is_string(said)) licence = json_string_value(said);
    ST_TRY(st_json_string(answer, "sha", &revision));
    if (!json_is_array(siblings) || strlen(revision) >= sizeof listing->revision ||
        !st_hub_path_safe(revision))
        return st_fail(STINT_E_FORMAT, "the hub's answer does not list a model's files");
    snprintf(listing->revision, sizeof listing->revision, "%s", revision);
    snprintf(listing->licence, sizeof listing->licence, "%s", licence);
    for (char *c = listing->licence; *c != 0; c++)
        if (!isprint((unsigned char)*c)) *c = '?';
    return select_files(siblings, source->wanted, listing);
}

stint_status st_hub_listing_read(const char *text, size_t n, const struct st_hub_source *source,
                                 struct st_hub_listing *listing) {
    *listing = (struct st_hub_listing){0};
    json_t *answer;
    ST_TRY(st_json_parse("the hub's answer", text, n, &answer));
    stint_status status = json_is_object(answer)
                              ? read_answer(answer, source, listing)
                              : st_fail(STINT_E_FORMAT, "the hub's answer is not an object");
    json_decref(answer);
    return status;
}
