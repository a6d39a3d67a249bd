// SPDX-License-Identifier: Apache-2.0
#include "cli/sampling.h"

#include "cli/common.h"

#include <stdio.h>

enum { MAX_PARAMETERS = 64, HELP_BYTES = 200 };

static const enum st_cli_kind kinds[] = {[STINT_PARAMETER_FLOAT] = ST_CLI_FLOAT,
                                         [STINT_PARAMETER_UINT] = ST_CLI_UINT,
                                         [STINT_PARAMETER_UINT64] = ST_CLI_UINT64};

const struct st_cli_option *st_cli_sampling_option(size_t i) {
    static struct st_cli_option options[MAX_PARAMETERS];
    static char help[MAX_PARAMETERS][HELP_BYTES];
    const stint_parameter *p = stint_sampling_parameter(i);
    if (p == NULL || i >= MAX_PARAMETERS) return NULL;
    snprintf(help[i], sizeof help[i], "%s (default %g)", p->help, p->standard);
    options[i] =
        (struct st_cli_option){.name = p->option,
                               .kind = kinds[p->type],
                               .value = p->value,
                               .help = help[i],
                               .min = p->min,
                               .max = p->max,
                               .offset = offsetof(struct st_cli_common, sampling) + p->offset,
                               .given = UINT64_C(1) << i};
    return &options[i];
}

stint_sampling st_cli_sampling(const struct st_cli_common *common) {
    stint_sampling sampling = common->sampling;
    sampling.size = sizeof sampling;
    return sampling;
}
