// SPDX-License-Identifier: Apache-2.0
// The next token from the logits: penalties, DRY, temperature, top-k, min-p, top-p, XTC, in this
// order.
#include "generate/sample.h"

#include "base/random.h"
#include "base/size.h"

#include <math.h>

// Marks the tokens of ids [n] as not seen, in the scratch of the candidates.
static void forget(const struct st_sampler *s, const int32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++) s->candidates[ids[i]].p = 0.0f;
}

static bool is_first(const struct st_sampler *s, int32_t id) {
    return s->candidates[id].p++ == 0.0f;
}

// Each distinct token of the recent ones once: positive logits divided, negative ones multiplied
// (Keskar et al. 2019).
static void penalise_repeats(const struct st_sampler *s, const stint_sampling *p, float *logits) {
    size_t n = st_min(p->repeat_last ? p->repeat_last : 64, s->n_ids);
    const int32_t *ids = s->ids + s->n_ids - n;
    forget(s, ids, n);
    for (size_t i = 0; i < n; i++) {
        float *logit = &logits[ids[i]];
        if (is_first(s, ids[i]))
            *logit = *logit > 0.0f ? *logit / p->repeat_penalty : *logit * p->repeat_penalty;
    }
}

// As the OpenAI API has them: for each time that a token was generated, and once if it was at all.
static void penalise_generated(const struct st_sampler *s, const stint_sampling *p, float *logits) {
    const int32_t *ids = s->ids + s->n_ids - s->n_generated;
    forget(s, ids, s->n_generated);
    for (size_t i = 0; i < s->n_generated; i++) {
        logits[ids[i]] -= p->frequency_penalty;
        if (is_first(s, ids[i])) logits[ids[i]] -= p->presence_penalty;
    }
}

// ---- DRY: tokens that would continue a repetition

struct dry {
    double multiplier, base;
    size_t allowed, longest; // a longer repetition costs no more than the longest
    const int32_t *ids;      // [n]
    size_t n;
};

// A token with one of these characters ends a repetition, and none continues with it: lists, names
// before what they say, and templates repeat them rightly. As in other engines by default.
static bool is_breaker(const struct st_sampler *s, int32_t id) {
    char text[ST_PIECE_MAX_BYTES];
    size_t n = s->tokenizer ? st_tokenizer_piece(s->tokenizer, id, text) : 0;
    for (size_t i = 0; i < n; i++)
        if (text[i] == '\n' || text[i] == ':' || text[i] == '"' || text[i] == '*') return true;
    return false;
}

static double dry_penalty(const struct dry *d, double length) {
    const double max = 1e6; // beyond any logit; -infinity is for tokens that must not come
    return fmin(max, d->multiplier * pow(d->base, length - (double)d->allowed));
}

static struct dry dry_of(const struct st_sampler *s, const stint_sampling *p) {
    size_t n = p->dry_penalty_last_n ? st_min(p->dry_penalty_last_n, s->n_ids) : s->n_ids;
    struct dry d = {.multiplier = (double)p->dry_multiplier,
                    .base = p->dry_base > 0.0f ? (double)p->dry_base : 1.75,
                    .allowed = p->dry_allowed_length ? p->dry_allowed_length : 2,
                    .ids = s->ids + s->n_ids - n,
                    .n = n};
    d.longest = d.allowed;
    while (d.longest < n && dry_penalty(&d, (double)d.longest) < dry_penalty(&d, (double)n))
        d.longest += d.longest / 8 + 1;
    size_t unbroken = 0;
    while (unbroken < st_min(n, d.longest) && !is_breaker(s, d.ids[n - 1 - unbroken])) unbroken++;
    d.longest = unbroken;
    return d;
}

// How many of the last tokens also stand at the end of ids[0, end).
static size_t repeated(const struct dry *d, size_t end) {
    size_t length = 0;
    while (length < st_min(end, d->longest) &&
           d->ids[end - 1 - length] == d->ids[d->n - 1 - length])
        length++;
    return length;
}

// A candidate's p is the length of the longest repetition that it would continue.
static void penalise_repetitions(const struct st_sampler *s, const stint_sampling *p,
                                 float *logits) {
    struct dry d = dry_of(s, p);
    struct st_candidate *c = s->candidates;
    forget(s, d.ids, d.n);
    for (size_t end = 1; end < d.n; end++) {
        float length = (float)repeated(&d, end);
        if (length > c[d.ids[end]].p) c[d.ids[end]].p = length;
    }
    for (size_t i = 0; i < d.n; i++) {
        float length = c[d.ids[i]].p;
        c[d.ids[i]].p = 0.0f; // once for each token
        if (length >= (float)d.allowed && !is_breaker(s, d.ids[i]))
            logits[d.ids[i]] -= (float)dry_penalty(&d, (double)length);
    }
}

static void penalise(const struct st_sampler *s, const stint_sampling *p, float *logits) {
    if (p->repeat_penalty > 0.0f && p->repeat_penalty != 1.0f) penalise_repeats(s, p, logits);
    if (p->presence_penalty != 0.0f || p->frequency_penalty != 0.0f)
        penalise_generated(s, p, logits);
    if (p->dry_multiplier > 0.0f) penalise_repetitions(s, p, logits);
}

static int by_id(const struct st_candidate *x, const struct st_candidate *y) {
    return x->id < y->id ? -1 : x->id > y->id;
}

static int by_probability(const struct st_candidate *x, const struct st_candidate *y) {
    if (x->p != y->p) return x->p > y->p ? -1 : 1;
    return by_id(x, y); // a total order: the same for every sort
}

// Moves the k most likely of n to the front, in no order (quickselect under by_probability).
static void select_best(struct st_candidate *c, size_t n, size_t k) {
    size_t low = 0, high = n;
    while (high - low > 1) {
        struct st_candidate pivot = c[low + (high - low) / 2];
        size_t i = low, j = high - 1;
        for (;;) {
            while (by_probability(&c[i], &pivot) < 0) i++;
            while (by_probability(&c[j], &pivot) > 0) j--;
            if (i >= j) break;
            struct st_candidate swap = c[i];
            c[i++] = c[j];
            c[j--] = swap;
        }
        size_t split = j + 1; // [low, split) are at least as likely as [split, high)
        if (split == high) split--;
        if (split == k) return;
        if (split > k)
            high = split;
        else
            low = split;
    }
}

static void shell_sort(struct st_candidate *c, size_t n,
                       int (*order)(const struct st_candidate *, const struct st_candidate *)) {
    for (size_t gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11)
        for (size_t i = gap; i < n; i++) {
            struct st_candidate item = c[i];
            size_t j = i;
            for (; j >= gap && order(&item, &c[j - gap]) < 0; j -= gap) c[j] = c[j - gap];
            c[j] = item;
        }
}

// Sorts as many of the likeliest to the front as it takes to reach `share` of the sum; returns how
// many.
static size_t cut_top_p(struct st_candidate *c, size_t n, double sum, double share) {
    for (size_t k = st_min(n, 64);; k = st_min(n, k * 8)) {
        double total = 0.0;
        if (k < n) select_best(c, n, k);
        shell_sort(c, k, by_probability);
        for (size_t i = 0; i < k; i++) {
            total += (double)c[i].p;
            if (total >= share * sum) return i + 1;
        }
        if (k == n) return n;
    }
}

// Whether XTC applies is drawn apart from the token, so that it does not shift the other draws.
static bool excludes_top(const struct st_sampler *s, const stint_sampling *p) {
    const uint64_t stream = UINT64_C(0x5851f42d4c957f2d);
    return p->xtc_probability > 0.0f &&
           st_random_draw(p->seed ^ stream, s->n_generated) < (double)p->xtc_probability;
}

// XTC: of the tokens that have at least the threshold's share, all but the least likely go. Returns
// how many are left.
static size_t exclude_top(const stint_sampling *p, struct st_candidate *c, size_t n) {
    double sum = 0.0, threshold = p->xtc_threshold > 0.0f ? (double)p->xtc_threshold : 0.1;
    const struct st_candidate *least = NULL;
    for (size_t i = 0; i < n; i++) sum += (double)c[i].p;
    for (size_t i = 0; i < n; i++)
        if ((double)c[i].p >= threshold * sum && (!least || by_probability(&c[i], least) > 0))
            least = &c[i];
    if (!least) return n;
    struct st_candidate stays = *least;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (by_probability(&c[i], &stays) >= 0) c[kept++] = c[i];
    return kept;
}

static int32_t draw_from(const struct st_candidate *c, size_t n, double draw) {
    double sum = 0.0, at = 0.0;
    size_t last = 0; // that is possible at all
    for (size_t i = 0; i < n; i++) sum += (double)c[i].p;
    for (size_t i = 0; i < n; i++) {
        at += (double)c[i].p;
        if (at > draw * sum) return c[i].id;
        if (c[i].p > 0.0f) last = i;
    }
    return c[last].id;
}

// At most the k-th best logit: at least k blocks have one that is as good.
static float bar_of_blocks(const struct st_sampler *s, const float *logits, size_t k) {
    enum { BLOCK = 64 };
    struct st_candidate *c = s->candidates;
    size_t n = s->vocab / BLOCK;
    float bar = INFINITY;
    if (k > n) return -INFINITY;
    for (size_t b = 0; b < n; b++) {
        const float *block = logits + b * BLOCK;
        c[b] = (struct st_candidate){block[s->elementwise->argmax(block, BLOCK)], (int32_t)b};
    }
    select_best(c, n, k);
    for (size_t b = 0; b < k; b++) bar = fminf(bar, c[b].p);
    return bar;
}

// Collects the tokens that top-k and min-p may leave, with their weights relative to the best one.
// Most of a vocabulary is far below: a comparison for each instead of an exponential.
static size_t collect(const struct st_sampler *s, const stint_sampling *p, const float *logits,
                      float best) {
    const float margin = 1e-4f; // in which weights may be equal
    struct st_candidate *c = s->candidates;
    float bar = p->top_k ? bar_of_blocks(s, logits, p->top_k) : -INFINITY;
    if (p->min_p > 0.0f) bar = fmaxf(bar, best + p->temperature * logf(p->min_p));
    bar -= margin * p->temperature;
    size_t n = 0;
    for (size_t i = 0; i < s->vocab; i++)
        if (logits[i] >= bar && logits[i] > -INFINITY)
            c[n++] =
                (struct st_candidate){expf((logits[i] - best) / p->temperature), (int32_t)i};
    return n;
}

int32_t st_sample(const struct st_sampler *s, const stint_sampling *sampling, double draw,
                  float *logits) {
    struct st_candidate *c = s->candidates;
    if (sampling) penalise(s, sampling, logits);
    size_t best = s->elementwise->argmax(logits, s->vocab);
    if (!sampling || sampling->temperature <= 0.0f || sampling->top_k == 1) return (int32_t)best;
    double sum = 0.0;
    size_t n = collect(s, sampling, logits, logits[best]);
    if (sampling->top_k != 0 && sampling->top_k < n) {
        select_best(c, n, sampling->top_k);
        n = sampling->top_k;
        shell_sort(c, n, by_id);
    }
    if (sampling->min_p > 0.0f) { // relative to the likeliest, whose weight is 1
        size_t kept = 0;
        for (size_t i = 0; i < n; i++)
            if (c[i].p >= sampling->min_p) c[kept++] = c[i];
        n = kept;
    }
    for (size_t i = 0; i < n; i++) sum += (double)c[i].p;
    if (sampling->top_p > 0.0f && sampling->top_p < 1.0f)
        n = cut_top_p(c, n, sum, (double)sampling->top_p);
    if (excludes_top(s, sampling)) n = exclude_top(sampling, c, n);
    return draw_from(c, n, draw);
}
