// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include "cli/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// The errno of the first write to standard output that failed, 0 if none.
static int lost;

void st_cli_error(const char *command, const char *format, ...) {
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    // Names from files may contain anything, but must not control the terminal.
    for (char *c = text; *c != 0; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
    fflush(stdout);
    const char *separator = command == NULL ? "" : ": ";
    fprintf(stderr, "stint: %s%s%s\n", command == NULL ? "" : command, separator, text);
}

bool st_cli_write(const char *text, size_t n_bytes) {
    if (lost != 0) return false;
    errno = 0;
    if (n_bytes > 0) fwrite(text, 1, n_bytes, stdout);
    if (fflush(stdout) != 0 || ferror(stdout)) lost = errno != 0 ? errno : EIO;
    return lost == 0;
}

bool st_cli_print_json(const char *command, json_t *object) {
    char *text = json_dumps(object, JSON_REAL_PRECISION(9));
    json_decref(object);
    if (text == NULL) {
        st_cli_error(command, "the result could not be written as JSON");
        return false;
    }
    bool ok = st_cli_write(text, strlen(text)) && st_cli_write("\n", 1);
    free(text);
    return ok;
}

int st_cli_finish(const char *command, int status) {
    st_cli_write("", 0);
    if (lost == 0) return status;
    if (lost == EPIPE)
        st_cli_error(command, "standard output was closed by its reader");
    else
        st_cli_error(command, "standard output: %s", strerror(lost));
    return status == ST_CLI_USAGE ? status : ST_CLI_FAILED;
}

const char *st_cli_style(FILE *stream, enum st_cli_style style) {
    static const char *const codes[] = {
        "\033[0m",  "\033[1m",  "\033[2m",  "\033[36m", "\033[31m", "\033[33m",
        "\033[32m", "\033[36m", "\033[34m", "\033[35m", "\033[0m",
    };
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if (no_color != NULL && *no_color != 0) return "";
    if (term == NULL || strcmp(term, "dumb") == 0 || !isatty(fileno(stream))) return "";
    return codes[style];
}

const char *st_cli_size(uint64_t bytes, char buf[ST_CLI_SIZE_BYTES]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1023.95 && unit + 1 < sizeof units / sizeof units[0]; unit++) value /= 1024;
    snprintf(buf, ST_CLI_SIZE_BYTES, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return buf;
}

void st_cli_title(const char *title) {
    printf("%s%s%s\n", st_cli_style(stdout, ST_CLI_BOLD), title,
           st_cli_style(stdout, ST_CLI_PLAIN));
}

void st_cli_row(const char *label, const char *format, ...) {
    printf("  %-20s ", label);
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

double st_cli_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
