// SPDX-License-Identifier: Apache-2.0
// The library's sampling parameters as options of a command.
#ifndef ST_CLI_SAMPLING_H
#define ST_CLI_SAMPLING_H

#include "cli/options.h"
#include "stint.h"

struct st_cli_common;

// The option of the i-th parameter; NULL after the last. Static, and the same at each call.
const struct st_cli_option *st_cli_sampling_option(size_t i);

// What the command line says, without biases.
stint_sampling st_cli_sampling(const struct st_cli_common *common);

#endif
