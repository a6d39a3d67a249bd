// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include "cli/output.h"

#include <stdio.h>
#include <unistd.h>

enum { BAR_WIDTH = 28 };
static const double show_after = 1.0, redraw_every = 0.1;

static void draw(const char *what, double share, double elapsed) {
    char bar[BAR_WIDTH + 1];
    int filled = (int)(share * BAR_WIDTH);
    for (int i = 0; i < BAR_WIDTH; i++) bar[i] = i < filled ? '#' : '.';
    bar[BAR_WIDTH] = 0;
    double left = share > 0 ? elapsed / share - elapsed : 0;
    fprintf(stderr, "\r%.24s [%s] %3.0f %%  %.0f s left \033[K", what, bar, 100 * share, left);
    fflush(stderr);
}

void st_cli_progress_show(void *context, const char *what, uint64_t done, uint64_t total) {
    struct st_cli_progress *progress = context;
    if (total == 0 || done >= total) {
        st_cli_progress_end(progress);
        return;
    }
    double now = st_cli_seconds();
    if (progress->begun == 0) progress->begun = now;
    double elapsed = now - progress->begun;
    if (elapsed < show_after || now - progress->drawn < redraw_every) return;
    if (!isatty(STDERR_FILENO)) return;
    draw(what, (double)done / (double)total, elapsed);
    progress->drawn = now;
    progress->visible = true;
}

void st_cli_progress_end(struct st_cli_progress *progress) {
    if (progress->visible) fputs("\r\033[K", stderr);
    *progress = (struct st_cli_progress){0};
}
