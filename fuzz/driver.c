// SPDX-License-Identifier: Apache-2.0
// Replays corpora without libFuzzer: every file below the folders and files named on the command
// line goes through the target once, in the order of their names. A path that is not there, or no
// file at all, is a failure, so a lost corpus cannot pass for a clean one.
#include <errno.h>
#include <fts.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

// The input is handed over in a block of exactly its size, so that a sanitizer sees an over-read.
static int replay(const char *path, size_t bytes) {
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(bytes ? bytes : 1);
    int ok = file && data && fread(data, 1, bytes, file) == bytes;
    if (ok) LLVMFuzzerTestOneInput(data, bytes);
    if (!ok) fprintf(stderr, "%s: %s\n", path, strerror(errno));
    if (file) fclose(file);
    free(data);
    return ok ? 0 : 1;
}

static int by_name(const FTSENT **a, const FTSENT **b) {
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s FOLDER...\n", argv[0]);
        return 2;
    }
    FTS *walk = fts_open(argv + 1, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    if (!walk) return 1;
    int n_bad = 0, n_files = 0;
    for (FTSENT *entry; (entry = fts_read(walk));) {
        if (entry->fts_info == FTS_F) {
            n_bad += replay(entry->fts_path, (size_t)entry->fts_statp->st_size);
            n_files++;
        } else if (entry->fts_info == FTS_NS || entry->fts_info == FTS_ERR ||
                   entry->fts_info == FTS_DNR) {
            fprintf(stderr, "%s: %s\n", entry->fts_path, strerror(entry->fts_errno));
            n_bad++;
        }
    }
    fts_close(walk);
    printf("%d files, %d not read\n", n_files, n_bad);
    return n_bad > 0 || n_files == 0;
}
