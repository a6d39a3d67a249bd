// SPDX-License-Identifier: Apache-2.0
// Outliers of a linear's input (llm.npu, section 3.3; docs/NUMERICS.md): where to clip, what it
// costs, which channels do it again and again. Pure functions on arrays.
#ifndef ST_PREPARE_OUTLIERS_H
#define ST_PREPARE_OUTLIERS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ST_CLIP_CANDIDATES = 40, // scales that are tried, falling from the one that max-min gives
    ST_OUTLIERS_FEW = 16,    // elements of a token that may exceed a threshold in any case
};

// Share of a token's elements that may exceed the threshold of a shadowed linear; of their
// occurrences that hot channels cover, as far as the share of channels that may be hot allows.
#define ST_OUTLIER_SHARE 0.003
#define ST_HOT_COVER     0.8
#define ST_HOT_MAX       0.03

// What the input of one linear was on the calibration text. A threshold is 127 scales.
struct st_input_stats {
    size_t n;         // channels
    float *max;       // [n] largest magnitudes
    float *norms;     // [n] of the weights' columns, squared
    float *squares;   // [n] sums of the elements' squares
    float *products;  // [n, n] sums of x x^T, the upper triangle of them; NULL: not wanted
    uint32_t *beyond; // [n, ST_CLIP_CANDIDATES] elements beyond threshold i but not beyond i - 1
    float scales[ST_CLIP_CANDIDATES];
    double errors[ST_CLIP_CANDIDATES]; // of the output, where elements beyond are clipped
    uint64_t n_tokens;                 // counted
    int shadow;                        // the candidate that suits shadow execution
};

// From `max`: the scale that max-min gives (largest magnitude over 127; 1 where all were zero) and
// those that are tried below it. STINT_E_FORMAT where a magnitude is not finite; `name` stands in
// the text.
stint_status st_outlier_scales(struct st_input_stats *stats, const char *name);

// Counts a token's elements by threshold and, if `errors`, adds to each candidate's error.
void st_outlier_count(struct st_input_stats *stats, const float *x, bool errors);

// Sets stats->shadow: the smallest scale whose threshold few enough elements of a token exceed, on
// average. What exceeds it is exact, so the smaller the scale, the smaller the error of the rest.
void st_outlier_select(struct st_input_stats *stats);

// Elements of channel c beyond the threshold that was chosen.
uint64_t st_outlier_hits(const struct st_input_stats *stats, size_t c);

// The scale of the candidate with the least error; max-min's where nothing was counted.
float st_outlier_clip_scale(const struct st_input_stats *stats);

// Writes hot[c]: 0, 1, ... in ascending order for the channels of the smallest set that covers
// ST_HOT_COVER of all hits, at most ST_HOT_MAX of the channels, else -1. Returns their number.
// `order`: scratch, [n].
size_t st_outlier_hot(const struct st_input_stats *stats, uint32_t *order, int32_t *hot);

enum { ST_COVER_POINTS = 9 };
// Shares of the channels, for a picture of how skewed their hits are.
extern const double st_cover_shares[ST_COVER_POINTS];
// cover[i]: the share of all hits that the st_cover_shares[i] channels with the most of them have;
// 0 where there is none. `order` as st_outlier_hot() left it.
void st_outlier_cover(const struct st_input_stats *stats, const uint32_t *order,
                      double cover[ST_COVER_POINTS]);

#endif
