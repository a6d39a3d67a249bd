// SPDX-License-Identifier: Apache-2.0
// Renders a conversation, by the template or the built-in format, with the variables that Hugging
// Face passes to chat templates.
#include "chat/chat.h"

#include "base/buffer.h"
#include "base/log.h"
#include "chat/format_row.h"
#include "chat/harmony.h"
#include "chat/messages.h"
#include "chat/tool_text.h"
#include "template/jinja.h"
#include "tokenizer/parts.h"

#include <stdlib.h>
#include <string.h>

struct st_chat {
    const struct stint_tokenizer *tokenizer;
    const struct st_chat_format *format;
    char *source;
    struct st_jinja *jinja; // NULL: the built-in format
    bool opens;             // the template itself opens the assistant's turn
    bool reasons;           // the template knows the marks of reasoning
};

// The variables of a template besides the messages.
struct variables {
    const json_t *tools;
    enum st_chat_thinking thinking;
};

static stint_status no_memory(void) {
    return st_fail(STINT_E_NOMEM, "not enough memory for the conversation");
}

static stint_status compile(struct st_chat *chat) {
    stint_status status = st_jinja_compile(chat->source, strlen(chat->source), &chat->jinja);
    if (status == STINT_OK || status == STINT_E_NOMEM) return status;
    st_log(STINT_LOG_WARNING, "%s; conversations use the built-in format '%s'", st_error_text(),
           st_chat_name(chat->format));
    return STINT_OK;
}

stint_status st_chat_open(const char *template_text, const struct stint_tokenizer *tokenizer,
                          struct st_chat **chat) {
    struct st_chat *made = calloc(1, sizeof *made);
    if (!made) return st_fail(STINT_E_NOMEM, "no memory for a chat format");
    made->tokenizer = tokenizer;
    made->format = st_chat_recognise(template_text);
    stint_status status = STINT_OK;
    if (template_text) {
        made->opens = strstr(template_text, "add_generation_prompt") != NULL;
        made->reasons = strstr(template_text, ST_REASONING_OPEN) != NULL ||
                        strstr(template_text, ST_REASONING_CLOSE) != NULL ||
                        st_reasoning_renamed(template_text) != NULL ||
                        st_harmony_is_spoken(template_text);
        made->source = strdup(template_text);
        status = made->source ? compile(made) : no_memory();
    }
    if (status != STINT_OK) {
        st_chat_close(made);
        return status;
    }
    *chat = made;
    return STINT_OK;
}

void st_chat_close(struct st_chat *chat) {
    if (!chat) return;
    st_jinja_free(chat->jinja);
    free(chat->source);
    free(chat);
}

bool st_chat_has_template(const struct st_chat *chat) {
    return chat->jinja != NULL;
}

bool st_chat_reasons(const struct st_chat *chat) {
    return chat->reasons;
}

const char *st_chat_template_text(const struct st_chat *chat) {
    return chat->source;
}

const struct st_chat_format *st_chat_builtin(const struct st_chat *chat) {
    return chat->format;
}

// ---- by the template

// A special token that the tokenizer does not have stays undefined, so it renders as nothing.
static stint_status put_token(json_t *context, const char *name, const struct st_chat *chat,
                              int32_t id) {
    const struct stint_tokenizer *t = chat->tokenizer;
    if (id < 0 || (size_t)id >= t->vocab.n) return STINT_OK;
    const struct st_token *token = &t->vocab.tokens[id];
    json_t *text = json_stringn(t->vocab.pool + token->start, token->bytes);
    if (!text) return STINT_OK; // not UTF-8: no template can use it
    return json_object_set_new(context, name, text) == 0 ? STINT_OK : no_memory();
}

// Undefined unless the caller asked: then the template decides.
static bool put_thinking(json_t *context, enum st_chat_thinking thinking) {
    bool on = thinking == ST_CHAT_THINKS;
    return thinking == ST_CHAT_THINKS_AS_EVER ||
           (json_object_set_new(context, "enable_thinking", json_boolean(on)) == 0 &&
            json_object_set_new(context, "thinking", json_boolean(on)) == 0);
}

static stint_status make_context(const struct st_chat *chat, json_t *messages,
                                 const struct variables *variables, json_t **context) {
    const json_t *tools = variables->tools;
    bool has_tools = tools && json_array_size(tools) > 0;
    json_t *made = json_object();
    bool ok = json_object_set(made, "messages", messages) == 0 &&
              json_object_set_new(made, "tools",
                                  has_tools ? json_incref((json_t *)tools) : json_null()) == 0 &&
              json_object_set_new(made, "documents", json_null()) == 0 &&
              json_object_set_new(made, "add_generation_prompt", json_true()) == 0 &&
              put_thinking(made, variables->thinking);
    stint_status status = ok ? STINT_OK : no_memory();
    if (status == STINT_OK && chat->tokenizer) {
        status = put_token(made, "bos_token", chat, st_tokenizer_bos(chat->tokenizer));
        if (status == STINT_OK)
            status = put_token(made, "eos_token", chat, st_tokenizer_eos(chat->tokenizer));
    }
    if (status != STINT_OK) {
        json_decref(made);
        return status;
    }
    *context = made;
    return STINT_OK;
}

// With older templates the caller opens the assistant's turn.
static stint_status open_turn(const struct st_chat *chat, char **text, size_t n) {
    const char *opening = chat->opens ? NULL : chat->format->opening;
    size_t n_opening = opening ? strlen(opening) : 0;
    if (n >= n_opening && memcmp(*text + n - n_opening, opening ? opening : "", n_opening) == 0)
        return STINT_OK;
    char *longer = realloc(*text, n + n_opening + 1);
    if (!longer) return no_memory();
    memcpy(longer + n, opening, n_opening + 1);
    *text = longer;
    return STINT_OK;
}

static stint_status render_once(const struct st_chat *chat, json_t *messages,
                                const struct variables *variables, char **text) {
    json_t *context = NULL;
    char *rendered = NULL;
    size_t n = 0;
    ST_TRY(make_context(chat, messages, variables, &context));
    stint_status status = st_jinja_render(chat->jinja, context, &rendered, &n);
    json_decref(context);
    if (status == STINT_OK && memchr(rendered, 0, n))
        status = st_fail(STINT_E_ARG, "the conversation contains a NUL character");
    if (status == STINT_OK) status = open_turn(chat, &rendered, n);
    if (status != STINT_OK) {
        free(rendered);
        return status;
    }
    *text = rendered;
    return STINT_OK;
}

// If every variant fails, the first failure is reported.
static stint_status render(const struct st_chat *chat, const json_t *plain, unsigned possible,
                           const struct variables *variables, char **text) {
    struct st_error first = {.status = STINT_OK};
    for (unsigned ways = 0; ways < ST_CHAT_ALL_WAYS; ways++) {
        json_t *messages = NULL;
        if (ways & ~possible) continue;
        ST_TRY(st_chat_vary(plain, ways, &messages));
        stint_status status = render_once(chat, messages, variables, text);
        json_decref(messages);
        if (status != STINT_E_ARG) return status;
        if (first.status == STINT_OK) st_error_save(&first);
    }
    return st_error_restore(&first);
}

// ---- by the built-in format

static stint_status render_builtin(const struct st_chat *chat, const json_t *plain, char **text) {
    size_t n = json_array_size(plain), i;
    json_t *message;
    stint_message *messages = calloc(n + 1, sizeof *messages);
    if (!messages) return no_memory();
    json_array_foreach(plain, i, message) {
        const json_t *content = json_object_get(message, "content");
        messages[i].role = json_string_value(json_object_get(message, "role"));
        messages[i].content = json_is_string(content) ? json_string_value(content) : "";
    }
    stint_status status = st_chat_render(chat->format, chat->tokenizer, messages, n, text);
    free(messages);
    return status;
}

static bool has_nul(const json_t *plain) {
    size_t i;
    json_t *message;
    json_array_foreach(plain, i, message) {
        const json_t *content = json_object_get(message, "content");
        if (json_is_string(content) &&
            memchr(json_string_value(content), 0, json_string_length(content)))
            return true;
    }
    return false;
}

// A format that knows no tools, or no calls, gets them as text.
static stint_status write_tools(const struct st_chat *chat, const json_t *tools, json_t **plain) {
    json_t *changed;
    if (tools && !json_is_null(tools) && !json_is_array(tools))
        return st_fail(STINT_E_ARG, "tools must be an array");
    if (chat->jinja && strstr(chat->source, "tools")) return STINT_OK;
    bool calls = !chat->jinja || !strstr(chat->source, "tool_calls");
    ST_TRY(st_tool_text_write(*plain, tools, calls, &changed));
    json_decref(*plain);
    *plain = changed;
    return STINT_OK;
}

// ---- reasoning

static size_t trimmed(const char *text) {
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r\n", text[n - 1])) n--;
    return n;
}

static bool ends_open(const char *text) {
    size_t n = trimmed(text), n_mark = strlen(ST_REASONING_OPEN);
    return n >= n_mark && memcmp(text + n - n_mark, ST_REASONING_OPEN, n_mark) == 0;
}

// Templates write omitted reasoning like this.
static stint_status close_reasoning(char **text) {
    static const char closing[] = "\n\n" ST_REASONING_CLOSE "\n\n";
    size_t n = trimmed(*text);
    char *longer = realloc(*text, n + sizeof closing);
    if (!longer) return no_memory();
    memcpy(longer + n, closing, sizeof closing);
    *text = longer;
    return STINT_OK;
}

static stint_status begin_answer(const struct st_chat *chat, enum st_chat_thinking thinking,
                                 char **text, enum st_reasoning_phase *answer) {
    bool open = chat->reasons && ends_open(*text);
    if (open && thinking == ST_CHAT_THINKS_NOT) {
        ST_TRY(close_reasoning(text));
        open = false;
    }
    *answer = open ? ST_REASONING_INSIDE : chat->reasons ? ST_REASONING_BEFORE : ST_REASONING_NONE;
    return STINT_OK;
}

stint_status st_chat_prompt_thinking(const struct st_chat *chat, const json_t *messages,
                                     const json_t *tools, enum st_chat_thinking thinking,
                                     char **text, enum st_reasoning_phase *answer) {
    const struct variables variables = {tools, thinking};
    json_t *plain = NULL;
    char *made = NULL;
    unsigned ways = 0;
    ST_TRY(st_chat_normalize(messages, &plain, &ways));
    stint_status status = write_tools(chat, tools, &plain);
    if (status == STINT_OK && has_nul(plain))
        status = st_fail(STINT_E_ARG, "the conversation contains a NUL character");
    else if (status == STINT_OK && chat->jinja)
        status = render(chat, plain, ways, &variables, &made);
    else if (status == STINT_OK)
        status = render_builtin(chat, plain, &made);
    json_decref(plain);
    if (status == STINT_OK) status = begin_answer(chat, thinking, &made, answer);
    if (status != STINT_OK) {
        free(made);
        return status;
    }
    *text = made;
    return STINT_OK;
}

stint_status st_chat_prompt(const struct st_chat *chat, const json_t *messages, const json_t *tools,
                            char **text) {
    enum st_reasoning_phase answer;
    return st_chat_prompt_thinking(chat, messages, tools, ST_CHAT_THINKS_AS_EVER, text, &answer);
}
