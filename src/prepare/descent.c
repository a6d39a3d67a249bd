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
    size_t lanes;  // the rows, and padding
    float *errors; // [k, lanes] W less what the codes stand for, as st_tile_pack() orders it
    // Of the current group:
    size_t first, n;
    float slope[SLOPE_ROWS * ST_TILE_MAX_WIDTH]; // [elements, lanes] half the gradient
};

size_t st_descent_scratch(const struct st_tile *tile, size_t k, size_t n_rows) {
    return k * st_tile_padded(tile, n_rows);
}

// Adds changes[r] to the errors of an element.
INLINE void add_errors(struct work *w, size_t rows, size_t element, const float *changes) {
    const struct st_descent *d = w->d;
    for (size_t t = 0, width; t < rows; t += width) {
        width = st_tile_width(d->tile, rows, t);
        float *errors = w->errors + t * d->k + element * width;
        for (size_t r = 0; r < st_min(width, rows - t); r++) errors[r] += changes[t + r];
    }
}

INLINE void set_errors(struct work *w, size_t rows) {
    const struct st_descent *d = w->d;
    float errors[ST_DESCENT_ROWS];
    memset(w->errors, 0, d->k * w->lanes * sizeof *w->errors);
    for (size_t i = 0; i < d->k; i++) {
        for (size_t r = 0; r < rows; r++) errors[r] = d->w[i * rows + r] - d->value[i * rows + r];
        add_errors(w, rows, i, errors);
    }
}

// H times the errors of the elements within reach.
INLINE void find_slopes(struct work *w, size_t rows) {
    const struct st_descent *d = w->d;
    const struct st_tile *tile = d->tile;
    size_t from = w->first > ST_MOMENTS_REACH - GROUP ? w->first + GROUP - ST_MOMENTS_REACH : 0;
    size_t n = st_min(d->k, w->first + ST_MOMENTS_REACH) - from;
    memset(w->slope, 0, sizeof w->slope);
    for (size_t t = 0, width; t < rows; t += width) {
        width = st_tile_width(tile, rows, t);
        for (size_t i = 0; i < w->n; i += tile->m)
            tile->fn[width / tile->lanes - 1](n, d->moments + (w->first + i) * d->k + from, d->k, 1,
                                              w->errors + t * d->k + from * width,
                                              w->slope + i * w->lanes + t, w->lanes);
    }
}

INLINE void add_scaled(float *restrict sum, float factor, const float *restrict x, size_t n) {
    for (size_t i = 0; i < n; i++) sum[i] += factor * x[i];
}

// The code of an element that is best with all others as they are. Moments do not count a few
// tokens as loud as they are; so each element's own error counts for the loudest token too.
INLINE void renew(struct work *w, size_t rows, size_t i) {
    const struct st_descent *d = w->d;
    const float *h = d->moments + (w->first + i) * d->k + w->first;
    float *value = d->value + (w->first + i) * rows;
    float target[ST_DESCENT_ROWS], change[ST_DESCENT_ROWS];
    float loudest = d->max[w->first + i] * d->max[w->first + i];
    for (size_t r = 0; r < rows; r++) {
        float error = d->w[(w->first + i) * rows + r] - value[r];
        change[r] = value[r];
        target[r] = value[r] + (w->slope[i * w->lanes + r] + loudest * error) / (h[i] + loudest);
    }
    d->select(d->context, w->first + i, target, value);
    for (size_t r = 0; r < rows; r++) change[r] -= value[r];
    add_errors(w, rows, w->first + i, change);
    for (size_t j = i + 1; j < w->n; j++) add_scaled(w->slope + j * w->lanes, h[j], change, rows);
}

INLINE void run(struct work *w, size_t rows) {
    size_t k = w->d->k;
    set_errors(w, rows);
    for (size_t sweep = 0; sweep < SWEEPS; sweep++)
        for (w->first = 0; w->first < k; w->first += GROUP) {
            w->n = st_min(GROUP, k - w->first);
            find_slopes(w, rows);
            for (size_t i = 0; i < w->n; i++) renew(w, rows, i);
        }
}

void st_descent_run(const struct st_descent *d, float *scratch) {
    struct work w = {.d = d, .lanes = st_tile_padded(d->tile, d->n_rows), .errors = scratch};
    if (d->n_rows == ST_DESCENT_ROWS)
        run(&w, ST_DESCENT_ROWS);
    else
        run(&w, ST_DESCENT_FEW_ROWS);
}
