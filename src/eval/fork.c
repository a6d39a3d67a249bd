// SPDX-License-Identifier: Apache-2.0
#include "eval/fork.h"

#include "base/size.h"
#include "eval/divergence.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES_PER_TOKEN = 64 };

static stint_status check(const struct stint_model *model, bool plain) {
    if (!model->tokenizer)
        return st_fail(STINT_E_ARG, "this model has no tokenizer: schedules are made on texts");
    if (!plain && !model->nested.high)
        return st_fail(STINT_E_UNSUPPORTED,
                       "this model has no nested weights; make a package that has them with 'stint "
                       "prepare SRC -o OUT.stint --bits 2..4'");
    if (model->checkpoint.lazy)
        return st_fail(STINT_E_UNSUPPORTED, "schedules are made with all of a model in memory: "
                                            "leave out --memory");
    return STINT_OK;
}

static bool allocate(struct st_fork *f) {
    size_t n = f->n_tokens;
    f->text_bytes = n * BYTES_PER_TOKEN + 1;
    f->ids = calloc(n, sizeof *f->ids);
    f->bits = calloc(n, 1);
    f->wanted = calloc(n, 1);
    f->text = calloc(f->text_bytes, 1);
    f->logits = malloc(f->model->config.vocab * sizeof *f->logits);
    f->divergence = calloc(n, sizeof *f->divergence);
    bool all = f->ids && f->bits && f->wanted && f->text && f->logits && f->divergence;
    for (size_t i = 0; i < ST_N_SIGNALS; i++)
        all = (f->signals[i] = calloc(n, sizeof(float))) != NULL && all;
    return all;
}

stint_status st_fork_open(const struct stint_model *model, const stint_session_options *options,
                          size_t n_prompt, size_t n_tokens, bool plain, struct st_fork *f) {
    stint_session_options o = {.size = sizeof o};
    ST_TRY(check(model, plain));
    if (options) memcpy(&o, options, st_min(options->size, sizeof o));
    o.schedule = NULL;
    o.n_context = (uint32_t)st_min(n_prompt + n_tokens, model->config.context);
    if (o.n_context <= n_tokens)
        return st_fail(STINT_E_ARG, "answers of %zu tokens: the model has room for %u", n_tokens,
                       model->config.context);
    *f = (struct st_fork){.model = model, .n_tokens = n_tokens};
    stint_status status = stint_session_open(model, &o, &f->session);
    if (status == STINT_OK && !allocate(f))
        status = st_fail(STINT_E_NOMEM, "no memory for an answer of %zu tokens", n_tokens);
    if (status != STINT_OK) st_fork_close(f);
    return status;
}

void st_fork_close(struct st_fork *f) {
    stint_session_close(f->session);
    free(f->ids);
    free(f->bits);
    free(f->wanted);
    free(f->text);
    free(f->logits);
    free(f->divergence);
    for (size_t i = 0; i < ST_N_SIGNALS; i++) free(f->signals[i]);
    *f = (struct st_fork){0};
}

stint_status st_written_open(const struct st_fork *f, struct st_written *answer) {
    *answer = (struct st_written){
        .ids = calloc(f->n_tokens, sizeof *answer->ids),
        .logits = calloc(f->n_tokens, f->model->config.vocab * sizeof *answer->logits)};
    if (answer->ids && answer->logits) return STINT_OK;
    st_written_close(answer);
    return st_fail(STINT_E_NOMEM, "no memory for the logits of %zu tokens", f->n_tokens);
}

void st_written_close(struct st_written *answer) {
    free(answer->ids);
    free(answer->logits);
    *answer = (struct st_written){0};
}

// Writes the text of the answer, only its first line if that ends it. False while the line goes on.
static bool set_text(struct st_fork *f) {
    size_t n = 0;
    if (stint_detokenize(f->model->tokenizer, f->ids, f->n, 0, f->text, f->text_bytes, &n) !=
        STINT_OK)
        n = st_min(n, f->text_bytes - 1); // cut short
    f->text[n] = '\0';
    size_t space = strspn(f->text, " \n\r\t");
    memmove(f->text, f->text + space, n - space + 1);
    char *end = strchr(f->text, '\n');
    if (f->line && end) *end = '\0';
    return f->line && end;
}

// Of the logits that give the next token.
static void note(struct st_fork *f) {
    size_t vocab = f->model->config.vocab;
    for (int i = STINT_SIGNAL_NONE + 1; f->watches && i < ST_N_SIGNALS; i++)
        f->signals[i][f->n] = st_signal_read((stint_signal)i, f->logits, vocab);
    if (f->record) memcpy(f->record->logits + f->n * vocab, f->logits, vocab * sizeof *f->logits);
    if (f->follow)
        f->divergence[f->n] = st_divergence(f->follow->logits + f->n * vocab, f->logits, vocab);
}

static void follow_token(struct st_fork *f) {
    if (f->n < f->follow->n) {
        note(f);
        f->ids[f->n] = f->follow->ids[f->n];
        f->n++;
    }
    f->ended = f->n == f->follow->n;
}

static void take_token(struct st_fork *f) {
    int32_t id =
        (int32_t)f->session->kernels.elementwise->argmax(f->logits, f->model->config.vocab);
    if (f->follow) {
        follow_token(f);
        return;
    }
    if (st_model_stops(f->model, id)) {
        f->ended = true;
        return;
    }
    note(f);
    f->ids[f->n++] = id;
    if (f->record) f->record->ids[f->n - 1] = id;
    if (f->record) f->record->n = f->n;
    f->ended = set_text(f) || f->n == f->n_tokens;
}

static stint_status append(struct st_fork *f, const int32_t *ids, size_t n, unsigned bits) {
    struct st_eval_request e = st_eval_request_of(f->session, 0, ids, n);
    e.precision = bits;
    e.logits = f->logits;
    return st_session_eval(f->session, &e);
}

stint_status st_fork_prompt(struct st_fork *f, const int32_t *ids, size_t n, unsigned bits) {
    size_t room = stint_session_context(f->session) - f->n_tokens, skip = n > room ? n - room : 0;
    ST_TRY(stint_session_truncate(f->session, 0, 0));
    ST_TRY(append(f, ids + skip, n - skip, bits));
    f->n_prompt = n - skip;
    f->n = 0;
    if (f->record) f->record->n = 0;
    f->ended = false;
    *f->text = '\0';
    take_token(f);
    return STINT_OK;
}

static stint_status read_chat(const struct stint_model *model, const char *prompt,
                              struct st_ids *ids) {
    const stint_message message = {.role = "user", .content = prompt};
    char *text;
    ST_TRY(stint_chat_format(model, &message, 1, NULL, &text, NULL));
    stint_status status = st_tokenizer_encode(model->tokenizer, text, strlen(text), 0, ids);
    stint_free(text);
    return status;
}

stint_status st_fork_prompt_text(struct st_fork *f, const char *prompt, bool chat, unsigned bits) {
    struct st_ids ids = {0};
    stint_status status =
        chat ? read_chat(f->model, prompt, &ids)
             : st_tokenizer_encode(f->model->tokenizer, prompt, strlen(prompt),
                                   STINT_TOKENIZE_ADD_BOS | STINT_TOKENIZE_PLAIN, &ids);
    if (status == STINT_OK && ids.count == 0) status = st_fail(STINT_E_FORMAT, "a prompt is empty");
    if (status == STINT_OK) status = st_fork_prompt(f, ids.data, ids.count, bits);
    st_ids_free(&ids);
    return status;
}

size_t st_fork_steps(const struct st_fork *f) {
    return stint_session_length(f->session, 0) - f->n_prompt;
}

// Of a step behind the token of the same number: bits [n_tokens], or those of a schedule.
struct plan {
    const uint8_t *bits;
    const stint_precision *precision;
};

static uint8_t bits_of(const struct st_fork *f, const struct plan *plan, size_t step) {
    if (plan->bits) return plan->bits[step];
    const stint_precision *p = plan->precision;
    return (uint8_t)st_precision_at(p, step, f->signals[p->signal][step]);
}

static stint_status write_plan(struct st_fork *f, const struct plan *plan) {
    size_t taken = st_fork_steps(f), same = 0;
    while (same < taken && f->bits[same] == bits_of(f, plan, same)) same++;
    if (same < taken) { // back to the first step that differs
        ST_TRY(stint_session_truncate(f->session, 0, f->n_prompt + same));
        f->n = same + 1;
        f->ended = false;
        set_text(f);
    }
    for (size_t step = same; !f->ended; step++) {
        f->bits[step] = bits_of(f, plan, step);
        ST_TRY(append(f, &f->ids[step], 1, f->bits[step]));
        take_token(f);
    }
    return STINT_OK;
}

stint_status st_fork_write(struct st_fork *f, const uint8_t *bits) {
    return write_plan(f, &(struct plan){.bits = bits});
}

stint_status st_fork_write_by(struct st_fork *f, const stint_precision *precision) {
    return write_plan(f, &(struct plan){.precision = precision});
}

uint64_t st_fork_sum_bits(const struct st_fork *f) {
    uint64_t sum = 0;
    for (size_t i = 0; i < st_fork_steps(f); i++) sum += f->bits[i];
    return sum;
}

double st_fork_divergence(const struct st_fork *f) {
    double sum = 0.0;
    for (size_t i = 0; f->follow && i < f->n; i++) sum += f->divergence[i];
    return f->n ? sum / (double)f->n : 0.0;
}
