// SPDX-License-Identifier: Apache-2.0
// Writes JSON piece by piece. jansson, which reads the requests, builds a tree before it writes.
// For an answer with the log-probabilities of all its tokens, that tree is a hundred times as large
// as the text.
#ifndef ST_SERVER_JSON_TEXT_H
#define ST_SERVER_JSON_TEXT_H

#include "base/buffer.h"

// Zero-initialise; free with st_bytes_free(&x.bytes). After a failed growth nothing more is
// appended, so checking `failed` once at the end is enough.
struct st_json_text {
    struct st_bytes bytes;
    bool failed;
};

void st_json_raw(struct st_json_text *out, const char *text);
void st_json_rawn(struct st_json_text *out, const char *text, size_t n);
void st_json_format(struct st_json_text *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// A quoted and escaped string; bytes that are not UTF-8 become U+FFFD.
void st_json_quote(struct st_json_text *out, const char *text, size_t n);
void st_json_string_of(struct st_json_text *out, const char *text); // null for NULL
// A number with few digits; null if it is not finite.
void st_json_real(struct st_json_text *out, double value);

#endif
