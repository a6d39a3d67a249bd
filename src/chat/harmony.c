// SPDX-License-Identifier: Apache-2.0
#include "chat/harmony.h"

#include "chat/reasoning.h"

#include <string.h>

bool st_harmony_is_spoken(const char *chat_template) {
    return chat_template && strstr(chat_template, "<|channel|>") &&
           strstr(chat_template, "<|message|>") && strstr(chat_template, "<|start|>");
}

static bool is(const char *text, size_t n, const char *mark) {
    return strlen(mark) == n && memcmp(text, mark, n) == 0;
}

static size_t put(char *to, const char *text, size_t n) {
    memcpy(to, text, n);
    return n;
}

// Texts between special tokens of a header are kept apart.
static void extend(struct st_harmony *h, const char *text, size_t n) {
    for (size_t i = 0; i < n && h->n < ST_HARMONY_HEADER; i++) h->header[h->n++] = text[i];
    h->header[h->n] = 0;
}

static void begin_header(struct st_harmony *h) {
    h->part = ST_HARMONY_IN_HEADER;
    h->n = 0;
    h->header[0] = 0;
}

// Behind a header: what its message is.
static size_t begin_message(struct st_harmony *h, char *to) {
    static const char open[] = ST_REASONING_OPEN, call[] = "<tool_call>",
                      functions[] = "functions.";
    const char *recipient = strstr(h->header, "to=");
    h->part = ST_HARMONY_TEXT;
    if (recipient) {
        recipient += 3;
        if (strncmp(recipient, functions, sizeof functions - 1) == 0)
            recipient += sizeof functions - 1;
        size_t n = put(to, call, sizeof call - 1);
        h->told = true;
        return n + put(to + n, recipient, strcspn(recipient, " <\t\n"));
    }
    if (!strstr(h->header, "analysis")) return 0;
    h->part = h->told ? ST_HARMONY_SILENT : ST_HARMONY_THINKS;
    return h->told ? 0 : put(to, open, sizeof open - 1);
}

static size_t end_message(struct st_harmony *h, char *to) {
    static const char close[] = ST_REASONING_CLOSE;
    bool thinks = h->part == ST_HARMONY_THINKS;
    h->part = ST_HARMONY_TEXT;
    h->told = h->told || thinks;
    return thinks ? put(to, close, sizeof close - 1) : 0;
}

size_t st_harmony_push(struct st_harmony *h, const char *text, size_t n, char *to) {
    if (is(text, n, "<|end|>") || is(text, n, "<|return|>") || is(text, n, "<|call|>"))
        return end_message(h, to);
    if (is(text, n, "<|start|>")) {
        size_t ended = end_message(h, to);
        begin_header(h);
        return ended;
    }
    if (is(text, n, "<|channel|>") && h->part == ST_HARMONY_TEXT) begin_header(h);
    if (is(text, n, "<|channel|>") || is(text, n, "<|constrain|>")) {
        extend(h, " ", 1);
        return 0;
    }
    if (is(text, n, "<|message|>") && h->part == ST_HARMONY_IN_HEADER) return begin_message(h, to);
    if (h->part == ST_HARMONY_IN_HEADER) extend(h, text, n);
    if (h->part == ST_HARMONY_IN_HEADER || h->part == ST_HARMONY_SILENT) return 0;
    h->told = h->told || h->part == ST_HARMONY_TEXT;
    return put(to, text, n);
}
