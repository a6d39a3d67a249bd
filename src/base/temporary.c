// SPDX-License-Identifier: Apache-2.0
#include "base/temporary.h"

#include "base/random.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_TRIES = 100, LINK_BYTES = 40 };
static const char mark[] = ".tmp-";

// "" is the current folder's.
static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
}

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// Names that this file makes, or that earlier versions made with a process's number.
static bool is_ours(const char *name, const char *base) {
    size_t n = strlen(base);
    if (strncmp(name, base, n) != 0 || strncmp(name + n, mark, sizeof mark - 1) != 0) return false;
    const char *rest = name + n + sizeof mark - 1;
    return *rest != 0 && strspn(rest, "0123456789abcdef") == strlen(rest);
}

// A file that nobody has locked belongs to a process that has ended.
static void remove_stale(int folder, const char *name) {
    struct stat info;
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return;
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
        flock(file, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(file);
}

static void remove_all_stale(const char *folder, const char *base) {
    DIR *open_folder = opendir(folder);
    if (!open_folder) return;
    for (struct dirent *entry; (entry = readdir(open_folder));)
        if (is_ours(entry->d_name, base)) remove_stale(dirfd(open_folder), entry->d_name);
    closedir(open_folder);
}

static char *unique_name(const char *path) {
    char *name;
    return asprintf(&name, "%s%s%016llx", path, mark, (unsigned long long)st_random_seed()) < 0
               ? NULL
               : name;
}

// It must still have its name once it is locked: before that it looks stale.
static bool lock(int file, const char *name) {
    struct stat ours, named;
    flock(file, LOCK_EX | LOCK_NB); // without locks nobody removes it either
    return fstat(file, &ours) == 0 && stat(name, &named) == 0 && ours.st_dev == named.st_dev &&
           ours.st_ino == named.st_ino;
}

static void link_path(char text[LINK_BYTES], int file) {
    snprintf(text, LINK_BYTES, "/proc/self/fd/%d", file);
}

// -1: the system or this folder has no such files, or they could not get a name later.
static int open_unnamed(const char *folder, mode_t mode) {
    char text[LINK_BYTES];
    int file = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
    if (file < 0) return -1;
    link_path(text, file);
    if (access(text, F_OK) == 0) return file;
    close(file);
    return -1;
}

static stint_status open_named(struct st_temporary *t, mode_t mode) {
    for (int i = 0; i < MAX_TRIES; i++) {
        free(t->name);
        t->name = unique_name(t->path);
        if (!t->name) return st_fail(STINT_E_NOMEM, "%s: no memory to write it", t->path);
        // O_EXCL: a link that lies there already is not followed.
        t->file = open(t->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (t->file >= 0 && lock(t->file, t->name)) return STINT_OK;
        int error = t->file >= 0 ? EEXIST : errno;
        if (t->file >= 0) close(t->file);
        errno = error;
        if (error != EEXIST) break;
    }
    stint_status status = st_fail(STINT_E_IO, "%s: cannot be made: %s", t->name, strerror(errno));
    free(t->name);
    t->name = NULL;
    return status;
}

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

stint_status st_temporary_open(const char *path, mode_t mode, bool named,
                               struct st_temporary *temporary) {
    struct st_temporary t = {.path = strdup(path), .file = -1};
    char *folder = folder_of(path);
    stint_status status = STINT_OK;
    if (!t.path || !folder) {
        status = st_fail(STINT_E_NOMEM, "%s: no memory to write it", path);
    } else if (is_folder(path)) { // said now, not when the file gets its name
        status = st_fail(STINT_E_IO, "%s: is a folder; name a file in it", path);
    } else {
        remove_all_stale(folder, base_of(path));
        if (!named) t.file = open_unnamed(folder, mode);
        if (t.file < 0) status = open_named(&t, mode);
    }
    free(folder);
    if (status != STINT_OK)
        st_temporary_drop(&t);
    else
        *temporary = t;
    return status;
}

char *st_temporary_path(const struct st_temporary *t) {
    char text[LINK_BYTES];
    if (t->name) return strdup(t->name);
    link_path(text, t->file);
    return strdup(text);
}

// A link cannot replace a file, so there is a name in between.
static stint_status give_name(struct st_temporary *t) {
    char text[LINK_BYTES];
    link_path(text, t->file);
    for (int i = 0; i < MAX_TRIES; i++) {
        char *name = unique_name(t->path);
        if (!name) return st_fail(STINT_E_NOMEM, "%s: no memory to write it", t->path);
        flock(t->file, LOCK_EX | LOCK_NB);
        if (linkat(AT_FDCWD, text, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0) {
            t->name = name;
            return STINT_OK;
        }
        free(name);
        if (errno != EEXIST) break;
    }
    return st_fail(STINT_E_IO, "%s: cannot be made: %s", t->path, strerror(errno));
}

// So that the name survives a power cut; where a folder cannot be synced the rename stands anyway.
static void sync_folder(const char *path) {
    char *folder = folder_of(path);
    int file = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (file >= 0) {
        fsync(file);
        close(file);
    }
    free(folder);
}

stint_status st_temporary_keep(struct st_temporary *t) {
    if (!t->name) ST_TRY(give_name(t));
    if (rename(t->name, t->path) != 0)
        return st_fail(STINT_E_IO, "%s: %s", t->path, strerror(errno));
    sync_folder(t->path);
    free(t->name);
    t->name = NULL;
    return STINT_OK;
}

void st_temporary_drop(struct st_temporary *t) {
    if (t->name) unlink(t->name);
    free(t->name);
    free(t->path);
    *t = (struct st_temporary){.file = -1};
}
