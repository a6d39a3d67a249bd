// SPDX-License-Identifier: Apache-2.0
#include "generate/teller.h"

#include <string.h>

static bool has_parts(const struct st_teller *t) {
    return t->generation->reasoning != STINT_REASONING_NONE || t->tools->choice != ST_TOOLS_NONE;
}

static void tell_piece(struct st_teller *t, stint_piece *piece) {
    piece->answer = t->answer;
    if (t->stopped || !t->generation->text) return;
    t->stopped = !t->generation->text(t->generation->context, piece);
}

// `token` is NULL for text without one.
static void tell(struct st_teller *t, stint_text_kind kind, const char *text, size_t n,
                 const struct st_token *token) {
    stint_piece piece = {.kind = kind, .text = n > 0 ? text : "", .n_bytes = n, .id = -1};
    if (token) {
        piece.id = token->id;
        piece.logprob = token->logprob;
        piece.top = token->top;
        piece.n_top = token->n_top;
    }
    tell_piece(t, &piece);
}

static void tell_span(struct st_teller *t, stint_text_kind kind, struct st_piece span,
                      const struct st_token *token) {
    if (!token && span.to <= span.from) return;
    const char *text = t->transcript.text.data;
    tell(t, kind, text ? text + span.from : "", span.to - span.from, token);
}

// What is certain of reasoning and, unless it may be a call, of the answer.
static void tell_news(struct st_teller *t, bool with_answer, const struct st_token *token) {
    struct st_transcript *said = &t->transcript;
    struct st_piece thoughts = st_transcript_thoughts(said), news = {0};
    if (with_answer) news = st_transcript_news(said);
    bool thinks = said->reasoning.phase == ST_REASONING_INSIDE || thoughts.to > thoughts.from;
    if (thinks) tell_span(t, STINT_TEXT_REASONING, thoughts, token);
    tell_span(t, STINT_TEXT_ANSWER, news, thinks ? NULL : token);
}

stint_status st_teller_token(struct st_teller *t, const struct st_token *token,
                             const struct st_generated *generated) {
    if (!has_parts(t)) {
        tell(t, STINT_TEXT_ANSWER, generated->text, generated->n_bytes, token);
        return STINT_OK;
    }
    ST_TRY(st_transcript_token(&t->transcript, token, generated->n_made));
    ST_TRY(st_transcript_text(&t->transcript, generated->text, generated->n_bytes));
    tell_news(t, t->tools->choice == ST_TOOLS_NONE, token);
    return STINT_OK;
}

static void tell_calls(struct st_teller *t) {
    const struct st_tool_calls *calls = &t->transcript.calls;
    const char *content = calls->content ? calls->content : "";
    if (*content) tell(t, STINT_TEXT_ANSWER, content, strlen(content), NULL);
    for (size_t i = 0; i < calls->n; i++) {
        const struct st_tool_call *call = &calls->calls[i];
        stint_piece piece = {.kind = STINT_TEXT_TOOL_CALL,
                             .text = call->arguments,
                             .n_bytes = strlen(call->arguments),
                             .id = -1,
                             .function = call->name};
        tell_piece(t, &piece);
    }
}

stint_status st_teller_end(struct st_teller *t, const char *text, size_t n_bytes,
                           stint_stop_reason reason) {
    struct st_transcript *said = &t->transcript;
    if (!has_parts(t)) {
        if (n_bytes > 0) tell(t, STINT_TEXT_ANSWER, text, n_bytes, NULL);
        return STINT_OK;
    }
    ST_TRY(st_transcript_text(said, text, n_bytes));
    st_transcript_end(said, reason);
    size_t n;
    const char *answer = st_transcript_answer(said, &n);
    ST_TRY(st_calls_find(t->tools, t->chat, answer, n, &said->calls));
    tell_news(t, said->calls.n == 0, NULL);
    if (said->calls.n > 0) tell_calls(t);
    return STINT_OK;
}
