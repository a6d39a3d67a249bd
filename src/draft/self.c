// SPDX-License-Identifier: Apache-2.0
#include "draft/self.h"

#include "base/size.h"

#include <math.h>

// By the margin: how often the token is right, before anything was seen.
static const struct {
    float below;
    float right; // of PRIOR_TRIES
} classes[ST_SELF_CLASSES] = {{0.0f, 1.0f}, {0.5f, 1.8f}, {1.0f, 2.4f},
                              {2.0f, 3.0f}, {4.0f, 3.6f}, {INFINITY, 3.9f}};

static const float PRIOR_TRIES = 4.0f, PRIOR_RIGHT = 3.2f, MAX_TRIES = 256.0f;

// The first steps at a precision read weights that are not in the caches yet, or not in memory.
enum { TRUSTED = 3, MAX_IDLE = 512 };

static int class_of(float margin) {
    int i = 0;
    while (i < ST_SELF_CLASSES - 1 && margin >= classes[i].below) i++;
    return i;
}

void st_self_draft_at(struct st_self_draft *d, unsigned bits, unsigned target) {
    if (d->bits != bits || d->target != target)
        *d = (struct st_self_draft){.bits = bits, .target = target};
}

// ---- Of the head

void st_draft_head_observe(struct st_draft_head *h, bool outside) {
    h->n += 1.0f;
    h->outside += outside;
    if (h->n < MAX_TRIES) return;
    h->n /= 2.0f;
    h->outside /= 2.0f;
}

// A token that cannot be drafted costs the draft that it ends, those that would follow it, and the
// rows that verify them.
bool st_draft_head_is_enough(const struct st_draft_head *h, double saved) {
    const double cost = 2.0, prior_n = 16.0, prior_outside = 1.0;
    return cost * ((double)h->outside + prior_outside) < saved * ((double)h->n + prior_n);
}

// ---- How often they are right

static double chance_of(const struct st_self_draft *d, int c) {
    return (double)((d->right[c] + classes[c].right) / (d->tried[c] + PRIOR_TRIES));
}

double st_self_draft_chance(const struct st_self_draft *d, float margin) {
    return chance_of(d, class_of(margin));
}

void st_self_draft_observe(struct st_self_draft *d, float margin, bool right) {
    int c = class_of(margin);
    d->tried[c] += 1.0f;
    d->right[c] += right;
    if (d->tried[c] < MAX_TRIES) return;
    d->tried[c] /= 2.0f;
    d->right[c] /= 2.0f;
}

static float tries_of(const struct st_self_draft *d) {
    float tried = 0.0f;
    for (int c = 0; c < ST_SELF_CLASSES; c++) tried += d->tried[c];
    return tried;
}

// Of a token whose margin is not known yet.
static double mean_chance(const struct st_self_draft *d) {
    double right = (double)PRIOR_RIGHT, tried = (double)(PRIOR_TRIES + tries_of(d));
    for (int c = 0; c < ST_SELF_CLASSES; c++) right += (double)d->right[c];
    return right / tried;
}

// ---- What they cost

static bool is_known(const struct st_self_draft *d) {
    return d->n_trusted >= TRUSTED;
}

// Of a step that drafts for so many texts.
static double seconds_of(const struct st_self_draft *d, const struct st_draft_costs *costs,
                         size_t n_texts) {
    size_t n = n_texts;
    while (n > 1 && d->seconds[n] <= 0.0) n--;
    double hoped = 0.5 * st_draft_cost(costs, n_texts), known = d->seconds[n];
    if (n < n_texts) known *= st_draft_cost(costs, n_texts) / st_draft_cost(costs, n);
    return known > 0.0 && (is_known(d) || known < hoped) ? known : hoped;
}

double st_self_draft_measure(struct st_self_draft *d, const struct st_draft_costs *costs,
                             size_t n_rows, double seconds) {
    double expected = seconds_of(d, costs, n_rows), *known = &d->seconds[n_rows];
    if (is_known(d) || *known <= 0.0)
        *known = st_draft_average(*known, seconds);
    else
        *known = fmin(*known, seconds);
    d->n_idle = 0;
    if (d->n_trusted < TRUSTED) d->n_trusted++;
    return st_draft_undisturbed(seconds, expected);
}

// Of a step that verifies, with n_rows.
static double verifying(const struct st_self_draft *d, const struct st_draft_costs *costs,
                        const struct st_self_case *about, size_t n_rows) {
    double plain = costs->plain[about->n_all], cost = plain;
    if (n_rows > about->n_all) cost = fmax(plain, st_draft_cost(costs, n_rows));
    double hoped = plain * (1.0 + 0.05 * (double)(n_rows - about->n_all));
    return is_known(d) ? cost : fmin(cost, hoped);
}

double st_self_draft_hope(const struct st_self_draft *d) {
    return is_known(d) ? mean_chance(d) : 0.0;
}

// ---- What pays

struct st_self_plan st_self_draft_plan(const struct st_self_draft *d,
                                       const struct st_draft_costs *costs,
                                       const struct st_self_case *about) {
    const double worth = 1.02; // a smaller gain is not certain
    struct st_self_plan plan = {0};
    double plain = costs->plain[about->n_all], allowed = st_draft_allowed(costs, about->n_all);
    if (costs->bits != d->target || plain <= 0.0 || st_draft_is_due(costs)) return plan;
    double tokens = about->tokens, chance = (double)about->n_texts;
    plan.without = tokens / verifying(d, costs, about, about->n_rows);
    double best = worth * plan.without;
    size_t max = is_known(d) ? about->max : st_min(about->max, 1);
    for (size_t k = 1; k <= max; k++) {
        size_t rows = about->n_rows + k * about->n_texts;
        double seconds =
            (double)k * seconds_of(d, costs, about->n_texts) + verifying(d, costs, about, rows);
        tokens += chance *= mean_chance(d);
        if (rows > 2 * st_max(costs->longest, about->n_all) || seconds - plain > allowed) break;
        plan.max = k;
        if (tokens / seconds > best) best = plan.rate = tokens / seconds;
    }
    return plan;
}

size_t st_self_draft_select(const struct st_self_draft drafts[ST_SELF_WAYS],
                            const struct st_self_plan plans[ST_SELF_WAYS], uint32_t turn) {
    enum { OFTEN = 16, SELDOM = 128 }; // turns from one trial to the next
    const float enough = 48.0f;        // tries
    if (!drafts[1].bits) return 0;
    bool unknown = tries_of(&drafts[1]) < enough;
    size_t best = !unknown && plans[1].rate > plans[0].rate;
    uint32_t every = unknown ? OFTEN : SELDOM;
    size_t other = 1 - best;
    return turn % every == every - 1 && plans[other].rate > 0.0 ? other : best;
}

bool st_self_draft_goes_on(const struct st_self_draft *d, const struct st_draft_costs *costs,
                           double rate, double chance, size_t n_texts) {
    double row = fmax(0.0, st_draft_cost(costs, 3) - st_draft_cost(costs, 2));
    double cost = seconds_of(d, costs, n_texts) / (double)n_texts + row;
    return costs->always || chance * mean_chance(d) > rate * cost;
}

void st_self_draft_idle(struct st_self_draft *d) {
    if (++d->n_idle < MAX_IDLE) return;
    d->n_idle = 0;
    d->n_trusted = st_min(d->n_trusted, TRUSTED - 1);
    for (int c = 0; c < ST_SELF_CLASSES; c++) {
        d->tried[c] /= 2.0f;
        d->right[c] /= 2.0f;
    }
}
