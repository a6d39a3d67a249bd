// SPDX-License-Identifier: Apache-2.0
// The history is kept in $XDG_STATE_HOME/stint/history, by default under ~/.local/state; without a
// home there is none.
#include "cli/edit.h"

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

enum { HISTORY_LINES = 1000, PASTE_MAX = 1 << 20 };

struct st_cli_edit {
    EditLine *edit;
    History *history;
    char *history_path; // NULL: none
    st_cli_word_fn *word;
    bool continued;
};

static volatile sig_atomic_t interrupted, resized;
// Both signals are blocked while a line is read, except during waits for a key, so none is lost.
static sigset_t waiting_mask;

static void on_interrupt(int number) {
    (void)number;
    interrupted = 1;
}

static void on_resize(int number) {
    (void)number;
    resized = 1;
}

// Waits for a key; false: Ctrl-C.
static bool wait_for_key(EditLine *edit) {
    struct pollfd key = {.fd = STDIN_FILENO, .events = POLLIN};
    while (ppoll(&key, 1, NULL, &waiting_mask) < 0 && errno == EINTR && !interrupted) {
        if (!resized) continue;
        resized = 0;
        el_resize(edit);
        el_set(edit, EL_REFRESH);
    }
    return !interrupted;
}

// Reads one character for libedit. Ctrl-C ends the line here, while libedit's own reader continues.
static int read_character(EditLine *edit, wchar_t *character) {
    mbstate_t state = {0};
    for (;;) {
        char byte;
        if (!wait_for_key(edit) || read(STDIN_FILENO, &byte, 1) <= 0) return 0;
        size_t used = mbrtowc(character, &byte, 1, &state);
        if (used == 0 || used == 1) return 1;
        if (used == (size_t)-1) memset(&state, 0, sizeof state); // not a character: drop it
    }
}

// ---- Pasted text stands between ESC [ 200 ~ and ESC [ 201 ~

static const wchar_t paste_end[] = L"\033[201~";

// Line ends as one newline each, without those at the end; no other control characters than tabs.
static size_t clean(wchar_t *text, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        wchar_t c = text[i] == L'\r' ? L'\n' : text[i];
        if (c >= 0x20 || c == L'\n' || c == L'\t') text[kept++] = c;
    }
    while (kept > 0 && text[kept - 1] == L'\n') kept--;
    text[kept] = 0;
    return kept;
}

static unsigned char paste(EditLine *edit, int key) {
    (void)key;
    size_t n = 0, capacity = 256, n_end = wcslen(paste_end);
    wchar_t *text = malloc(capacity * sizeof *text);
    while (text != NULL) {
        if (read_character(edit, &text[n]) <= 0) break;
        n++;
        if (n >= n_end && wmemcmp(text + n - n_end, paste_end, n_end) == 0) {
            n -= n_end;
            break;
        }
        if (n == PASTE_MAX) n = n_end; // not kept, but read to its end
        if (n + 1 < capacity) continue;
        wchar_t *grown = realloc(text, 2 * capacity * sizeof *text);
        if (grown == NULL) break;
        text = grown;
        capacity *= 2;
    }
    int status = text != NULL && clean(text, n) > 0 ? el_winsertstr(edit, text) : 0;
    free(text);
    return status < 0 ? CC_ERROR : CC_REFRESH;
}

// ---- Completion

static bool fits(const char *word, const char *begin, size_t n) {
    return strncmp(word, begin, n) == 0;
}

static void show_words(st_cli_word_fn *word, const char *begin, size_t n) {
    const char *w;
    fputs("\n", stdout);
    for (size_t i = 0; (w = word(i)) != NULL; i++)
        if (fits(w, begin, n)) printf("/%s  ", w);
    fputs("\n", stdout);
}

// Completes the word after the slash that begins a line, as far as it is certain.
static unsigned char complete(EditLine *edit, int key) {
    struct st_cli_edit *e;
    (void)key;
    el_get(edit, EL_CLIENTDATA, &e);
    const LineInfo *line = el_line(edit);
    size_t n = (size_t)(line->cursor - line->buffer);
    if (n == 0 || line->buffer[0] != '/' || memchr(line->buffer, ' ', n) != NULL) return CC_ERROR;
    const char *begin = line->buffer + 1, *first = NULL, *w;
    size_t common = 0, matches = 0;
    n--;
    for (size_t i = 0; (w = e->word(i)) != NULL; i++) {
        if (!fits(w, begin, n)) continue;
        if (matches++ == 0) {
            first = w;
            common = strlen(w);
        }
        while (!fits(w, first, common)) common--;
    }
    if (matches == 0) return CC_ERROR;
    if (matches > 1 && common == n) {
        show_words(e->word, begin, n);
        return CC_REDISPLAY;
    }
    char rest[64];
    snprintf(rest, sizeof rest, "%.*s%s", (int)(common - n), first + n, matches == 1 ? " " : "");
    return el_insertstr(edit, rest) < 0 ? CC_ERROR : CC_REFRESH;
}

// ---- Opening and reading

static char *prompt(EditLine *edit) {
    static char text[40];
    struct st_cli_edit *e;
    el_get(edit, EL_CLIENTDATA, &e);
    snprintf(text, sizeof text, "\1%s\1%s\1%s\1", st_cli_style(stdout, ST_CLI_ACCENT),
             e->continued ? ". " : "> ", st_cli_style(stdout, ST_CLI_PLAIN));
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

static void set_up(struct st_cli_edit *e) {
    HistEvent event;
    history(e->history, &event, H_SETSIZE, HISTORY_LINES);
    history(e->history, &event, H_SETUNIQUE, 1);
    e->history_path = find_history();
    if (e->history_path != NULL) {
        make_folders(e->history_path);
        history(e->history, &event, H_LOAD, e->history_path);
    }
    el_set(e->edit, EL_CLIENTDATA, e);
    el_set(e->edit, EL_PROMPT_ESC, prompt, '\1');
    el_set(e->edit, EL_EDITOR, "emacs");
    el_set(e->edit, EL_HIST, history, e->history);
    el_set(e->edit, EL_GETCFN, read_character);
    el_set(e->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_set(e->edit, EL_ADDFN, "st-paste", "Insert what the terminal pastes", paste);
    el_set(e->edit, EL_BIND, "\033[200~", "st-paste", NULL);
    el_set(e->edit, EL_ADDFN, "st-complete", "Complete a command", complete);
    el_set(e->edit, EL_BIND, "^I", "st-complete", NULL);
}

struct st_cli_edit *st_cli_edit_open(st_cli_word_fn *word) {
    struct st_cli_edit *e = calloc(1, sizeof *e);
    if (e == NULL) return NULL;
    if (setlocale(LC_CTYPE, "") == NULL || strcmp(setlocale(LC_CTYPE, NULL), "C") == 0)
        setlocale(LC_CTYPE, "C.UTF-8");
    e->word = word;
    e->history = history_init();
    e->edit = el_init("stint", stdin, stdout, stderr);
    if (e->edit == NULL || e->history == NULL) {
        st_cli_edit_close(e);
        return NULL;
    }
    set_up(e);
    return e;
}

static enum st_cli_line_end read_line(struct st_cli_edit *e, const char **text, size_t *n) {
    int length = 0;
    // This comes before the prompt: a Ctrl-D in between would go to the terminal, not to the
    // editor.
    el_set(e->edit, EL_PREP_TERM, 1);
    fputs("\033[?2004h", stdout); // pastes come marked
    *text = el_gets(e->edit, &length);
    fputs("\033[?2004l", stdout);
    if (interrupted) {
        fputs("^C\n", stdout);
        el_reset(e->edit);
        return ST_CLI_LINE_INTERRUPTED;
    }
    if (*text == NULL || length <= 0) return ST_CLI_LINE_END;
    *n = (size_t)length;
    if ((*text)[*n - 1] == '\n') --*n;
    return ST_CLI_LINE_TEXT;
}

enum st_cli_line_end st_cli_edit_read(struct st_cli_edit *e, bool continued, const char **text,
                                      size_t *n) {
    struct sigaction interrupt = {0}, resize = {0}, before[2];
    sigset_t held;
    interrupt.sa_handler = on_interrupt;
    resize.sa_handler = on_resize;
    e->continued = continued;
    interrupted = 0;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGWINCH);
    sigprocmask(SIG_BLOCK, &held, &waiting_mask);
    sigaction(SIGINT, &interrupt, &before[0]);
    sigaction(SIGWINCH, &resize, &before[1]);
    el_resize(e->edit); // the window may have changed during the answer
    enum st_cli_line_end end = read_line(e, text, n);
    sigprocmask(SIG_SETMASK, &waiting_mask, NULL);
    sigaction(SIGINT, &before[0], NULL);
    sigaction(SIGWINCH, &before[1], NULL);
    return end;
}

void st_cli_edit_remember(struct st_cli_edit *e, const char *text) {
    HistEvent event;
    if (*text == 0) return;
    history(e->history, &event, H_ENTER, text);
    if (e->history_path != NULL) history(e->history, &event, H_SAVE, e->history_path);
}

void st_cli_edit_close(struct st_cli_edit *e) {
    if (e == NULL) return;
    if (e->edit != NULL) el_end(e->edit);
    if (e->history != NULL) history_end(e->history);
    free(e->history_path);
    free(e);
}
