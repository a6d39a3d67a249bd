// SPDX-License-Identifier: Apache-2.0
// Tokens of a template. Text outside the tags loses the newline and blanks that a tag removes.
// All newlines become \n first, and one at the template's end is dropped, as in Jinja2.
#include "template/parse.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_BRACKETS = 100 };

struct lexer {
    struct st_jinja_pool *pool;
    const char *text;
    size_t n, at;
    uint32_t line;
    size_t counted; // newlines before this offset are in `line`
    bool line_starts;
    struct st_jinja_token *tokens;
    size_t n_tokens, capacity;
    char brackets[MAX_BRACKETS]; // closing counterparts of the open brackets
    size_t n_brackets;
};

static uint32_t line_at(struct lexer *l, size_t place) {
    for (; l->counted < place; l->counted++) l->line += l->text[l->counted] == '\n';
    return l->line;
}

static stint_status add(struct lexer *l, enum st_jinja_token_kind kind, size_t begin, size_t end) {
    ST_TRY(st_grow((void **)&l->tokens, &l->capacity, l->n_tokens, 1, sizeof *l->tokens));
    l->tokens[l->n_tokens++] = (struct st_jinja_token){
        .kind = (uint8_t)kind, .line = line_at(l, begin), .text = {l->text + begin, end - begin}};
    return STINT_OK;
}

static char peek(const struct lexer *l, size_t ahead) {
    return l->at + ahead < l->n ? l->text[l->at + ahead] : 0;
}

// White space of Python's \s and strip().
static size_t blank_at(const char *text, size_t n) {
    size_t length = st_utf8_length(text, n);
    if (length == 0) return 0;
    uint32_t c = st_utf8_decode(text, length);
    return st_utf8_is_space(c) || (c >= 0x1c && c <= 0x1f) ? length : 0;
}

static size_t after_blanks(const struct lexer *l, size_t at) {
    for (size_t n; (n = blank_at(l->text + at, l->n - at));) at += n;
    return at;
}

// The end of text[begin, end) without trailing blanks.
static size_t before_blanks(const struct lexer *l, size_t begin, size_t end) {
    size_t last = begin;
    for (size_t i = begin; i < end;) {
        size_t n = blank_at(l->text + i, end - i);
        if (n == 0) {
            n = st_utf8_length(l->text + i, end - i);
            last = i + n;
        }
        i += n;
    }
    return last;
}

// The text before a tag that begins at `end`, without the blanks that the tag removes.
static stint_status add_text(struct lexer *l, size_t begin, size_t end, char sign, bool lstrip) {
    size_t stop = end;
    if (sign == '-') {
        stop = before_blanks(l, begin, end);
    } else if (sign != '+' && lstrip) {
        size_t start = end;
        while (start > begin && l->text[start - 1] != '\n') start--;
        bool starts_line = start > begin || l->line_starts;
        if (starts_line && before_blanks(l, start, end) == start) stop = start;
    }
    return stop > begin ? add(l, ST_JINJA_T_TEXT, begin, stop) : STINT_OK;
}

// Skips the two characters that end a tag, and the white space that the tag removes.
static void pass_end(struct lexer *l, char sign, bool trim_newline) {
    l->at += sign ? 3 : 2;
    if (sign == '-')
        l->at = after_blanks(l, l->at);
    else if (!sign && trim_newline && peek(l, 0) == '\n')
        l->at++;
    l->line_starts = l->text[l->at - 1] == '\n';
}

static stint_status skip_comment(struct lexer *l, size_t begin) {
    const char *end = memmem(l->text + l->at, l->n - l->at, "#}", 2);
    if (!end) return st_fail(STINT_E_FORMAT, "line %u: a comment does not end", line_at(l, begin));
    size_t stop = (size_t)(end - l->text);
    char sign = stop > l->at && strchr("+-", l->text[stop - 1]) ? l->text[stop - 1] : 0;
    l->at = sign ? stop - 1 : stop;
    pass_end(l, sign, true);
    return STINT_OK;
}

// The offset after the tag {% word %} at `at`, which may have signs; 0 if it is another tag.
static size_t word_tag(const struct lexer *l, size_t at, const char *word, char *first_sign,
                       char *last_sign) {
    size_t n = strlen(word);
    if (l->n - at < 2 || memcmp(l->text + at, "{%", 2) != 0) return 0;
    at += 2;
    *first_sign = at < l->n && strchr("+-", l->text[at]) ? l->text[at] : 0;
    at = after_blanks(l, at + (*first_sign != 0));
    if (l->n - at < n || memcmp(l->text + at, word, n) != 0) return 0;
    at = after_blanks(l, at + n);
    *last_sign = at < l->n && strchr("+-", l->text[at]) ? l->text[at] : 0;
    at += *last_sign != 0;
    return l->n - at >= 2 && memcmp(l->text + at, "%}", 2) == 0 ? at + 2 : 0;
}

// {% raw %} text {% endraw %}; l->at is after the first tag.
static stint_status lex_raw(struct lexer *l, size_t begin, char sign) {
    if (sign == '-') l->at = after_blanks(l, l->at);
    for (size_t at = l->at; at < l->n; at++) {
        char first, last;
        size_t behind = word_tag(l, at, "endraw", &first, &last);
        if (!behind) continue;
        ST_TRY(add_text(l, l->at, at, first, true));
        l->at = behind - 2 - (last != 0);
        pass_end(l, last, true);
        return STINT_OK;
    }
    return st_fail(STINT_E_FORMAT, "line %u: 'raw' does not end", line_at(l, begin));
}

// ---- inside of a tag

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t digits_at(const struct lexer *l, size_t at) {
    size_t begin = at;
    while (at < l->n && (is_digit(l->text[at]) || (l->text[at] == '_' && at > begin))) at++;
    return at - begin;
}

static stint_status lex_number(struct lexer *l) {
    char digits[64];
    size_t begin = l->at, end = begin + digits_at(l, begin), n = 0;
    bool real = false, after_dot = begin > 0 && l->text[begin - 1] == '.';
    if (!after_dot && end < l->n && l->text[end] == '.' && digits_at(l, end + 1)) {
        end += 1 + digits_at(l, end + 1);
        real = true;
    }
    if (!after_dot && end < l->n && (l->text[end] | 32) == 'e') {
        size_t sign = end + 1 < l->n && strchr("+-", l->text[end + 1]) ? 1 : 0;
        size_t n_power = digits_at(l, end + 1 + sign);
        if (n_power) end += 1 + sign + n_power;
        real = real || n_power > 0;
    }
    ST_TRY(add(l, real ? ST_JINJA_T_FLOAT : ST_JINJA_T_INT, begin, end));
    struct st_jinja_token *token = &l->tokens[l->n_tokens - 1];
    for (size_t i = begin; i < end; i++) {
        if (n + 1 == sizeof digits)
            return st_fail(STINT_E_UNSUPPORTED, "line %u: the number is too long", token->line);
        if (l->text[i] != '_') digits[n++] = l->text[i];
    }
    digits[n] = 0;
    l->at = end;
    if (real) {
        token->real = strtod(digits, NULL);
    } else {
        if (n > 18)
            return st_fail(STINT_E_UNSUPPORTED, "line %u: the number is too long", token->line);
        token->integer = strtoll(digits, NULL, 10);
    }
    bool prefixed =
        !real && n == 1 && digits[0] == '0' && l->at < l->n && strchr("xXbBoO", l->text[l->at]);
    if (!prefixed) return STINT_OK;
    return st_fail(STINT_E_UNSUPPORTED, "line %u: a number that is not decimal is not supported",
                   token->line);
}

static stint_status lex_string(struct lexer *l) {
    char quote = l->text[l->at];
    size_t begin = l->at + 1, end = begin;
    while (end < l->n && l->text[end] != quote) end += l->text[end] == '\\' ? 2 : 1;
    if (end >= l->n)
        return st_fail(STINT_E_FORMAT, "line %u: a string does not end", line_at(l, l->at));
    ST_TRY(add(l, ST_JINJA_T_STRING, begin, end));
    struct st_jinja_token *token = &l->tokens[l->n_tokens - 1];
    l->at = end + 1;
    return st_jinja_unescape(l->pool, token->line, token->text, &token->text);
}

static stint_status match_bracket(struct lexer *l, char c) {
    const char *open = strchr("([{", c);
    if (open && l->n_brackets == MAX_BRACKETS)
        return st_fail(STINT_E_LIMIT, "line %u: more than %d open brackets", line_at(l, l->at),
                       MAX_BRACKETS);
    if (open) l->brackets[l->n_brackets++] = ")]}"[open - "([{"];
    if (!open && (l->n_brackets == 0 || l->brackets[--l->n_brackets] != c))
        return st_fail(STINT_E_FORMAT, "line %u: '%c' without its opening", line_at(l, l->at), c);
    return STINT_OK;
}

static stint_status lex_operator(struct lexer *l) {
    static const char pairs[] = "// ** == != >= <= ", singles[] = "+-/*%~[](){}><=.:|,;";
    char c = peek(l, 0);
    const char pair[] = {c, peek(l, 1), ' ', 0};
    bool two = pair[1] && pair[1] != ' ' && c != ' ' && strstr(pairs, pair);
    if (!two && !strchr(singles, c))
        return st_fail(STINT_E_FORMAT, "line %u: unexpected character '%.1s'", line_at(l, l->at),
                       (unsigned char)c < 0x80 ? &c : "?");
    if (!two && strchr("([{)]}", c)) ST_TRY(match_bracket(l, c));
    ST_TRY(add(l, ST_JINJA_T_OPERATOR, l->at, l->at + (two ? 2 : 1)));
    l->tokens[l->n_tokens - 1].op = (uint16_t)ST_JINJA_OP(c, two ? pair[1] : 0);
    l->at += two ? 2 : 1;
    return STINT_OK;
}

static stint_status lex_word(struct lexer *l) {
    char c = peek(l, 0);
    if (is_digit(c)) return lex_number(l);
    if (c == '"' || c == '\'') return lex_string(l);
    if (!is_letter(c)) return lex_operator(l);
    size_t begin = l->at;
    while (l->at < l->n && (is_letter(l->text[l->at]) || is_digit(l->text[l->at]))) l->at++;
    return add(l, ST_JINJA_T_NAME, begin, l->at);
}

// The sign before the end of this tag, 0 for none, -1 if the tag does not end here.
static int end_here(const struct lexer *l, bool print) {
    char c = peek(l, 0), last = print ? '}' : '%';
    if (l->n_brackets) return -1;
    if (c == last && peek(l, 1) == '}') return 0;
    bool sign = c == '-' || (c == '+' && !print);
    return sign && peek(l, 1) == last && peek(l, 2) == '}' ? c : -1;
}

static stint_status lex_tag(struct lexer *l, size_t begin, bool print) {
    ST_TRY(add(l, print ? ST_JINJA_T_PRINT_BEGIN : ST_JINJA_T_BLOCK_BEGIN, begin, l->at));
    l->n_brackets = 0;
    for (;;) {
        l->at = after_blanks(l, l->at);
        if (l->at >= l->n)
            return st_fail(STINT_E_FORMAT, "line %u: a tag does not end", line_at(l, l->n));
        int sign = end_here(l, print);
        if (sign >= 0) {
            ST_TRY(add(l, print ? ST_JINJA_T_PRINT_END : ST_JINJA_T_BLOCK_END, l->at, l->at));
            pass_end(l, (char)sign, !print);
            return STINT_OK;
        }
        ST_TRY(lex_word(l));
    }
}

// The offset of the next tag; l->n if there is none.
static size_t next_tag(const struct lexer *l) {
    size_t at = l->at;
    for (; at < l->n; at++) {
        const char *brace = memchr(l->text + at, '{', l->n - at);
        at = brace ? (size_t)(brace - l->text) : l->n;
        if (at + 1 < l->n && strchr("{%#", l->text[at + 1])) break;
    }
    return at < l->n ? at : l->n;
}

static stint_status lex_all(struct lexer *l) {
    while (l->at < l->n) {
        size_t begin = l->at, tag = next_tag(l);
        if (tag == l->n) {
            ST_TRY(add(l, ST_JINJA_T_TEXT, begin, tag));
            break;
        }
        char kind = l->text[tag + 1], sign = tag + 2 < l->n ? l->text[tag + 2] : 0, last;
        if (sign != '-' && sign != '+') sign = 0;
        size_t behind_raw = kind == '%' ? word_tag(l, tag, "raw", &sign, &last) : 0;
        if (behind_raw && last == '+') behind_raw = 0;
        ST_TRY(add_text(l, begin, tag, sign, kind != '{'));
        l->at = behind_raw ? behind_raw : tag + (sign ? 3 : 2);
        l->line_starts = false;
        if (behind_raw)
            ST_TRY(lex_raw(l, tag, last));
        else if (kind == '#')
            ST_TRY(skip_comment(l, tag));
        else
            ST_TRY(lex_tag(l, tag, kind == '{'));
    }
    return add(l, ST_JINJA_T_END, l->n, l->n);
}

// \r\n and \r become \n.
static stint_status copy_source(struct lexer *l, const char *source, size_t n) {
    void *taken;
    ST_TRY(st_jinja_take(l->pool, n + 1, &taken));
    char *copy = taken;
    for (size_t i = 0; i < n; i++) {
        bool return_newline = source[i] == '\r' && i + 1 < n && source[i + 1] == '\n';
        if (!return_newline) copy[l->n++] = source[i] == '\r' ? '\n' : source[i];
    }
    if (l->n && copy[l->n - 1] == '\n') l->n--;
    l->text = copy;
    return STINT_OK;
}

stint_status st_jinja_lex(struct st_jinja_pool *pool, const char *source, size_t n,
                          struct st_jinja_token **tokens) {
    struct lexer l = {.pool = pool, .line = 1, .line_starts = true};
    stint_status status = copy_source(&l, source, n);
    if (status == STINT_OK) status = lex_all(&l);
    if (status != STINT_OK) {
        free(l.tokens);
        return status;
    }
    *tokens = l.tokens;
    return STINT_OK;
}
