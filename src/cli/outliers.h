// SPDX-License-Identifier: Apache-2.0
// What `stint prepare` found out about a package's outliers and neurons, as its notes say.
#ifndef ST_CLI_OUTLIERS_H
#define ST_CLI_OUTLIERS_H

#include "cli/common.h"

#include <jansson.h>
#include <stdio.h>

// One way to look at them; both are false without memory.
struct st_cli_view {
    const char *key;  // of the notes, which must be there
    const char *mend; // where it is not
    bool (*print)(const json_t *notes);
    bool (*draw)(FILE *file, const json_t *notes);
};
extern const struct st_cli_view st_cli_outliers_view, st_cli_neurons_view;

// Prints a table, or the notes as they are with --json; with `svg` draws them into that file
// instead. `plan`: added to the notes under this name, and freed; NULL: none. False with the error
// printed.
bool st_cli_view_show(const struct st_cli_command *command, const struct st_cli_common *common,
                      const struct st_cli_view *view, const char *svg, const stint_model *model,
                      json_t *plan);

// Importance by layer, outlier channels by layer, and how few channels most outliers are in
// (llm.npu, Figs. 10 to 12). False without memory.
bool st_cli_outliers_draw(FILE *file, const json_t *notes);
// How often neurons are active, by layer; of notes with a plan, what of them is in memory and what
// a token misses, and where the bound goes. False without memory.
bool st_cli_neurons_draw(FILE *file, const json_t *notes);

#endif
