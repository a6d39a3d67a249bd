// SPDX-License-Identifier: Apache-2.0
// Lines, and records of separated values (RFC 4180).
#include "eval/items.h"

#include <stdlib.h>
#include <string.h>

stint_status st_lines_open(const char *path, struct st_lines *lines) {
    *lines = (struct st_lines){.path = path};
    return st_map_open(path, &lines->map);
}

void st_lines_close(struct st_lines *lines) {
    st_map_close(&lines->map);
}

bool st_lines_next(struct st_lines *lines, const char **line, size_t *n) {
    if (lines->at >= lines->map.bytes) return false;
    const char *begin = (const char *)lines->map.data + lines->at;
    size_t left = lines->map.bytes - lines->at;
    const char *end = memchr(begin, '\n', left);
    size_t length = end ? (size_t)(end - begin) : left;
    lines->at += length + (end != NULL);
    lines->number++;
    *line = begin;
    *n = length && begin[length - 1] == '\r' ? length - 1 : length;
    return true;
}

stint_status st_lines_fail(const struct st_lines *lines, const char *text) {
    return st_fail(STINT_E_FORMAT, "%s: line %zu: %s", lines->path, lines->number, text);
}

// Reads one field from lines->at. *end is the byte after it: a separator, a line end or 0.
static stint_status take_field(struct st_lines *l, char separator, char *out, size_t *n,
                               char *end) {
    const char *data = (const char *)l->map.data;
    bool quoted = l->at < l->map.bytes && data[l->at] == '"';
    *n = 0;
    l->at += quoted;
    for (; l->at < l->map.bytes; l->at++) {
        char c = data[l->at];
        l->number += quoted && c == '\n';
        if (quoted && c == '"') {
            if (l->at + 1 >= l->map.bytes || data[l->at + 1] != '"') {
                quoted = false;
                continue;
            }
            l->at++;
        } else if (!quoted && (c == separator || c == '\n')) {
            break;
        }
        out[(*n)++] = c;
    }
    if (quoted) return st_lines_fail(l, "a quoted field has no end");
    *end = l->at < l->map.bytes ? data[l->at++] : 0;
    if (*end != separator && *n && out[*n - 1] == '\r') --*n;
    return STINT_OK;
}

stint_status st_lines_record(struct st_lines *lines, char separator, char **fields, size_t max,
                             size_t *n) {
    *n = 0;
    if (lines->at >= lines->map.bytes) return STINT_OK;
    lines->number++;
    char *scratch = malloc(lines->map.bytes - lines->at + 1), end = separator;
    if (!scratch) return st_fail(STINT_E_NOMEM, "%s: no memory for a line", lines->path);
    stint_status status = STINT_OK;
    while (end == separator && status == STINT_OK) {
        size_t bytes = 0;
        if (*n == max)
            status = st_lines_fail(lines, "has too many fields");
        else
            status = take_field(lines, separator, scratch, &bytes, &end);
        if (status == STINT_OK && !(fields[(*n)++] = strndup(scratch, bytes)))
            status = st_fail(STINT_E_NOMEM, "%s: no memory for a line", lines->path);
    }
    free(scratch);
    if (status == STINT_OK) return STINT_OK;
    while (*n) free(fields[--*n]);
    return status;
}
