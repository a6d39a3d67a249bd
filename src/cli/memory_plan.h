// SPDX-License-Identifier: Apache-2.0
// What a bound of memory would do to a package on this machine: measured, planned, shown.
#ifndef ST_CLI_MEMORY_PLAN_H
#define ST_CLI_MEMORY_PLAN_H

#include "cli/outliers.h"

// Measures this machine with the package and plans for common->memory, as an object of its own;
// NULL with the error printed.
json_t *st_cli_memory_plan(const struct st_cli_command *command, const struct st_cli_common *common,
                           const stint_model *model);

// Of notes that have it as "plan".
extern const struct st_cli_view st_cli_memory_view;

#endif
