// SPDX-License-Identifier: Apache-2.0
#include "cli/losses.h"

#include <stdio.h>

json_t *st_cli_losses(const stint_model *model) {
    size_t bytes = 0;
    const char *text = stint_model_notes(model, &bytes);
    json_t *notes = text != NULL ? json_loadb(text, bytes, 0, NULL) : NULL;
    json_t *losses = json_incref(json_object_get(notes, "losses"));
    json_decref(notes);
    return losses != NULL ? losses : json_array();
}

const char *st_cli_loss_text(const json_t *loss, char text[ST_CLI_LOSS_BYTES]) {
    double ratio = json_number_value(json_object_get(loss, "perplexity_ratio"));
    snprintf(text, ST_CLI_LOSS_BYTES,
             "%lld bits (%.1f on average): perplexity %+.1f %%, divergence %.3g, same first choice "
             "%.1f %%",
             (long long)json_integer_value(json_object_get(loss, "bits")),
             json_number_value(json_object_get(loss, "mean_bits")), 100 * (ratio - 1),
             json_number_value(json_object_get(loss, "divergence")),
             100 * json_number_value(json_object_get(loss, "top1_agreement")));
    return text;
}
