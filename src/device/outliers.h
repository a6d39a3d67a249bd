// SPDX-License-Identifier: Apache-2.0
// The list of what is too large for INT8. Its layout is fixed: a device writes it into a buffer,
// the host reads it for shadow execution (docs/NUMERICS.md). Little-endian, no padding.
#ifndef ST_DEVICE_OUTLIERS_H
#define ST_DEVICE_OUTLIERS_H

#include "base/size.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

struct st_outlier {
    uint32_t row, channel; // of the quantized input
    float value;           // unclipped; the input holds 0 there
};

struct st_outliers {
    uint32_t count;              // found; where it exceeds the capacity, the rest is missing
    uint32_t capacity;           // entries there is room for
    struct st_outlier entries[]; // in any order
};

static_assert(sizeof(struct st_outlier) == 12 && sizeof(struct st_outliers) == 8, "wire layout");

static inline size_t st_outliers_bytes(size_t capacity) {
    return st_round_up(sizeof(struct st_outliers) + capacity * sizeof(struct st_outlier), 64);
}

// For code that quantizes on the host. Empties a list.
void st_outliers_reset(struct st_outliers *list, size_t capacity);
// Moves what quantizing x[0, n) to q with this scale clipped into the list: q gets the byte `zero`
// there. `channel` is that of x[0]. Threads may share a list.
void st_outliers_collect(struct st_outliers *list, const float *x, size_t n, float scale,
                         uint32_t row, uint32_t channel, uint8_t zero, uint8_t *q);

#endif
