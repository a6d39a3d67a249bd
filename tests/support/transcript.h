// SPDX-License-Identifier: Apache-2.0
// An answer of the bundled model, token by token, for tests of what is told of it.
#ifndef TESTS_SUPPORT_TRANSCRIPT_H
#define TESTS_SUPPORT_TRANSCRIPT_H

#include "generate/transcript.h"

extern stint_tokenizer *ts_tokenizer; // between the two functions below

int ts_open_tokenizer(void **state); // a group's set-up and tear-down
int ts_close_tokenizer(void **state);

// The ids of a text of at most 32 tokens; returns their number.
size_t ts_encode(const char *text, int32_t ids[32]);

// Adds a token with two alternatives, and the text that has become certain with it.
void ts_take(struct st_transcript *transcript, int32_t id, const char *certain);

#endif
