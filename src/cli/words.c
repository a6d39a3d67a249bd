// SPDX-License-Identifier: Apache-2.0
#include "cli/words.h"

#include <stdlib.h>
#include <string.h>

static char *without_blanks(char *word) {
    word += strspn(word, " ");
    size_t n = strlen(word);
    while (n > 0 && word[n - 1] == ' ') word[--n] = 0;
    return word;
}

bool st_cli_words_split(const char *text, struct st_cli_words *words) {
    *words = (struct st_cli_words){.text = strdup(text)};
    char *rest = words->text;
    for (char *word; words->text != NULL && (word = strsep(&rest, ",")) != NULL;) {
        word = without_blanks(word);
        if (*word == 0) continue;
        if (words->n == ST_CLI_WORDS_MAX) {
            st_cli_words_free(words);
            break;
        }
        words->at[words->n++] = word;
    }
    return words->text != NULL;
}

void st_cli_words_one(const char *word, struct st_cli_words *words) {
    *words = (struct st_cli_words){.at = {word}, .n = 1};
}

void st_cli_words_free(struct st_cli_words *words) {
    free(words->text);
    *words = (struct st_cli_words){0};
}
