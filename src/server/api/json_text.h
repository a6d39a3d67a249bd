// SPDX-License-Identifier: Apache-2.0
// JSON as it is written, piece by piece. jansson builds a tree before it writes, which for an
// answer with the log-probabilities of all its tokens is a hundred times the text; requests are
// read with it.
#ifndef ST_SERVER_JSON_TEXT_H
#define ST_SERVER_JSON_TEXT_H

#include "base/buffer.h"

// Zero-initialise; free with st_bytes_free(&x.bytes). After a failed growth nothing is appended any
// more: one look at `failed` at the end is enough.
struct st_json_text {
    struct st_bytes bytes;
    bool failed;
};

void st_json_raw(struct st_json_text *out, const char *text);
void st_json_rawn(struct st_json_text *out, const char *text, size_t n);
void st_json_format(struct st_json_text *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// In quotes and escaped; bytes that are no UTF-8 become U+FFFD.
void st_json_quote(struct st_json_text *out, const char *text, size_t n);
void st_json_string_of(struct st_json_text *out, const char *text); // null for NULL
// Finite with few digits; what JSON cannot hold is null.
void st_json_real(struct st_json_text *out, double value);

#endif
