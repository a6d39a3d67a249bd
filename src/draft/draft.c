// SPDX-License-Identifier: Apache-2.0
#include "draft/draft.h"

#include <math.h>
#include <string.h>

// By the length of the match: how often its next token is right, before anything was seen.
static const struct {
    int32_t longest;
    float right; // of PRIOR_TRIES
} classes[ST_DRAFT_CLASSES] = {{1, 1.0f}, {2, 1.6f},  {4, 2.2f},
                               {8, 2.8f}, {16, 3.2f}, {INT32_MAX, 3.6f}};

enum { TRUSTED = 3, OFTEN = 8 }; // steps without drafts

static const float PRIOR_TRIES = 4.0f, MAX_TRIES = 64.0f;

static int class_of(size_t length) {
    int i = 0;
    while ((int64_t)length > classes[i].longest) i++;
    return i;
}

// ---- Proposals

void st_draft_lay_out(struct st_draft *draft, size_t n_context, struct st_arena *arena) {
    st_suffix_lay_out(&draft->suffix, n_context, arena);
}

static double chance_of(const struct st_draft *d, size_t length) {
    int c = class_of(length);
    return (double)((d->right[c] + classes[c].right) / (d->tried[c] + PRIOR_TRIES));
}

// Compares what would have been proposed with what came.
static void observe(struct st_draft *d, int32_t token) {
    size_t end, length = st_suffix_match(&d->suffix, &end);
    int c = class_of(length);
    if (length == 0) return;
    d->tried[c] += 1.0f;
    d->right[c] += d->suffix.text[end] == token;
    if (d->tried[c] < MAX_TRIES) return;
    d->tried[c] /= 2.0f;
    d->right[c] /= 2.0f;
}

void st_draft_follow(struct st_draft *d, const int32_t *text, size_t n, size_t n_generated) {
    struct st_suffix *s = &d->suffix;
    if (s->n > n || (s->n > 0 && memcmp(s->text, text, s->n * sizeof *text) != 0))
        st_suffix_clear(s);
    for (size_t i = s->n; i < n; i++) {
        if (i + n_generated >= n) observe(d, text[i]);
        st_suffix_push(s, text[i]);
    }
}

size_t st_draft_propose(const struct st_draft *d, size_t max, int32_t *ids, double *chances) {
    const struct st_suffix *s = &d->suffix;
    size_t end, length = st_suffix_match(s, &end);
    double chance = 1.0;
    if (length == 0) return 0;
    for (size_t i = 0; i < max; i++) {
        ids[i] = end + i < s->n ? s->text[end + i] : ids[end + i - s->n]; // which repeats
        chance *= chance_of(d, length + i);
        chances[i] = chance;
    }
    return max;
}

// ---- Costs

double st_draft_average(double old, double seconds) {
    if (old <= 0.0) return seconds;
    return seconds < old ? old + 0.5 * (seconds - old)
                         : old + 0.1 * (fmin(seconds, 2.0 * old) - old);
}

double st_draft_undisturbed(double seconds, double expected) {
    const double scatter = 1.5;
    return expected > 0.0 ? fmin(seconds, scatter * expected) : seconds;
}

struct line {
    double rows, seconds, slope; // through this point
};

static struct line line_of(const struct st_draft_costs *c) {
    const double first_slope = 0.35; // in seconds of one row
    double single = c->plain[1], weight = c->sums[0];
    struct line l = {1.0, single, first_slope * single};
    if (weight <= 0.0) return l;
    l.rows = c->sums[1] / weight;
    l.seconds = c->sums[3] / weight;
    double spread = c->sums[2] / weight - l.rows * l.rows;
    if (spread > 0.1)
        l.slope = (c->sums[4] / weight - l.rows * l.seconds) / spread;
    else if (single > 0.0)
        l.slope = (l.seconds - single) / (l.rows - 1.0);
    else
        l.slope = first_slope * l.seconds / l.rows;
    l.slope = fmax(0.0, l.slope);
    return l;
}

double st_draft_cost(const struct st_draft_costs *c, size_t n_rows) {
    struct line l = line_of(c);
    if (n_rows == 1 && c->plain[1] > 0.0) return c->plain[1];
    return fmax(c->plain[1], l.seconds + l.slope * ((double)n_rows - l.rows));
}

// Of the last fifty steps or so; a disturbance counts little.
static void fit(struct st_draft_costs *c, double rows, double seconds) {
    const double decay = 0.98;
    if (c->sums[0] > 0.0) seconds = fmin(seconds, 2.0 * st_draft_cost(c, (size_t)rows));
    const double x[] = {1.0, rows, rows * rows, seconds, rows * seconds};
    for (int i = 0; i < 5; i++) c->sums[i] = decay * c->sums[i] + x[i];
}

bool st_draft_is_due(const struct st_draft_costs *c) {
    enum { FIRST = 16, THEN = 64, LATER = 256 }; // steps with drafts from one without to the next
    unsigned every = c->n_plain < TRUSTED ? FIRST : c->n_plain < OFTEN ? THEN : LATER;
    return !c->always && c->n_drafted >= every;
}

void st_draft_measure(struct st_draft_costs *c, const struct st_draft_step *step) {
    double rows = (double)step->n_rows;
    if (step->bits != c->bits)
        *c = (struct st_draft_costs){.always = c->always, .total = c->total, .gain = c->gain};
    c->bits = step->bits;
    // Of more rows than ever nothing is expected: slower may be what they cost.
    bool known = c->plain[1] > 0.0 && step->n_rows <= c->longest;
    double expected = known ? st_draft_cost(c, step->n_rows) : 0.0;
    double seconds = st_draft_undisturbed(step->seconds, expected) + step->drafting;
    c->total += seconds;
    if (step->n_rows > c->longest) c->longest = step->n_rows;
    if (step->n_rows > 1) fit(c, rows, step->seconds);
    if (step->n_rows == step->n_texts) {
        double *plain = &c->plain[step->n_rows];
        bool first = *plain > 0.0 && c->n_plain < TRUSTED;
        *plain = first ? fmin(*plain, step->seconds) : st_draft_average(*plain, step->seconds);
        c->n_plain += c->n_plain < OFTEN;
        c->n_drafted = 0;
        return;
    }
    c->n_drafted++;
    double plain = c->plain[step->n_texts];
    c->gain += plain * (double)step->n_tokens / (double)step->n_texts - seconds;
    // What was won long ago is no reason to lose now.
    c->gain = fmin(c->gain, 8.0 * plain);
}

double st_draft_allowed(const struct st_draft_costs *c, size_t n_texts) {
    return c->gain + 0.003 * c->total + 0.75 * c->plain[n_texts];
}

size_t st_draft_select(const struct st_draft_costs *c, unsigned bits, size_t n_texts,
                       const double *chances, size_t n) {
    const double worth = 1.02; // a smaller gain is not certain
    double plain = c->plain[n_texts], tokens = (double)n_texts;
    if (c->always) return n;
    if (bits != c->bits || plain <= 0.0 || st_draft_is_due(c)) return 0;
    double allowed = st_draft_allowed(c, n_texts), best = worth * tokens / plain;
    // A line says little about steps of many more rows than those that were measured.
    size_t known = c->longest > n_texts ? c->longest : n_texts, best_n = 0;
    for (size_t i = 0; i < n && n_texts + i + 1 <= 2 * known; i++) {
        double cost = fmax(plain, st_draft_cost(c, n_texts + i + 1));
        tokens += chances[i];
        if (cost - plain > allowed) break;
        if (tokens / cost <= best) continue;
        best = tokens / cost;
        best_n = i + 1;
    }
    return best_n;
}
