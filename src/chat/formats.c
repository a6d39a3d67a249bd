// SPDX-License-Identifier: Apache-2.0
// Renders a conversation by a row of formats_tables.c. The checkpoint's template, which
// is Jinja, is not run here: it is only searched for the marks of a published format.
#include "chat/formats.h"

#include "chat/format_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct st_chat_format *st_chat_recognise(const char *chat_template) {
    const struct st_chat_format *raw = &st_chat_formats[st_chat_n_formats - 1];
    for (size_t i = 0; chat_template != NULL && i + 1 < st_chat_n_formats; i++) {
        const char *const *marks = st_chat_formats[i].marks;
        bool all = true;
        for (size_t m = 0; m < 3 && marks[m] != NULL; m++)
            if (strstr(chat_template, marks[m]) == NULL) all = false;
        if (all) return &st_chat_formats[i];
    }
    return raw;
}

const char *st_chat_name(const struct st_chat_format *format) {
    return format->name;
}

const char *st_chat_turn_end(const struct st_chat_format *format) {
    return format->turn_end;
}

// A piece of text without a terminator.
struct piece {
    const char *text;
    size_t n;
};

// The length in bytes of the white space character that begins text[0, n), else 0. The set is that
// of Python's strip().
static size_t blank_at(const char *text, size_t n) {
    static const char *const wide[] = {"\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80",
                                       "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf",
                                       "\xe2\x81\x9f", "\xe3\x80\x80"};
    unsigned char c = n > 0 ? (unsigned char)text[0] : 'x';
    if (c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f)) return 1;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        size_t n_wide = strlen(wide[i]);
        if (n >= n_wide && memcmp(text, wide[i], n_wide) == 0) return n_wide;
    }
    // U+2000 to U+200A
    if (n >= 3 && memcmp(text, "\xe2\x80", 2) == 0 && (unsigned char)text[2] >= 0x80 &&
        (unsigned char)text[2] <= 0x8a)
        return 3;
    return 0;
}

static struct piece trim(struct piece p) {
    size_t n_blank;
    while ((n_blank = blank_at(p.text, p.n)) > 0) {
        p.text += n_blank;
        p.n -= n_blank;
    }
    for (bool more = true; more;) {
        more = false;
        for (size_t back = 1; back <= 3 && back <= p.n && !more; back++)
            if (blank_at(p.text + p.n - back, back) == back) {
                p.n -= back;
                more = true;
            }
    }
    return p;
}

// The state while one conversation is rendered.
struct render {
    const struct st_chat_format *format;
    const stint_message *messages;
    size_t n_messages;
    char bos[64], eos[64], added_bos[64];
    FILE *out;
};

static void put(struct render *r, struct piece p) {
    if (p.n > 0) fwrite(p.text, 1, p.n, r->out);
}

// Writes a text of the format with its placeholders replaced.
static void put_format(struct render *r, const char *text) {
    for (; text != NULL && *text != 0; text++) {
        if (*text == '\1')
            fputs(r->bos, r->out);
        else if (*text == '\2')
            fputs(r->eos, r->out);
        else if (*text == '\3')
            fputs(r->added_bos, r->out);
        else
            fputc(*text, r->out);
    }
}

static struct piece whole(const char *text) {
    return (struct piece){text, strlen(text)};
}

static struct piece answer_of(const struct render *r, const char *content) {
    const char *after = r->format->answer_after, *at;
    while (after != NULL && (at = strstr(content, after)) != NULL) {
        content = at + strlen(after);
        if (strstr(content, after) == NULL) content += strspn(content, "\n");
    }
    struct piece answer = whole(content);
    return r->format->trim != ST_CHAT_TRIM_NOTHING ? trim(answer) : answer;
}

// A user message, with the system message at its beginning where `system` is not NULL.
static void put_user(struct render *r, const char *content, const char *system) {
    const struct st_chat_format *f = r->format;
    struct piece user = whole(content);
    bool folded_first = f->trim == ST_CHAT_TRIM_FOLDED && system != NULL;
    if (f->trim == ST_CHAT_TRIM || f->trim == ST_CHAT_TRIM_FOLDED) {
        struct piece trimmed = trim(user);
        // If trimming comes after folding, the message keeps its beginning, which is no longer the
        // edge.
        if (folded_first)
            user.n = (size_t)(trimmed.text - user.text) + trimmed.n;
        else
            user = trimmed;
    }
    put_format(r, f->user.prefix);
    if (system != NULL) {
        put_format(r, f->system.prefix);
        put(r, whole(system));
        put_format(r, f->system.suffix);
    }
    put(r, user);
    put_format(r, f->user.suffix);
}

static void put_system(struct render *r, const char *content) {
    put_format(r, r->format->system.prefix);
    put(r, r->format->trim == ST_CHAT_TRIM ? trim(whole(content)) : whole(content));
    put_format(r, r->format->system.suffix);
}

static bool is_role(const stint_message *message, const char *role) {
    return strcmp(message->role, role) == 0;
}

// The user message that receives the system message; n_messages if there is none.
static size_t folding_turn(const struct render *r) {
    size_t turn = r->n_messages;
    for (size_t i = 0; i < r->n_messages; i++) {
        if (!is_role(&r->messages[i], "user")) continue;
        turn = i;
        if (r->format->fold == ST_CHAT_FOLD_FIRST) break;
    }
    return turn;
}

static stint_status check(const struct render *r) {
    for (size_t i = 0; i < r->n_messages; i++) {
        const stint_message *m = &r->messages[i];
        if (m->role == NULL || m->content == NULL)
            return st_fail(STINT_E_ARG, "message %zu has no role or no content", i);
        if (!is_role(m, "system") && !is_role(m, "user") && !is_role(m, "assistant"))
            return st_fail(STINT_E_ARG,
                           "message %zu: role '%.40s' is not one of system, user, assistant", i,
                           m->role);
        if (i > 0 && is_role(m, "system") && r->format->fold != ST_CHAT_FOLD_NEVER)
            return st_fail(STINT_E_ARG,
                           "message %zu: the %s chat format takes a system message only at the "
                           "beginning",
                           i, r->format->name);
    }
    bool folds = r->n_messages > 0 && r->format->fold != ST_CHAT_FOLD_NEVER &&
                 is_role(&r->messages[0], "system");
    if (folds && folding_turn(r) == r->n_messages)
        return st_fail(STINT_E_ARG,
                       "the %s chat format puts the system message into a user message, and there "
                       "is none",
                       r->format->name);
    return STINT_OK;
}

static void put_conversation(struct render *r) {
    const struct st_chat_format *f = r->format;
    bool has_system = r->n_messages > 0 && is_role(&r->messages[0], "system");
    bool folds = has_system && f->fold != ST_CHAT_FOLD_NEVER;
    size_t turn = folds ? folding_turn(r) : r->n_messages;
    put_format(r, f->start);
    if (!has_system && f->default_system != NULL) put_system(r, f->default_system);
    for (size_t i = folds ? 1 : 0; i < r->n_messages; i++) {
        const stint_message *m = &r->messages[i];
        if (is_role(m, "system")) {
            put_system(r, m->content);
        } else if (is_role(m, "user")) {
            put_user(r, m->content, i == turn ? r->messages[0].content : NULL);
        } else {
            put_format(r, f->assistant.prefix);
            put(r, answer_of(r, m->content));
            put_format(r, f->assistant.suffix);
        }
    }
    put_format(r, f->opening);
}

// The text of a special token: empty if the tokenizer has none, `usual` without a tokenizer.
static void token_text(const struct stint_tokenizer *tokenizer, int32_t id, const char *usual,
                       char text[64]) {
    char piece[ST_PIECE_MAX_BYTES + 8];
    struct st_detokenizer state = {0};
    size_t n = 0;
    if (tokenizer == NULL) {
        snprintf(text, 64, "%s", usual);
        return;
    }
    if (id >= 0) n = st_detokenizer_push(&state, tokenizer, id, STINT_DETOKENIZE_SPECIAL, piece);
    snprintf(text, 64, "%.*s", n < 64 ? (int)n : 0, piece);
}

// BOS if the tokenizer adds it to texts by itself, else empty.
static stint_status find_added_bos(const struct stint_tokenizer *tokenizer, struct render *r) {
    struct st_ids ids = {0};
    stint_status status = STINT_OK;
    if (tokenizer != NULL)
        status = st_tokenizer_encode(tokenizer, "", 0, STINT_TOKENIZE_ADD_BOS, &ids);
    bool adds = status == STINT_OK && ids.count > 0 && ids.data[0] == st_tokenizer_bos(tokenizer);
    snprintf(r->added_bos, sizeof r->added_bos, "%s", adds ? r->bos : "");
    st_ids_free(&ids);
    return status;
}

stint_status st_chat_render(const struct st_chat_format *format,
                            const struct stint_tokenizer *tokenizer, const stint_message *messages,
                            size_t n_messages, char **text) {
    struct render r = {.format = format, .messages = messages, .n_messages = n_messages};
    ST_TRY(check(&r));
    bool has = tokenizer != NULL;
    token_text(tokenizer, has ? st_tokenizer_bos(tokenizer) : -1, "<s>", r.bos);
    token_text(tokenizer, has ? st_tokenizer_eos(tokenizer) : -1, "</s>", r.eos);
    ST_TRY(find_added_bos(tokenizer, &r));
    char *rendered = NULL;
    size_t n_rendered = 0;
    r.out = open_memstream(&rendered, &n_rendered);
    if (r.out == NULL) return st_fail(STINT_E_NOMEM, "not enough memory for the conversation");
    put_conversation(&r);
    bool failed = ferror(r.out) != 0;
    if (fclose(r.out) != 0 || failed) {
        free(rendered);
        return st_fail(STINT_E_NOMEM, "not enough memory for the conversation");
    }
    *text = rendered;
    return STINT_OK;
}
