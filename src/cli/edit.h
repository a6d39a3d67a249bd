// SPDX-License-Identifier: Apache-2.0
// A line editor on the terminal, by libedit: history, completion, pasted texts of several lines,
// windows that change their size.
#ifndef ST_CLI_EDIT_H
#define ST_CLI_EDIT_H

#include "cli/line.h"

#include <stddef.h>

struct st_cli_edit;

// NULL: this terminal cannot be edited on, or not enough memory. `word`: see st_cli_line_open.
struct st_cli_edit *st_cli_edit_open(st_cli_word_fn *word);
// Reads one line; pasted newlines do not end it. *text[0, *n) is borrowed until the next call,
// without the newline. `continued`: shows another prompt.
enum st_cli_line_end st_cli_edit_read(struct st_cli_edit *edit, bool continued, const char **text,
                                      size_t *n);
// Adds a message to the history, and saves that.
void st_cli_edit_remember(struct st_cli_edit *edit, const char *text);
void st_cli_edit_close(struct st_cli_edit *edit); // accepts NULL

#endif
