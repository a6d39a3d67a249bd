// SPDX-License-Identifier: Apache-2.0
#include "prepare/outliers.h"

#include "base/sort.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static const float smallest_scale = 0x1p-100f; // dividing by it gives finite numbers
static const float step = 0.82f;               // ratio of a candidate to the one before
static const float round_bias = 12582912.0f;   // 1.5 x 2^23: adding it rounds to whole numbers

stint_status st_outlier_scales(struct st_input_stats *stats, const char *name) {
    float max = 0.0f;
    for (size_t i = 0; i < stats->n; i++) {
        if (!isfinite(stats->max[i]))
            return st_fail(STINT_E_FORMAT,
                           "the input of '%s', channel %zu, is not finite on the calibration text: "
                           "weights of this model are damaged",
                           name, i);
        max = fmaxf(max, stats->max[i]);
    }
    float scale = max > 0.0f ? max / 127.0f : 1.0f;
    for (int i = 0; i < ST_CLIP_CANDIDATES; i++, scale *= step)
        stats->scales[i] = fmaxf(scale, smallest_scale);
    return STINT_OK;
}

enum { LEVELS = 64 }; // a power of 2, at least ST_CLIP_CANDIDATES
static_assert((int)ST_CLIP_CANDIDATES < (int)LEVELS, "thresholds, and one that all exceed");

// In descending order; below them ones that all magnitudes exceed.
static void set_thresholds(const struct st_input_stats *stats, float thresholds[LEVELS]) {
    for (int i = 0; i < LEVELS; i++)
        thresholds[i] = i < ST_CLIP_CANDIDATES ? 127.0f * stats->scales[i] : -1.0f;
}

// The first threshold that the magnitude exceeds; as many steps for every magnitude, none of which
// a processor has to guess.
static unsigned level(const float thresholds[LEVELS], float magnitude) {
    unsigned n = 0; // of those that it does not exceed
    for (unsigned half = LEVELS / 2; half > 0; half /= 2)
        n += magnitude > thresholds[n + half - 1] ? 0 : half;
    return n;
}

static void add_errors(struct st_input_stats *stats, const float *x) {
    for (int c = 0; c < ST_CLIP_CANDIDATES; c++) {
        float scale = stats->scales[c], inverse = 1.0f / scale, error = 0.0f;
        for (size_t i = 0; i < stats->n; i++) {
            float q = x[i] * inverse;
            q = q < -127.0f ? -127.0f : q > 127.0f ? 127.0f : q;
            q = (q + round_bias) - round_bias;
            float difference = x[i] - q * scale;
            error += stats->norms[i] * difference * difference;
        }
        stats->errors[c] += (double)error;
    }
}

void st_outlier_count(struct st_input_stats *stats, const float *x, bool errors) {
    float thresholds[LEVELS];
    set_thresholds(stats, thresholds);
    for (size_t i = 0; i < stats->n; i++) {
        unsigned l = level(thresholds, fabsf(x[i]));
        if (l < ST_CLIP_CANDIDATES) stats->beyond[i * ST_CLIP_CANDIDATES + l]++;
    }
    stats->n_tokens++;
    if (errors) add_errors(stats, x);
}

void st_outlier_select(struct st_input_stats *stats) {
    double max = fmax(ST_OUTLIER_SHARE * (double)stats->n, ST_OUTLIERS_FEW), n_beyond = 0.0;
    stats->shadow = 0;
    for (int l = 0; l < ST_CLIP_CANDIDATES; l++) {
        for (size_t i = 0; i < stats->n; i++)
            n_beyond += stats->beyond[i * ST_CLIP_CANDIDATES + (size_t)l];
        if (n_beyond > max * (double)stats->n_tokens) return;
        stats->shadow = l;
    }
}

uint64_t st_outlier_hits(const struct st_input_stats *stats, size_t c) {
    uint64_t hits = 0;
    for (int l = 0; l <= stats->shadow; l++)
        hits += stats->beyond[c * ST_CLIP_CANDIDATES + (size_t)l];
    return hits;
}

float st_outlier_clip_scale(const struct st_input_stats *stats) {
    int best = 0;
    for (int c = 1; c < ST_CLIP_CANDIDATES; c++)
        if (stats->errors[c] < stats->errors[best]) best = c;
    return stats->scales[best];
}

static int by_hits(const void *a, const void *b, void *context) {
    const struct st_input_stats *stats = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    uint64_t hits_x = st_outlier_hits(stats, x), hits_y = st_outlier_hits(stats, y);
    if (hits_x != hits_y) return hits_x < hits_y ? 1 : -1;
    return x < y ? -1 : x > y; // the lower channel first
}

size_t st_outlier_hot(const struct st_input_stats *stats, uint32_t *order, int32_t *hot) {
    uint64_t all = 0, covered = 0;
    size_t n_hot = 0;
    for (size_t c = 0; c < stats->n; c++) {
        all += st_outlier_hits(stats, c);
        order[c] = (uint32_t)c;
        hot[c] = -1;
    }
    st_sort(order, stats->n, sizeof *order, by_hits, (void *)(uintptr_t)stats);
    size_t max = (size_t)ceil(ST_HOT_MAX * (double)stats->n);
    for (size_t i = 0; i < max && (double)covered < ST_HOT_COVER * (double)all; i++) {
        covered += st_outlier_hits(stats, order[i]);
        hot[order[i]] = 0;
    }
    for (size_t c = 0; c < stats->n; c++)
        if (hot[c] == 0) hot[c] = (int32_t)n_hot++;
    return n_hot;
}

const double st_cover_shares[ST_COVER_POINTS] = {0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1.0};

void st_outlier_cover(const struct st_input_stats *stats, const uint32_t *order,
                      double cover[ST_COVER_POINTS]) {
    uint64_t all = 0, covered = 0;
    size_t c = 0;
    for (size_t i = 0; i < stats->n; i++) all += st_outlier_hits(stats, i);
    for (size_t p = 0; p < ST_COVER_POINTS; p++) {
        size_t end = (size_t)ceil(st_cover_shares[p] * (double)stats->n);
        for (; c < end; c++) covered += st_outlier_hits(stats, order[c]);
        cover[p] = all ? (double)covered / (double)all : 0.0;
    }
}
