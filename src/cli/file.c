// SPDX-License-Identifier: Apache-2.0
#include "cli/file.h"

#include "cli/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static char *read_stream(const char *command, const char *path, FILE *file, size_t max,
                         size_t *n_bytes) {
    size_t capacity = 4096, n = 0;
    char *data = malloc(capacity);
    while (data != NULL) {
        n += fread(data + n, 1, capacity - n - 1, file);
        if (ferror(file)) {
            st_cli_error(command, "%s: %s", path, strerror(errno));
            break;
        }
        if (n > max) {
            st_cli_error(command, "%s: longer than %zu bytes", path, max);
            break;
        }
        if (feof(file)) {
            data[n] = 0;
            *n_bytes = n;
            return data;
        }
        char *grown = n + 1 < capacity ? data : realloc(data, capacity *= 2);
        if (grown == NULL) {
            st_cli_error(command, "%s: not enough memory for %zu bytes", path, capacity);
            break;
        }
        data = grown;
    }
    free(data);
    return NULL;
}

char *st_cli_read_all(const char *command, const char *path, size_t max, size_t *n_bytes) {
    if (strcmp(path, "-") == 0) return read_stream(command, "standard input", stdin, max, n_bytes);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        st_cli_error(command, "%s: %s", path, strerror(errno));
        return NULL;
    }
    char *data = read_stream(command, path, file, max, n_bytes);
    fclose(file);
    return data;
}

static bool failed(const struct st_cli_writer *writer) {
    st_cli_error(writer->command, "%s", stint_error_text());
    return false;
}

bool st_cli_writer_open(struct st_cli_writer *writer, const char *command, const char *path) {
    *writer = (struct st_cli_writer){.command = command};
    return st_output_open(path, 0666, &writer->output) == STINT_OK || failed(writer);
}

bool st_cli_writer_put(struct st_cli_writer *writer, const void *data, size_t n_bytes) {
    if (fwrite(data, 1, n_bytes, writer->output.file) == n_bytes) return true;
    st_cli_error(writer->command, "%s: %s", writer->output.path, strerror(errno));
    return false;
}

bool st_cli_writer_close(struct st_cli_writer *writer, bool keep) {
    return st_output_close(&writer->output, keep) == STINT_OK || failed(writer);
}
