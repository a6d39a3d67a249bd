// SPDX-License-Identifier: Apache-2.0
// Plans a memory bound for a package on this machine: measures, plans and shows it.
#ifndef ST_CLI_MEMORY_PLAN_H
#define ST_CLI_MEMORY_PLAN_H

#include "cli/outliers.h"

// Measures this machine with the package and plans for common->memory. Returns a new object; NULL
// with the error printed.
json_t *st_cli_memory_plan(const struct st_cli_command *command, const struct st_cli_common *common,
                           const stint_model *model);

// Shows notes that contain the plan as "plan".
extern const struct st_cli_view st_cli_memory_view;

#endif
