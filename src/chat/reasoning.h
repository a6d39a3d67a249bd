// SPDX-License-Identifier: Apache-2.0
// Where an answer's reasoning ends and what is meant for the reader begins: models that think aloud
// write <think> ... </think> first, or only the end of it where their template has opened it.
#ifndef ST_CHAT_REASONING_H
#define ST_CHAT_REASONING_H

#include <stdbool.h>
#include <stddef.h>

#define ST_REASONING_OPEN  "<think>"
#define ST_REASONING_CLOSE "</think>"

enum st_reasoning_phase {
    ST_REASONING_NONE,   // all is answer
    ST_REASONING_BEFORE, // it is not told yet whether the text begins with the mark
    ST_REASONING_INSIDE,
    ST_REASONING_BEHIND, // the blanks behind it
    ST_REASONING_OVER,   // in the answer
};

// Places are bytes of the text from its beginning on. Blanks around the reasoning belong to
// nothing.
struct st_reasoning {
    enum st_reasoning_phase phase; // set the first one; the rest begins as zero
    size_t n;                      // bytes that were seen
    size_t n_mark;                 // the last ones that begin a mark
    bool begun;                    // the reasoning has a character
    size_t from, to;               // the reasoning as far as it is certain
    size_t answer;                 // in OVER: where the answer begins
};

// Goes on by bytes[0, n), cut anywhere.
void st_reasoning_push(struct st_reasoning *reasoning, const char *bytes, size_t n);
// The text is over: what may have begun a mark did not.
void st_reasoning_end(struct st_reasoning *reasoning);

// Bytes [0, n) of the text that belong to no answer for certain; n where none of it does.
size_t st_reasoning_before_answer(const struct st_reasoning *reasoning, size_t n);

#endif
