// SPDX-License-Identifier: Apache-2.0
// Stands for the line editor in a build without it (cmake/command.cmake): lines are read plainly.
#include "cli/edit.h"

struct st_cli_edit *st_cli_edit_open(st_cli_word_fn *word) {
    (void)word;
    return NULL;
}

enum st_cli_line_end st_cli_edit_read(struct st_cli_edit *edit, bool continued, const char **text,
                                      size_t *n) {
    (void)edit, (void)continued, (void)text, (void)n;
    return ST_CLI_LINE_END; // none was opened
}

void st_cli_edit_remember(struct st_cli_edit *edit, const char *text) {
    (void)edit, (void)text;
}

void st_cli_edit_close(struct st_cli_edit *edit) {
    (void)edit;
}
