// SPDX-License-Identifier: Apache-2.0
// Breaks text for a terminal between words, as it comes. Code blocks, tables and indented lines
// stay as they are.
#ifndef ST_CLI_WRAP_H
#define ST_CLI_WRAP_H

#include <stdbool.h>
#include <stddef.h>

// Zero-initialise at the beginning of a text.
struct st_cli_wrap {
    size_t column, n_spaces, n_word; // printed; held back with the word that they stand before
    char word[512];
    bool fenced; // between ``` and ```
    bool raw;    // this line is not to be broken
};

// Prints text[0, n) to standard output, but its last word. False if that failed.
bool st_cli_wrap_put(struct st_cli_wrap *wrap, const char *text, size_t n);
// Prints what is held back.
bool st_cli_wrap_end(struct st_cli_wrap *wrap);

#endif
