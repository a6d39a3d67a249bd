// SPDX-License-Identifier: Apache-2.0
#include "prepare/quantize.h"

#include "base/size.h"

#include <math.h>
#include <string.h>

void st_row_scratch_take(struct st_row_scratch *s, size_t k, struct st_arena *arena) {
    s->order = ST_TAKE(arena, uint32_t, k);
    s->other = ST_TAKE(arena, uint32_t, k);
    for (int i = 0; i < 2; i++) {
        s->keys[i] = ST_TAKE(arena, uint32_t, k);
        s->cost[i] = ST_TAKE(arena, double, k + 1);
    }
    for (int i = 0; i < 3; i++) s->sum[i] = ST_TAKE(arena, double, k + 1);
    s->first = ST_TAKE(arena, uint32_t, ST_KMEANS_EXACT * (k + 1));
}

// ---- Centroids

void st_row_centroids(const struct st_row *row, float *centroids) {
    double weight[256], sum[256];
    for (unsigned b = row->low; b <= row->high; b++) {
        size_t n = (size_t)1 << b;
        float *c = centroids + n - ((size_t)1 << row->low), last = 0.0f;
        memset(weight, 0, n * sizeof *weight);
        memset(sum, 0, n * sizeof *sum);
        for (size_t i = 0; i < row->k; i++) {
            unsigned code = row->code[i] >> (row->high - b);
            weight[code] += (double)row->importance[i];
            sum[code] += (double)row->importance[i] * (double)row->w[i];
        }
        for (size_t i = 0; i < n; i++) {
            if (weight[i] > 0.0) last = (float)(sum[i] / weight[i]);
            c[i] = last;
        }
    }
}

// ---- Weighted k-means in one dimension: clusters are intervals of the sorted row

// Sorts ascending by the bits of floats, mapped so that they order as integers.
static void sort_row(const struct st_row *row, struct st_row_scratch *s) {
    enum { BITS = 11, BUCKETS = 1 << BITS };
    uint32_t count[BUCKETS];
    uint32_t *from = s->order, *to = s->other, *key = s->keys[0], *key_to = s->keys[1];
    for (size_t i = 0; i < row->k; i++) {
        uint32_t bits;
        memcpy(&bits, &row->w[i], sizeof bits);
        key[i] = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
        from[i] = (uint32_t)i;
    }
    for (unsigned shift = 0; shift < 32; shift += BITS) {
        memset(count, 0, sizeof count);
        for (size_t i = 0; i < row->k; i++) count[key[i] >> shift & (BUCKETS - 1)]++;
        for (uint32_t i = 0, at = 0; i < BUCKETS; i++) {
            uint32_t n = count[i];
            count[i] = at;
            at += n;
        }
        for (size_t i = 0; i < row->k; i++) {
            uint32_t at = count[key[i] >> shift & (BUCKETS - 1)]++;
            key_to[at] = key[i];
            to[at] = from[i];
        }
        uint32_t *t = from;
        from = to;
        to = t;
        t = key;
        key = key_to;
        key_to = t;
    }
    if (from != s->order) memcpy(s->order, from, row->k * sizeof *from);
    for (int j = 0; j < 3; j++) s->sum[j][0] = 0.0;
    for (size_t i = 0; i < row->k; i++) {
        double w = (double)row->importance[s->order[i]], x = (double)row->w[s->order[i]];
        s->sum[0][i + 1] = s->sum[0][i] + w;
        s->sum[1][i + 1] = s->sum[1][i] + w * x;
        s->sum[2][i + 1] = s->sum[2][i] + w * x * x;
    }
}

// The squared error of the cluster of sorted elements [a, b).
static inline double cost_of(const struct st_row_scratch *s, size_t a, size_t b) {
    double w = s->sum[0][b] - s->sum[0][a], x = s->sum[1][b] - s->sum[1][a];
    return w > 0.0 ? s->sum[2][b] - s->sum[2][a] - x * x / w : 0.0;
}

// Finds the best solutions that end in [a, b), whose last cluster begins in [from, to]. The best
// begin never falls as the end rises, so solving the middle first halves the search on both sides.
static void best_ends(struct st_row_scratch *s, const double *before, double *after,
                      uint32_t *first, size_t a, size_t b, size_t from, size_t to) {
    if (a >= b) return;
    size_t end = a + (b - a) / 2, best = from;
    double min = INFINITY;
    for (size_t begin = from; begin <= st_min(to, end); begin++) {
        double cost = before[begin] + cost_of(s, begin, end);
        if (cost >= min) continue;
        min = cost;
        best = begin;
    }
    after[end] = min;
    first[end] = (uint32_t)best;
    best_ends(s, before, after, first, a, end, from, best);
    best_ends(s, before, after, first, end + 1, b, best, to);
}

// Finds the n clusters with the least error.
static void exact_clusters(size_t k, size_t n, struct st_row_scratch *s) {
    double *before = s->cost[0], *after = s->cost[1];
    for (size_t end = 0; end <= k; end++) before[end] = cost_of(s, 0, end);
    for (size_t c = 1; c < n; c++) {
        best_ends(s, before, after, s->first + c * (k + 1), 0, k + 1, 0, k);
        double *t = before;
        before = after;
        after = t;
    }
    s->bounds[n] = (uint32_t)k;
    for (size_t c = n - 1; c > 0; c--) s->bounds[c] = s->first[c * (k + 1) + s->bounds[c + 1]];
    s->bounds[0] = 0;
}

// Splits every cluster in two with the least error.
static void split_clusters(size_t n, struct st_row_scratch *s) {
    for (size_t c = n; c-- > 0;) {
        size_t a = s->bounds[c], b = s->bounds[c + 1], best = a;
        double min = INFINITY;
        for (size_t middle = a; middle <= b; middle++) {
            double cost = cost_of(s, a, middle) + cost_of(s, middle, b);
            if (cost >= min) continue;
            min = cost;
            best = middle;
        }
        s->bounds[2 * c + 1] = (uint32_t)best;
        s->bounds[2 * c + 2] = (uint32_t)b;
    }
}

// Lloyd's iteration, for so many clusters that the exact solution takes too long.
static void settle_clusters(const struct st_row *row, size_t n, struct st_row_scratch *s) {
    enum { MAX_ROUNDS = 50 };
    for (int round = 0, moved = 1; round < MAX_ROUNDS && moved; round++) {
        moved = 0;
        for (size_t c = 1; c < n; c++) {
            uint32_t a = s->bounds[c - 1], b = s->bounds[c], end = s->bounds[c + 1];
            double wa = s->sum[0][b] - s->sum[0][a], wb = s->sum[0][end] - s->sum[0][b];
            if (!(wa > 0.0) || !(wb > 0.0)) continue;
            double middle =
                ((s->sum[1][b] - s->sum[1][a]) / wa + (s->sum[1][end] - s->sum[1][b]) / wb) / 2.0;
            uint32_t at = b;
            while (at > a && (double)row->w[s->order[at - 1]] > middle) at--;
            while (at < end && (double)row->w[s->order[at]] <= middle) at++;
            moved |= at != b;
            s->bounds[c] = at;
        }
    }
}

static void kmeans_row(const struct st_row *row, struct st_row_scratch *s) {
    size_t n = st_min((size_t)1 << row->low, ST_KMEANS_EXACT);
    sort_row(row, s);
    exact_clusters(row->k, n, s);
    for (; n < (size_t)1 << row->low; n *= 2) {
        split_clusters(n, s);
        settle_clusters(row, 2 * n, s);
    }
    for (; n < (size_t)1 << row->high; n *= 2) split_clusters(n, s);
    for (size_t c = 0; c < n; c++)
        for (size_t i = s->bounds[c]; i < s->bounds[c + 1]; i++)
            row->code[s->order[i]] = (uint8_t)c;
}

// ---- Uniform steps from the smallest to the largest weight, rounded to the nearest

struct st_steps st_row_steps(const struct st_row *row) {
    float min = INFINITY, max = -INFINITY;
    for (size_t i = 0; i < row->k; i++) {
        if (row->importance[i] == 0.0f) continue;
        min = fminf(min, row->w[i]);
        max = fmaxf(max, row->w[i]);
    }
    struct st_steps s = {min, 0.0f, (float)((1u << row->high) - 1)};
    if (max > min) s.size = (max - min) / s.top;
    return s;
}

static void uniform_row(const struct st_row *row, struct st_row_scratch *scratch) {
    struct st_steps s = st_row_steps(row);
    (void)scratch;
    for (size_t i = 0; i < row->k; i++) row->code[i] = st_steps_code(&s, row->w[i]);
}

const struct st_quantizer st_quantizers[] = {
    {"kmeans", "weighted k-means of each row, split in two for each further bit", false,
     kmeans_row},
    {"uniform", "uniform steps over each row's range, rounded to the nearest", false, uniform_row},
    {"gptq", "uniform steps, errors corrected in the columns that follow", true, st_gptq_row},
    {0},
};

const struct st_quantizer *st_quantizer_find(const char *name) {
    const struct st_quantizer *q = st_quantizers;
    if (!name) return q;
    while (q->name && strcmp(q->name, name) != 0) q++;
    return q->name ? q : NULL;
}
