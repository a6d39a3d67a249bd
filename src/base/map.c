// SPDX-License-Identifier: Apache-2.0
// The mapping alone keeps a file open.
#include "base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static stint_status map_file(const char *path, int file, struct st_map *map) {
    struct stat info;
    if (fstat(file, &info) != 0) return st_fail(STINT_E_IO, "%s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode)) return st_fail(STINT_E_IO, "%s: is a directory, not a file", path);
    if (!S_ISREG(info.st_mode)) return st_fail(STINT_E_IO, "%s: is not a regular file", path);
    struct st_map out = {.bytes = (size_t)info.st_size};
    if (out.bytes > 0) {
        void *data = mmap(NULL, out.bytes, PROT_READ, MAP_PRIVATE, file, 0);
        if (data == MAP_FAILED)
            return st_fail(STINT_E_IO, "%s: cannot be mapped: %s", path, strerror(errno));
        out.data = data;
    }
    *map = out;
    return STINT_OK;
}

stint_status st_map_open_file(const char *path, struct st_map *map, int *file) {
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a FIFO must not block
    if (opened < 0) return st_fail(STINT_E_IO, "%s: %s", path, strerror(errno));
    stint_status status = map_file(path, opened, map);
    if (status == STINT_OK)
        *file = opened;
    else
        close(opened);
    return status;
}

stint_status st_map_open(const char *path, struct st_map *map) {
    int file;
    ST_TRY(st_map_open_file(path, map, &file));
    close(file);
    return STINT_OK;
}

void st_map_close(struct st_map *map) {
    if (map->data) munmap((void *)map->data, map->bytes);
    *map = (struct st_map){0};
}

void st_map_scatter(const struct st_map *map) {
    if (map->data) madvise((void *)map->data, map->bytes, MADV_RANDOM);
}

void st_map_forget(const void *data, size_t bytes) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)data + page - 1) / page * page;
    uintptr_t to = ((uintptr_t)data + bytes) / page * page;
    if (from < to) madvise((void *)from, to - from, MADV_DONTNEED);
}
