// SPDX-License-Identifier: Apache-2.0
// Shows the notes of `stint prepare` about a package's outliers and neurons.
#ifndef ST_CLI_OUTLIERS_H
#define ST_CLI_OUTLIERS_H

#include "cli/common.h"

#include <jansson.h>
#include <stdio.h>

// One view of the notes; both functions return false without memory.
struct st_cli_view {
    const char *key;  // the member of the notes that must exist
    const char *hint; // the error text if it does not exist
    bool (*print)(const json_t *notes);
    bool (*draw)(FILE *file, const json_t *notes);
};
extern const struct st_cli_view st_cli_outliers_view, st_cli_neurons_view;

// Prints a table; with --json, prints the notes unchanged; with `svg`, draws them into that file
// instead. `plan` is added to the notes under this name, and freed; NULL: none. False with the
// error printed.
bool st_cli_view_show(const struct st_cli_command *command, const struct st_cli_common *common,
                      const struct st_cli_view *view, const char *svg, const stint_model *model,
                      json_t *plan);

// Draws importance by layer, outlier channels by layer, and how few channels contain most outliers
// (llm.npu, Figs. 10 to 12). False without memory.
bool st_cli_outliers_draw(FILE *file, const json_t *notes);
// Draws how often neurons are active, by layer; for notes with a plan, also which neurons are in
// memory, what a token misses, and the use of the bound. False without memory.
bool st_cli_neurons_draw(FILE *file, const json_t *notes);

#endif
