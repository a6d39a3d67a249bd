// SPDX-License-Identifier: Apache-2.0
// A progress bar on standard error for work that takes more than a second; nothing if standard
// error is not a terminal.
#ifndef ST_CLI_PROGRESS_H
#define ST_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

// Zero-initialise; one bar can serve several jobs one after another.
struct st_cli_progress {
    double begun, drawn; // seconds; 0: not yet
    bool visible;
};

// A stint_progress_fn; `context` is a struct st_cli_progress.
void st_cli_progress_show(void *context, const char *what, uint64_t done, uint64_t total);
// Erases the bar.
void st_cli_progress_end(struct st_cli_progress *progress);

#endif
