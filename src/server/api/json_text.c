// SPDX-License-Identifier: Apache-2.0
#include "server/api/json_text.h"

#include "base/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void st_json_rawn(struct st_json_text *out, const char *text, size_t n) {
    if (!out->failed && st_bytes_append(&out->bytes, text, n) != STINT_OK) out->failed = true;
}

void st_json_raw(struct st_json_text *out, const char *text) {
    st_json_rawn(out, text, strlen(text));
}

void st_json_format(struct st_json_text *out, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (n < 0 || (size_t)n >= sizeof text)
        out->failed = true;
    else
        st_json_rawn(out, text, (size_t)n);
}

// Characters that JSON requires to be escaped: quote, backslash, control characters.
static void escape(struct st_json_text *out, unsigned char c) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *at = c != 0 ? strchr(from, c) : NULL;
    if (at != NULL)
        st_json_rawn(out, (char[]){'\\', to[at - from]}, 2);
    else
        st_json_format(out, "\\u%04x", c);
}

void st_json_quote(struct st_json_text *out, const char *text, size_t n) {
    size_t plain = 0; // of text[0, i), written so far
    st_json_rawn(out, "\"", 1);
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)text[i];
        size_t length = c < 0x80 ? 1 : st_utf8_length(text + i, n - i);
        if (length > 0 && c >= 0x20 && c != '"' && c != '\\') {
            i += length;
            continue;
        }
        st_json_rawn(out, text + plain, i - plain);
        if (length == 0)
            st_json_raw(out, "\xef\xbf\xbd");
        else
            escape(out, c);
        i += length > 0 ? 1 : st_utf8_broken(text + i, n - i);
        plain = i;
    }
    st_json_rawn(out, text + plain, n - plain);
    st_json_rawn(out, "\"", 1);
}

void st_json_string_of(struct st_json_text *out, const char *text) {
    if (text == NULL)
        st_json_raw(out, "null");
    else
        st_json_quote(out, text, strlen(text));
}

void st_json_real(struct st_json_text *out, double value) {
    if (isfinite(value))
        st_json_format(out, "%.9g", value);
    else
        st_json_raw(out, "null");
}
