// SPDX-License-Identifier: Apache-2.0
// How fast a file's device reads, measured on the file itself with the loader that sessions read
// with (base/loader.h).
#ifndef ST_NEURON_STORAGE_H
#define ST_NEURON_STORAGE_H

#include "base/loader.h"

// One way to read.
struct st_reading {
    size_t block;     // bytes of one read, a multiple of ST_LOAD_BLOCK
    size_t depth;     // reads that are under way at a time
    size_t n_threads; // that read
    bool random;      // blocks anywhere, or one after another
};

// Reads blocks of the file's first file_bytes for about `seconds`, into memory [depth * block], on
// ST_LOAD_BLOCK. *per_second: reads; 0 where the file has no whole block. *direct: past the page
// cache. STINT_E_NOMEM, E_IO.
stint_status st_storage_rate(const struct st_loader_options *options, uint64_t file_bytes,
                             const struct st_reading *reading, double seconds,
                             unsigned char *memory, double *per_second, bool *direct);

// The time a read takes, interpolated between measured blocks [n], which rise; beyond the last one
// it grows with the bytes. 0 where nothing was measured.
double st_storage_seconds(const uint32_t *blocks, const double *per_second, size_t n, double bytes);

#endif
