// SPDX-License-Identifier: Apache-2.0
// Nested codes for the weights of some rows (kernels/nested.h): the groups' scales and minima
// of every precision, and codes that serve all precisions.
#ifndef ST_PREPARE_QUANTIZE_H
#define ST_PREPARE_QUANTIZE_H

#include "base/thread.h"
#include "kernels/nested.h"
#include "prepare/slopes.h"

#include <stdbool.h>

enum {
    ST_PANEL_PRECISIONS = ST_NESTED_HIGHEST - ST_NESTED_LOWEST + 1,
    ST_PANEL_ROWS = 2 * ST_NESTED_PANEL, // quantized at once
};

// Rows side by side: element i of row r is at i * ST_PANEL_ROWS + r.
struct st_panel {
    const float *w; // [k, rows]
    size_t k;
    const float *importance;                // [k] weight of the squared error: E[x^2] of the input
    const struct st_slopes *slopes;         // of the inputs; or NULL: codes are rounded
    const float *ones;                      // [groups] st_moments_ones() of their moments
    unsigned low, high;                     // bits
    uint8_t *code;                          // [k, rows] out: of `high` bits
    uint8_t *groups[ST_NESTED_HIGHEST + 1]; // out: of these rows, by bits
    struct st_nested_row rows[ST_PANEL_PRECISIONS][ST_PANEL_ROWS]; // out: low first
};

// Floats of a quantizer's scratch for rows of k weights.
size_t st_panel_scratch(const struct st_tile *tile, size_t k, unsigned low, unsigned high);

// Coordinate descent on codes and grids, with the same bits from all rows but for the products of
// the slopes. pre: the groups are zeroed.
typedef void st_panel_quantize_fn(struct st_panel *panel, float *scratch);
st_panel_quantize_fn st_panel_quantize_scalar, st_panel_quantize_avx2, st_panel_quantize_avx512;

struct st_panel_quantizer {
    const char *name;
    uint64_t isa; // ST_CPU_* bits it needs
    st_panel_quantize_fn *quantize;
};

extern const struct st_panel_quantizer st_panel_quantizers[]; // best first; ends with a NULL name
const struct st_panel_quantizer *st_panel_quantizer_select(uint64_t cpu_flags); // the best one

struct st_quantizer {
    const char *name, *what;
    bool moments; // needs sums of x x^T
};

extern const struct st_quantizer st_quantizers[]; // the default first; ends with a NULL name
const struct st_quantizer *st_quantizer_find(const char *name); // NULL: the default; or NULL

// ---- moments.c

// Columns on either side whose errors a group corrects. Inputs that are much wider correlate
// little, and what the rest is worth does not pay the time.
enum { ST_MOMENTS_REACH = 1024 };

// Floats of a matrix of second moments of k channels: its rows are read in tiles, which may pass
// the last one.
size_t st_moments_floats(size_t k);

// Adds shares[t] * x[t] x[t]^T for the tokens of x [n_tokens, k] to the upper triangle of h, as far
// from the diagonal as is in reach; elements of the lower one may change.
void st_moments_add(float *h, size_t k, const float *x, const float *shares, size_t n_tokens,
                    const struct st_tile *tile, struct st_pool *pool);

// Makes of h [k, k] = sum of x x^T, of which only the upper triangle is read, what st_panel wants:
// the lower triangle too; `damp` times the mean of the diagonal added to it; and the rest
// multiplied by n / (n + 4 k), n being the tokens in the sum: of few tokens, correlations are
// mostly chance (Ledoit and Wolf 2004). False if the diagonal is not finite and positive even so.
bool st_moments_finish(float *h, size_t k, uint64_t n_tokens, double damp);

// Of each group of ST_NESTED_GROUP channels, 1^T H 1.
void st_moments_ones(const float *h, size_t k, float *ones);

#endif
