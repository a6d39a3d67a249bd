// SPDX-License-Identifier: Apache-2.0
// Generates answers, greedily: after a text as it stands, where the end of a line ends the answer,
// or in the chat template of the model, where only the model does.
#ifndef ST_EVAL_ANSWERS_H
#define ST_EVAL_ANSWERS_H

#include "eval/tasks.h"

struct st_answers {
    const struct st_task *task;
    struct st_scorer scorer;
    size_t n_items;
    size_t n_tokens;  // max of an answer
    char *text;       // the last answer, terminated; owned
    size_t n;         // its bytes
    size_t n_written; // its tokens
};

// Generates the answer to a prompt, or to the last of some messages. Of one that is too long, text
// as it stands loses its beginning, chats lose their middle.
stint_status st_answers_prompt(struct st_answers *answers, const char *prompt);
stint_status st_answers_chat(struct st_answers *answers, const stint_message *messages, size_t n);

// Answers one item and scores it: sets the text and scores of `item`, and eval->result.metrics.
typedef stint_status st_answers_fn(void *context, struct st_answers *answers,
                                   const struct st_item *read, stint_eval_item *item);

// Reads the items of a task and calls fn for each.
stint_status st_answers_run(struct st_eval *eval, const struct st_task *task, st_answers_fn *fn,
                            void *context);

#endif
