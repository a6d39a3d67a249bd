// SPDX-License-Identifier: Apache-2.0
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// No O_CREAT: a file that vanished meanwhile must not come back half written.
static stint_status open_file(const char *path, mode_t mode, struct st_output *o, int *file) {
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        *file = open(path, O_WRONLY | O_CLOEXEC);
        return *file >= 0 ? STINT_OK : st_fail(STINT_E_IO, "%s: %s", path, strerror(errno));
    }
    ST_TRY(st_temporary_open(path, mode, false, &o->temporary));
    *file = o->temporary.file;
    return STINT_OK;
}

stint_status st_output_open(const char *path, mode_t mode, struct st_output *output) {
    struct st_output o = {.path = strdup(path)};
    int file = -1;
    stint_status status = o.path ? open_file(path, mode, &o, &file)
                                 : st_fail(STINT_E_NOMEM, "%s: no memory to write it", path);
    if (status == STINT_OK && !(o.file = fdopen(file, "wb"))) {
        status = st_fail(STINT_E_IO, "%s: %s", path, strerror(errno));
        close(file);
    }
    if (status == STINT_OK) {
        *output = o;
        return STINT_OK;
    }
    st_temporary_drop(&o.temporary);
    free(o.path);
    return status;
}

static stint_status finish(struct st_output *o) {
    bool failed = ferror(o->file) != 0;
    if (fflush(o->file) != 0 || (o->temporary.path && fsync(fileno(o->file)) != 0))
        return st_fail(STINT_E_IO, "%s: %s", o->path, strerror(errno));
    if (failed) return st_fail(STINT_E_IO, "%s: a part of it could not be written", o->path);
    return o->temporary.path ? st_temporary_keep(&o->temporary) : STINT_OK;
}

stint_status st_output_close(struct st_output *output, bool keep) {
    stint_status status = output->file && keep ? finish(output) : STINT_OK;
    if (output->file) fclose(output->file);
    st_temporary_drop(&output->temporary);
    free(output->path);
    *output = (struct st_output){0};
    return status;
}
