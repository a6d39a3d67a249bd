// SPDX-License-Identifier: Apache-2.0
// The operands of `stint serve` as the models that it serves.
#ifndef ST_CLI_SERVE_MODELS_H
#define ST_CLI_SERVE_MODELS_H

#include "cli/common.h"
#include "server/server.h"

struct st_cli_served_models {
    struct st_server_model *items;
    size_t count;
};

// Each operand is a model, or a folder whose models are all meant. `name`: of a single model; NULL:
// its path says. False with the error printed; free with st_cli_served_models_free in any case.
bool st_cli_served_models(const struct st_cli_command *command, const struct st_cli_common *common,
                          const char *name, struct st_cli_served_models *models);
void st_cli_served_models_free(struct st_cli_served_models *models);

#endif
