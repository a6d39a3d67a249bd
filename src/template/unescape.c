// SPDX-License-Identifier: Apache-2.0
// String literals: the escapes of Python.
#include "template/parse.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

// Reads at most `max` digits of text[0, n) in this base. Returns how many; *value is the number.
static size_t read_digits(const char *text, size_t n, int base, size_t max, uint32_t *value) {
    static const char digits[] = "0123456789abcdef";
    size_t i = 0;
    *value = 0;
    for (; i < n && i < max; i++) {
        char c = text[i] >= 'A' && text[i] <= 'F' ? (char)(text[i] | 32) : text[i];
        const char *at = c ? strchr(digits, c) : NULL;
        if (!at || at - digits >= base) break;
        *value = *value * (uint32_t)base + (uint32_t)(at - digits);
    }
    return i;
}

// The length of \x, \u, \U or octal after the backslash; 0 for any other escape.
static size_t read_code(const char *text, size_t n, uint32_t *c) {
    size_t wanted = text[0] == 'x' ? 2 : text[0] == 'u' ? 4 : text[0] == 'U' ? 8 : 0;
    if (wanted) return read_digits(text + 1, n - 1, 16, wanted, c) == wanted ? wanted + 1 : 0;
    return read_digits(text, n, 8, 3, c);
}

stint_status st_jinja_unescape(struct st_jinja_pool *pool, uint32_t line, struct st_jinja_text text,
                               struct st_jinja_text *out) {
    static const char names[] = "\\'\"abfnrtv", values[] = "\\'\"\a\b\f\n\r\t\v";
    void *taken;
    if (!text.n || !memchr(text.data, '\\', text.n)) {
        *out = text;
        return STINT_OK;
    }
    ST_TRY(st_jinja_take(pool, text.n * 2,
                         &taken)); // \200 becomes two bytes; no escape becomes longer
    char *copy = taken;
    size_t n = 0;
    for (size_t i = 0; i < text.n;) {
        if (text.data[i] != '\\' || i + 1 == text.n) {
            copy[n++] = text.data[i++];
            continue;
        }
        uint32_t c = 0;
        char name = text.data[i + 1];
        const char *known = name ? strchr(names, name) : NULL;
        size_t n_code = known ? 0 : read_code(text.data + i + 1, text.n - i - 1, &c);
        bool invalid = !known && !n_code && name && strchr("xuUN", name);
        if (invalid || (n_code && !utf8proc_codepoint_valid((utf8proc_int32_t)c)))
            return st_fail(STINT_E_UNSUPPORTED,
                           "line %u: the escape '\\%c' in a string is not supported", line, name);
        if (known)
            copy[n++] = values[known - names];
        else if (n_code)
            n += (size_t)utf8proc_encode_char((utf8proc_int32_t)c, (utf8proc_uint8_t *)copy + n);
        else if (name != '\n') // a newline is dropped with its backslash
            copy[n++] = '\\';
        i += known || name == '\n' ? 2 : n_code + 1;
    }
    *out = (struct st_jinja_text){copy, n};
    return STINT_OK;
}
