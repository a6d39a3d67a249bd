// SPDX-License-Identifier: Apache-2.0
// Lines of input: with editing and history on a terminal, plain from a pipe.
#ifndef ST_CLI_LINE_H
#define ST_CLI_LINE_H

#include <stdbool.h>

struct st_cli_line;

enum st_cli_line_end { ST_CLI_LINE_TEXT, ST_CLI_LINE_INTERRUPTED, ST_CLI_LINE_END };

// NULL without memory. Only one may be open.
struct st_cli_line *st_cli_line_open(void);
// True if input and output are terminals.
bool st_cli_line_interactive(const struct st_cli_line *line);
// Reads one message; on a terminal a backslash at a line's end continues it on the next. *text is
// borrowed until the next call.
enum st_cli_line_end st_cli_line_read(struct st_cli_line *line, const char **text);
// Saves the history; accepts NULL.
void st_cli_line_close(struct st_cli_line *line);

#endif
