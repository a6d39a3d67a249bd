// SPDX-License-Identifier: Apache-2.0
#include "generate/parameters.h"

#include "base/status.h"

// A parameter with one range, and one whose range is narrower in requests, as OpenAI's API has it.
#define RANGE(low, high) .min = (low), .max = (high), .request_min = (low), .request_max = (high)
#define RANGES(low, high, request_low, request_high)                                               \
    .min = (low), .max = (high), .request_min = (request_low), .request_max = (request_high)
#define FLOAT(member)                                                                              \
    .name = #member, .type = STINT_PARAMETER_FLOAT, .offset = offsetof(stint_sampling, member)
#define UINT(member)                                                                               \
    .name = #member, .type = STINT_PARAMETER_UINT, .offset = offsetof(stint_sampling, member)
#define UINT64(member)                                                                             \
    .name = #member, .type = STINT_PARAMETER_UINT64, .offset = offsetof(stint_sampling, member)

static const stint_parameter parameters[] = {
    {FLOAT(temperature), RANGES(0, 100, 0, 2), .gguf = "temp", .conversation = 0.8,
     .option = "temp", .value = "T", .help = "temperature; 0: always the likeliest token"},
    {UINT(top_k), RANGE(0, 1 << 20), .gguf = "top_k", .option = "top-k", .value = "N",
     .help = "sample from the N likeliest tokens; 0: from all"},
    {FLOAT(top_p), RANGE(0, 1), .gguf = "top_p", .conversation = 0.95, .option = "top-p",
     .value = "P",
     .help = "sample from the likeliest tokens that together reach probability P; 0: from all"},
    {FLOAT(min_p), RANGE(0, 0.999), .gguf = "min_p", .conversation = 0.05, .option = "min-p",
     .value = "P", .help = "leave out tokens below P times the likeliest one"},
    {FLOAT(repeat_penalty), RANGE(0, 100), .alias = "repetition_penalty", .gguf = "penalty_repeat",
     .option = "repeat-penalty", .value = "X",
     .help = "values above 1 make recent tokens less likely; 0: off"},
    {UINT(repeat_last), RANGE(1, 1 << 20), .alias = "repeat_last_n", .gguf = "penalty_last_n",
     .option = "repeat-last", .value = "N", .standard = 64,
     .help = "number of tokens that count as recent"},
    {UINT64(seed), RANGE(0, 0x1p64), .option = "seed", .value = "N",
     .help = "the same seed gives the same text, with any number of threads"},
    {FLOAT(presence_penalty), RANGES(-100, 100, -2, 2), .option = "presence-penalty", .value = "X",
     .help = "taken from the logit of a token that was generated before; 0: off"},
    {FLOAT(frequency_penalty), RANGES(-100, 100, -2, 2), .option = "frequency-penalty",
     .value = "X", .help = "the same for each time that it was; 0: off"},
    {FLOAT(xtc_probability), RANGE(0, 1), .gguf = "xtc_probability", .option = "xtc-probability",
     .value = "P", .help = "how often to exclude the likeliest tokens (XTC); 0: never"},
    {FLOAT(xtc_threshold), RANGE(0, 1), .gguf = "xtc_threshold", .option = "xtc-threshold",
     .value = "P", .standard = 0.1,
     .help = "XTC excludes all tokens of at least this probability but the least likely of them"},
    {FLOAT(dry_multiplier), RANGE(0, 100), .option = "dry-multiplier", .value = "X",
     .help = "taken from the logit of a token that would continue a repetition (DRY), times "
             "--dry-base for each further token of the repetition; 0: off"},
    {FLOAT(dry_base), RANGE(1, 100), .option = "dry-base", .value = "X", .standard = 1.75,
     .help = "see --dry-multiplier"},
    {UINT(dry_allowed_length), RANGE(1, 1 << 20), .option = "dry-allowed-length", .value = "N",
     .standard = 2, .help = "DRY leaves repetitions of fewer tokens alone"},
    {UINT(dry_penalty_last_n), RANGE(0, 1 << 20), .option = "dry-penalty-last-n", .value = "N",
     .help = "DRY looks for repetitions in the last N tokens; 0: in all of the text"},
};

const stint_parameter *stint_sampling_parameter(size_t i) {
    return i < sizeof parameters / sizeof *parameters ? &parameters[i] : NULL;
}

double st_parameter_get(const stint_parameter *p, const stint_sampling *sampling) {
    const char *at = (const char *)sampling + p->offset;
    switch (p->type) {
    case STINT_PARAMETER_FLOAT:
        return (double)*(const float *)(const void *)at;
    case STINT_PARAMETER_UINT:
        return *(const uint32_t *)(const void *)at;
    case STINT_PARAMETER_UINT64:
        return (double)*(const uint64_t *)(const void *)at;
    }
    return 0.0;
}

void st_parameter_set(const stint_parameter *p, stint_sampling *sampling, double value) {
    void *at = (char *)sampling + p->offset;
    switch (p->type) {
    case STINT_PARAMETER_FLOAT:
        *(float *)at = (float)value;
        return;
    case STINT_PARAMETER_UINT:
        *(uint32_t *)at = (uint32_t)value;
        return;
    case STINT_PARAMETER_UINT64:
        *(uint64_t *)at = (uint64_t)value;
        return;
    }
}

stint_status st_sampling_check(const stint_sampling *sampling) {
    const stint_parameter *p;
    for (size_t i = 0; (p = stint_sampling_parameter(i)) != NULL; i++) {
        double value = st_parameter_get(p, sampling);
        // As the struct holds it: the float next to a limit may lie beyond it.
        double min = p->type == STINT_PARAMETER_FLOAT ? (double)(float)p->min : p->min;
        double max = p->type == STINT_PARAMETER_FLOAT ? (double)(float)p->max : p->max;
        if (value != 0.0 && !(value >= min && value <= max))
            return st_fail(STINT_E_ARG, "sampling: %s is %g; it must be from %g to %g", p->name,
                           value, p->min, p->max);
    }
    return STINT_OK;
}
