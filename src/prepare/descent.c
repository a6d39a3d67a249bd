// SPDX-License-Identifier: Apache-2.0
#include "prepare/descent.h"

#include "base/size.h"
#include "prepare/quantize.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline)) // `rows` is a constant in each copy

enum {
    GROUP = 32, // elements whose slopes are computed together
    SLOPE_ROWS = GROUP + ST_TILE_MAX_M,
    SWEEPS = 2,
};

struct work {
    const struct st_descent *d;
    struct st_missed missed;
    // Of the current group:
    size_t first, n;
    float slope[SLOPE_ROWS * ST_TILE_MAX_WIDTH]; // [elements, lanes] half the gradient
};

size_t st_descent_scratch(const struct st_tile *tile, size_t k, size_t n_rows) {
    return st_missed_floats(tile, k, n_rows);
}

// Of the current group.
INLINE void put_missed(struct work *w, size_t rows) {
    const struct st_descent *d = w->d;
    float missed[GROUP * ST_DESCENT_ROWS];
    for (size_t i = 0; i < w->n * rows; i++)
        missed[i] = d->w[w->first * rows + i] - d->value[w->first * rows + i];
    st_missed_put(&w->missed, w->first, w->n, missed, rows);
}

INLINE void begin_group(struct work *w, size_t first) {
    w->first = first;
    w->n = st_min(GROUP, w->d->k - first);
}

INLINE void add_scaled(float *restrict sum, float factor, const float *restrict x, size_t n) {
    for (size_t i = 0; i < n; i++) sum[i] += factor * x[i];
}

// The code of an element that is best with all others as they are: `again`, or those that have none
// yet as in the source. Moments do not count a few tokens as loud as they are; so each element's
// own error counts for the loudest token too.
INLINE void renew(struct work *w, size_t rows, size_t i, bool again) {
    const struct st_descent *d = w->d;
    const float *h = d->slopes->moments + (w->first + i) * d->k + w->first;
    const float *exact = d->w + (w->first + i) * rows;
    float *value = d->value + (w->first + i) * rows;
    float target[ST_DESCENT_ROWS], change[ST_DESCENT_ROWS];
    float loudest = d->max[w->first + i] * d->max[w->first + i];
    for (size_t r = 0; r < rows; r++) {
        float before = again ? value[r] : exact[r], error = exact[r] - before;
        change[r] = before;
        target[r] =
            before + (w->slope[i * w->missed.padded + r] + loudest * error) / (h[i] + loudest);
    }
    d->select(d->context, w->first + i, target, value);
    for (size_t r = 0; r < rows; r++) change[r] -= value[r];
    for (size_t j = i + 1; j < w->n; j++)
        add_scaled(w->slope + j * w->missed.padded, h[j], change, rows);
}

INLINE void run(struct work *w, size_t rows) {
    size_t k = w->d->k;
    for (size_t sweep = 0; sweep < SWEEPS; sweep++)
        for (size_t first = 0; first < k; first += GROUP) {
            begin_group(w, first);
            st_missed_slopes(&w->missed, first, w->n, sweep ? k : first, w->slope,
                             w->missed.padded);
            for (size_t i = 0; i < w->n; i++) renew(w, rows, i, sweep > 0);
            put_missed(w, rows);
        }
}

void st_descent_run(const struct st_descent *d, float *scratch) {
    struct work w = {.d = d};
    st_missed_begin(d->slopes, d->n_rows, scratch, &w.missed);
    if (d->n_rows == ST_DESCENT_ROWS)
        run(&w, ST_DESCENT_ROWS);
    else
        run(&w, ST_DESCENT_FEW_ROWS);
}
