// SPDX-License-Identifier: Apache-2.0
// The commands, one file each.
#ifndef ST_CLI_COMMANDS_H
#define ST_CLI_COMMANDS_H

#include "cli/options.h"

extern const struct st_cli_command st_cli_inspect_command;
extern const struct st_cli_command st_cli_prepare_command;
extern const struct st_cli_command st_cli_run_command;
extern const struct st_cli_command st_cli_chat_command;
extern const struct st_cli_command st_cli_logits_command;
extern const struct st_cli_command st_cli_tokenize_command;
extern const struct st_cli_command st_cli_bench_command;
extern const struct st_cli_command st_cli_eval_command;
extern const struct st_cli_command st_cli_schedule_command;
extern const struct st_cli_command st_cli_simulate_command;
extern const struct st_cli_command st_cli_serve_command;
extern const struct st_cli_command st_cli_pull_command;
extern const struct st_cli_command st_cli_list_command;
extern const struct st_cli_command st_cli_rm_command;

#endif
