// SPDX-License-Identifier: Apache-2.0
// A conversation with a model: its messages, and the session that holds what was evaluated of them.
// Each answer evaluates only what the rendered conversation has beyond the tokens already held.
#ifndef ST_CLI_CONVERSATION_H
#define ST_CLI_CONVERSATION_H

#include "cli/common.h"

struct st_cli_conversation {
    const struct st_cli_command *command;
    const stint_model *model;
    stint_session *session;
    stint_message *messages; // role static, content owned
    size_t n_messages, capacity;
    int32_t *held;                  // ids the session holds, [context]
    const stint_chat_options *chat; // during an answer
    stint_reasoning reasoning;      // how the last answer begins
    size_t n_reused;                // of the last prompt
    size_t n_dropped;               // messages forgotten to make room, in the last answer
    stint_generation_result last;
};

// Borrows `session` and `model` until close.
bool st_cli_conversation_open(struct st_cli_conversation *c, const struct st_cli_command *command,
                              const stint_model *model, stint_session *session);
void st_cli_conversation_close(struct st_cli_conversation *c);

// Appends a copy of `content`; `role` is static. False without memory.
bool st_cli_conversation_add(struct st_cli_conversation *c, const char *role, const char *content);
// Takes messages away from the end.
void st_cli_conversation_cut(struct st_cli_conversation *c, size_t n_messages);
// Has the model answer the last message, streams the text by `generation`'s callback settings, and
// appends it. False with the error printed; the messages are unchanged then.
bool st_cli_conversation_answer(struct st_cli_conversation *c, const stint_chat_options *chat,
                                const stint_generation *generation);

#endif
