// SPDX-License-Identifier: Apache-2.0
#include "eval/answers.h"

#include "base/buffer.h"
#include "base/size.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TOKENS = 4096 };

// A prompt as ids, and how its answer begins.
struct prompt {
    struct st_ids ids;
    stint_reasoning reasoning;
};

// Models that can reason first are told not to: the tokens are for the answer.
static stint_status encode_chat(const struct stint_model *model, const stint_message *messages,
                                size_t n, struct prompt *p) {
    const stint_chat_options options = {.size = sizeof options, .thinking = STINT_THINKING_OFF};
    char *text;
    ST_TRY(stint_chat_format(model, messages, n, &options, &text, &p->reasoning));
    stint_status status = st_tokenizer_encode(model->tokenizer, text, strlen(text), 0, &p->ids);
    stint_free(text);
    return status;
}

static stint_status encode(const struct stint_model *model, const struct st_task *task,
                           const char *text, struct prompt *p) {
    const stint_message message = {.role = "user", .content = text};
    if (!model->tokenizer)
        return st_fail(STINT_E_ARG, "this model has no tokenizer: texts cannot be scored");
    if (task->chats) return encode_chat(model, &message, 1, p);
    return st_tokenizer_encode(model->tokenizer, text, strlen(text),
                               STINT_TOKENIZE_ADD_BOS | STINT_TOKENIZE_PLAIN, &p->ids);
}

// The tokens of an item's prompts and of an answer to each.
static stint_status count_tokens(const struct st_answers *a, const struct stint_model *model,
                                 const struct st_item *item, size_t *n) {
    *n = 0;
    for (uint32_t i = 0; i < item->n_choices; i++) {
        struct prompt p = {0};
        if (!*item->context[i]) continue;
        stint_status status = encode(model, a->task, item->context[i], &p);
        *n += p.ids.count + a->n_tokens;
        st_ids_free(&p.ids);
        ST_TRY(status);
    }
    return STINT_OK;
}

// A session with room for the longest item, as far as the model's context has it.
static stint_status open_session(const struct st_eval *eval, const struct st_items *items,
                                 struct st_answers *a) {
    size_t longest = 0, n;
    for (size_t i = 0; i < items->n; i++) {
        ST_TRY(count_tokens(a, eval->model, &items->items[i], &n));
        longest = st_max(longest, n);
    }
    return st_scorer_open(&eval->subject, eval->options->session,
                          st_min(longest, eval->model->config.context), 1, &a->scorer);
}

static bool is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// Appends generated text without the blanks at its beginning; false without memory, or at the end
// of a line that ends the answer.
static bool take_text(void *context, const stint_piece *piece) {
    struct st_answers *a = context;
    bool line = !a->task->chats;
    if (piece->kind != STINT_TEXT_ANSWER) return true;
    for (size_t i = 0; i < piece->n_bytes; i++) {
        char c = piece->text[i];
        if (line && c == '\n' && a->n > 0) return false;
        if (a->n == 0 && (line ? c == '\n' || c == ' ' : is_blank(c))) continue;
        char *grown = realloc(a->text, a->n + 2);
        if (!grown) return false;
        a->text = grown;
        a->text[a->n++] = c ? c : ' ';
        a->text[a->n] = '\0';
    }
    return true;
}

// Leaves room for the answer: drops tokens at the beginning, or in the middle.
static void shorten(const struct st_answers *a, struct st_ids *ids) {
    size_t room = stint_session_context(a->scorer.session) - a->scorer.n_prefix;
    size_t max = room - st_min(room - 1, a->n_tokens);
    if (ids->count <= max) return;
    size_t head = a->task->chats ? max / 2 : 0, tail = max - head;
    memmove(ids->data + head, ids->data + ids->count - tail, tail * sizeof *ids->data);
    ids->count = max;
}

static stint_status answer(struct st_answers *a, struct prompt *p) {
    stint_generation options = {.size = sizeof options,
                                .n_tokens = (uint32_t)a->n_tokens,
                                .reasoning = p->reasoning,
                                .text = take_text,
                                .context = a};
    stint_generation_result result = {.size = sizeof result};
    struct stint_session *session = a->scorer.session;
    a->n = 0;
    *a->text = '\0';
    if (p->ids.count == 0) return st_fail(STINT_E_FORMAT, "a prompt is empty");
    shorten(a, &p->ids);
    ST_TRY(stint_session_truncate(session, 0, a->scorer.n_prefix));
    ST_TRY(stint_generate(session, p->ids.data, p->ids.count, &options, NULL, 0, &result));
    a->n_written = result.generated_tokens;
    while (a->task->chats && a->n > 0 && is_blank(a->text[a->n - 1])) a->text[--a->n] = '\0';
    return STINT_OK;
}

stint_status st_answers_prompt(struct st_answers *a, const char *prompt) {
    struct prompt p = {0};
    stint_status status = encode(a->scorer.model, a->task, prompt, &p);
    if (status == STINT_OK) status = answer(a, &p);
    st_ids_free(&p.ids);
    return status;
}

stint_status st_answers_chat(struct st_answers *a, const stint_message *messages, size_t n) {
    struct prompt p = {0};
    stint_status status = encode_chat(a->scorer.model, messages, n, &p);
    if (status == STINT_OK) status = answer(a, &p);
    st_ids_free(&p.ids);
    return status;
}

static stint_status run_items(struct st_eval *eval, const struct st_items *items,
                              struct st_answers *a, st_answers_fn *fn, void *context) {
    const stint_eval_options *o = eval->options;
    for (size_t i = 0; i < items->n; i++) {
        stint_eval_item item = {.index = i};
        ST_TRY(fn(context, a, &items->items[i], &item));
        if (o->item) o->item(o->context, &item);
        eval->result.items = i + 1;
        ST_TRY(st_eval_step(eval, i + 1, items->n));
    }
    return STINT_OK;
}

stint_status st_answers_run(struct st_eval *eval, const struct st_task *task, st_answers_fn *fn,
                            void *context) {
    const stint_eval_options *o = eval->options;
    struct st_items items = {0};
    struct st_answers a = {.task = task, .n_tokens = o->n_tokens ? o->n_tokens : task->n_tokens};
    if (a.n_tokens > MAX_TOKENS)
        return st_fail(STINT_E_ARG, "%zu tokens an answer: at most %d", a.n_tokens, MAX_TOKENS);
    stint_status status = task->read(o->data, o->limit, &items);
    if (status == STINT_OK && items.n == 0)
        status = st_fail(STINT_E_FORMAT, "%s: holds no items", o->data);
    a.n_items = items.n;
    a.text = calloc(1, 1);
    if (status == STINT_OK && !a.text) status = st_fail(STINT_E_NOMEM, "no memory for an answer");
    if (status == STINT_OK) status = open_session(eval, &items, &a);
    if (status == STINT_OK) status = run_items(eval, &items, &a, fn, context);
    st_scorer_close(&a.scorer);
    st_items_free(&items);
    free(a.text);
    return status;
}
