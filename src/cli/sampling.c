// SPDX-License-Identifier: Apache-2.0
#include "cli/sampling.h"

#include "cli/common.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PARAMETERS = 64, HELP_BYTES = 240 };

static const enum st_cli_kind kinds[] = {[STINT_PARAMETER_FLOAT] = ST_CLI_FLOAT,
                                         [STINT_PARAMETER_UINT] = ST_CLI_UINT,
                                         [STINT_PARAMETER_UINT64] = ST_CLI_UINT64};

// A seed has no default of the model.
static void describe(const stint_parameter *p, enum st_cli_samples samples, char *to, size_t n) {
    double other = p->conversation != 0 ? p->conversation : p->standard;
    if (samples == ST_CLI_SAMPLES_GREEDY)
        snprintf(to, n, "%s (default %g)", p->help, p->standard);
    else if (p->type == STINT_PARAMETER_UINT64)
        snprintf(to, n, "%s", p->help);
    else
        snprintf(to, n, "%s (default the model's, or else %g)", p->help, other);
}

const struct st_cli_option *st_cli_sampling_option(enum st_cli_samples samples, size_t i) {
    static struct st_cli_option options[MAX_PARAMETERS];
    static char help[MAX_PARAMETERS][HELP_BYTES];
    const stint_parameter *p = stint_sampling_parameter(i);
    if (samples == ST_CLI_SAMPLES_NOT || p == NULL || i >= MAX_PARAMETERS) return NULL;
    describe(p, samples, help[i], sizeof help[i]);
    bool often = strcmp(p->option, "temp") == 0 || strcmp(p->option, "seed") == 0;
    options[i] =
        (struct st_cli_option){.name = p->option,
                               .kind = kinds[p->type],
                               .value = p->value,
                               .help = help[i],
                               .min = p->min,
                               .max = p->max,
                               .offset = offsetof(struct st_cli_common, sampling) + p->offset,
                               .often = often,
                               .given = UINT64_C(1) << i};
    return &options[i];
}

stint_sampling st_cli_sampling(const struct st_cli_common *common, const stint_model *model) {
    stint_sampling sampling = {.size = sizeof sampling};
    const stint_parameter *p;
    if (model != NULL) stint_model_sampling(model, &sampling);
    for (size_t i = 0; (p = stint_sampling_parameter(i)) != NULL; i++) {
        size_t n = p->type == STINT_PARAMETER_UINT64 ? sizeof(uint64_t) : sizeof(uint32_t);
        if ((common->given >> i & 1) != 0)
            memcpy((char *)&sampling + p->offset, (const char *)&common->sampling + p->offset, n);
    }
    return sampling;
}

bool st_cli_sampling_given(const struct st_cli_common *common, size_t offset) {
    const stint_parameter *p;
    for (size_t i = 0; (p = stint_sampling_parameter(i)) != NULL; i++)
        if (p->offset == offset) return (common->given >> i & 1) != 0;
    return false;
}

static double value_of(const stint_parameter *p, const stint_sampling *sampling) {
    const void *at = (const char *)sampling + p->offset;
    switch (p->type) {
    case STINT_PARAMETER_FLOAT:
        return (double)*(const float *)at;
    case STINT_PARAMETER_UINT:
        return *(const uint32_t *)at;
    case STINT_PARAMETER_UINT64:
        return (double)*(const uint64_t *)at;
    }
    return 0;
}

json_t *st_cli_sampling_json(const stint_sampling *sampling, uint64_t bits) {
    const stint_parameter *p;
    if (bits == 0) return json_null();
    json_t *object = json_object();
    for (size_t i = 0; (p = stint_sampling_parameter(i)) != NULL; i++) {
        if ((bits >> i & 1) == 0) continue;
        // As the file has it: 0.7, not the float next to it.
        double value = round(value_of(p, sampling) * 1e6) / 1e6;
        json_object_set_new(object, p->name, json_real(value));
    }
    return object;
}

const char *st_cli_sampling_text(const stint_sampling *sampling, uint64_t bits,
                                 char text[ST_CLI_SAMPLING_BYTES]) {
    const stint_parameter *p;
    size_t n = (size_t)snprintf(text, ST_CLI_SAMPLING_BYTES, "%s",
                                bits != 0 ? "its maker recommends" : "no recommendation");
    for (size_t i = 0; (p = stint_sampling_parameter(i)) != NULL; i++)
        if ((bits >> i & 1) != 0 && n < ST_CLI_SAMPLING_BYTES)
            n += (size_t)snprintf(text + n, ST_CLI_SAMPLING_BYTES - n, " --%s %g", p->option,
                                  value_of(p, sampling));
    return text;
}
