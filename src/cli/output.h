// SPDX-License-Identifier: Apache-2.0
// Printing: results go to standard output, everything else to standard error. Colours are used only
// on a terminal, and not if NO_COLOR is set.
#ifndef ST_CLI_OUTPUT_H
#define ST_CLI_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Prints "stint: command: text" on standard error, always one line; command may be NULL.
void st_cli_error(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Writes to standard output and flushes; false if that failed now or earlier.
bool st_cli_write(const char *text, size_t n_bytes);

// Prints one object as one line and frees it. False with an error printed if it could not be made.
bool st_cli_print_json(const char *command, json_t *object);

// Closes standard output. Returns `status`, or ST_CLI_FAILED with an error printed if a write was
// lost.
int st_cli_finish(const char *command, int status);

enum st_cli_style {
    ST_CLI_PLAIN,
    ST_CLI_BOLD,
    ST_CLI_DIM,
    ST_CLI_ACCENT,
    ST_CLI_BITS // the first of seven: text generated with 2, 3, ... 8 bits
};
// The escape sequence of a style on this stream; "" if the stream has no styles.
const char *st_cli_style(FILE *stream, enum st_cli_style style);

// 1234567 bytes as "1.2 MiB"; returns buf.
enum { ST_CLI_SIZE_BYTES = 32 };
const char *st_cli_size(uint64_t bytes, char buf[ST_CLI_SIZE_BYTES]);

// Prints a titled block of "label  value" rows on standard output.
void st_cli_title(const char *title);
void st_cli_row(const char *label, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Seconds of a monotonic clock.
double st_cli_seconds(void);

#endif
