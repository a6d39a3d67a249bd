// SPDX-License-Identifier: Apache-2.0
// Whole files in and out. What is written appears under its name complete or not at all.
#ifndef ST_CLI_FILE_H
#define ST_CLI_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// Reads all of `path`, or standard input for "-", terminated, malloc'ed; NULL with the error
// printed, also past `most` bytes.
char *st_cli_read_all(const char *command, const char *path, size_t most, size_t *n_bytes);

// A file being written under a temporary name beside `path`; straight to `path` where that is no
// ordinary file (a pipe, /dev/null). `path` is borrowed until close.
struct st_cli_writer {
    const char *command, *path;
    char *temporary; // NULL: straight
    FILE *file;
};
bool st_cli_writer_open(struct st_cli_writer *writer, const char *command, const char *path);
bool st_cli_writer_put(struct st_cli_writer *writer, const void *data, size_t n_bytes);
// Puts the file in its place if `keep`, else removes it; false with the error printed.
bool st_cli_writer_close(struct st_cli_writer *writer, bool keep);

#endif
