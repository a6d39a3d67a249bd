// SPDX-License-Identifier: Apache-2.0
#ifndef ST_TESTS_SUPPORT_CALLS_H
#define ST_TESTS_SUPPORT_CALLS_H

#include <stddef.h>

enum { TS_CALLS_TEXT = 2048 };

// The calls in answer[0, n) of a model with this chat template (NULL: none), as name(arguments) one
// after the other, then | and the content. tools: OpenAI's array as JSON.
void ts_calls(const char *chat_template, const char *tools, const char *answer, size_t n,
              char text[TS_CALLS_TEXT]);

// Up to 29 of the pieces, one behind the other, in memory of exactly *bytes, so that a sanitizer
// sees what is read behind it. The caller frees it.
char *ts_random_pieces(const char *const *pieces, size_t n_pieces, size_t *bytes);

#endif
