// SPDX-License-Identifier: Apache-2.0
// generation_config.json names parameters as requests do. A GGUF has general.sampling.*, written
// from the same file. Both are hints: a value that is out of range is ignored with a warning, and
// the model still opens.
#include "generate/recommended.h"

#include "base/log.h"
#include "base/size.h"
#include "generate/parameters.h"
#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool read_json(const json_t *object, const stint_parameter *p, double *value) {
    const json_t *found = json_object_get(object, p->name);
    if (!found && p->alias) found = json_object_get(object, p->alias);
    if (!json_is_number(found)) return false; // null is common
    *value = json_number_value(found);
    return true;
}

static bool read_gguf(const struct st_gguf *gguf, const stint_parameter *p, double *value) {
    char key[64];
    uint64_t whole = 0;
    if (!p->gguf) return false;
    snprintf(key, sizeof key, "general.sampling.%s", p->gguf);
    if (!st_gguf_has(gguf, key)) return false;
    if (st_gguf_f64(gguf, key, value) == STINT_OK) return true;
    bool ok = st_gguf_u64(gguf, key, UINT32_MAX, &whole) == STINT_OK;
    *value = (double)whole;
    if (!ok) st_log(STINT_LOG_WARNING, "%s is ignored: it is not a number from 0 on", key);
    return ok;
}

static bool fits(const stint_parameter *p, double value) {
    bool whole = p->type == STINT_PARAMETER_FLOAT || value == floor(value);
    if (whole && value >= p->min && value <= p->max) return true;
    st_log(STINT_LOG_WARNING, "the model's %s of %g is ignored: it must be from %g to %g", p->name,
           value, p->min, p->max);
    return false;
}

// transformers draws no tokens where do_sample is false, and has a temperature of 1 otherwise.
static double default_temperature(const struct st_checkpoint *checkpoint) {
    return json_is_false(json_object_get(checkpoint->generation_config, "do_sample")) ? 0.0 : 1.0;
}

uint64_t st_sampling_recommended(const struct st_checkpoint *checkpoint, stint_sampling *sampling) {
    const stint_parameter *p;
    uint64_t found = 0;
    double value, temperature = default_temperature(checkpoint);
    *sampling = (stint_sampling){.size = sizeof *sampling};
    for (size_t i = 0; (p = stint_sampling_parameter(i)) != NULL; i++) {
        bool has = checkpoint->gguf ? read_gguf(checkpoint->gguf, p, &value)
                                    : read_json(checkpoint->generation_config, p, &value);
        if (!has || p->type == STINT_PARAMETER_UINT64 || !fits(p, value)) continue;
        st_parameter_set(p, sampling, value);
        found |= UINT64_C(1) << i;
    }
    const uint64_t temperature_bit = 1; // it is the first row
    if (temperature == 0.0 || (found && !(found & temperature_bit))) {
        sampling->temperature = (float)temperature;
        found |= temperature_bit;
    }
    for (size_t i = 0; !found && (p = stint_sampling_parameter(i)) != NULL; i++)
        if (p->conversation != 0.0) st_parameter_set(p, sampling, p->conversation);
    return found;
}

uint64_t stint_model_sampling(const stint_model *model, stint_sampling *sampling) {
    stint_sampling made;
    uint64_t found = st_sampling_recommended(&model->checkpoint, &made);
    made.size = sampling->size;
    memcpy(sampling, &made, st_min(sampling->size, sizeof made));
    return found;
}
