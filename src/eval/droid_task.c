// SPDX-License-Identifier: Apache-2.0
// DroidTask: the share of steps that are answered as their labels say, of answers that name an
// element at all, and of tasks all of whose steps are right. Every step stands for itself: its
// prompt says what was done before it, whatever the model answered there.
#include "eval/answers.h"
#include "eval/droidtask.h"

struct steps {
    struct st_eval *eval;
    struct st_droid_score score;
};

static stint_eval_metric metric(const char *name, const struct st_mean *mean) {
    return (stint_eval_metric){name, st_mean_value(mean), st_mean_error(mean)};
}

static stint_status take_step(void *context, struct st_answers *a, const struct st_item *read,
                              stint_eval_item *item) {
    struct steps *s = context;
    ST_TRY(st_answers_prompt(a, read->context[0]));
    bool right = st_droid_add(&s->score, a->text, read);
    item->text = a->text;
    item->metrics[0] = (stint_eval_metric){.name = "acc", .value = right};
    stint_eval_metric *m = s->eval->result.metrics;
    m[0] = metric("acc", &s->score.right);
    m[1] = metric("answered", &s->score.found);
    if (s->score.whole.n > 0.0) m[2] = metric("task_acc", &s->score.whole);
    s->eval->result.tokens += a->n_written;
    return STINT_OK;
}

stint_status st_eval_droidtask(struct st_eval *eval, const struct st_task *task) {
    struct steps s = {.eval = eval};
    return st_answers_run(eval, task, take_step, &s);
}
