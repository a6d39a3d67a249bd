// SPDX-License-Identifier: Apache-2.0
// Tasks over a text, in windows that advance by a stride. Each token is scored once, after all
// tokens before it in its window. A stride of a whole window means non-overlapping windows.
#include "eval/tasks.h"

#include "base/buffer.h"
#include "base/log_sum.h"
#include "base/size.h"
#include "eval/divergence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct text {
    struct st_ids ids, first; // of the text; at the start of every window
    size_t window, stride, n_windows;
};

// The ids of one window: `first`, then ids [from, from + n).
struct window {
    const int32_t *ids;
    size_t n, scored; // ids from `scored` on are predicted for the first time
};

typedef stint_status window_fn(void *context, const struct window *window);

static stint_status read_text(const struct st_eval *eval, struct text *t) {
    const stint_eval_options *o = eval->options;
    const struct stint_tokenizer *tokenizer = eval->model->tokenizer;
    struct st_map map;
    if (!tokenizer)
        return st_fail(STINT_E_ARG, "this model has no tokenizer: texts cannot be scored");
    ST_TRY(st_map_open(o->data, &map));
    stint_status status = st_tokenizer_encode(tokenizer, map.bytes ? (const char *)map.data : "",
                                              map.bytes, STINT_TOKENIZE_PLAIN, &t->ids);
    st_map_close(&map);
    if (status == STINT_OK)
        status = st_tokenizer_encode(tokenizer, "", 0, STINT_TOKENIZE_ADD_BOS, &t->first);
    return status;
}

static stint_status plan_windows(const struct st_eval *eval, struct text *t) {
    const stint_eval_options *o = eval->options;
    size_t longest = eval->model->config.context;
    t->window = o->window ? o->window : st_min(512, longest);
    t->stride = o->stride ? o->stride : t->window;
    if (t->window > longest || t->window < t->first.count + 2)
        return st_fail(STINT_E_ARG, "window %zu: expected %zu to %zu tokens", t->window,
                       t->first.count + 2, longest);
    t->window -= t->first.count;
    t->stride = o->stride ? t->stride : t->window;
    if (t->stride > t->window)
        return st_fail(STINT_E_ARG, "stride %zu: at most the window's %zu tokens", t->stride,
                       t->window);
    if (t->ids.count < 2) return st_fail(STINT_E_FORMAT, "%s: is too short", o->data);
    size_t n = t->ids.count > t->window ? t->ids.count - t->window : 0;
    t->n_windows = 1 + st_ceil_div(n, t->stride);
    if (o->limit) t->n_windows = st_min(t->n_windows, o->limit);
    return STINT_OK;
}

static stint_status for_windows(struct st_eval *eval, const struct text *t, window_fn *fn,
                                void *context) {
    size_t n_first = t->first.count;
    int32_t *ids = malloc((n_first + t->window) * sizeof *ids);
    if (!ids) return st_fail(STINT_E_NOMEM, "no memory for a window");
    stint_status status = STINT_OK;
    if (n_first) memcpy(ids, t->first.data, n_first * sizeof *ids);
    for (size_t w = 0, seen = 0; w < t->n_windows && status == STINT_OK; w++) {
        size_t from = w * t->stride, n = st_min(t->window, t->ids.count - from);
        memcpy(ids + n_first, t->ids.data + from, n * sizeof *ids);
        struct window window = {ids, n_first + n, st_max(n_first + seen - from, 1)};
        seen = from + n;
        if (window.scored < window.n) status = fn(context, &window);
        if (status == STINT_OK) status = st_eval_step(eval, w + 1, t->n_windows);
    }
    free(ids);
    return status;
}

static void free_text(struct text *t) {
    st_ids_free(&t->ids);
    st_ids_free(&t->first);
}

// Tells of a window, whose metrics and tokens are set.
static void show_window(const struct st_eval *eval, stint_eval_item *item) {
    const stint_eval_options *o = eval->options;
    item->index = eval->result.items;
    if (o->item) o->item(o->context, item);
}

// ---- Perplexity

struct perplexity {
    struct st_eval *eval;
    struct st_scorer scorer;
    struct st_mean windows; // of the windows' mean losses
    double loss;
    size_t n;
    struct st_mean window; // of its tokens' losses
};

static stint_eval_metric perplexity_of(double loss, double error) {
    double ppl = fmin(exp(loss), 1e300);
    return (stint_eval_metric){"ppl", ppl, ppl * error};
}

static void add_loss(void *context, const float *logits, size_t vocab, int32_t next, size_t i) {
    struct perplexity *p = context;
    (void)i;
    st_mean_add(&p->window, -st_log_probability(logits, vocab, next));
}

static stint_status score_window(void *context, const struct window *w) {
    struct perplexity *p = context;
    stint_eval_item item = {.tokens = w->n - w->scored};
    p->window = (struct st_mean){0};
    struct st_scored_text text = {w->ids, w->n, w->scored - 1, add_loss, p};
    ST_TRY(st_score_texts(&p->scorer, &text, 1));
    double mean = st_mean_value(&p->window);
    p->loss += p->window.sum;
    p->n += item.tokens;
    st_mean_add(&p->windows, mean);
    item.metrics[0] = perplexity_of(mean, st_mean_error(&p->window));
    show_window(p->eval, &item);
    p->eval->result.items++;
    p->eval->result.tokens = p->n;
    p->eval->result.metrics[0] = perplexity_of(p->loss / (double)p->n, st_mean_error(&p->windows));
    return STINT_OK;
}

stint_status st_eval_perplexity(struct st_eval *eval, const struct st_task *task) {
    struct text text = {0};
    struct perplexity p = {.eval = eval};
    (void)task;
    stint_status status = read_text(eval, &text);
    if (status == STINT_OK) status = plan_windows(eval, &text);
    if (status == STINT_OK)
        status = st_scorer_open(&eval->subject, eval->options->session,
                                text.window + text.first.count, 1, &p.scorer);
    if (status == STINT_OK) status = for_windows(eval, &text, score_window, &p);
    st_scorer_close(&p.scorer);
    free_text(&text);
    return status;
}

// ---- Agreement

struct means {
    struct st_mean same, divergence, lost; // lost: of the log likelihood
};

struct agreement {
    struct st_eval *eval;
    struct st_scorer scorer, reference;
    float *kept; // [window, vocab] logits of the reference
    size_t base; // position of its first row
    struct means all, window;
};

static void add_row(struct means *m, bool same, double divergence, double lost) {
    st_mean_add(&m->same, same);
    st_mean_add(&m->divergence, divergence);
    st_mean_add(&m->lost, lost);
}

static void put_metrics(const struct means *m, stint_eval_metric metrics[STINT_EVAL_METRICS]) {
    double ratio = fmin(exp(st_mean_value(&m->lost)), 1e300);
    metrics[0] = (stint_eval_metric){"top1", st_mean_value(&m->same), st_mean_error(&m->same)};
    metrics[1] =
        (stint_eval_metric){"kl", st_mean_value(&m->divergence), st_mean_error(&m->divergence)};
    metrics[2] = (stint_eval_metric){"ppl_ratio", ratio, ratio * st_mean_error(&m->lost)};
}

static void keep_row(void *context, const float *logits, size_t vocab, int32_t next, size_t i) {
    struct agreement *a = context;
    (void)next;
    memcpy(a->kept + (i - a->base) * vocab, logits, vocab * sizeof *logits);
}

static void compare_row(void *context, const float *logits, size_t vocab, int32_t next, size_t i) {
    struct agreement *a = context;
    const float *exact = a->kept + (i - a->base) * vocab;
    size_t best = 0, best_exact = 0;
    for (size_t v = 1; v < vocab; v++) {
        if (logits[v] > logits[best]) best = v;
        if (exact[v] > exact[best_exact]) best_exact = v;
    }
    double divergence = st_divergence(exact, logits, vocab);
    double lost = st_log_probability(exact, vocab, next) - st_log_probability(logits, vocab, next);
    add_row(&a->all, best == best_exact, divergence, lost);
    add_row(&a->window, best == best_exact, divergence, lost);
}

static stint_status compare_window(void *context, const struct window *w) {
    struct agreement *a = context;
    a->base = w->scored - 1;
    a->window = (struct means){0};
    struct st_scored_text text = {w->ids, w->n, a->base, keep_row, a};
    ST_TRY(st_score_texts(&a->reference, &text, 1));
    text.fn = compare_row;
    ST_TRY(st_score_texts(&a->scorer, &text, 1));
    stint_eval_item item = {.tokens = (uint64_t)a->window.same.n};
    put_metrics(&a->window, item.metrics);
    show_window(a->eval, &item);
    stint_eval_result *r = &a->eval->result;
    r->items++;
    r->tokens = (uint64_t)a->all.same.n;
    put_metrics(&a->all, r->metrics);
    return STINT_OK;
}

static stint_status open_pair(struct agreement *a, const struct text *t) {
    const struct stint_model *reference = a->eval->options->reference;
    size_t vocab = a->eval->model->config.vocab, n = t->window + t->first.count;
    if (!reference)
        return st_fail(STINT_E_ARG, "task 'agreement' needs a reference (--reference MODEL)");
    if (reference->config.vocab != vocab)
        return st_fail(STINT_E_ARG, "the reference has a vocabulary of %u, the model of %zu",
                       reference->config.vocab, vocab);
    ST_TRY(st_scorer_open(&a->eval->subject, a->eval->options->session, n, 1, &a->scorer));
    stint_session_options plain = {.size = sizeof plain};
    const stint_session_options *given = a->eval->options->session;
    if (given) memcpy(&plain, given, st_min(given->size, sizeof plain));
    plain.schedule = NULL; // it applies to the model, not to the reference
    ST_TRY(st_scorer_open(&(struct st_subject){.model = reference}, &plain, n, 1, &a->reference));
    a->kept = calloc(n, vocab * sizeof *a->kept);
    return a->kept ? STINT_OK : st_fail(STINT_E_NOMEM, "no memory for %zu logits", n * vocab);
}

stint_status st_eval_agreement(struct st_eval *eval, const struct st_task *task) {
    struct text text = {0};
    struct agreement a = {.eval = eval};
    (void)task;
    stint_status status = read_text(eval, &text);
    if (status == STINT_OK) status = plan_windows(eval, &text);
    if (status == STINT_OK) status = open_pair(&a, &text);
    if (status == STINT_OK) status = for_windows(eval, &text, compare_window, &a);
    st_scorer_close(&a.scorer);
    st_scorer_close(&a.reference);
    free(a.kept);
    free_text(&text);
    return status;
}
