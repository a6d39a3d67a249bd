// SPDX-License-Identifier: Apache-2.0
#include "cli/line.h"

#include "cli/edit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char quotes[] = "\"\"\"";
enum { N_QUOTES = sizeof quotes - 1 };

struct st_cli_line {
    bool interactive;
    struct st_cli_edit *edit; // NULL: no line editing
    char *plain;              // the last line without editing
    size_t plain_capacity;
    char *text; // the result of the last read
    size_t length, capacity;
};

struct st_cli_line *st_cli_line_open(st_cli_word_fn *word) {
    struct st_cli_line *line = calloc(1, sizeof *line);
    if (line == NULL) return NULL;
    line->interactive = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (line->interactive) line->edit = st_cli_edit_open(word);
    return line;
}

bool st_cli_line_interactive(const struct st_cli_line *line) {
    return line->interactive;
}

static bool append(struct st_cli_line *line, const char *text, size_t n) {
    if (line->length + n + 1 > line->capacity) {
        size_t capacity = 2 * (line->length + n + 1);
        char *grown = realloc(line->text, capacity);
        if (grown == NULL) return false;
        line->text = grown;
        line->capacity = capacity;
    }
    memcpy(line->text + line->length, text, n);
    line->length += n;
    line->text[line->length] = 0;
    return true;
}

// Appends one line.
static enum st_cli_line_end read_one(struct st_cli_line *line, bool continued) {
    const char *text;
    size_t n;
    if (line->edit != NULL) {
        enum st_cli_line_end end = st_cli_edit_read(line->edit, continued, &text, &n);
        if (end != ST_CLI_LINE_TEXT) return end;
    } else {
        if (line->interactive) fputs(continued ? ". " : "> ", stdout);
        fflush(stdout);
        ssize_t got = getline(&line->plain, &line->plain_capacity, stdin);
        if (got < 0) return feof(stdin) ? ST_CLI_LINE_END : ST_CLI_LINE_FAILED;
        text = line->plain;
        n = strlen(text);
        if (n > 0 && text[n - 1] == '\n') n--;
    }
    return append(line, text, n) ? ST_CLI_LINE_TEXT : ST_CLI_LINE_FAILED;
}

static bool ends_with(const struct st_cli_line *line, size_t from, const char *ending) {
    size_t n = strlen(ending);
    return line->length >= from + n && strcmp(line->text + line->length - n, ending) == 0;
}

// Whether the message goes on with the next line; removes the marks that say so.
static bool goes_on(struct st_cli_line *line, bool quoted) {
    if (quoted) {
        if (!ends_with(line, N_QUOTES, quotes)) return append(line, "\n", 1);
        line->length -= N_QUOTES;
        line->text[line->length] = 0;
        return false;
    }
    if (!line->interactive || !ends_with(line, 0, "\\")) return false;
    line->text[line->length - 1] = '\n';
    return true;
}

enum st_cli_line_end st_cli_line_read(struct st_cli_line *line, const char **text) {
    line->length = 0;
    enum st_cli_line_end end = read_one(line, false);
    bool quoted = end == ST_CLI_LINE_TEXT && strncmp(line->text, quotes, N_QUOTES) == 0;
    while (end == ST_CLI_LINE_TEXT && goes_on(line, quoted)) end = read_one(line, true);
    if (end == ST_CLI_LINE_TEXT && line->edit != NULL) st_cli_edit_remember(line->edit, line->text);
    *text = line->text != NULL && quoted ? line->text + N_QUOTES : line->text;
    return end;
}

void st_cli_line_close(struct st_cli_line *line) {
    if (line == NULL) return;
    st_cli_edit_close(line->edit);
    free(line->plain);
    free(line->text);
    free(line);
}
