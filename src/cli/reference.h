// SPDX-License-Identifier: Apache-2.0
// The model that another one is compared with.
#ifndef ST_CLI_REFERENCE_H
#define ST_CLI_REFERENCE_H

#include "cli/common.h"

// Opens common->model so that it runs exactly: quantized blocks in float. NULL with the error
// printed.
stint_model *st_cli_open_exact(const struct st_cli_command *command,
                               const struct st_cli_common *common);
// The same of another model, with the options of `common`. The name may be one that was pulled.
stint_model *st_cli_open_reference(const struct st_cli_command *command,
                                   const struct st_cli_common *common, const char *name);

#endif
