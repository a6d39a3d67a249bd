// SPDX-License-Identifier: Apache-2.0
// A conversation with a model: its messages, and the session with their evaluated tokens. Each
// answer evaluates only the tokens of the rendered conversation that the session does not have yet.
#ifndef ST_CLI_CONVERSATION_H
#define ST_CLI_CONVERSATION_H

#include "cli/common.h"

struct st_cli_conversation {
    const struct st_cli_command *command;
    const stint_model *model;
    stint_session *session;
    stint_message *messages; // role static, content owned
    size_t n_messages, capacity;
    int32_t *held;    // token ids in the session, [context]
    size_t n_reused;  // tokens of the last prompt that were reused
    size_t n_dropped; // messages dropped to make room for the last answer
    stint_generation_result last;
};

// Borrows `session` and `model` until close.
bool st_cli_conversation_open(struct st_cli_conversation *c, const struct st_cli_command *command,
                              const stint_model *model, stint_session *session);
void st_cli_conversation_close(struct st_cli_conversation *c);

// Appends a copy of `content`; `role` is static. False without memory.
bool st_cli_conversation_add(struct st_cli_conversation *c, const char *role, const char *content);
// Removes messages from the end.
void st_cli_conversation_cut(struct st_cli_conversation *c, size_t n_messages);
// Answers the last message: streams the text through the callback of `generation` and appends the
// answer. False with the error printed; the messages are unchanged then.
bool st_cli_conversation_answer(struct st_cli_conversation *c, const stint_generation *generation);

#endif
