// SPDX-License-Identifier: Apache-2.0
#include "prepare/quantize.h"

#include "base/size.h"

#include <math.h>
#include <string.h>

enum { TOGETHER = 64 }; // tokens

// The tokens for which a correlation counts half, for each channel. Texts differ: what correlates
// in the calibration text does so less in others, whence more than one.
static const float tokens_a_channel = 4.0f;

size_t st_moments_floats(size_t k) {
    return (k + ST_NESTED_GROUP + ST_TILE_MAX_M) * k;
}

// ---- Sums

struct sum {
    const struct st_tile *tile;
    float *h;
    const float *x, *shares;
    size_t k, n_tokens;
};

// Elements [i, i + n) of the tokens, side by side, behind them zeros up to `width`.
static void pack(const struct sum *s, size_t i, size_t width, const float *shares, float *out) {
    size_t n = st_min(width, s->k - i);
    for (size_t t = 0; t < s->n_tokens; t++)
        for (size_t j = 0; j < width; j++)
            out[t * width + j] =
                j < n ? (shares ? shares[t] : 1.0f) * s->x[t * s->k + i + j] : 0.0f;
}

// The columns of a block, in all rows within reach above the diagonal.
static void add_block(void *context, size_t block, size_t worker) {
    (void)worker;
    const struct sum *s = context;
    const struct st_tile *tile = s->tile;
    size_t width = tile->lanes * tile->vectors, m = tile->m, first = block * width;
    float b[TOGETHER * ST_TILE_MAX_WIDTH], last[TOGETHER * ST_TILE_MAX_M];
    float c[ST_TILE_MAX_M * ST_TILE_MAX_WIDTH];
    size_t end = st_min(first + width, s->k),
           i = first > ST_MOMENTS_REACH ? first - ST_MOMENTS_REACH : 0;
    pack(s, first, width, s->shares, b);
    for (; i < end; i += m) {
        bool whole = i + m <= s->k;
        if (!whole) pack(s, i, m, NULL, last);
        memset(c, 0, sizeof c);
        tile->fn[tile->vectors - 1](s->n_tokens, whole ? s->x + i : last, 1, whole ? s->k : m, b, c,
                                    width);
        for (size_t r = i; r < st_min(i + m, s->k); r++)
            for (size_t j = first; j < end; j++)
                s->h[r * s->k + j] += c[(r - i) * width + j - first];
    }
}

void st_moments_add(float *h, size_t k, const float *x, const float *shares, size_t n_tokens,
                    const struct st_tile *tile, struct st_pool *pool) {
    struct sum s = {.tile = tile, .h = h, .k = k};
    size_t blocks = st_ceil_div(k, tile->lanes * tile->vectors);
    for (size_t t = 0; t < n_tokens; t += TOGETHER) {
        s.x = x + t * k;
        s.shares = shares + t;
        s.n_tokens = st_min(TOGETHER, n_tokens - t);
        st_pool_run(pool, add_block, &s, blocks);
    }
}

bool st_moments_finish(float *h, size_t k, uint64_t n_tokens, double damp) {
    float shrink = (float)n_tokens / ((float)n_tokens + tokens_a_channel * (float)k);
    double mean = 0.0;
    for (size_t i = 0; i < k; i++) mean += (double)h[i * k + i] / (double)k;
    for (size_t i = 0; i < k; i++) {
        h[i * k + i] += (float)(mean > 0.0 ? damp * mean : 1.0);
        if (!(h[i * k + i] > 0.0f) || !isfinite(h[i * k + i])) return false;
        for (size_t j = i + 1; j < k; j++) h[i * k + j] *= shrink;
        for (size_t j = 0; j < i; j++) h[i * k + j] = h[j * k + i];
    }
    return true;
}

void st_moments_ones(const float *h, size_t k, float *ones) {
    for (size_t first = 0; first < k; first += ST_NESTED_GROUP) {
        size_t end = st_min(k, first + ST_NESTED_GROUP);
        float sum = 0.0f;
        for (size_t i = first; i < end; i++)
            for (size_t j = first; j < end; j++) sum += h[i * k + j];
        ones[first / ST_NESTED_GROUP] = sum;
    }
}
