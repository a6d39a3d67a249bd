// SPDX-License-Identifier: Apache-2.0
// Multiple-choice tasks. Accuracies are defined as in lm-evaluation-harness: by the highest
// log-likelihood (acc), and by the highest one per character of the ending (acc_norm).
#include "eval/tasks.h"

#include "base/size.h"

#include <math.h>
#include <string.h>

typedef void score_fn(struct st_eval *eval, const stint_eval_item *item, struct st_mean *means);

// The number of characters of an ending, without the space before it.
static uint32_t n_characters(const char *text) {
    uint32_t n = 0;
    for (text += *text == ' '; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

// A choice of each of n items that has so many.
static stint_status score_choice(struct st_scorer *scorer, const struct st_item *items, size_t n,
                                 uint32_t choice, stint_eval_item *out) {
    struct st_ending endings[ST_SCORE_TEXTS];
    struct st_score scores[ST_SCORE_TEXTS];
    size_t of[ST_SCORE_TEXTS], n_endings = 0;
    for (size_t i = 0; i < n; i++) {
        if (choice >= items[i].n_choices) continue;
        endings[n_endings] = (struct st_ending){items[i].context[choice], items[i].ending[choice]};
        of[n_endings++] = i;
    }
    ST_TRY(st_score_endings(scorer, endings, n_endings, scores));
    for (size_t i = 0; i < n_endings; i++) {
        stint_eval_item *item = &out[of[i]];
        item->log_likelihood[choice] = scores[i].log_likelihood;
        item->lengths[choice] = n_characters(endings[i].ending);
        if (choice == item->answer) item->greedy = scores[i].greedy;
    }
    return STINT_OK;
}

static stint_status score_items(struct st_scorer *scorer, const struct st_item *items, size_t n,
                                stint_eval_item *out) {
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        out[i].n_choices = items[i].n_choices;
        out[i].answer = items[i].answer;
        most = st_max(most, items[i].n_choices);
    }
    for (uint32_t choice = 0; choice < most; choice++)
        ST_TRY(score_choice(scorer, items, n, choice, out));
    return STINT_OK;
}

static stint_status run_items(struct st_eval *eval, const struct st_items *items,
                              struct st_scorer *scorer, score_fn *fn) {
    struct st_mean means[STINT_EVAL_METRICS] = {{0}};
    const stint_eval_options *o = eval->options;
    for (size_t first = 0, n; first < items->n; first += n) {
        stint_eval_item out[ST_SCORE_TEXTS] = {0};
        n = st_min(scorer->n_texts, items->n - first);
        ST_TRY(score_items(scorer, items->items + first, n, out));
        eval->result.tokens = scorer->n_tokens;
        for (size_t i = 0; i < n; i++) {
            out[i].index = first + i;
            if (o->item) o->item(o->context, &out[i]);
            fn(eval, &out[i], means);
            eval->result.items = first + i + 1;
            ST_TRY(st_eval_step(eval, first + i + 1, items->n));
        }
    }
    return STINT_OK;
}

static stint_status run(struct st_eval *eval, const struct st_task *task, score_fn *fn) {
    const stint_eval_options *o = eval->options;
    struct st_items items = {0};
    struct st_scorer scorer = {0};
    size_t n_context = st_min(eval->model->config.context, 4096);
    stint_status status = task->read(o->data, o->limit, &items);
    if (status == STINT_OK && items.n == 0)
        status = st_fail(STINT_E_FORMAT, "%s: holds no items", o->data);
    if (status == STINT_OK)
        status = st_scorer_open(&eval->subject, o->session, n_context,
                                st_min(items.n, ST_SCORE_TEXTS), &scorer);
    if (status == STINT_OK) status = run_items(eval, &items, &scorer, fn);
    st_scorer_close(&scorer);
    st_items_free(&items);
    return status;
}

static stint_eval_metric metric(const char *name, const struct st_mean *mean) {
    return (stint_eval_metric){name, st_mean_value(mean), st_mean_error(mean)};
}

static void score_choices(struct st_eval *eval, const stint_eval_item *item,
                          struct st_mean *means) {
    uint32_t best = 0, best_norm = 0;
    double norm[STINT_EVAL_MAX_CHOICES];
    for (uint32_t i = 0; i < item->n_choices; i++) {
        norm[i] = item->log_likelihood[i] / (double)st_max(item->lengths[i], 1);
        if (item->log_likelihood[i] > item->log_likelihood[best]) best = i;
        if (norm[i] > norm[best_norm]) best_norm = i;
    }
    st_mean_add(&means[0], best == item->answer);
    st_mean_add(&means[1], best_norm == item->answer);
    eval->result.metrics[0] = metric("acc", &means[0]);
    eval->result.metrics[1] = metric("acc_norm", &means[1]);
}

stint_status st_eval_choices(struct st_eval *eval, const struct st_task *task) {
    return run(eval, task, score_choices);
}

static void score_last_word(struct st_eval *eval, const stint_eval_item *item,
                            struct st_mean *means) {
    st_mean_add(&means[0], item->greedy);
    st_mean_add(&means[1], -item->log_likelihood[0]);
    double ppl = fmin(exp(st_mean_value(&means[1])), 1e300);
    eval->result.metrics[0] = metric("acc", &means[0]);
    eval->result.metrics[1] = (stint_eval_metric){"ppl", ppl, ppl * st_mean_error(&means[1])};
}

stint_status st_eval_last_word(struct st_eval *eval, const struct st_task *task) {
    return run(eval, task, score_last_word);
}
