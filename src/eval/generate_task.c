// SPDX-License-Identifier: Apache-2.0
// Generates a text after each prompt, greedily and up to the end of a line, and compares it with
// the references (eval/overlap.h).
#include "eval/tasks.h"

#include "base/buffer.h"
#include "base/size.h"
#include "eval/overlap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 64, MAX_TOKENS = 4096 };

struct generate {
    struct st_eval *eval;
    struct st_scorer scorer;
    struct st_mean rouge_l, token_f1;
    struct st_bleu bleu, *each; // the sum; [items] the part of each
    size_t n_items;
    char *text; // generated so far
    size_t n, n_tokens;
};

// Appends generated text; false at the end of a line that is not blank.
static bool take_text(void *context, const stint_piece *piece) {
    struct generate *g = context;
    const char *text = piece->text;
    for (size_t i = 0; i < piece->n_bytes; i++) {
        if (text[i] == '\n' && g->n > 0) return false;
        if (text[i] == '\n' || (g->n == 0 && text[i] == ' ')) continue;
        char *grown = realloc(g->text, g->n + 2);
        if (!grown) return false;
        g->text = grown;
        g->text[g->n++] = text[i] ? text[i] : ' ';
        g->text[g->n] = '\0';
    }
    return true;
}

// The last tokens of the prompt, as many as leave room for the answer.
static stint_status write_answer(struct generate *g, const char *prompt) {
    struct st_ids ids = {0};
    stint_session *session = g->scorer.session;
    size_t prefix = g->scorer.n_prefix, room = stint_session_context(session) - prefix;
    stint_generation options = {
        .size = sizeof options, .n_tokens = (uint32_t)g->n_tokens, .text = take_text, .context = g};
    stint_generation_result result = {.size = sizeof result};
    g->n = 0;
    if (g->text) *g->text = '\0';
    stint_status status = st_tokenizer_encode(g->scorer.model->tokenizer, prompt, strlen(prompt),
                                              STINT_TOKENIZE_ADD_BOS | STINT_TOKENIZE_PLAIN, &ids);
    if (status == STINT_OK) status = stint_session_truncate(session, 0, prefix);
    size_t max = room - st_min(room - 1, g->n_tokens), skip = ids.count > max ? ids.count - max : 0;
    if (status == STINT_OK)
        status =
            stint_generate(session, ids.data + skip, ids.count - skip, &options, NULL, 0, &result);
    g->eval->result.tokens += result.generated_tokens;
    st_ids_free(&ids);
    return status;
}

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

static stint_status score(struct generate *g, const struct st_item *item, size_t index) {
    const stint_eval_options *o = g->eval->options;
    const char *text = g->text ? g->text : "";
    stint_eval_item out = {.index = index, .text = text};
    ST_TRY(st_rouge_l(text, item->ending, item->n_choices, &out.rouge_l));
    ST_TRY(st_token_f1(text, item->ending, item->n_choices, &out.token_f1));
    struct st_bleu before = g->bleu;
    ST_TRY(st_bleu_add(&g->bleu, text, item->ending, item->n_choices));
    g->each[index] = without(&g->bleu, &before);
    st_mean_add(&g->rouge_l, out.rouge_l);
    st_mean_add(&g->token_f1, out.token_f1);
    stint_eval_metric *m = g->eval->result.metrics;
    m[0] = (stint_eval_metric){"rouge_l", st_mean_value(&g->rouge_l), st_mean_error(&g->rouge_l)};
    m[1] =
        (stint_eval_metric){"token_f1", st_mean_value(&g->token_f1), st_mean_error(&g->token_f1)};
    m[2] = (stint_eval_metric){"bleu", st_bleu_value(&g->bleu),
                               index % 16 == 0 || index + 1 == g->n_items ? bleu_error(g, index + 1)
                                                                          : m[2].error};
    if (o->item) o->item(o->context, &out);
    return STINT_OK;
}

static stint_status run_items(struct generate *g, const struct st_items *items) {
    for (size_t i = 0; i < items->n; i++) {
        ST_TRY(write_answer(g, items->items[i].context[0]));
        ST_TRY(score(g, &items->items[i], i));
        g->eval->result.items = i + 1;
        ST_TRY(st_eval_step(g->eval, i + 1, items->n));
    }
    return STINT_OK;
}

stint_status st_eval_generate(struct st_eval *eval, const struct st_task *task) {
    const stint_eval_options *o = eval->options;
    struct st_items items = {0};
    struct generate g = {.eval = eval, .n_tokens = o->n_tokens ? o->n_tokens : TOKENS};
    size_t n_context = st_min(eval->model->config.context, 4096);
    if (g.n_tokens > MAX_TOKENS)
        return st_fail(STINT_E_ARG, "%zu tokens an answer: at most %d", g.n_tokens, MAX_TOKENS);
    stint_status status = task->read(o->data, o->limit, &items);
    if (status == STINT_OK && items.n == 0)
        status = st_fail(STINT_E_FORMAT, "%s: holds no items", o->data);
    if (status == STINT_OK)
        status = st_scorer_open(&eval->subject, o->session, n_context, &g.scorer);
    g.n_items = items.n;
    g.each = calloc(items.n + 1, sizeof *g.each);
    if (status == STINT_OK && !g.each)
        status = st_fail(STINT_E_NOMEM, "no memory for %zu items", items.n);
    if (status == STINT_OK) status = run_items(&g, &items);
    free(g.each);
    st_scorer_close(&g.scorer);
    st_items_free(&items);
    free(g.text);
    return status;
}
