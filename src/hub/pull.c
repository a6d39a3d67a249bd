// SPDX-License-Identifier: Apache-2.0
#include "hub/pull.h"

#include "hub/fetch.h"
#include "hub/listing.h"
#include "hub/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_LISTING_BYTES = 16 << 20 };

struct pull {
    struct st_hub_web web;
    char *folder; // of models
    struct st_hub_pulled *pulled;
    stint_progress_fn *progress;
    void *progress_context;
};

// One file from `url` to `path`; what is complete is kept.
static stint_status fetch(struct pull *p, const char *url, const char *path, const char *sha256,
                          uint64_t bytes) {
    struct stat info;
    if (access(path, F_OK) == 0) return STINT_OK;
    ST_TRY(st_hub_make_folders(path));
    ST_TRY(st_hub_fetch(&p->web, &(struct st_hub_fetch){.url = url,
                                                        .path = path,
                                                        .sha256 = sha256,
                                                        .bytes = bytes,
                                                        .progress = p->progress,
                                                        .progress_context = p->progress_context}));
    if (stat(path, &info) == 0) p->pulled->bytes += (uint64_t)info.st_size;
    return STINT_OK;
}

// A path's characters that have another meaning in a URL.
static void append_quoted(char *url, size_t size, const char *path) {
    size_t n = strlen(url);
    for (; *path != 0 && n + 4 < size; path++)
        n += (size_t)snprintf(url + n, size - n, strchr(" %?#[]", *path) ? "%%%02X" : "%c", *path);
}

static stint_status fetch_of_repo(struct pull *p, const struct st_hub_source *source,
                                  const char *revision, const struct st_hub_file *file,
                                  const char *path) {
    char url[4 * ST_HUB_PATH_BYTES];
    snprintf(url, sizeof url, "%s/%s/resolve/%s/", p->web.endpoint, source->repo, revision);
    append_quoted(url, sizeof url, file->path);
    return fetch(p, url, path, file->sha256, file->bytes);
}

static char *join(const char *a, const char *b, const char *c) {
    char *path;
    return asprintf(&path, "%s/%s%s", a, b, c) < 0 ? NULL : path;
}

// All files into ORG/REPO.COMMIT.part, which gets its name when they are complete.
static stint_status fetch_folder(struct pull *p, const struct st_hub_source *source,
                                 const struct st_hub_listing *listing, const char *path) {
    char part[ST_HUB_PATH_BYTES + 64];
    snprintf(part, sizeof part, "%s.%.12s.part", source->repo, listing->revision);
    char *work = join(p->folder, part, "");
    if (work == NULL) return st_fail(STINT_E_NOMEM, "not enough memory");
    stint_status status = STINT_OK;
    for (size_t i = 0; i < listing->count && status == STINT_OK; i++) {
        char *file = join(work, listing->files[i].path, "");
        status = file == NULL
                     ? st_fail(STINT_E_NOMEM, "not enough memory")
                     : fetch_of_repo(p, source, listing->revision, &listing->files[i], file);
        free(file);
    }
    if (status == STINT_OK && rename(work, path) != 0)
        status = st_fail(STINT_E_IO, "%s: %s", path, strerror(errno));
    free(work);
    return status;
}

static stint_status set_target(struct pull *p, const char *target) {
    snprintf(p->pulled->name, sizeof p->pulled->name, "%s", target);
    for (size_t i = 0; i < 2; i++) {
        const char *ending = i == 0 ? ".gguf" : ".stint";
        if (st_hub_ends(p->pulled->name, ending))
            p->pulled->name[strlen(p->pulled->name) - strlen(ending)] = 0;
    }
    p->pulled->path = join(p->folder, target, "");
    return p->pulled->path != NULL ? STINT_OK : st_fail(STINT_E_NOMEM, "not enough memory");
}

static stint_status pull_listed(struct pull *p, const struct st_hub_source *source,
                                struct st_hub_listing *listing) {
    char url[4 * ST_HUB_PATH_BYTES], target[2 * ST_HUB_PATH_BYTES];
    struct st_bytes body = {0};
    snprintf(url, sizeof url, "%s/api/models/%s/revision/%s?blobs=true", p->web.endpoint,
             source->repo, source->revision);
    stint_status status = st_hub_web_get(&p->web, url, MAX_LISTING_BYTES, &body);
    if (status == STINT_OK) {
        status = st_hub_listing_read(body.data, body.count, source, listing);
        if (status != STINT_OK) st_fail_prefix("%s: ", source->repo);
    }
    st_bytes_free(&body);
    ST_TRY(status);
    memcpy(p->pulled->licence, listing->licence, sizeof listing->licence);
    if (listing->folder) {
        ST_TRY(set_target(p, source->repo));
        if (access(p->pulled->path, F_OK) == 0) return STINT_OK;
        return fetch_folder(p, source, listing, p->pulled->path);
    }
    snprintf(target, sizeof target, "%s/%s", source->repo, listing->files[0].path);
    ST_TRY(set_target(p, target));
    return fetch_of_repo(p, source, listing->revision, &listing->files[0], p->pulled->path);
}

static stint_status pull_source(struct pull *p, const struct st_hub_source *source) {
    memcpy(p->pulled->licence, source->licence, sizeof source->licence);
    if (*source->target != 0) ST_TRY(set_target(p, source->target));
    if (*source->url != 0) return fetch(p, source->url, p->pulled->path, "", 0);
    if (*source->sha256 == 0) {
        struct st_hub_listing *listing = malloc(sizeof *listing);
        if (listing == NULL) return st_fail(STINT_E_NOMEM, "not enough memory");
        stint_status status = pull_listed(p, source, listing);
        free(listing);
        return status;
    }
    struct st_hub_file file = {.bytes = source->bytes};
    memcpy(file.path, source->wanted, sizeof file.path);
    memcpy(file.sha256, source->sha256, sizeof file.sha256);
    return fetch_of_repo(p, source, source->revision, &file, p->pulled->path);
}

stint_status st_hub_pull(const char *what, stint_progress_fn *progress, void *progress_context,
                         struct st_hub_pulled *pulled) {
    struct pull p = {.pulled = pulled, .progress = progress, .progress_context = progress_context};
    struct st_hub_catalog *catalog;
    struct st_hub_source source;
    *pulled = (struct st_hub_pulled){0};
    ST_TRY(st_hub_catalog_load(&catalog));
    stint_status status = st_hub_source_parse(catalog, what, &source);
    free(catalog);
    if (status == STINT_OK) status = st_hub_folder(&p.folder);
    if (status == STINT_OK) status = st_hub_web_open(&p.web);
    if (status == STINT_OK) status = pull_source(&p, &source);
    st_hub_web_close(&p.web);
    free(p.folder);
    if (status != STINT_OK) {
        free(pulled->path);
        *pulled = (struct st_hub_pulled){0};
    }
    return status;
}
