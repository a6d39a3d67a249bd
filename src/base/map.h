// SPDX-License-Identifier: Apache-2.0
// Read-only files mapped into memory.
#ifndef ST_BASE_MAP_H
#define ST_BASE_MAP_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct st_map {
    const unsigned char *data; // NULL if the file is empty
    size_t bytes;
};

// Maps a regular file. A directory, a missing file, no permission: STINT_E_IO with a text that
// names `path`. *map is untouched on failure.
stint_status st_map_open(const char *path, struct st_map *map);
// The same; *file stays open for reading, for the caller to close.
stint_status st_map_open_file(const char *path, struct st_map *map, int *file);
// Maps a copy of it in memory, for files that others may cut or change meanwhile: the copy stays as
// it was read. More than `most` bytes: STINT_E_LIMIT.
stint_status st_map_copy(const char *path, uint64_t most, struct st_map *map);
void st_map_close(struct st_map *map); // accepts a zeroed map

// Reads a file that has just been written, and synced, into memory anew. What was written lies
// there in small pages; what its map reads in large ones, through which steps are 4 to 6 % faster.
// A file of more than half of the memory is only dropped. `progress`, or NULL, is told of bytes of
// "reading". Where this fails, the file stays as it is.
void st_map_renew(const char *path, stint_progress_fn *progress, void *progress_context);

// What is read of the map lies scattered: nothing beside it is worth reading.
void st_map_scatter(const struct st_map *map);

// Gives the memory behind whole pages of data[0, bytes), part of a mapped file, back to the system;
// they are read from the file again when they are next used.
void st_map_forget(const void *data, size_t bytes);
// Whole pages of data[0, bytes) take memory one by one, never as a huge page.
void st_map_page_by_page(const void *data, size_t bytes);

#endif
