// SPDX-License-Identifier: Apache-2.0
// stint chat: reads messages and prints answers, on a terminal or through pipes. Lines that begin
// with a slash are commands to the chat itself.
#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/conversation.h"
#include "cli/file.h"
#include "cli/line.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/sampling.h"
#include "cli/wrap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct chat_options {
    struct st_cli_common common;
    const char *system;
    uint32_t n_tokens;
};

static const struct st_cli_option rows[] = {
    {.name = "system",
     .letter = 's',
     .kind = ST_CLI_TEXT,
     .value = "TEXT",
     .help = "a system message to begin with",
     .offset = offsetof(struct chat_options, system)},
    {.name = "tokens",
     .letter = 'n',
     .kind = ST_CLI_UINT,
     .value = "N",
     .max = 1 << 24,
     .help = "maximum tokens of one answer; 0: until the model ends or the context is full",
     .offset = offsetof(struct chat_options, n_tokens)},
    {.name = NULL}};

struct chat {
    const struct st_cli_command *command;
    const struct chat_options *options;
    struct st_cli_conversation conversation;
    struct st_cli_progress progress;
    struct st_cli_wrap wrap;
    uint64_t seed; // of the next answer
    struct st_cli_answer answer;
    bool interactive, quit, failed;
    bool thinking; // the last text was reasoning, on standard error
};

// Reasoning is for a person who watches: on standard error, and no part of the conversation.
static bool take_text(void *context, const stint_piece *piece) {
    struct chat *chat = context;
    st_cli_progress_end(&chat->progress);
    if (piece->n_bytes == 0) return true;
    if (piece->kind == STINT_TEXT_REASONING) {
        fprintf(stderr, "%s%.*s%s", st_cli_style(stderr, ST_CLI_DIM), (int)piece->n_bytes,
                piece->text, st_cli_style(stderr, ST_CLI_PLAIN));
        chat->thinking = true;
        return true;
    }
    if (chat->thinking) fputs("\n", stderr);
    chat->thinking = false;
    return chat->interactive ? st_cli_wrap_put(&chat->wrap, piece->text, piece->n_bytes)
                             : st_cli_write(piece->text, piece->n_bytes);
}

// Reports an unusual end of the answer.
static void explain_end(const struct chat *chat) {
    const struct st_cli_conversation *c = &chat->conversation;
    if (c->n_dropped > 0)
        st_cli_error("chat", "the context is full: the oldest %zu messages were left out",
                     c->n_dropped);
    if (c->last.stop_reason == STINT_STOP_CONTEXT)
        st_cli_error("chat", "the context of %zu tokens is full: the answer is cut",
                     stint_session_context(c->session));
}

static bool answer(struct chat *chat) {
    stint_generation generation = chat->answer.generation;
    chat->answer.sampling.seed = chat->seed++;
    chat->wrap = (struct st_cli_wrap){0};
    generation.n_tokens = chat->options->n_tokens;
    generation.text = take_text;
    generation.context = chat;
    generation.progress = st_cli_progress_show;
    generation.progress_context = &chat->progress;
    chat->thinking = false;
    bool ok = st_cli_conversation_answer(&chat->conversation, &chat->answer.chat, &generation);
    st_cli_progress_end(&chat->progress);
    st_cli_wrap_end(&chat->wrap);
    if (ok) {
        st_cli_write("\n", 1);
        explain_end(chat);
    }
    return ok;
}

static bool say(struct chat *chat, const char *text) {
    struct st_cli_conversation *c = &chat->conversation;
    if (!st_cli_conversation_add(c, "user", text)) {
        st_cli_error("chat", "not enough memory");
        return false;
    }
    if (answer(chat)) return true;
    st_cli_conversation_cut(c, c->n_messages - 1);
    return false;
}

static bool do_help(struct chat *chat, const char *argument);

static bool do_clear(struct chat *chat, const char *argument) {
    struct st_cli_conversation *c = &chat->conversation;
    (void)argument;
    bool system = c->n_messages > 0 && strcmp(c->messages[0].role, "system") == 0;
    st_cli_conversation_cut(c, system ? 1 : 0);
    return true;
}

static bool do_system(struct chat *chat, const char *argument) {
    st_cli_conversation_cut(&chat->conversation, 0);
    return *argument == 0 || st_cli_conversation_add(&chat->conversation, "system", argument);
}

static bool do_retry(struct chat *chat, const char *argument) {
    struct st_cli_conversation *c = &chat->conversation;
    (void)argument;
    if (c->n_messages == 0 || strcmp(c->messages[c->n_messages - 1].role, "assistant") != 0) {
        st_cli_error("chat", "there is no answer to try again");
        return false;
    }
    st_cli_conversation_cut(c, c->n_messages - 1);
    return answer(chat);
}

static bool do_save(struct chat *chat, const char *argument) {
    const struct st_cli_conversation *c = &chat->conversation;
    if (*argument == 0) {
        st_cli_error("chat", "/save needs a file name");
        return false;
    }
    json_t *messages = json_array();
    for (size_t i = 0; i < c->n_messages; i++)
        json_array_append_new(messages, json_pack("{s:s, s:s}", "role", c->messages[i].role,
                                                  "content", c->messages[i].content));
    json_t *object = json_pack("{s:o}", "messages", messages);
    char *text = json_dumps(object, JSON_INDENT(2));
    json_decref(object);
    struct st_cli_writer writer;
    bool ok = text != NULL && st_cli_writer_open(&writer, "chat", argument);
    if (ok) {
        ok = st_cli_writer_put(&writer, text, strlen(text)) && st_cli_writer_put(&writer, "\n", 1);
        ok = st_cli_writer_close(&writer, ok) && ok;
    }
    free(text);
    return ok;
}

static bool do_stats(struct chat *chat, const char *argument) {
    const struct st_cli_conversation *c = &chat->conversation;
    char peak[ST_CLI_SIZE_BYTES];
    (void)argument;
    fprintf(stderr,
            "last prompt %zu new tokens after %zu kept, %.1f tokens/s; generated %zu tokens, %.1f "
            "tokens/s; context %zu of %zu tokens; peak memory %s\n",
            c->last.prompt_tokens, c->n_reused,
            st_cli_rate(c->last.prompt_tokens, c->last.prefill_seconds), c->last.generated_tokens,
            st_cli_decode_rate(&c->last), stint_session_length(c->session, 0),
            stint_session_context(c->session), st_cli_size(stint_peak_rss_bytes(), peak));
    return true;
}

static bool do_quit(struct chat *chat, const char *argument) {
    (void)argument;
    chat->quit = true;
    return true;
}

static const struct chat_command {
    const char *name, *argument, *help;
    bool (*run)(struct chat *chat, const char *argument);
} chat_commands[] = {
    {"help", "", "this list", do_help},
    {"clear", "", "forget the conversation, keep the system message", do_clear},
    {"system", " TEXT", "forget the conversation and set the system message", do_system},
    {"retry", "", "answer the last message again with another seed", do_retry},
    {"save", " FILE", "write the conversation as JSON", do_save},
    {"stats", "", "speed of the last answer, context and memory in use", do_stats},
    {"quit", "", "end; so does Ctrl-D", do_quit},
};
enum { N_COMMANDS = sizeof chat_commands / sizeof chat_commands[0] };

static bool do_help(struct chat *chat, const char *argument) {
    (void)chat, (void)argument;
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(stderr, "  /%s%-*s %s\n", chat_commands[i].name,
                (int)(13 - strlen(chat_commands[i].name)), chat_commands[i].argument,
                chat_commands[i].help);
    fputs("  Ctrl-C stops an answer. Tab completes a command.\n  A message of several lines stands "
          "between \"\"\" and \"\"\"; a backslash at a line's end continues it too.\n",
          stderr);
    return true;
}

static const char *command_name(size_t i) {
    return i < N_COMMANDS ? chat_commands[i].name : NULL;
}

static bool obey(struct chat *chat, const char *line) {
    size_t n = strcspn(line, " ");
    const char *argument = line + n + strspn(line + n, " ");
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strlen(chat_commands[i].name) == n && memcmp(chat_commands[i].name, line, n) == 0)
            return chat_commands[i].run(chat, argument);
    st_cli_error("chat", "unknown command '/%.*s'; /help lists them", (int)n, line);
    return false;
}

static void converse(struct chat *chat, struct st_cli_line *line) {
    bool hinted = false;
    while (!chat->quit) {
        const char *text;
        enum st_cli_line_end end = st_cli_line_read(line, &text);
        if (end == ST_CLI_LINE_END) break;
        if (end == ST_CLI_LINE_FAILED) {
            st_cli_error("chat", "the message could not be read: %s", strerror(errno));
            chat->failed = true;
            break;
        }
        if (end == ST_CLI_LINE_INTERRUPTED) {
            if (!hinted) fputs("Ctrl-D or /quit ends the chat.\n", stderr);
            hinted = true;
            continue;
        }
        if (text[strspn(text, " \t\r\n")] == 0) continue;
        bool ok = text[0] == '/' ? obey(chat, text + 1) : say(chat, text);
        if (!ok && !chat->interactive) chat->failed = true;
        if (!st_cli_write("", 0)) break;
    }
}

static void greet(const struct chat *chat, const stint_model *model) {
    stint_model_info info = {.size = sizeof info};
    if (!chat->interactive || stint_model_describe(model, &info) != STINT_OK) return;
    fprintf(stderr, "%s%s, template %s. /help lists the commands, Ctrl-D ends.%s\n",
            st_cli_style(stderr, ST_CLI_DIM), info.architecture, info.chat_template,
            st_cli_style(stderr, ST_CLI_PLAIN));
}

static bool hold_chat(struct chat *chat, const stint_model *model, stint_session *session) {
    struct st_cli_line *line = st_cli_line_open(command_name);
    bool ok = line != NULL &&
              st_cli_conversation_open(&chat->conversation, chat->command, model, session);
    const char *system = chat->options->system;
    if (ok && system != NULL) ok = st_cli_conversation_add(&chat->conversation, "system", system);
    if (ok) {
        chat->interactive = st_cli_line_interactive(line);
        greet(chat, model);
        converse(chat, line);
        if (chat->interactive && !chat->quit) st_cli_write("\n", 1);
    } else {
        st_cli_error("chat", "not enough memory");
    }
    st_cli_conversation_close(&chat->conversation);
    st_cli_line_close(line);
    return ok && !chat->failed;
}

// Each answer has a seed of its own: those after --seed, or after one that nobody chose.
static uint64_t first_seed(const struct st_cli_common *common) {
    uint64_t seed;
    bool given = st_cli_sampling_given(common, offsetof(stint_sampling, seed));
    if (given || getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        return common->sampling.seed;
    return seed >> 1; // room to count on
}

static int run(const struct st_cli_command *command, void *target) {
    struct chat chat = {.command = command, .options = target};
    chat.seed = first_seed(&chat.options->common);
    int status = st_cli_answer_open(command, &chat.options->common, &chat.answer);
    if (status != ST_CLI_GO) return status;
    stint_model *model = st_cli_open_model(command, &chat.options->common, NULL, NULL);
    stint_session *session = NULL;
    stint_session_options session_options = st_cli_session_options(&chat.options->common);
    bool ok = false;
    if (model != NULL) st_cli_tell_left_out(command, model);
    if (model != NULL) st_cli_answer_adopt(&chat.options->common, model, &chat.answer);
    if (model == NULL)
        ok = false; // which was told
    else if (stint_model_tokenizer(model) == NULL)
        st_cli_error(command->name, "%s: has no tokenizer", chat.options->common.model);
    else if (stint_session_open(model, &session_options, &session) != STINT_OK)
        st_cli_failed(command);
    else
        ok = hold_chat(&chat, model, session);
    stint_session_close(session);
    stint_model_close(model);
    st_cli_answer_free(&chat.answer);
    return ok ? ST_CLI_DONE : ST_CLI_FAILED;
}

const struct st_cli_command st_cli_chat_command = {
    .name = "chat",
    .summary = "a conversation, with line editing and /commands",
    .operand = "MODEL",
    .about =
        "Talks with a model through the chat template recognised from its checkpoint. The "
        "conversation stays in the KV cache: each turn evaluates only the new part. Reads lines "
        "from a terminal or a pipe; /help lists the commands. Ctrl-C stops an answer, Ctrl-D "
        "ends the chat.",
    .example = "stint chat models/novels-10m -n 40 --system \"You write like Dickens.\"",
    .common = ST_CLI_COMMON_SESSION | ST_CLI_COMMON_DRAFTS | ST_CLI_COMMON_NESTED |
              ST_CLI_COMMON_QUALITY | ST_CLI_COMMON_SCHEDULE | ST_CLI_COMMON_ANSWER,
    .samples = ST_CLI_SAMPLES_AS_THE_MODEL,
    .options = rows,
    .options_bytes = sizeof(struct chat_options),
    .run = run};
