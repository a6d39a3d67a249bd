// SPDX-License-Identifier: Apache-2.0
// The library's sampling parameters as options of a command.
#ifndef ST_CLI_SAMPLING_H
#define ST_CLI_SAMPLING_H

#include "cli/options.h"
#include "stint.h"

#include <jansson.h>

struct st_cli_common;

// The option of the i-th parameter; NULL after the last. Static; valid until another kind of
// command is asked for.
const struct st_cli_option *st_cli_sampling_option(enum st_cli_samples samples, size_t i);

// What the command line says, without biases; of the others the model's own, unless `model` is
// NULL.
stint_sampling st_cli_sampling(const struct st_cli_common *common, const stint_model *model);

// Whether the command line has the parameter at this offset of stint_sampling.
bool st_cli_sampling_given(const struct st_cli_common *common, size_t offset);

// Those of the parameters whose bit is set, by name; null if none is. A new object.
json_t *st_cli_sampling_json(const stint_sampling *sampling, uint64_t bits);
// The same in words.
enum { ST_CLI_SAMPLING_BYTES = 400 };
const char *st_cli_sampling_text(const stint_sampling *sampling, uint64_t bits,
                                 char text[ST_CLI_SAMPLING_BYTES]);

#endif
