// SPDX-License-Identifier: Apache-2.0
#include "cli/conversation.h"

#include "cli/interrupt.h"
#include "cli/output.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_MAX_TOKENS = 256 };

bool st_cli_conversation_open(struct st_cli_conversation *c, const struct st_cli_command *command,
                              const stint_model *model, stint_session *session) {
    *c = (struct st_cli_conversation){.command = command, .model = model, .session = session};
    c->held = malloc(stint_session_context(session) * sizeof *c->held);
    if (c->held == NULL) st_cli_error(command->name, "not enough memory");
    return c->held != NULL;
}

void st_cli_conversation_close(struct st_cli_conversation *c) {
    st_cli_conversation_cut(c, 0);
    free(c->messages);
    free(c->held);
}

bool st_cli_conversation_add(struct st_cli_conversation *c, const char *role, const char *content) {
    if (c->n_messages == c->capacity) {
        size_t capacity = 2 * c->capacity + 8;
        stint_message *grown = realloc(c->messages, capacity * sizeof *grown);
        if (grown == NULL) return false;
        c->messages = grown;
        c->capacity = capacity;
    }
    char *copy = strdup(content);
    if (copy == NULL) return false;
    c->messages[c->n_messages++] = (stint_message){.role = role, .content = copy};
    return true;
}

static void free_content(stint_message *message) {
    free((void *)(uintptr_t)message->content);
    message->content = NULL;
}

void st_cli_conversation_cut(struct st_cli_conversation *c, size_t n_messages) {
    while (c->n_messages > n_messages) free_content(&c->messages[--c->n_messages]);
}

static size_t count_system(const struct st_cli_conversation *c) {
    return c->n_messages > 0 && strcmp(c->messages[0].role, "system") == 0;
}

// The number of messages to drop if dropping `n_dropped` is not enough: up to the next question.
// Returns `n_dropped` if only the last question is left.
static size_t drop_more(const struct st_cli_conversation *c, size_t n_dropped) {
    size_t first = count_system(c), next = first + n_dropped + 1;
    while (next < c->n_messages && strcmp(c->messages[next].role, "user") != 0) next++;
    return next < c->n_messages ? next - first : n_dropped;
}

// The token ids of the conversation without its oldest `n_dropped` messages; the system message
// stays.
static int32_t *render(struct st_cli_conversation *c, size_t n_dropped, size_t *n_ids) {
    size_t n_system = count_system(c), n = c->n_messages - n_dropped;
    stint_message *messages = malloc((n + 1) * sizeof *messages);
    if (messages == NULL) return NULL;
    for (size_t i = 0; i < n; i++) messages[i] = c->messages[i < n_system ? i : i + n_dropped];
    char *text = NULL;
    stint_status status = stint_chat_format(c->model, messages, n, c->chat, &text, &c->reasoning);
    free(messages);
    if (status != STINT_OK) return NULL;
    int32_t *ids = st_cli_tokenize(stint_model_tokenizer(c->model), text, strlen(text), 0, n_ids);
    stint_free(text);
    return ids;
}

static void drop(struct st_cli_conversation *c, size_t n_dropped) {
    size_t first = count_system(c), next = first + n_dropped;
    for (size_t i = first; i < next; i++) free_content(&c->messages[i]);
    memmove(c->messages + first, c->messages + next, (c->n_messages - next) * sizeof *c->messages);
    c->n_messages -= n_dropped;
    c->n_dropped = n_dropped;
}

// The token ids of the conversation with room for an answer. Drops the oldest turns if necessary.
// NULL with the error printed.
static int32_t *render_to_fit(struct st_cli_conversation *c, size_t *n_ids) {
    size_t context = stint_session_context(c->session), n_dropped = 0;
    size_t room = context / 4 < ROOM_MAX_TOKENS ? context / 4 : ROOM_MAX_TOKENS;
    for (;;) {
        int32_t *ids = render(c, n_dropped, n_ids);
        if (ids == NULL) {
            st_cli_failed(c->command);
            return NULL;
        }
        size_t more = *n_ids + room <= context ? n_dropped : drop_more(c, n_dropped);
        if (more == n_dropped && *n_ids > 0 && *n_ids < context) {
            drop(c, n_dropped);
            return ids;
        }
        free(ids);
        if (more == n_dropped) break;
        n_dropped = more;
    }
    if (*n_ids == 0)
        st_cli_error(c->command->name, "the message is empty");
    else
        st_cli_error(c->command->name,
                     "the message is %zu tokens long, the context %zu; start with a longer --ctx",
                     *n_ids, context);
    return NULL;
}

// Truncates the session to the tokens that it shares with `ids`; at least one is left to evaluate.
static bool rewind_session(struct st_cli_conversation *c, const int32_t *ids, size_t n_ids) {
    size_t n_held = stint_session_length(c->session, 0), n = 0;
    while (n < n_held && n + 1 < n_ids && c->held[n] == ids[n]) n++;
    c->n_reused = n;
    memcpy(c->held + n, ids + n, (n_ids - n) * sizeof *ids);
    return stint_session_truncate(c->session, 0, n) == STINT_OK;
}

// Calls the caller's text callback and stores the text for the conversation.
struct recorder {
    const stint_generation *generation;
    FILE *text;
};

static bool record(void *context, const stint_piece *piece) {
    struct recorder *recorder = context;
    if (piece->kind == STINT_TEXT_ANSWER) fwrite(piece->text, 1, piece->n_bytes, recorder->text);
    return recorder->generation->text(recorder->generation->context, piece);
}

static bool generate(struct st_cli_conversation *c, const int32_t *ids, size_t n_ids,
                     const stint_generation *options, FILE *text) {
    struct recorder recorder = {options, text};
    stint_generation generation = *options;
    generation.text = record;
    generation.context = &recorder;
    generation.reasoning = c->reasoning;
    size_t room = stint_session_context(c->session) - n_ids;
    stint_generation_result result = {.size = sizeof result};
    st_cli_interrupt_watch(c->session);
    bool ok = rewind_session(c, ids, n_ids) &&
              stint_generate(c->session, ids + c->n_reused, n_ids - c->n_reused, &generation,
                             c->held + n_ids, room, &result) == STINT_OK;
    st_cli_interrupt_watch(NULL);
    if (!ok) st_cli_failed(c->command);
    if (ok) c->last = result;
    return ok;
}

bool st_cli_conversation_answer(struct st_cli_conversation *c, const stint_chat_options *chat,
                                const stint_generation *generation) {
    size_t n_ids, n_bytes = 0;
    c->chat = chat;
    int32_t *ids = render_to_fit(c, &n_ids);
    if (ids == NULL) return false;
    char *content = NULL;
    FILE *text = open_memstream(&content, &n_bytes);
    bool ok = text != NULL && generate(c, ids, n_ids, generation, text);
    if (text != NULL) fclose(text);
    free(ids);
    if (ok) ok = st_cli_conversation_add(c, "assistant", content);
    free(content);
    return ok;
}
