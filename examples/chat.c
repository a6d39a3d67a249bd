// SPDX-License-Identifier: Apache-2.0
// A conversation: reads a message per line, streams each answer. The session keeps what it has
// computed, so each turn costs only its new part.
//   example_chat MODEL [MAX-TOKENS-OF-AN-ANSWER]
//   cc chat.c $(pkg-config --cflags --libs stint)
#include <stint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MESSAGES = 200, MAX_TOKENS = 4096 };

struct chat {
    stint_model *model;
    stint_session *session;
    stint_message messages[MAX_MESSAGES]; // all that was said
    size_t n_messages;
    FILE *answer; // a copy of what is streamed
    uint32_t n_tokens;
};

// stint calls this for each piece of text; false would end the answer.
static bool show(void *context, const stint_piece *piece) {
    struct chat *chat = context;
    size_t n = piece->n_bytes;
    if (piece->kind != STINT_TEXT_ANSWER) return true; // what it thinks is not shown
    fwrite(piece->text, 1, n, chat->answer);
    return fwrite(piece->text, 1, n, stdout) == n && fflush(stdout) == 0;
}

static bool say(struct chat *chat, const char *role, const char *text) {
    char *copy = strdup(text);
    if (copy == NULL || chat->n_messages == MAX_MESSAGES) {
        free(copy);
        return false;
    }
    chat->messages[chat->n_messages++] = (stint_message){.role = role, .content = copy};
    return true;
}

// Tokenizes the whole conversation, goes back to where the session's tokens differ from it, and
// lets the model go on from there.
static stint_status answer(struct chat *chat) {
    static int32_t ids[MAX_TOKENS];
    char *text;
    stint_reasoning reasoning;
    size_t n = 0, shared = 0, held = stint_session_length(chat->session, 0);
    stint_status status =
        stint_chat_format(chat->model, chat->messages, chat->n_messages, NULL, &text, &reasoning);
    if (status != STINT_OK) return status;
    status = stint_tokenize(stint_model_tokenizer(chat->model), text, strlen(text), 0, ids,
                            MAX_TOKENS, &n);
    stint_free(text);
    if (status != STINT_OK) return status;
    const int32_t *old = stint_session_tokens(chat->session, 0);
    while (shared < held && shared + 1 < n && old[shared] == ids[shared]) shared++;
    status = stint_session_truncate(chat->session, 0, shared);
    if (status != STINT_OK) return status;
    stint_generation options = {.size = sizeof options,
                                .n_tokens = chat->n_tokens,
                                .text = show,
                                .context = chat,
                                .reasoning = reasoning};
    return stint_generate(chat->session, ids + shared, n - shared, &options, NULL, 0, NULL);
}

int main(int argc, char **argv) {
    static struct chat chat = {.n_tokens = 200};
    if (argc > 2) chat.n_tokens = (uint32_t)strtoul(argv[2], NULL, 10);
    stint_session_options options = {.size = sizeof options, .n_context = MAX_TOKENS / 2};
    stint_status status = argc < 2 ? STINT_E_ARG : stint_model_open(argv[1], NULL, &chat.model);
    if (status == STINT_OK) status = stint_session_open(chat.model, &options, &chat.session);

    char *line = NULL, *said = NULL;
    size_t capacity = 0, n_said = 0;
    while (status == STINT_OK && getline(&line, &capacity, stdin) >= 0) {
        line[strcspn(line, "\n")] = 0;
        if (!say(&chat, "user", line)) break;
        chat.answer = open_memstream(&said, &n_said);
        if (chat.answer == NULL) break;
        status = answer(&chat);
        fclose(chat.answer);
        putchar('\n');
        if (status == STINT_OK && !say(&chat, "assistant", said)) break;
        free(said);
        said = NULL;
    }
    if (status != STINT_OK)
        fprintf(stderr, "%s\n", argc < 2 ? "use: example_chat MODEL [N]" : stint_error_text());
    while (chat.n_messages > 0) free((char *)chat.messages[--chat.n_messages].content);
    free(line);
    free(said);
    stint_session_close(chat.session);
    stint_model_close(chat.model);
    return status == STINT_OK ? 0 : 1;
}
