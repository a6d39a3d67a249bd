// SPDX-License-Identifier: Apache-2.0
// Messages of a person: with editing and history on a terminal, plain from a pipe.
#ifndef ST_CLI_LINE_H
#define ST_CLI_LINE_H

#include <stdbool.h>
#include <stddef.h>

struct st_cli_line;

enum st_cli_line_end {
    ST_CLI_LINE_TEXT,
    ST_CLI_LINE_INTERRUPTED,
    ST_CLI_LINE_END,
    ST_CLI_LINE_FAILED, // errno says why
};

// The i-th word that Tab completes after a slash; NULL after the last.
typedef const char *st_cli_word_fn(size_t i);

// NULL without memory. Only one may be open.
struct st_cli_line *st_cli_line_open(st_cli_word_fn *word);
// True if input and output are terminals.
bool st_cli_line_interactive(const struct st_cli_line *line);
// Reads one message: a line, or several between """ and """; on a terminal a backslash at a line's
// end continues it too. *text is borrowed until the next call.
enum st_cli_line_end st_cli_line_read(struct st_cli_line *line, const char **text);
void st_cli_line_close(struct st_cli_line *line); // accepts NULL

#endif
