// SPDX-License-Identifier: Apache-2.0
// A package under way: without its name until its table and header are on the disk.
#include "format/package.h"

#include "base/size.h"
#include "base/temporary.h"
#include "format/package_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { BUFFER_BYTES = 1 << 20 };

struct st_package_writer {
    char *path;
    struct st_temporary temporary;
    FILE *file;
    XXH3_state_t *hash; // of the section at hand
    struct st_package_entry *entries;
    size_t n, capacity;
    uint64_t at;         // bytes written
    uint64_t missing;    // of the section at hand
    bool closed;         // there is none at hand: the last one's hash is known
    struct st_error why; // of the first failure
};

static stint_status keep(struct st_package_writer *w, stint_status status) {
    if (status != STINT_OK && w->why.status == STINT_OK) st_error_save(&w->why);
    return status;
}

static stint_status io_error(struct st_package_writer *w, const char *what) {
    return keep(w, st_fail(STINT_E_IO, "%s: %s: %s", w->path, what, strerror(errno)));
}

static stint_status write_bytes(struct st_package_writer *w, const void *data, size_t bytes) {
    if (w->why.status != STINT_OK) return st_error_restore(&w->why);
    if (bytes && fwrite(data, 1, bytes, w->file) != bytes) return io_error(w, "cannot be written");
    w->at += bytes;
    return STINT_OK;
}

static stint_status pad(struct st_package_writer *w, size_t align) {
    static const char zeros[ST_PACKAGE_ALIGN];
    return write_bytes(w, zeros, st_round_up(w->at, align) - w->at);
}

static stint_status open_file(struct st_package_writer *w, const char *path, mode_t mode) {
    w->path = strdup(path);
    w->hash = XXH3_createState();
    if (!w->path || !w->hash) return st_fail(STINT_E_NOMEM, "%s: no memory to write it", path);
    ST_TRY(st_temporary_open(path, mode, false, &w->temporary));
    w->file = fdopen(w->temporary.file, "wb");
    if (!w->file) {
        stint_status status = io_error(w, "cannot be made");
        close(w->temporary.file);
        return status;
    }
    setvbuf(w->file, NULL, _IOFBF, BUFFER_BYTES);
    // The header's place; it is written last.
    return write_bytes(w, &(struct st_package_header){0}, sizeof(struct st_package_header));
}

static stint_status create(const char *path, mode_t mode, struct st_package_writer **writer) {
    struct st_package_writer *w = calloc(1, sizeof *w);
    if (!w) return st_fail(STINT_E_NOMEM, "%s: no memory to write it", path);
    stint_status status = open_file(w, path, mode);
    if (status != STINT_OK) {
        st_package_abandon(w);
        return status;
    }
    *writer = w;
    return STINT_OK;
}

stint_status st_package_create(const char *path, struct st_package_writer **writer) {
    return create(path, 0666, writer);
}

stint_status st_package_create_private(const char *path, struct st_package_writer **writer) {
    return create(path, 0600, writer);
}

// Completes the section at hand.
static stint_status end_section(struct st_package_writer *w) {
    if (w->why.status != STINT_OK) return st_error_restore(&w->why);
    if (w->missing)
        return keep(w, st_fail(STINT_E_INTERNAL, "section '%s': %llu bytes are missing",
                               w->entries[w->n - 1].name, (unsigned long long)w->missing));
    if (w->n && !w->closed) w->entries[w->n - 1].hash = XXH3_64bits_digest(w->hash);
    w->closed = true;
    return STINT_OK;
}

static stint_status grow(struct st_package_writer *w) {
    if (w->n < w->capacity) return STINT_OK;
    size_t capacity = w->capacity ? 2 * w->capacity : 256;
    struct st_package_entry *grown = realloc(w->entries, capacity * sizeof *grown);
    if (!grown || capacity > ST_PACKAGE_MAX_SECTIONS) {
        if (grown) w->entries = grown;
        return keep(w, st_fail(STINT_E_NOMEM, "%s: no memory for %zu sections", w->path, capacity));
    }
    w->entries = grown;
    w->capacity = capacity;
    return STINT_OK;
}

stint_status st_package_begin(struct st_package_writer *w, const struct st_section *section) {
    size_t bytes;
    ST_TRY(end_section(w));
    ST_TRY(keep(w, st_section_check_name(section->name)));
    ST_TRY(keep(w, st_section_bytes(section, &bytes)));
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->entries[i].name, section->name) == 0)
            return keep(w, st_fail(STINT_E_INTERNAL, "section '%s' is there twice", section->name));
    ST_TRY(grow(w));
    ST_TRY(pad(w, st_section_align(section->type, ST_PACKAGE_VERSION)));
    struct st_package_entry e = {.n_dims = section->n_dims, .offset = w->at, .bytes = bytes};
    bool tensor = section->type == ST_SECTION_TENSOR;
    snprintf(e.name, sizeof e.name, "%s", section->name);
    snprintf(e.type, sizeof e.type, "%s", st_section_type_name(section->type));
    snprintf(e.dtype, sizeof e.dtype, "%s", tensor ? st_dtype_traits(section->dtype)->name : "");
    memcpy(e.dims, section->dims, sizeof e.dims);
    w->entries[w->n++] = e;
    w->missing = bytes;
    w->closed = false;
    XXH3_64bits_reset(w->hash);
    return STINT_OK;
}

stint_status st_package_append(struct st_package_writer *w, const void *data, size_t bytes) {
    if (w->why.status == STINT_OK && bytes > w->missing)
        return keep(w, st_fail(STINT_E_INTERNAL, "%s: %zu bytes too many for a section", w->path,
                               bytes - (size_t)w->missing));
    ST_TRY(write_bytes(w, data, bytes));
    XXH3_64bits_update(w->hash, data, bytes);
    w->missing -= bytes;
    return STINT_OK;
}

stint_status st_package_add(struct st_package_writer *w, const struct st_section *section) {
    ST_TRY(st_package_begin(w, section));
    return st_package_append(w, section->data, section->bytes);
}

size_t st_package_sections(const struct st_package_writer *writer) {
    return writer->n;
}

stint_status st_package_drop(struct st_package_writer *w, size_t n) {
    if (n >= w->n) return STINT_OK;
    ST_TRY(end_section(w));
    // What was put before it may be more than what comes next wants.
    w->at =
        n ? w->entries[n - 1].offset + w->entries[n - 1].bytes : sizeof(struct st_package_header);
    w->n = n;
    w->missing = 0;
    w->closed = true;
    if (fflush(w->file) != 0 || ftruncate(fileno(w->file), (off_t)w->at) != 0 ||
        fseeko(w->file, (off_t)w->at, SEEK_SET) != 0)
        return io_error(w, "cannot be shortened");
    return STINT_OK;
}

// The map grows with the file: opened again where the section lies beyond it.
stint_status st_package_look(struct st_package_writer *w, struct st_map *map, const char *name,
                             struct st_section *section) {
    const struct st_package_entry *e = NULL;
    for (size_t i = 0; i < w->n && !e; i++)
        if (strcmp(w->entries[i].name, name) == 0) e = &w->entries[i];
    section->data = NULL;
    if (!e) return STINT_OK;
    if (w->why.status == STINT_OK && fflush(w->file) != 0) return io_error(w, "cannot be written");
    if (w->why.status != STINT_OK) return st_error_restore(&w->why);
    if (map->bytes < e->offset + e->bytes) {
        char *now = st_temporary_path(&w->temporary);
        st_map_close(map);
        stint_status status = now ? st_map_open(now, map)
                                  : st_fail(STINT_E_NOMEM, "%s: no memory to read it", w->path);
        free(now);
        ST_TRY(status);
    }
    section->n_dims = e->n_dims;
    memcpy(section->dims, e->dims, sizeof section->dims);
    section->bytes = e->bytes;
    section->data = map->data + e->offset;
    return STINT_OK;
}

static stint_status write_table(struct st_package_writer *w) {
    ST_TRY(end_section(w));
    ST_TRY(pad(w, ST_PACKAGE_ALIGN));
    size_t table_bytes = w->n * sizeof *w->entries;
    struct st_package_header header = {.magic = {'S', 'T', 'I', 'N', 'T', 'P', 'K', 'G'},
                                       .version = ST_PACKAGE_VERSION,
                                       .endian = ST_PACKAGE_ENDIAN,
                                       .file_bytes = w->at + table_bytes,
                                       .table_offset = w->at,
                                       .n_sections = (uint32_t)w->n,
                                       .entry_bytes = sizeof *w->entries,
                                       .table_hash = XXH3_64bits(w->entries, table_bytes)};
    header.header_hash = XXH3_64bits(&header, offsetof(struct st_package_header, header_hash));
    ST_TRY(write_bytes(w, w->entries, table_bytes));
    if (fseeko(w->file, 0, SEEK_SET) != 0) return io_error(w, "cannot be written");
    ST_TRY(write_bytes(w, &header, sizeof header));
    // What was settled before may have been longer.
    if (fflush(w->file) != 0 || ftruncate(fileno(w->file), (off_t)header.file_bytes) != 0)
        return io_error(w, "cannot be written");
    return STINT_OK;
}

// The header stays: until the package is finished, its file has no name.
stint_status st_package_settle(struct st_package_writer *w, char **path) {
    ST_TRY(end_section(w));
    uint64_t at = w->at;
    ST_TRY(write_table(w));
    w->at = at;
    if (fseeko(w->file, (off_t)at, SEEK_SET) != 0) return io_error(w, "cannot be written");
    *path = st_temporary_path(&w->temporary);
    return *path ? STINT_OK : keep(w, st_fail(STINT_E_NOMEM, "%s: no memory to read it", w->path));
}

static void free_writer(struct st_package_writer *w) {
    if (w->file) fclose(w->file);
    XXH3_freeState(w->hash);
    free(w->entries);
    st_temporary_drop(&w->temporary);
    free(w->path);
    free(w);
}

stint_status st_package_finish(struct st_package_writer *w) {
    stint_status status = write_table(w);
    if (status == STINT_OK && fsync(fileno(w->file)) != 0)
        status = io_error(w, "cannot be written");
    if (status == STINT_OK) status = st_temporary_keep(&w->temporary);
    if (status != STINT_OK) {
        st_package_abandon(w);
        return status;
    }
    free_writer(w);
    return STINT_OK;
}

void st_package_abandon(struct st_package_writer *w) {
    if (w) free_writer(w);
}

uint64_t st_package_written(const struct st_package_writer *writer) {
    return writer->at;
}
