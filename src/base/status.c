// SPDX-License-Identifier: Apache-2.0
// One record per thread. Texts are built aside first: an argument may point into the old record.
// They may quote names from files: a text stays one line and no terminal obeys it.
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct st_error last;

static const struct {
    stint_status status;
    const char *sentence;
} sentences[] = {
#define X(id, value, sentence) {STINT_##id, sentence},
    STINT_STATUS_LIST(X)
#undef X
};

static void replace_controls(char *text) {
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
}

stint_status st_fail(stint_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    struct st_error error = {.status = status};
    vsnprintf(error.text, sizeof error.text, format, arguments);
    va_end(arguments);
    replace_controls(error.text);
    last = error;
    return status;
}

stint_status st_fail_prefix(const char *format, ...) {
    struct st_error error = {.status = last.status};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error.text, sizeof error.text, format, arguments);
    va_end(arguments);
    size_t used = strlen(error.text);
    snprintf(error.text + used, sizeof error.text - used, "%s", last.text);
    replace_controls(error.text);
    last = error;
    return last.status;
}

const char *st_error_text(void) {
    return last.text;
}

void st_error_save(struct st_error *error) {
    *error = last;
}

stint_status st_error_restore(const struct st_error *error) {
    last = *error;
    return last.status;
}

const char *stint_status_text(stint_status status) {
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++)
        if (sentences[i].status == status) return sentences[i].sentence;
    return "unknown status";
}

const char *stint_error_text(void) {
    return last.text;
}

size_t stint_error_copy(char *buf, size_t n) {
    size_t length = strlen(last.text);
    if (n > 0) {
        size_t copied = length < n ? length : n - 1;
        memcpy(buf, last.text, copied);
        buf[copied] = 0;
    }
    return length;
}

const char *stint_version(void) {
    return STINT_VERSION;
}
