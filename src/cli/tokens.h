// SPDX-License-Identifier: Apache-2.0
// Token ids in a file.
#ifndef ST_CLI_TOKENS_H
#define ST_CLI_TOKENS_H

#include <stddef.h>
#include <stdint.h>

// The ids of {"tokens": [...]}, at least one, malloc'ed; NULL with the error printed.
int32_t *st_cli_read_tokens(const char *command, const char *path, size_t *n_ids);

#endif
