// SPDX-License-Identifier: Apache-2.0
// What the command line asks of an answer, as the library takes it.
#ifndef ST_CLI_ANSWER_H
#define ST_CLI_ANSWER_H

#include "cli/common.h"

// Zero-initialise; free with st_cli_answer_free. Not to be moved: the generation refers to it.
struct st_cli_answer {
    stint_generation generation; // callbacks, n_tokens and reasoning are the caller's to set
    stint_sampling sampling;
    stint_logit_bias biases[ST_CLI_TEXTS_MAX];
    stint_chat_options chat;
    char *schema, *tools; // JSON text
};

// Reads the options and the files that they name. ST_CLI_GO, or the exit status with the error
// printed.
int st_cli_answer_open(const struct st_cli_command *command, const struct st_cli_common *common,
                       struct st_cli_answer *answer);
// Where the options say nothing about sampling, it becomes the model's own.
void st_cli_answer_adopt(const struct st_cli_common *common, const stint_model *model,
                         struct st_cli_answer *answer);
void st_cli_answer_free(struct st_cli_answer *answer);

#endif
