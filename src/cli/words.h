// SPDX-License-Identifier: Apache-2.0
// A list of words with commas between them, as one option gives it.
#ifndef ST_CLI_WORDS_H
#define ST_CLI_WORDS_H

#include <stdbool.h>
#include <stddef.h>

enum { ST_CLI_WORDS_MAX = 32 };

struct st_cli_words {
    char *text; // owned
    const char *at[ST_CLI_WORDS_MAX];
    size_t n;
};

// Splits a copy of `text`; blanks around words and empty words are left out. False without memory
// or with more than ST_CLI_WORDS_MAX words.
bool st_cli_words_split(const char *text, struct st_cli_words *words);
// One word as it stands, borrowed; NULL is a word too.
void st_cli_words_one(const char *word, struct st_cli_words *words);
void st_cli_words_free(struct st_cli_words *words);

#endif
