// SPDX-License-Identifier: Apache-2.0
#include "session/precision/quality.h"

#include "base/json.h"
#include "session/precision/precision.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *word;
    double loss;
} qualities[] = {{"high", 0.01}, {"fast", 0.1}};

// Of a precision; infinite where the notes do not say.
static double loss_of(const json_t *noted) {
    const json_t *ratio = json_object_get(noted, "perplexity_ratio");
    const json_t *divergence = json_object_get(noted, "divergence");
    if (!json_is_number(ratio) || !json_is_number(divergence)) return INFINITY;
    return fmax(json_number_value(ratio) - 1.0, json_number_value(divergence));
}

static unsigned fewest(const struct stint_model *model, const json_t *losses, double most) {
    unsigned best = ST_PRECISION_INT8;
    size_t i;
    const json_t *noted;
    json_array_foreach(losses, i, noted) {
        json_int_t bits = json_integer_value(json_object_get(noted, "bits"));
        if (bits > 0 && bits < best && st_nested_has(&model->nested, (unsigned)bits) &&
            loss_of(noted) < most)
            best = (unsigned)bits;
    }
    return best;
}

unsigned st_precision_quality(const struct stint_model *model, const char *word) {
    size_t n = sizeof qualities / sizeof *qualities, i = 0, bytes = 0;
    while (i < n && strcmp(word, qualities[i].word) != 0) i++;
    if (i == n) return 0;
    const char *text = stint_model_notes(model, &bytes);
    json_t *notes = text ? json_loadb(text, bytes, 0, NULL) : NULL;
    unsigned bits = fewest(model, json_object_get(notes, "losses"), qualities[i].loss);
    json_decref(notes);
    return bits;
}
