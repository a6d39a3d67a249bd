// SPDX-License-Identifier: Apache-2.0
#include "cli/wrap.h"

#include "cli/output.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

static size_t terminal_width(void) {
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : 80;
}

static size_t width_of(const char *text, size_t n) {
    mbstate_t state = {0};
    size_t columns = 0;
    while (n > 0) {
        wchar_t c;
        size_t used = mbrtowc(&c, text, n, &state);
        if (used == 0 || used > n) return columns + n; // not UTF-8: a column for each byte
        int width = wcwidth(c);
        columns += width > 0 ? (size_t)width : 0;
        text += used;
        n -= used;
    }
    return columns;
}

// The line's beginning says whether it may be broken.
static void begin_line(struct st_cli_wrap *w) {
    bool fence = w->n_word >= 3 && memcmp(w->word, "```", 3) == 0;
    if (fence) w->fenced = !w->fenced;
    w->raw = w->fenced || fence || w->n_spaces >= 4 || w->word[0] == '|';
}

bool st_cli_wrap_end(struct st_cli_wrap *w) {
    size_t width = width_of(w->word, w->n_word);
    if (w->column == 0 && w->n_word > 0) begin_line(w);
    bool breaks = !w->raw && w->column > 0 && w->n_word > 0 &&
                  w->column + w->n_spaces + width > terminal_width();
    bool ok = true;
    if (breaks) {
        ok = st_cli_write("\n", 1);
        w->column = w->n_spaces = 0;
    }
    for (; ok && w->n_spaces > 0; w->n_spaces--, w->column++) ok = st_cli_write(" ", 1);
    ok = ok && st_cli_write(w->word, w->n_word);
    w->column += width;
    w->n_word = 0;
    return ok;
}

bool st_cli_wrap_put(struct st_cli_wrap *w, const char *text, size_t n) {
    for (const char *c = text; c < text + n; c++) {
        bool ends_word = *c == ' ' || *c == '\n';
        if ((ends_word || w->n_word == sizeof w->word) && w->n_word > 0 && !st_cli_wrap_end(w))
            return false;
        if (*c == '\n') {
            w->column = w->n_spaces = 0;
            w->raw = false;
            if (!st_cli_write("\n", 1)) return false;
        } else if (*c == ' ') {
            w->n_spaces++;
        } else {
            w->word[w->n_word++] = *c;
        }
    }
    return true;
}
