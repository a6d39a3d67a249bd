// SPDX-License-Identifier: Apache-2.0
// Finds where an answer's reasoning ends and the text for the reader begins. Reasoning models write
// <think> ... </think> first, or only the end of it if their template has opened it.
#ifndef ST_CHAT_REASONING_H
#define ST_CHAT_REASONING_H

#include <stdbool.h>
#include <stddef.h>

#define ST_REASONING_OPEN  "<think>"
#define ST_REASONING_CLOSE "</think>"

// A mark of a family's own, a token, and the text that it is read as.
struct st_renamed_mark {
    const char *token, *as;
    const char *title; // written behind it, and part of the mark; or NULL
};
// Those in answers of a chat template, up to one whose token is NULL; NULL: there are none.
const struct st_renamed_mark *st_reasoning_renamed(const char *chat_template);
// The mark that a token's text is; NULL: it is none of them. marks: NULL or of the above.
const struct st_renamed_mark *st_reasoning_rename(const struct st_renamed_mark *marks,
                                                  const char *text, size_t n);
// Takes the beginning of text[0, n) that goes on with *title, which is NULL once it has ended or
// something else has come; returns how many bytes that is.
size_t st_reasoning_title(const char **title, const char *text, size_t n);

enum st_reasoning_phase {
    ST_REASONING_NONE,   // everything is answer
    ST_REASONING_BEFORE, // it is not known yet whether the text begins with the mark
    ST_REASONING_INSIDE,
    ST_REASONING_BEHIND, // in the blanks after it
    ST_REASONING_OVER,   // in the answer
};

// Positions are byte offsets in the text. Blanks around the reasoning belong neither to it nor to
// the answer.
struct st_reasoning {
    enum st_reasoning_phase
        phase;       // the caller sets the first phase; everything else begins as zero
    size_t n;        // bytes seen
    size_t n_mark;   // the last bytes seen that may begin a mark
    bool begun;      // the reasoning has a character
    size_t from, to; // the reasoning as far as it is certain
    size_t answer;   // in OVER: where the answer begins
};

// Processes bytes[0, n); the text may be cut anywhere.
void st_reasoning_push(struct st_reasoning *reasoning, const char *bytes, size_t n);
// Ends the text: a possible beginning of a mark was ordinary text.
void st_reasoning_end(struct st_reasoning *reasoning);

// The number of bytes at the start of the text, at most n, that certainly do not belong to the
// answer.
size_t st_reasoning_before_answer(const struct st_reasoning *reasoning, size_t n);

#endif
