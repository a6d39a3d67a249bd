// SPDX-License-Identifier: Apache-2.0
#include "eval/schedule_points.h"

#include "base/random.h"
#include "base/size.h"

#include <stdlib.h>
#include <string.h>

enum { PROMPT_TOKENS = 2048, ITEMS_BEFORE_PRUNING = 16 };
static const double certain = 3.0; // standard errors

struct st_point *st_points_add(struct st_points *s, const char *name, enum st_rule rule,
                               const stint_precision *precision) {
    if (s->n == ST_POINTS) {
        s->too_many = true;
        return NULL;
    }
    struct st_point *p = &s->points[s->n++];
    *p = (struct st_point){.rule = rule};
    p->out.name = name;
    p->out.precision = *precision;
    p->schedule.precision = *precision;
    if (rule != ST_BY_PRECISION) p->out.precision.n_steps = 0;
    if (rule == ST_BY_LEARNED || precision->signal != STINT_SIGNAL_NONE) s->fork.watches = true;
    return p;
}

// ---- One item

static bool is_high(const struct st_points *s, const struct st_point *p, size_t item, size_t step) {
    size_t n = s->run.n_tokens, third = st_max(1, n / 3);
    uint64_t seed = s->run.options.seed;
    double draw = st_random_draw(seed, item);
    size_t start = (size_t)(draw * s->run.n_candidates) * n / (s->run.n_candidates - 1);
    switch (p->rule) {
    case ST_AT_RANDOM:
        return step < start;
    case ST_AT_RANDOM_STEPS:
        return st_random_draw(seed ^ 0x57e95u, item * n + step) < 0.5;
    case ST_IN_TURN:
        return step % 2 == 0;
    default:
        return st_min(step / third, 2) == p->part;
    }
}

static stint_status write_answer(struct st_points *s, struct st_point *p, size_t item) {
    stint_precision precision = p->schedule.precision;
    if (p->rule == ST_BY_REFERENCE) return st_fork_write_by(&s->other, &precision);
    if (p->rule == ST_BY_LEARNED)
        st_learned_select(p->schedule.learned, s->fork.session, 0, &precision);
    if (p->rule == ST_BY_PRECISION || p->rule == ST_BY_LEARNED)
        return st_fork_write_by(&s->fork, &precision);
    for (size_t i = 0; i < s->run.n_tokens; i++)
        s->fork.wanted[i] = (uint8_t)(is_high(s, p, item, i) ? s->run.high : s->run.low);
    return st_fork_write(&s->fork, s->fork.wanted);
}

static struct st_fork *fork_of(struct st_points *s, const struct st_point *p) {
    return p->rule == ST_BY_REFERENCE ? &s->other : &s->fork;
}

// *held: the precision at which the fork has read the item's prompt; 0: not at all.
static stint_status read_prompt(struct st_points *s, struct st_point *p, size_t item,
                                unsigned *held) {
    unsigned bits = p->schedule.precision.prefill, none = 0;
    const char *text = s->items.items[item].context[0];
    unsigned *at = p->rule == ST_BY_REFERENCE ? &none : held;
    // A learned scheduler needs the state after the prompt, before the first step.
    if (*at == bits && p->rule != ST_BY_LEARNED) return STINT_OK;
    *at = bits;
    return st_fork_prompt_text(fork_of(s, p), text, s->run.options.chat, bits);
}

static stint_status answer(struct st_points *s, struct st_point *p, size_t item, unsigned *held) {
    ST_TRY(read_prompt(s, p, item, held));
    return write_answer(s, p, item);
}

stint_status st_points_answer(struct st_points *s, struct st_point *p, size_t i) {
    unsigned held = 0;
    s->fork.follow = NULL;
    return answer(s, p, i, &held);
}

// The reference's answer is what the others are compared with.
static stint_status answer_reference(struct st_points *s, size_t i, unsigned *held) {
    struct st_point *p = &s->points[0];
    struct st_fork *f = fork_of(s, p);
    s->fork.follow = NULL;
    f->record = s->metric == ST_KL ? &s->target : NULL;
    stint_status status = answer(s, p, i, held);
    f->record = NULL;
    if (status == STINT_OK && s->metric == ST_AGREEMENT) {
        free(s->own[i]);
        s->own[i] = strdup(f->text);
        if (!s->own[i]) status = st_fail(STINT_E_NOMEM, "no memory for an answer");
    }
    return status;
}

// True if its difference to the reference certainly exceeds what is allowed.
static bool is_hopeless(const struct st_points *s, const struct st_point *p) {
    const struct st_mean *reference = &s->points->quality.mean, *less = &p->quality.less;
    if (s->metric == ST_BLEU || p->rule != ST_BY_PRECISION || less->n < ITEMS_BEFORE_PRUNING)
        return false;
    double allowed = s->run.epsilon * (s->metric == ST_KL ? 1.0 : st_mean_value(reference));
    return st_mean_value(less) - certain * st_mean_error(less) > allowed;
}

static void count_steps(const struct st_fork *f, uint32_t *steps) {
    for (size_t i = 0; i < st_fork_steps(f); i++) steps[f->bits[i]]++;
}

static stint_status score(struct st_points *s, struct st_point *p, size_t i) {
    const struct st_item *item = &s->items.items[i];
    const struct st_fork *f = fork_of(s, p);
    bool own = s->metric == ST_AGREEMENT;
    struct st_quality_of_item of = {.fork = f,
                                    .expected = own ? &s->own[i] : item->ending,
                                    .n = own ? 1 : item->n_choices,
                                    .reference = s->reference[i]};
    if (p->rule != ST_BY_REFERENCE)
        of.seconds = st_precision_times_answer(&s->times, f, p->schedule.precision.prefill);
    ST_TRY(st_quality_add(&p->quality, s->metric, &of));
    if (p == s->points) s->reference[i] = p->quality.last;
    size_t steps = st_fork_steps(f);
    if (p->scores) p->scores[i] = p->quality.last;
    if (p->bits) p->bits[i] = steps ? (double)st_fork_sum_bits(f) / (double)steps : 0.0;
    if (p->steps) count_steps(f, p->steps + i * (ST_PRECISION_INT8 + 1));
    return STINT_OK;
}

// Runs all points that are being tried on one item; each needs the reference.
static stint_status run_item(struct st_points *s, size_t i, bool prune) {
    unsigned held = 0;
    bool first = s->from == 0;
    if (first || s->metric == ST_KL) ST_TRY(answer_reference(s, i, &held));
    if (first) ST_TRY(score(s, s->points, i));
    if (s->metric == ST_KL) {
        s->fork.follow = &s->target;
        held = 0;
    }
    for (size_t j = st_max(s->from, 1); j < s->n; j++) {
        struct st_point *p = &s->points[j];
        if (p->dropped) continue;
        ST_TRY(answer(s, p, i, &held));
        ST_TRY(score(s, p, i));
        p->dropped = prune && is_hopeless(s, p);
        ST_TRY(st_schedule_run_step(&s->run, "answering"));
    }
    return STINT_OK;
}

// ---- All of them

static void tell(struct st_points *s, struct st_point *p) {
    const struct st_quality *q = &p->quality;
    p->out.quality = st_quality_value(q, s->metric);
    p->out.error = s->metric == ST_BLEU ? 0.0 : st_mean_error(&q->mean);
    p->out.average_bits = p->rule == ST_BY_REFERENCE ? 0.0 : st_quality_bits(q);
    p->out.seconds = st_quality_seconds(q);
    p->out.items = (uint64_t)q->mean.n;
    p->out.scores = p->scores;
    p->out.bits = p->bits;
    p->out.steps = p->steps;
    if (s->run.options.point) s->run.options.point(s->run.options.context, &p->out);
}

static stint_status keep_scores(const struct st_points *s, struct st_point *p) {
    p->scores = calloc(s->items.n, sizeof *p->scores);
    p->bits = calloc(s->items.n, sizeof *p->bits);
    p->steps = calloc(s->items.n * (ST_PRECISION_INT8 + 1), sizeof *p->steps);
    return p->scores && p->bits && p->steps ? STINT_OK
                                            : st_fail(STINT_E_NOMEM, "no memory for scores");
}

stint_status st_points_try(struct st_points *s, bool prune) {
    s->run.total = s->run.done + (s->n - st_max(s->from, 1)) * s->items.n;
    for (size_t j = s->from; j < s->n && s->keeps_scores; j++)
        ST_TRY(keep_scores(s, &s->points[j]));
    for (size_t i = 0; i < s->items.n; i++) ST_TRY(run_item(s, i, prune));
    for (size_t j = s->from; j < s->n; j++) tell(s, &s->points[j]);
    s->from = s->n;
    return STINT_OK;
}

// A divergence found good on few prompts is to be good on others: at most one in twenty is worse.
// Other metrics scatter more from prompt to prompt than they may lose.
bool st_point_is_good(const struct st_points *s, const struct st_point *p) {
    double reference = st_quality_value(&s->points->quality, s->metric);
    double value = st_quality_value(&p->quality, s->metric);
    if (p->dropped) return false;
    if (s->metric == ST_KL) return st_mean_bound(&p->quality.mean) <= s->run.epsilon;
    return value >= reference * (1.0 - s->run.epsilon);
}

// ---- Open and close

static stint_status check(const struct st_schedule_run *run) {
    if (run->n_candidates < 2 || run->n_candidates > 16 || run->n_tokens < 2 ||
        run->n_tokens > 4096)
        return st_fail(STINT_E_ARG, "candidates %u, tokens %u: expected 2 to 16 and 2 to 4096",
                       run->n_candidates, run->n_tokens);
    const struct stint_model *reference = run->options.reference;
    if (reference && reference->config.vocab != run->model->config.vocab)
        return st_fail(STINT_E_ARG, "the reference has a vocabulary of %u, the model of %u",
                       reference->config.vocab, run->model->config.vocab);
    return STINT_OK;
}

static stint_status read_items(struct st_points *s) {
    const stint_schedule_options *o = &s->run.options;
    ST_TRY(st_quality_find(o->metric, &s->metric));
    ST_TRY(st_items_read_prompts(o->data, o->limit, &s->items));
    if (s->items.n == 0) return st_fail(STINT_E_FORMAT, "%s: holds no items", o->data);
    s->own = calloc(s->items.n, sizeof *s->own);
    s->reference = calloc(s->items.n, sizeof *s->reference);
    return s->own && s->reference ? STINT_OK
                                  : st_fail(STINT_E_NOMEM, "no memory for %zu answers", s->items.n);
}

static stint_status open_forks(struct st_points *s) {
    const stint_schedule_options *o = &s->run.options;
    size_t n = s->run.n_tokens;
    ST_TRY(st_fork_open(s->run.model, o->session, PROMPT_TOKENS, n, false, &s->fork));
    if (o->reference)
        ST_TRY(st_fork_open(o->reference, o->session, PROMPT_TOKENS, n, true, &s->other));
    if (s->metric == ST_KL) ST_TRY(st_written_open(&s->fork, &s->target));
    s->fork.line = s->other.line = !o->chat && s->metric != ST_AGREEMENT && s->metric != ST_KL;
    return STINT_OK;
}

static stint_status read_times(struct st_points *s) {
    const stint_schedule_options *o = &s->run.options;
    const struct stint_tokenizer *tokenizer = s->run.model->tokenizer;
    const char *text = s->items.items[0].context[0];
    struct st_ids ids = {0};
    if (o->times) return st_precision_times_read(s->run.model, o->times, &s->times);
    stint_status status = st_tokenizer_encode(tokenizer, text, strlen(text),
                                              STINT_TOKENIZE_ADD_BOS | STINT_TOKENIZE_PLAIN, &ids);
    if (status == STINT_OK && ids.count == 0) status = st_fail(STINT_E_FORMAT, "a prompt is empty");
    if (status == STINT_OK)
        status = st_precision_times_measure(&s->fork, ids.data, ids.count, &s->times);
    st_ids_free(&ids);
    return status;
}

static void add_reference(struct st_points *s) {
    const stint_precision int8 = st_precision_uniform(ST_PRECISION_INT8, ST_PRECISION_INT8);
    if (s->run.options.reference)
        st_points_add(s, "reference", ST_BY_REFERENCE, &int8);
    else
        st_points_add(s, "int8", ST_BY_PRECISION, &int8);
}

static void close_points(struct st_points *s) {
    for (size_t i = 0; i < s->n; i++) {
        st_schedule_close(&s->points[i].schedule);
        free(s->points[i].scores);
        free(s->points[i].bits);
        free(s->points[i].steps);
    }
    st_fork_close(&s->fork);
    st_fork_close(&s->other);
    st_written_close(&s->target);
    for (size_t i = 0; i < s->items.n && s->own; i++) free(s->own[i]);
    free(s->own);
    free(s->reference);
    st_items_free(&s->items);
    free(s);
}

stint_status st_points_run(const struct stint_model *model, const stint_schedule_options *options,
                           stint_schedule_result *result, st_points_fn *fn) {
    struct st_schedule_run run;
    stint_schedule_result out = {0};
    ST_TRY(st_schedule_run_begin(model, options, result, &run));
    ST_TRY(check(&run));
    struct st_points *s = calloc(1, sizeof *s);
    if (!s) return st_fail(STINT_E_NOMEM, "no memory for a schedule");
    s->run = run;
    stint_status status = read_items(s);
    if (status == STINT_OK) status = open_forks(s);
    if (status == STINT_OK) status = read_times(s);
    if (status == STINT_OK) {
        add_reference(s);
        status = fn(s, &out);
    }
    out.items = s->items.n;
    close_points(s);
    if (status == STINT_OK) st_schedule_run_finish(&run, &out, result);
    return status;
}
