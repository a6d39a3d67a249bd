// SPDX-License-Identifier: Apache-2.0
// Line input by libedit. The history is kept in $XDG_STATE_HOME/stint/history, by default under
// ~/.local/state; without a home there is none.
#include "cli/line.h"

#include "cli/output.h"

#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

enum { HISTORY_LINES = 1000 };

struct st_cli_line {
    bool interactive, continued;
    EditLine *edit; // NULL: no line editing
    History *history;
    char *history_path; // NULL: none
    char *text;         // the result of the last read
    size_t capacity;
};

static volatile sig_atomic_t interrupted;
// SIGINT is blocked while a line is read, except during waits for a key, so none is lost.
static sigset_t waiting_mask;

static void on_interrupt(int number) {
    (void)number;
    interrupted = 1;
}

// Reads one character for libedit. Ctrl-C ends the line here, while libedit's own reader continues.
static int read_character(EditLine *edit, wchar_t *character) {
    (void)edit;
    mbstate_t state = {0};
    for (;;) {
        char byte;
        struct pollfd key = {.fd = STDIN_FILENO, .events = POLLIN};
        if (ppoll(&key, 1, NULL, &waiting_mask) < 0 && errno == EINTR && !interrupted) continue;
        if (interrupted || read(STDIN_FILENO, &byte, 1) <= 0) return 0;
        size_t used = mbrtowc(character, &byte, 1, &state);
        if (used == 0 || used == 1) return 1;
        if (used == (size_t)-1) memset(&state, 0, sizeof state); // not a character: drop it
    }
}

static char *prompt(EditLine *edit) {
    static char text[40];
    struct st_cli_line *line;
    el_get(edit, EL_CLIENTDATA, &line);
    snprintf(text, sizeof text, "\1%s\1%s\1%s\1", st_cli_style(stdout, ST_CLI_ACCENT),
             line->continued ? ". " : "> ", st_cli_style(stdout, ST_CLI_PLAIN));
    return text;
}

// Makes the folders of `path`, accessible only to their owner.
static void make_folders(char *path) {
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
}

static char *find_history(void) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char *path = NULL;
    int n = -1;
    if (state != NULL && state[0] == '/')
        n = asprintf(&path, "%s/stint/history", state);
    else if (home != NULL && home[0] == '/')
        n = asprintf(&path, "%s/.local/state/stint/history", home);
    return n < 0 ? NULL : path;
}

static void open_editor(struct st_cli_line *line) {
    if (setlocale(LC_CTYPE, "") == NULL || strcmp(setlocale(LC_CTYPE, NULL), "C") == 0)
        setlocale(LC_CTYPE, "C.UTF-8");
    HistEvent event;
    line->history = history_init();
    line->edit = el_init("stint", stdin, stdout, stderr);
    if (line->edit == NULL || line->history == NULL) return;
    history(line->history, &event, H_SETSIZE, HISTORY_LINES);
    history(line->history, &event, H_SETUNIQUE, 1);
    line->history_path = find_history();
    if (line->history_path != NULL) history(line->history, &event, H_LOAD, line->history_path);
    el_set(line->edit, EL_CLIENTDATA, line);
    el_set(line->edit, EL_PROMPT_ESC, prompt, '\1');
    el_set(line->edit, EL_EDITOR, "emacs");
    el_set(line->edit, EL_HIST, history, line->history);
    el_set(line->edit, EL_GETCFN, read_character);
    el_set(line->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
}

struct st_cli_line *st_cli_line_open(void) {
    struct st_cli_line *line = calloc(1, sizeof *line);
    if (line == NULL) return NULL;
    line->interactive = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (line->interactive) open_editor(line);
    return line;
}

bool st_cli_line_interactive(const struct st_cli_line *line) {
    return line->interactive;
}

static bool append(struct st_cli_line *line, size_t length, const char *text, size_t n) {
    if (length + n + 1 > line->capacity) {
        char *grown = realloc(line->text, 2 * (length + n + 1));
        if (grown == NULL) return false;
        line->text = grown;
        line->capacity = 2 * (length + n + 1);
    }
    memcpy(line->text + length, text, n);
    line->text[length + n] = 0;
    return true;
}

static enum st_cli_line_end read_edited(struct st_cli_line *line) {
    size_t length = 0;
    for (line->continued = false;; line->continued = true) {
        int n = 0;
        // This comes before the prompt: a Ctrl-D in between would go to the terminal, not to the
        // editor.
        el_set(line->edit, EL_PREP_TERM, 1);
        const char *text = el_gets(line->edit, &n);
        if (interrupted) {
            fputs("^C\n", stdout);
            el_reset(line->edit);
            return ST_CLI_LINE_INTERRUPTED;
        }
        if (text == NULL || n <= 0) return ST_CLI_LINE_END;
        size_t n_text = strcspn(text, "\r\n");
        bool more = n_text > 0 && text[n_text - 1] == '\\';
        if (!append(line, length, text, n_text)) return ST_CLI_LINE_END;
        length += n_text;
        if (!more) return ST_CLI_LINE_TEXT;
        line->text[length - 1] = '\n';
    }
}

static enum st_cli_line_end read_plain(struct st_cli_line *line) {
    ssize_t n = getline(&line->text, &line->capacity, stdin);
    if (n < 0) return ST_CLI_LINE_END;
    if (n > 0 && line->text[n - 1] == '\n') line->text[n - 1] = 0;
    return ST_CLI_LINE_TEXT;
}

enum st_cli_line_end st_cli_line_read(struct st_cli_line *line, const char **text) {
    enum st_cli_line_end end;
    if (line->edit != NULL) {
        struct sigaction action = {0}, before;
        sigset_t held;
        action.sa_handler = on_interrupt;
        interrupted = 0;
        sigemptyset(&held);
        sigaddset(&held, SIGINT);
        sigprocmask(SIG_BLOCK, &held, &waiting_mask);
        sigaction(SIGINT, &action, &before);
        end = read_edited(line);
        sigprocmask(SIG_SETMASK, &waiting_mask, NULL);
        sigaction(SIGINT, &before, NULL);
        HistEvent event;
        if (end == ST_CLI_LINE_TEXT && line->text[0] != 0 && strchr(line->text, '\n') == NULL)
            history(line->history, &event, H_ENTER, line->text);
    } else {
        end = read_plain(line);
    }
    *text = line->text;
    return end;
}

void st_cli_line_close(struct st_cli_line *line) {
    if (line == NULL) return;
    HistEvent event;
    if (line->edit != NULL) el_end(line->edit);
    if (line->history != NULL && line->history_path != NULL) {
        make_folders(line->history_path);
        history(line->history, &event, H_SAVE, line->history_path);
    }
    if (line->history != NULL) history_end(line->history);
    free(line->history_path);
    free(line->text);
    free(line);
}
