// SPDX-License-Identifier: Apache-2.0
// Reads and writes whole files. A written file appears under its name only when it is complete.
#ifndef ST_CLI_FILE_H
#define ST_CLI_FILE_H

#include "base/output.h"

// Reads all of `path`, or standard input for "-"; the result is terminated and malloc'ed. NULL with
// the error printed, also for more than `max` bytes.
char *st_cli_read_all(const char *command, const char *path, size_t max, size_t *n_bytes);

// A file that appears when it is complete. `command` is borrowed until close.
struct st_cli_writer {
    const char *command;
    struct st_output output;
};
bool st_cli_writer_open(struct st_cli_writer *writer, const char *command, const char *path);
bool st_cli_writer_put(struct st_cli_writer *writer, const void *data, size_t n_bytes);
// Gives the file its name if `keep`, else removes it; false with the error printed.
bool st_cli_writer_close(struct st_cli_writer *writer, bool keep);

#endif
