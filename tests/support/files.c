// SPDX-License-Identifier: Apache-2.0
// Golden and temporary files. The temporary folder is made on first use and removed by the process
// that made it, not by its children.
#include "support/support.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

enum { N_PATHS = 8, PATH_BYTES = 4096 };

static char temp_folder[PATH_BYTES];
static pid_t temp_owner;

// One of a few buffers in turn, with `folder`/`name` in it.
static const char *join(const char *folder, const char *name) {
    static char paths[N_PATHS][PATH_BYTES];
    static unsigned turn;
    char *path = paths[turn++ % N_PATHS];
    int n = snprintf(path, PATH_BYTES, "%s/%s", folder, name);
    if (n < 0 || n >= PATH_BYTES) fail_msg("path too long: %s/%s", folder, name);
    return path;
}

const char *ts_shared(const char *relative) {
    const char *path = join(STINT_SHARED_DATA, relative);
    struct stat info;
    if (stat(path, &info) == 0) return path;
    print_message("no golden file %s: the test is skipped\n", path);
    skip();
    return path;
}

const char *ts_source(const char *relative) {
    return join(STINT_SOURCE_DIR, relative);
}

const char *ts_built(const char *relative) {
    return join(STINT_TESTS_DIR, relative);
}

const char *ts_trained(void) {
    return ts_is_emulated() ? ts_built("models/novels-2") : ts_source("models/novels-10m");
}

const char *ts_trained_sparse(void) {
    return ts_is_emulated() ? ts_built("models/novels-2-drelu")
                            : ts_shared("models/novels-10m-drelu");
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk) {
    (void)info, (void)kind, (void)walk;
    return remove(path);
}

static void remove_temp_folder(void) {
    if (getpid() == temp_owner) nftw(temp_folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *ts_temp_folder(void) {
    if (temp_folder[0]) return temp_folder;
    const char *parent = getenv("TMPDIR");
    snprintf(temp_folder, sizeof temp_folder, "%s", join(parent ? parent : "/tmp", "stint-XXXXXX"));
    if (!mkdtemp(temp_folder)) fail_msg("%s: %s", temp_folder, strerror(errno));
    temp_owner = getpid();
    atexit(remove_temp_folder);
    return temp_folder;
}

const char *ts_write(const char *name, const void *data, size_t bytes) {
    const char *path = join(ts_temp_folder(), name);
    FILE *file = fopen(path, "wb");
    if (!file) fail_msg("%s: %s", path, strerror(errno));
    size_t n_written = bytes ? fwrite(data, 1, bytes, file) : 0;
    if (fclose(file) != 0 || n_written != bytes) fail_msg("%s: %s", path, strerror(errno));
    return path;
}

const char *ts_write_text(const char *name, const char *text) {
    return ts_write(name, text, strlen(text));
}

void ts_make_old(const char *path) {
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

unsigned char *ts_read(const char *path, size_t *bytes) {
    struct stat info;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &info) != 0) fail_msg("%s: %s", path, strerror(errno));
    size_t n = (size_t)info.st_size;
    unsigned char *data = malloc(n + 1);
    if (!data || fread(data, 1, n, file) != n) fail_msg("%s: cannot be read", path);
    fclose(file);
    data[n] = 0;
    if (bytes) *bytes = n;
    return data;
}
