// SPDX-License-Identifier: Apache-2.0
// Compares what a model writes with references (eval/overlap.h).
#include "eval/answers.h"

#include "eval/overlap.h"

#include <math.h>
#include <stdlib.h>

static stint_eval_metric metric(const char *name, const struct st_mean *mean) {
    return (stint_eval_metric){name, st_mean_value(mean), st_mean_error(mean)};
}

// ---- Texts after prompts

struct generate {
    struct st_eval *eval;
    struct st_mean rouge_l, token_f1;
    struct st_bleu bleu, *each; // the sum; [answers->n_items] the part of each
};

static struct st_bleu without(const struct st_bleu *all, const struct st_bleu *one) {
    struct st_bleu rest = {.written = all->written - one->written,
                           .expected = all->expected - one->expected};
    for (size_t i = 0; i < ST_BLEU_ORDER; i++) {
        rest.same[i] = all->same[i] - one->same[i];
        rest.total[i] = all->total[i] - one->total[i];
    }
    return rest;
}

// BLEU is not a mean: its standard error is estimated by leaving out one item at a time
// (jackknife).
static double bleu_error(const struct generate *g, size_t n) {
    double sum = 0.0, squares = 0.0;
    for (size_t i = 0; i < n; i++) {
        struct st_bleu rest = without(&g->bleu, &g->each[i]);
        double value = st_bleu_value(&rest);
        sum += value;
        squares += value * value;
    }
    double mean = sum / (double)n;
    return sqrt(fmax(squares / (double)n - mean * mean, 0.0) * (double)(n - 1));
}

static stint_status compare(void *context, struct st_answers *a, const struct st_item *read,
                            stint_eval_item *item) {
    struct generate *g = context;
    size_t i = item->index;
    if (!g->each) g->each = calloc(a->n_items, sizeof *g->each);
    if (!g->each) return st_fail(STINT_E_NOMEM, "no memory for %zu items", a->n_items);
    ST_TRY(st_answers_prompt(a, read->context[0]));
    item->text = a->text;
    ST_TRY(st_rouge_l(a->text, read->ending, read->n_choices, &item->rouge_l));
    ST_TRY(st_token_f1(a->text, read->ending, read->n_choices, &item->token_f1));
    double bleu;
    ST_TRY(st_sentence_bleu(a->text, read->ending, read->n_choices, &bleu));
    item->metrics[0] = (stint_eval_metric){.name = "rouge_l", .value = item->rouge_l};
    item->metrics[1] = (stint_eval_metric){.name = "token_f1", .value = item->token_f1};
    item->metrics[2] = (stint_eval_metric){.name = "bleu", .value = bleu};
    struct st_bleu before = g->bleu;
    ST_TRY(st_bleu_add(&g->bleu, a->text, read->ending, read->n_choices));
    g->each[i] = without(&g->bleu, &before);
    st_mean_add(&g->rouge_l, item->rouge_l);
    st_mean_add(&g->token_f1, item->token_f1);
    stint_eval_metric *m = g->eval->result.metrics;
    bool exact = i % 16 == 0 || i + 1 == a->n_items; // leaving out one at a time takes long
    m[0] = metric("rouge_l", &g->rouge_l);
    m[1] = metric("token_f1", &g->token_f1);
    m[2] = (stint_eval_metric){"bleu", st_bleu_value(&g->bleu),
                               exact ? bleu_error(g, i + 1) : m[2].error};
    g->eval->result.tokens += a->n_written;
    return STINT_OK;
}

stint_status st_eval_generate(struct st_eval *eval, const struct st_task *task) {
    struct generate g = {.eval = eval};
    stint_status status = st_answers_run(eval, task, compare, &g);
    free(g.each);
    return status;
}

// ---- Answers to questions

struct questions {
    struct st_eval *eval;
    struct st_mean token_f1;
};

static stint_status ask(void *context, struct st_answers *a, const struct st_item *read,
                        stint_eval_item *item) {
    struct questions *q = context;
    ST_TRY(st_answers_prompt(a, read->context[0]));
    item->text = a->text;
    ST_TRY(st_token_f1(a->text, read->ending, read->n_choices, &item->token_f1));
    item->metrics[0] = (stint_eval_metric){.name = "token_f1", .value = item->token_f1};
    st_mean_add(&q->token_f1, item->token_f1);
    q->eval->result.metrics[0] = metric("token_f1", &q->token_f1);
    q->eval->result.tokens += a->n_written;
    return STINT_OK;
}

stint_status st_eval_longqa(struct st_eval *eval, const struct st_task *task) {
    struct questions q = {.eval = eval};
    return st_answers_run(eval, task, ask, &q);
}
