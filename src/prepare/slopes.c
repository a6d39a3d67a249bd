// SPDX-License-Identifier: Apache-2.0
#include "prepare/slopes.h"

#include "base/size.h"
#include "prepare/quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = ST_NESTED_GROUP, BLOCK = ST_INT16_BLOCK };

// Errors change while codes do: room for larger ones than a block had when it got its scale.
static const float headroom = 1.5f;
// The inverse of a scale that a lane does not have yet: nothing but 0 fits.
static const float unmeasured = 1e30f;

static size_t n_blocks(size_t k) {
    return st_ceil_div(k, BLOCK);
}

// ---- Moments

stint_status st_slopes_open(size_t widest, uint64_t cpu_flags, struct st_slopes *s) {
    *s = (struct st_slopes){.tile = st_tile_select(cpu_flags), .int16 = st_int16_select(cpu_flags)};
    if (!s->int16) return STINT_OK;
    size_t rows = widest + ST_TILE_MAX_M, row = st_ceil_div(widest, 2);
    s->roots = malloc(widest * sizeof *s->roots);
    s->pairs = malloc(rows * row * sizeof *s->pairs);
    s->scales = malloc(n_blocks(widest) * rows * sizeof *s->scales);
    if (s->roots && s->pairs && s->scales) return STINT_OK;
    st_slopes_close(s);
    return st_fail(STINT_E_NOMEM, "no memory for correlations of %zu channels", widest);
}

void st_slopes_close(struct st_slopes *s) {
    free(s->roots);
    free(s->pairs);
    free(s->scales);
    *s = (struct st_slopes){0};
}

// A row of the moments, as far as it is read.
static void convert_row(void *context, size_t i, size_t worker) {
    struct st_slopes *s = context;
    const float *h = s->moments + i * s->k;
    int16_t *to = (int16_t *)(void *)(s->pairs + i * s->row);
    size_t reach = ST_MOMENTS_REACH + GROUP, from = i > reach ? i - reach : 0;
    (void)worker;
    for (size_t b = from / BLOCK; b < n_blocks(st_min(s->k, i + reach)); b++) {
        float block[BLOCK];
        size_t first = b * BLOCK, n = st_min(BLOCK, s->k - first);
        for (size_t j = 0; j < n; j++) block[j] = h[first + j] / s->roots[first + j];
        s->scales[b * s->scale_row + i] =
            s->int16->quantize(block, n, ST_INT16_MAX_WEIGHT, to + first);
    }
}

void st_slopes_set(struct st_slopes *s, const float *moments, size_t k, struct st_pool *pool) {
    s->moments = moments;
    s->k = k;
    if (!s->int16 || k % 2) return;
    s->row = k / 2;
    s->scale_row = k + ST_TILE_MAX_M;
    for (size_t i = 0; i < k; i++) s->roots[i] = sqrtf(moments[i * k + i]);
    memset(s->pairs + k * s->row, 0, ST_TILE_MAX_M * s->row * sizeof *s->pairs);
    for (size_t b = 0; b < n_blocks(k); b++)
        memset(s->scales + b * s->scale_row + k, 0, ST_TILE_MAX_M * sizeof *s->scales);
    st_pool_run(pool, convert_row, s, k);
}

static bool in_integers(const struct st_slopes *s) {
    return s->int16 && s->k % 2 == 0;
}

// ---- What codes miss

size_t st_missed_floats(const struct st_tile *tile, size_t k, size_t lanes) {
    return st_tile_padded(tile, lanes) * (k + st_ceil_div(k, 2) + n_blocks(k));
}

void st_missed_begin(const struct st_slopes *slopes, size_t lanes, float *memory,
                     struct st_missed *m) {
    size_t k = slopes->k, padded = st_tile_padded(slopes->tile, lanes);
    *m = (struct st_missed){slopes, lanes, padded, .floats = memory};
    m->scales = memory + k * padded;
    m->pairs = (uint32_t *)(void *)(m->scales + n_blocks(k) * padded);
    memset(memory, 0, st_missed_floats(slopes->tile, k, lanes) * sizeof *memory);
}

// Lanes [t, t + width) of the channels.
struct lanes {
    float *floats;   // [k, width]
    uint32_t *pairs; // [k / 2, width]
    float *scales;   // [width] of a block
    const float *roots;
    size_t width;
};

static struct lanes lanes_of(const struct st_missed *m, size_t t, size_t block) {
    size_t k = m->slopes->k;
    return (struct lanes){m->floats + t * k, m->pairs + t * (k / 2),
                          m->scales + block * m->padded + t, m->slopes->roots,
                          st_tile_width(m->slopes->tile, m->lanes, t)};
}

// The largest magnitudes of channels [from, to), each times its root.
static void find_largest(const struct lanes *l, size_t from, size_t to,
                         float largest[ST_TILE_MAX_WIDTH]) {
    memset(largest, 0, l->width * sizeof *largest);
    for (size_t i = from; i < to; i++)
        for (size_t lane = 0; lane < l->width; lane++) {
            float x = fabsf(l->floats[i * l->width + lane]) * l->roots[i], most = largest[lane];
            largest[lane] = x > most ? x : most;
        }
}

// Channels [from, to) over their scales, as pairs. False if one is too large for its lane's scale.
static bool convert_lanes(const struct lanes *l, const struct st_int16 *int16, size_t from,
                          size_t to) {
    float inverse[ST_TILE_MAX_WIDTH];
    for (size_t lane = 0; lane < l->width; lane++)
        inverse[lane] = l->scales[lane] > 0.0f ? 1.0f / l->scales[lane] : unmeasured;
    return int16->pairs(l->floats + from * l->width, l->roots + from, inverse, to - from, l->width,
                        l->pairs + from / 2 * l->width) <= ST_INT16_MAX_INPUT;
}

// Channels [first, first + n), or their whole block where one of its lanes needs a larger scale.
static void put_integers(const struct lanes *l, const struct st_int16 *int16, size_t first,
                         size_t n, size_t k) {
    size_t from = first / BLOCK * BLOCK, to = st_min(k, from + BLOCK);
    float largest[ST_TILE_MAX_WIDTH];
    if (convert_lanes(l, int16, first, first + n)) return;
    find_largest(l, from, to, largest);
    for (size_t lane = 0; lane < l->width; lane++)
        l->scales[lane] = headroom * largest[lane] / ST_INT16_MAX_INPUT;
    convert_lanes(l, int16, from, to);
}

// 16 at a time, for which the compiler needs no call: one costs as much as the copy.
static void copy_lanes(float *restrict to, const float *restrict from, size_t n) {
    for (; n >= 16; n -= 16, to += 16, from += 16) memcpy(to, from, 16 * sizeof *to);
    memcpy(to, from, n * sizeof *to);
}

void st_missed_put(struct st_missed *m, size_t first, size_t n, const float *missed, size_t row) {
    size_t k = m->slopes->k;
    for (size_t t = 0, width; t < m->lanes; t += width) {
        struct lanes l = lanes_of(m, t, first / BLOCK);
        width = l.width;
        for (size_t i = 0; i < n; i++)
            copy_lanes(l.floats + (first + i) * width, missed + i * row + t,
                       st_min(width, m->lanes - t));
        if (in_integers(m->slopes)) put_integers(&l, m->slopes->int16, first, n, k);
    }
}

// ---- Slopes

// Of channels [i, i + m) of the tile: lanes [t, t + width), from channels [from, end).
static void add_integers(const struct st_missed *m, size_t i, size_t t, size_t from, size_t end,
                         float *slope, size_t row) {
    const struct st_slopes *s = m->slopes;
    for (size_t at = from, to; at < end; at = to) {
        size_t b = at / BLOCK;
        struct lanes l = lanes_of(m, t, b);
        to = st_min(end, (b + 1) * BLOCK);
        s->int16->fn[l.width / s->int16->lanes - 1](
            (to - at) / 2, s->pairs + i * s->row + at / 2, s->row, s->scales + b * s->scale_row + i,
            l.pairs + at / 2 * l.width, l.scales, slope, row);
    }
}

static void add_floats(const struct st_missed *m, size_t i, size_t t, size_t from, size_t end,
                       float *slope, size_t row) {
    const struct st_slopes *s = m->slopes;
    struct lanes l = lanes_of(m, t, 0);
    s->tile->fn[l.width / s->tile->lanes - 1](end - from, s->moments + i * s->k + from, s->k, 1,
                                              l.floats + from * l.width, slope, row);
}

void st_missed_slopes(const struct st_missed *m, size_t first, size_t n, size_t end, float *slope,
                      size_t row) {
    const struct st_slopes *s = m->slopes;
    size_t from = first > ST_MOMENTS_REACH - GROUP ? first + GROUP - ST_MOMENTS_REACH : 0;
    end = st_min(end, first + ST_MOMENTS_REACH);
    bool integers = in_integers(s);
    for (size_t i = 0; i < st_round_up(n, s->tile->m); i++)
        memset(slope + i * row, 0, m->padded * sizeof *slope);
    for (size_t t = 0; t < m->lanes; t += st_tile_width(s->tile, m->lanes, t))
        for (size_t i = 0; i < n; i += s->tile->m)
            (integers ? add_integers : add_floats)(m, first + i, t, from, end, slope + i * row + t,
                                                   row);
}
