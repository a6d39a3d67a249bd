// SPDX-License-Identifier: Apache-2.0
#include "eval/quality.h"

#include <string.h>

stint_status st_quality_find(const char *name, enum st_quality_metric *metric) {
    static const char *const names[] = {"rouge-l", "bleu", "token-f1", "agreement", "kl"};
    *metric = ST_ROUGE_L;
    if (!name) return STINT_OK;
    for (int i = 0; i < ST_QUALITY_METRICS; i++)
        if (strcmp(names[i], name) == 0) {
            *metric = (enum st_quality_metric)i;
            return STINT_OK;
        }
    return st_fail(STINT_E_ARG,
                   "metric '%.64s' is not known; known are: rouge-l, bleu, token-f1, agreement, "
                   "kl",
                   name);
}

stint_status st_quality_add(struct st_quality *q, enum st_quality_metric metric,
                            const struct st_quality_of_item *item) {
    const struct st_fork *fork = item->fork;
    if (metric == ST_BLEU) {
        ST_TRY(st_bleu_add(&q->bleu, fork->text, item->expected, item->n));
        ST_TRY(st_sentence_bleu(fork->text, item->expected, item->n, &q->last));
    } else if (metric == ST_TOKEN_F1)
        ST_TRY(st_token_f1(fork->text, item->expected, item->n, &q->last));
    else if (metric == ST_KL)
        q->last = st_fork_divergence(fork);
    else
        ST_TRY(st_rouge_l(fork->text, item->expected, item->n, &q->last));
    double worse = item->reference - q->last;
    st_mean_add(&q->mean, q->last);
    st_mean_add(&q->less, metric == ST_KL ? -worse : worse);
    q->bits += st_fork_sum_bits(fork);
    q->steps += st_fork_steps(fork);
    q->seconds += item->seconds;
    return STINT_OK;
}

double st_quality_value(const struct st_quality *q, enum st_quality_metric metric) {
    return metric == ST_BLEU ? st_bleu_value(&q->bleu) : st_mean_value(&q->mean);
}

double st_quality_bits(const struct st_quality *q) {
    return q->steps ? (double)q->bits / (double)q->steps : 0.0;
}

double st_quality_seconds(const struct st_quality *q) {
    return q->mean.n > 0.0 ? q->seconds / q->mean.n : 0.0;
}
