// SPDX-License-Identifier: Apache-2.0
// The gain of each of llm.npu's techniques on this machine (its Fig. 17).
#ifndef ST_CLI_ABLATION_H
#define ST_CLI_ABLATION_H

#include "cli/common.h"

// Times prefills of ids [n] in steps: one session per prompt, in order; chunks that share their
// graphs; out of order; and not split between processors. Medians of n_reps. Prints a table, or
// appends to `rows` if that is not NULL. False with the error printed.
bool st_cli_ablation(const struct st_cli_command *command, const struct st_cli_common *common,
                     const stint_model *model, const int32_t *ids, uint32_t n, uint32_t n_reps,
                     json_t *rows);

// The same for PowerInfer-2's techniques (its Fig. 13): decoding n tokens with bounded memory after
// a short prompt, by this schedule (NULL: by that of the common options). Last the second processor
// alone, where it is a device. ids [st_cli_memory_ablation_ids()].
bool st_cli_memory_ablation(const struct st_cli_command *command,
                            const struct st_cli_common *common, const char *schedule,
                            const stint_model *model, const int32_t *ids, uint32_t n,
                            uint32_t n_reps, json_t *rows);
size_t st_cli_memory_ablation_ids(uint32_t n, uint32_t n_reps);

#endif
