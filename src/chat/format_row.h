// SPDX-License-Identifier: Apache-2.0
// A row of the table of chat formats. It is separate from the renderer: a format is only data.
#ifndef ST_CHAT_FORMAT_ROW_H
#define ST_CHAT_FORMAT_ROW_H

#include "chat/formats.h"

enum st_chat_trim {
    ST_CHAT_TRIM_NOTHING,
    ST_CHAT_TRIM,        // every message, before a system message is folded in
    ST_CHAT_TRIM_FOLDED, // every message, after it
    ST_CHAT_TRIM_ANSWER  // the assistant's messages alone
};

enum st_chat_fold {
    ST_CHAT_FOLD_NEVER, // the system message is a turn of its own
    ST_CHAT_FOLD_FIRST, // it begins the first user message
    ST_CHAT_FOLD_LAST   // it begins the last user message
};

// The text around a message. In texts \1 is BOS, \2 is EOS, \3 is BOS if the tokenizer adds one.
struct st_chat_turn {
    const char *prefix, *suffix;
};

struct st_chat_format {
    const char *name;
    const char *marks[3];       // all occur in the checkpoint's template
    const char *start;          // before everything; NULL: nothing
    const char *default_system; // system message where the conversation has none; NULL: none
    enum st_chat_trim trim;
    enum st_chat_fold fold;
    struct st_chat_turn system, user, assistant;
    const char *answer_after; // earlier answers are cut up to the last of these; NULL: not cut
    const char *opening;      // of the assistant's turn; NULL: nothing
    const char *turn_end;     // its token ends the answer; NULL: EOS alone
};

extern const struct st_chat_format st_chat_formats[]; // the last one, raw, has no marks
extern const size_t st_chat_n_formats;

#endif
