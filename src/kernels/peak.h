// SPDX-License-Identifier: Apache-2.0
// Micro-kernels that reach what one core can do: the denominators of every "fraction of peak" that
// stint prints.
#ifndef ST_KERNELS_PEAK_H
#define ST_KERNELS_PEAK_H

#include <stddef.h>
#include <stdint.h>

enum st_peak_kind {
    ST_PEAK_F32,
    ST_PEAK_BF16,
    ST_PEAK_INT8,  // both factors of the full range
    ST_PEAK_INT16, // sums of 32 bits, where that is faster than floats
    ST_PEAK_INT4,  // codes of at most 4 bits, where that is faster
    ST_N_PEAKS
};

// Runs `rounds` rounds of register-resident multiply-adds on data loaded from `data` (4096 bytes,
// finite values in every interpretation) and returns a value that depends on all of them.
typedef float st_peak_fn(const void *data, size_t rounds);

struct st_peak {
    const char *name;
    uint64_t isa;
    enum st_peak_kind kind;
    double ops_per_round; // 2 x multiply-adds
    st_peak_fn *fn;
};

extern const struct st_peak st_peaks[]; // widest first per kind; ends with a NULL name
// The rows of a kind that this CPU can run, one after the other: from NULL to NULL. The fastest of
// them is the peak; which it is depends on the core.
const struct st_peak *st_peak_next(const struct st_peak *row, uint64_t cpu_flags,
                                   enum st_peak_kind kind);

// Adds up data[0, n_bytes) with the widest loads there are; n_bytes a multiple of 256. For memory
// bandwidth.
typedef uint64_t st_peak_read_fn(const void *data, size_t n_bytes);
st_peak_read_fn *st_peak_read_select(uint64_t cpu_flags);

#endif
