// SPDX-License-Identifier: Apache-2.0
#include "eval/fork.h"

#include "base/size.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES_PER_TOKEN = 64 };

stint_status st_fork_open(const struct stint_model *model, const stint_session_options *options,
                          size_t n_prompt, size_t n_tokens, struct st_fork *f) {
    stint_session_options o = {.size = sizeof o};
    if (!model->tokenizer)
        return st_fail(STINT_E_ARG, "this model has no tokenizer: schedules are made on texts");
    if (!model->nested.high)
        return st_fail(STINT_E_UNSUPPORTED,
                       "this model has no nested weights; make a package that has them with 'stint "
                       "prepare SRC -o OUT.stint --bits 2..4'");
    if (model->checkpoint.lazy)
        return st_fail(STINT_E_UNSUPPORTED, "schedules are made with all of a model in memory: "
                                            "leave out --memory");
    if (options) memcpy(&o, options, st_min(options->size, sizeof o));
    o.schedule = NULL;
    o.n_context = (uint32_t)st_min(n_prompt + n_tokens, model->config.context);
    if (o.n_context <= n_tokens)
        return st_fail(STINT_E_ARG, "answers of %zu tokens: the model has room for %u", n_tokens,
                       model->config.context);
    *f = (struct st_fork){.model = model, .n_tokens = n_tokens};
    f->text_bytes = n_tokens * BYTES_PER_TOKEN + 1;
    f->ids = calloc(n_tokens, sizeof *f->ids);
    f->bits = calloc(n_tokens, 1);
    f->wanted = calloc(n_tokens, 1);
    f->text = calloc(f->text_bytes, 1);
    f->logits = malloc(model->config.vocab * sizeof *f->logits);
    stint_status status = stint_session_open(model, &o, &f->session);
    if (status == STINT_OK && (!f->ids || !f->bits || !f->wanted || !f->text || !f->logits))
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
    *f = (struct st_fork){0};
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

static void take_token(struct st_fork *f) {
    int32_t id =
        (int32_t)f->session->kernels.elementwise->argmax(f->logits, f->model->config.vocab);
    if (st_model_stops(f->model, id)) {
        f->ended = true;
        return;
    }
    f->ids[f->n++] = id;
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
    f->ended = false;
    *f->text = '\0';
    take_token(f);
    return STINT_OK;
}

stint_status st_fork_prompt_text(struct st_fork *f, const char *prompt, unsigned bits) {
    struct st_ids ids = {0};
    stint_status status = st_tokenizer_encode(f->model->tokenizer, prompt, strlen(prompt),
                                              STINT_TOKENIZE_ADD_BOS | STINT_TOKENIZE_PLAIN, &ids);
    if (status == STINT_OK && ids.count == 0) status = st_fail(STINT_E_FORMAT, "a prompt is empty");
    if (status == STINT_OK) status = st_fork_prompt(f, ids.data, ids.count, bits);
    st_ids_free(&ids);
    return status;
}

// Number of steps taken: one for every token but the first, and one for an end without a token.
static size_t steps_taken(const struct st_fork *f) {
    return stint_session_length(f->session, 0) - f->n_prompt;
}

stint_status st_fork_write(struct st_fork *f, const uint8_t *bits) {
    size_t taken = steps_taken(f), same = 0;
    while (same < taken && f->bits[same] == bits[same]) same++;
    if (same < taken) { // back to the first step that differs
        ST_TRY(stint_session_truncate(f->session, 0, f->n_prompt + same));
        f->n = same + 1;
        f->ended = false;
        set_text(f);
    }
    for (size_t step = same; !f->ended; step++) {
        f->bits[step] = bits[step];
        ST_TRY(append(f, &f->ids[step], 1, bits[step]));
        take_token(f);
    }
    return STINT_OK;
}

stint_status st_fork_write_by(struct st_fork *f, const stint_precision *precision) {
    for (size_t i = 0; i < f->n_tokens; i++) f->wanted[i] = (uint8_t)st_precision_at(precision, i);
    return st_fork_write(f, f->wanted);
}

uint64_t st_fork_sum_bits(const struct st_fork *f) {
    uint64_t sum = 0;
    for (size_t i = 0; i < steps_taken(f); i++) sum += f->bits[i];
    return sum;
}
