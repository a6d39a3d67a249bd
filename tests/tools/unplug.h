// SPDX-License-Identifier: Apache-2.0
// What a power cut may leave of files, for fail_io.c: of a file whose last bytes were not synced
// nothing, and of a name that was given since its folder was last synced nothing either. Files and
// names are noted as calls succeed. Called within a signal handler: no allocation.
#ifndef TESTS_TOOLS_UNPLUG_H
#define TESTS_TOOLS_UNPLUG_H

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

long st_io_raw(long number, const long arguments[6]);

enum { UNPLUG_MAX = 64, UNPLUG_PATH = 1024 };

static struct unplug_file {
    dev_t device;
    ino_t number;
    int file; // a duplicate, for writing
} unplug_dirty[UNPLUG_MAX];
static size_t unplug_n_dirty;
static char unplug_names[UNPLUG_MAX][UNPLUG_PATH];
static size_t unplug_n_names;
static atomic_flag unplug_lock = ATOMIC_FLAG_INIT;

static void unplug_close(int file) {
    const long arguments[6] = {file};
    st_io_raw(SYS_close, arguments);
}

static void unplug_written(int file, const struct stat *info) {
    if (!S_ISREG(info->st_mode) || unplug_n_dirty == UNPLUG_MAX) return;
    for (size_t i = 0; i < unplug_n_dirty; i++)
        if (unplug_dirty[i].device == info->st_dev && unplug_dirty[i].number == info->st_ino)
            return;
    unplug_dirty[unplug_n_dirty++] =
        (struct unplug_file){info->st_dev, info->st_ino, fcntl(file, F_DUPFD_CLOEXEC, 0)};
}

static bool unplug_is_in(const char *path, const struct stat *folder) {
    char copy[UNPLUG_PATH];
    struct stat info;
    snprintf(copy, sizeof copy, "%s", path);
    char *slash = strrchr(copy, '/');
    if (slash) slash[1] = 0;
    return stat(slash ? copy : ".", &info) == 0 && info.st_dev == folder->st_dev &&
           info.st_ino == folder->st_ino;
}

static void unplug_synced(const struct stat *info) {
    for (size_t i = 0; i < unplug_n_dirty; i++)
        if (unplug_dirty[i].device == info->st_dev && unplug_dirty[i].number == info->st_ino) {
            unplug_close(unplug_dirty[i].file);
            unplug_dirty[i--] = unplug_dirty[--unplug_n_dirty];
        }
    for (size_t i = 0; i < unplug_n_names; i++)
        if (unplug_is_in(unplug_names[i], info))
            memmove(unplug_names[i--], unplug_names[--unplug_n_names], UNPLUG_PATH);
}

// After a call that succeeded.
static void unplug_note(long number, const long arguments[6]) {
    struct stat info;
    bool written = number == SYS_write || number == SYS_pwrite64 || number == SYS_writev ||
                   number == SYS_ftruncate;
    bool synced = number == SYS_fsync || number == SYS_fdatasync;
    const char *name = number == SYS_rename ? (const char *)arguments[1]
                       : number == SYS_linkat || number == SYS_renameat2
                           ? (const char *)arguments[3]
                           : NULL;
    while (atomic_flag_test_and_set(&unplug_lock)) {}
    if ((written || synced) && fstat((int)arguments[0], &info) == 0) {
        if (written)
            unplug_written((int)arguments[0], &info);
        else
            unplug_synced(&info);
    }
    if (name && unplug_n_names < UNPLUG_MAX)
        snprintf(unplug_names[unplug_n_names++], UNPLUG_PATH, "%s", name);
    atomic_flag_clear(&unplug_lock);
}

// The names stand, what is in the files does not.
static void unplug_files(void) {
    for (size_t i = 0; i < unplug_n_dirty; i++) {
        const long arguments[6] = {unplug_dirty[i].file, 0};
        st_io_raw(SYS_ftruncate, arguments);
    }
}

// Neither does stand.
static void unplug_all(void) {
    unplug_files();
    for (size_t i = 0; i < unplug_n_names; i++) unlink(unplug_names[i]);
}

#endif
