// SPDX-License-Identifier: Apache-2.0
// The mapping alone keeps a file open.
#include "base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static stint_status open_regular(const char *path, int *file, size_t *bytes) {
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a FIFO must not block
    struct stat info;
    if (opened < 0) return st_fail(STINT_E_IO, "%s: %s", path, strerror(errno));
    const char *why = NULL;
    if (fstat(opened, &info) != 0)
        why = strerror(errno);
    else if (S_ISDIR(info.st_mode))
        why = "is a directory, not a file";
    else if (!S_ISREG(info.st_mode))
        why = "is not a regular file";
    if (why) {
        close(opened);
        return st_fail(STINT_E_IO, "%s: %s", path, why);
    }
    *file = opened;
    *bytes = (size_t)info.st_size;
    return STINT_OK;
}

static stint_status map_file(const char *path, int file, size_t bytes, int protection, int flags,
                             struct st_map *map) {
    struct st_map out = {.bytes = bytes};
    if (bytes > 0) {
        void *data = mmap(NULL, bytes, protection, flags, file, 0);
        if (data == MAP_FAILED)
            return st_fail(STINT_E_IO, "%s: cannot be mapped: %s", path, strerror(errno));
        out.data = data;
        // Linux then reads a file of 2 MiB and more in pages of that size, where the file system
        // can.
        madvise(data, bytes, MADV_HUGEPAGE);
    }
    *map = out;
    return STINT_OK;
}

stint_status st_map_open_file(const char *path, struct st_map *map, int *file) {
    int opened;
    size_t bytes;
    ST_TRY(open_regular(path, &opened, &bytes));
    stint_status status = map_file(path, opened, bytes, PROT_READ, MAP_PRIVATE, map);
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

static stint_status read_all(const char *path, int file, const struct st_map *map) {
    for (size_t done = 0; done < map->bytes;) {
        ssize_t n = pread(file, (char *)map->data + done, map->bytes - done, (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return st_fail(STINT_E_IO, "%s: %s", path, strerror(errno));
        if (n == 0) return st_fail(STINT_E_IO, "%s: was cut while it was read", path);
        done += (size_t)n;
    }
    return STINT_OK;
}

// In a file without a name, since st_map_forget() may be called on any map.
static stint_status copy_file(const char *path, int file, size_t bytes, struct st_map *map) {
    struct st_map copy = {0};
    int memory = memfd_create("stint", MFD_CLOEXEC);
    if (memory < 0 || ftruncate(memory, (off_t)bytes) != 0) {
        stint_status failed = st_fail(STINT_E_NOMEM, "%s: no memory for its %zu bytes: %s", path,
                                      bytes, strerror(errno));
        if (memory >= 0) close(memory);
        return failed;
    }
    stint_status status = map_file(path, memory, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, &copy);
    close(memory);
    if (status == STINT_OK) status = read_all(path, file, &copy);
    if (status == STINT_OK)
        *map = copy;
    else
        st_map_close(&copy);
    return status;
}

stint_status st_map_copy(const char *path, uint64_t most, struct st_map *map) {
    int file;
    size_t bytes;
    ST_TRY(open_regular(path, &file, &bytes));
    stint_status status = bytes > most
                              ? st_fail(STINT_E_LIMIT, "%s: has %zu bytes; at most %llu are read",
                                        path, bytes, (unsigned long long)most)
                              : copy_file(path, file, bytes, map);
    close(file);
    return status;
}

void st_map_close(struct st_map *map) {
    if (map->data) munmap((void *)map->data, map->bytes);
    *map = (struct st_map){0};
}

static bool fits_half_of_memory(size_t bytes) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 && (uint64_t)pages * (uint64_t)page / 2 >= bytes;
}

void st_map_renew(const char *path, stint_progress_fn *progress, void *progress_context) {
    static const size_t page = 4096, told = 16 << 20; // bytes
    struct st_map map;
    int file;
    if (st_map_open_file(path, &map, &file) != STINT_OK) return;
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    size_t bytes = fits_half_of_memory(map.bytes) ? map.bytes : 0;
    for (size_t at = 0; at < bytes; at += page) {
        (void)*(const volatile unsigned char *)&map.data[at];
        if (at == 0 || at % told != 0) continue;
        st_map_forget(map.data + at - told, told); // they stay in memory, but do not count as ours
        if (progress) progress(progress_context, "reading", at, bytes);
    }
    if (progress && bytes > 0) progress(progress_context, "reading", bytes, bytes);
    close(file);
    st_map_close(&map);
}

void st_map_scatter(const struct st_map *map) {
    if (!map->data) return;
    madvise((void *)map->data, map->bytes, MADV_NOHUGEPAGE); // a row would read a large page
    madvise((void *)map->data, map->bytes, MADV_RANDOM);
}

static void advise(const void *data, size_t bytes, int advice) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)data + page - 1) / page * page;
    uintptr_t to = ((uintptr_t)data + bytes) / page * page;
    if (from < to) madvise((void *)from, to - from, advice);
}

void st_map_forget(const void *data, size_t bytes) {
    advise(data, bytes, MADV_DONTNEED);
}

void st_map_page_by_page(const void *data, size_t bytes) {
    advise(data, bytes, MADV_NOHUGEPAGE);
}
