// SPDX-License-Identifier: Apache-2.0
#include "cli/file.h"

#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static bool open_failed(struct st_cli_writer *writer, const char *path) {
    st_cli_error(writer->command, "%s: %s", path, strerror(errno));
    free(writer->temporary);
    *writer = (struct st_cli_writer){0};
    return false;
}

bool st_cli_writer_open(struct st_cli_writer *writer, const char *command, const char *path) {
    *writer = (struct st_cli_writer){.command = command, .path = path};
    struct stat info;
    bool straight = stat(path, &info) == 0 && !S_ISREG(info.st_mode);
    if (!straight && asprintf(&writer->temporary, "%s.%ld.tmp", path, (long)getpid()) < 0) {
        writer->temporary = NULL;
        return open_failed(writer, path);
    }
    const char *name = straight ? path : writer->temporary;
    int flags = O_WRONLY | O_CLOEXEC | (straight ? 0 : O_CREAT | O_EXCL);
    int fd = open(name, flags, 0666);
    if (fd < 0) return open_failed(writer, path);
    writer->file = fdopen(fd, "wb");
    if (writer->file == NULL) {
        close(fd);
        return open_failed(writer, path);
    }
    return true;
}

bool st_cli_writer_put(struct st_cli_writer *writer, const void *data, size_t n_bytes) {
    if (fwrite(data, 1, n_bytes, writer->file) == n_bytes) return true;
    st_cli_error(writer->command, "%s: %s", writer->path, strerror(errno));
    return false;
}

bool st_cli_writer_close(struct st_cli_writer *writer, bool keep) {
    if (writer->file == NULL) return true;
    bool ok = fflush(writer->file) == 0;
    if (ok && keep && writer->temporary != NULL) ok = fsync(fileno(writer->file)) == 0;
    if (fclose(writer->file) != 0) ok = false;
    if (ok && keep && writer->temporary != NULL) ok = rename(writer->temporary, writer->path) == 0;
    if (!ok && keep) st_cli_error(writer->command, "%s: %s", writer->path, strerror(errno));
    if ((!ok || !keep) && writer->temporary != NULL) unlink(writer->temporary);
    free(writer->temporary);
    *writer = (struct st_cli_writer){0};
    return ok;
}
