// SPDX-License-Identifier: Apache-2.0
// What each of llm.npu's techniques adds on this machine (its Fig. 17).
#ifndef ST_CLI_ABLATION_H
#define ST_CLI_ABLATION_H

#include "cli/common.h"

// Times prefills of ids [n] in steps: a session for each prompt, whole, in order; chunks that share
// their graphs; out of order; and undivided. Medians of n_reps. Prints a table, or appends to
// `rows` where that is not NULL. False with the error printed.
bool st_cli_ablation(const struct st_cli_command *command, const struct st_cli_common *common,
                     const stint_model *model, const int32_t *ids, uint32_t n, uint32_t n_reps,
                     json_t *rows);

// The same of PowerInfer-2's (its Fig. 13), decoding under a bound of memory after a short prompt.
bool st_cli_memory_ablation(const struct st_cli_command *command,
                            const struct st_cli_common *common, const stint_model *model,
                            const int32_t *ids, uint32_t n, uint32_t n_reps, json_t *rows);

#endif
