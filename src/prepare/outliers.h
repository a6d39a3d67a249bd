// SPDX-License-Identifier: Apache-2.0
// Outliers of a linear's input (llm.npu, section 3.3; docs/NUMERICS.md): the clipping threshold,
// the error of clipping, and the channels that are outliers often. Pure functions on arrays.
#ifndef ST_PREPARE_OUTLIERS_H
#define ST_PREPARE_OUTLIERS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ST_CLIP_CANDIDATES = 40, // scales that are tried, descending from the max-min scale
    ST_OUTLIERS_FEW = 16,    // elements of a token that may always exceed a threshold
};

// The share of a token's elements that may exceed the threshold of a shadowed linear; the share of
// outliers that hot channels cover; and the share of the channels that may be hot.
#define ST_OUTLIER_SHARE 0.003
#define ST_HOT_COVER     0.8
#define ST_HOT_MAX       0.03

// Statistics of a linear's input on the calibration text. A threshold is 127 times a scale.
struct st_input_stats {
    size_t n;          // channels
    float *max;        // [n] largest magnitudes
    float *norms;      // [n] squared norms of the weights' columns
    float *squares;    // [n] sums of the elements' squares
    uint64_t n_seen;   // tokens in squares and products
    double row_errors; // sum over the rows of what rounding with a scale of their own adds to them,
                       // as a share of their energy; of row_tokens rows
    uint64_t row_tokens;
    float *products; // st_moments_floats(): upper triangle of the sum of x x^T; NULL: not requested
    uint32_t *beyond; // [n, ST_CLIP_CANDIDATES] elements beyond threshold i but not beyond i - 1
    float scales[ST_CLIP_CANDIDATES];
    double errors[ST_CLIP_CANDIDATES]; // squared errors of the output with clipping
    uint64_t n_tokens;                 // counted
    int shadow;                        // the candidate for shadow execution
};

// Derives the candidates from `max`: the max-min scale (largest magnitude / 127; 1 if all were
// zero) and smaller ones. STINT_E_FORMAT if a magnitude is not finite; the text contains `name`.
stint_status st_outlier_scales(struct st_input_stats *stats, const char *name);

// Counts a token's elements by threshold and, if `errors` is set, adds to each candidate's error.
void st_outlier_count(struct st_input_stats *stats, const float *x, bool errors);

// Sets stats->shadow: the smallest scale whose threshold is exceeded by few enough elements of a
// token on average. These elements are exact, so the error is smallest for the smallest scale.
void st_outlier_select(struct st_input_stats *stats);

// Elements of channel c beyond the selected threshold.
uint64_t st_outlier_hits(const struct st_input_stats *stats, size_t c);

// The scale of the candidate with the least error; the max-min scale if nothing was counted.
float st_outlier_clip_scale(const struct st_input_stats *stats);

// Writes hot[c]: 0, 1, ... in ascending order for the channels of the smallest set that covers
// ST_HOT_COVER of all hits, at most ST_HOT_MAX of the channels, else -1. Returns their number.
// `order`: scratch, [n].
size_t st_outlier_hot(const struct st_input_stats *stats, uint32_t *order, int32_t *hot);

enum { ST_COVER_POINTS = 9 };
// Shares of the channels at which st_outlier_cover() describes the skew of their hits.
extern const double st_cover_shares[ST_COVER_POINTS];
// cover[i]: the share of all hits in the st_cover_shares[i] most frequent channels; 0 without hits.
// pre: `order` is as st_outlier_hot() left it.
void st_outlier_cover(const struct st_input_stats *stats, const uint32_t *order,
                      double cover[ST_COVER_POINTS]);

#endif
