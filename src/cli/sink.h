// SPDX-License-Identifier: Apache-2.0
// Where the text of `stint run` goes as it comes: to standard output, its reasoning to standard
// error; or, for --json, into memory.
#ifndef ST_CLI_SINK_H
#define ST_CLI_SINK_H

#include "cli/progress.h"
#include "stint.h"

#include <jansson.h>
#include <stdio.h>

struct st_cli_sink {
    const stint_session *session;
    struct st_cli_progress progress; // of the prompt; ends with the first text
    bool show_bits;
    bool thinking; // the last text was reasoning, on standard error
    // For --json only:
    FILE *text, *reasoning;
    char *text_data, *reasoning_data;
    size_t text_bytes, reasoning_bytes;
    json_t *bits, *logprobs, *calls; // of every token; the same, or NULL; of tools
};

// `collect`: for --json, with log-probabilities if asked for. False without memory. To be closed
// also then.
bool st_cli_sink_open(struct st_cli_sink *sink, bool collect, bool logprobs);
stint_text_fn st_cli_sink_take;
// After the last text: the answer's line ends, or what was collected is complete.
void st_cli_sink_end(struct st_cli_sink *sink);
// Writes what was collected and has ended, as if it came now.
void st_cli_sink_show(const struct st_cli_sink *sink);
// Adds what was collected to a report.
bool st_cli_sink_report(const struct st_cli_sink *sink, json_t *object);
void st_cli_sink_close(struct st_cli_sink *sink);

#endif
