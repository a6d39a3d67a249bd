// SPDX-License-Identifier: Apache-2.0
#include "cli/reference.h"

#include "hub/store.h"

#include <stdlib.h>

stint_model *st_cli_open_exact(const struct st_cli_command *command,
                               const struct st_cli_common *common) {
    struct st_cli_common exact = *common;
    stint_model_info info = {.size = sizeof info};
    stint_model *model = st_cli_open_model(command, common, NULL, NULL);
    if (model == NULL || stint_model_describe(model, &info) != STINT_OK ||
        info.exec != STINT_EXEC_FAST)
        return model;
    stint_model_close(model);
    exact.exec = STINT_EXEC_FLOAT;
    return st_cli_open_model(command, &exact, NULL, NULL);
}

stint_model *st_cli_open_reference(const struct st_cli_command *command,
                                   const struct st_cli_common *common, const char *name) {
    struct st_cli_common other = *common;
    char *path;
    if (st_hub_find(name, &path) != STINT_OK) {
        st_cli_failed(command);
        return NULL;
    }
    other.model = path;
    other.exec = STINT_EXEC_DEFAULT;
    other.nested = NULL; // is of the model that is compared
    stint_model *model = st_cli_open_exact(command, &other);
    free(path);
    return model;
}
