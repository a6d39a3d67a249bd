// SPDX-License-Identifier: Apache-2.0
// Stands for the commands that need the network, in a build without it (cmake/command.cmake).
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/output.h"

static const struct st_cli_option rows[] = {{.name = NULL}};

static int run(const struct st_cli_command *command, void *target) {
    (void)target;
    st_cli_error(command->name, "this build has no network (STINT_NETWORK=OFF); copy a model here, "
                                "or use a build with it");
    return ST_CLI_FAILED;
}

#define ABSENT                                                                                     \
    .summary = "not in this build, which has no network", .operand = "MODEL...",                   \
    .about = "This build was made without the network (STINT_NETWORK=OFF).", .options = rows,      \
    .example = "stint chat model.gguf", .options_bytes = sizeof(struct st_cli_common), .run = run

const struct st_cli_command st_cli_serve_command = {.name = "serve", ABSENT};
const struct st_cli_command st_cli_pull_command = {.name = "pull", ABSENT};
