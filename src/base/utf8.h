// SPDX-License-Identifier: Apache-2.0
// UTF-8, one character at a time.
#ifndef ST_BASE_UTF8_H
#define ST_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

// Bytes of the well-formed sequence that begins text[0, n); 0 if there is none (n == 0 included).
size_t st_utf8_length(const char *text, size_t n);

// The bytes of a broken sequence that one U+FFFD replaces: the longest prefix of a well-formed
// sequence, at least 1 (Unicode 15, section 3.9, "maximal subpart"). pre: n > 0 and st_utf8_length
// is 0.
size_t st_utf8_broken(const char *text, size_t n);

// True if text[0, n) could become a well-formed sequence with more bytes.
int st_utf8_unfinished(const char *text, size_t n);

// The character of a well-formed sequence of n bytes.
uint32_t st_utf8_decode(const char *text, size_t n);

// Unicode's White_Space.
int st_utf8_is_space(uint32_t c);

#endif
