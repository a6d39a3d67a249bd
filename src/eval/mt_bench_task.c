// SPDX-License-Identifier: Apache-2.0
// MT-Bench (Zheng et al. 2023): the turns of a question are one conversation. The answers are for a
// judge elsewhere, so nothing is scored here; how long they are is told.
#include "eval/answers.h"

#include <stdlib.h>

struct talks {
    struct st_eval *eval;
    struct st_mean tokens; // of an answer
    char *text;            // of the last question; owned by malloc
};

static stint_status take_turn(struct talks *t, struct st_answers *a, json_t *answers,
                              const stint_message *messages, size_t n) {
    ST_TRY(st_answers_chat(a, messages, n));
    st_mean_add(&t->tokens, (double)a->n_written);
    t->eval->result.tokens += a->n_written;
    if (json_array_append_new(answers, json_string(a->text)) == 0) return STINT_OK;
    return st_fail(STINT_E_NOMEM, "no memory for an answer");
}

static stint_status talk(struct talks *t, struct st_answers *a, const struct st_item *read,
                         json_t *answers) {
    stint_message messages[2 * ST_EVAL_CHOICES] = {{0}};
    for (uint32_t i = 0; i < read->n_choices; i++) {
        messages[2 * i] = (stint_message){.role = "user", .content = read->context[i]};
        ST_TRY(take_turn(t, a, answers, messages, 2 * (size_t)i + 1));
        const char *text = json_string_value(json_array_get(answers, i));
        messages[2 * i + 1] = (stint_message){.role = "assistant", .content = text};
    }
    return STINT_OK;
}

static stint_status take_question(void *context, struct st_answers *a, const struct st_item *read,
                                  stint_eval_item *item) {
    struct talks *t = context;
    json_t *answers = json_array();
    stint_status status =
        answers ? talk(t, a, read, answers) : st_fail(STINT_E_NOMEM, "no memory for answers");
    free(t->text);
    t->text = status == STINT_OK ? json_dumps(answers, JSON_COMPACT) : NULL;
    json_decref(answers);
    ST_TRY(status);
    if (!t->text) return st_fail(STINT_E_NOMEM, "no memory for answers");
    item->index = read->id;
    item->text = t->text;
    t->eval->result.metrics[0] =
        (stint_eval_metric){"answer_tokens", st_mean_value(&t->tokens), st_mean_error(&t->tokens)};
    return STINT_OK;
}

stint_status st_eval_mt_bench(struct st_eval *eval, const struct st_task *task) {
    struct talks t = {.eval = eval};
    stint_status status = st_answers_run(eval, task, take_question, &t);
    free(t.text);
    return status;
}
