// SPDX-License-Identifier: Apache-2.0
// What a package loses at each nested precision, as `stint prepare` measured it.
#ifndef ST_CLI_LOSSES_H
#define ST_CLI_LOSSES_H

#include "stint.h"

#include <jansson.h>

enum { ST_CLI_LOSS_BYTES = 128 };

// The notes' `losses`, an empty array where there are none; NULL without memory. For json_decref.
json_t *st_cli_losses(const stint_model *model);
// One of them as a phrase.
const char *st_cli_loss_text(const json_t *loss, char text[ST_CLI_LOSS_BYTES]);

#endif
