// SPDX-License-Identifier: Apache-2.0
// Whether drafts by fewer bits are worth their memory: what a token costs under a bound.
#include "session/weights/bounded.h"

#include <math.h>

enum { MOST_DRAFTS = 7 }; // that a step verifies under a bound

// Assumed, as nothing is measured before a session is planned: a draft is right in so many cases,
// and memory is read fifteen times as fast as a file.
static const double RIGHT = 0.8;
static const struct st_byte_seconds ASSUMED = {.file = 15.0, .memory = 1.0};

// What drafts must be expected to save at least, as they also take memory.
static const double DRAFT_GAIN = 0.7;

// What the rows of a step cost beside its first one, in such steps without reading.
static const double ROW = 0.15;

struct pass {
    double read, memory; // bytes
};

static double memory_bytes(const struct stint_model *m, const struct st_bounded *r, unsigned bits) {
    double all = (double)stint_model_bytes_per_token(m, bits);
    bool in_part = r->pins.drafts >> bits & 1;
    return in_part ? all * (1.0 - st_draft_head_saves(m, bits)) : all;
}

// What is read of a region by one pass after another of the same kind.
static double read_bytes(const struct st_bounded *r, int region, unsigned bits) {
    uint32_t lent[ST_N_REGIONS];
    unsigned pass = bits ? st_pass_nested(bits) : ST_PASS_STEP;
    struct st_slices_used used = st_slices_of_pass(&r->source, &r->plan, region, pass, NULL);
    st_bounded_lent(r, r->budget.prompt, bits, lent);
    size_t entries = (size_t)r->plan.n_entries[region] + lent[region];
    if ((double)entries >= used.slices) return 0.0;
    return used.bytes * (1.0 - (double)st_slices_staying(entries) / used.slices);
}

static struct pass pass_of(const struct stint_model *m, const struct st_bounded *r, unsigned bits) {
    const struct st_config *c = &m->config;
    double used = c->n_experts ? (double)c->n_experts_used / c->n_experts : 1.0;
    return (struct pass){.read = read_bytes(r, ST_REGION_FIXED, bits) +
                                 used * read_bytes(r, ST_REGION_STREAM, bits),
                         .memory = memory_bytes(m, r, bits ? bits : ST_PRECISION_INT8)};
}

// Of the best number of drafts up to `most`. Reading and computing overlap.
static double token_seconds(const struct stint_model *m, const struct st_bounded *r,
                            const struct st_byte_seconds *speed, int most) {
    unsigned bits = st_pins_highest(st_needs_without_drafts(&r->needs).precisions);
    unsigned drafts = st_pins_highest(r->needs.drafts);
    struct pass draft = {0.0, 0.0};
    double best = INFINITY, tokens = 1.0, chance = 1.0;
    if (drafts) draft = pass_of(m, r, drafts);
    struct pass whole = pass_of(m, r, r->needs.int8_steps ? 0 : bits);
    for (int n = 0; n <= (drafts ? most : 0); n++) {
        double seconds =
            n * fmax(draft.read * speed->file, draft.memory * speed->memory) +
            fmax(whole.read * speed->file, whole.memory * speed->memory * (1.0 + ROW * n));
        best = fmin(best, seconds / tokens);
        tokens += chance *= RIGHT;
    }
    return best;
}

double st_bounded_token_cost(const struct stint_model *m, const struct st_bounded *r) {
    return token_seconds(m, r, &ASSUMED, MOST_DRAFTS);
}

double st_bounded_draft_gain(const struct stint_model *m, const struct st_bounded *r,
                             const struct st_byte_seconds *speed) {
    double drafted = token_seconds(m, r, speed, MOST_DRAFTS);
    return drafted > 0.0 ? token_seconds(m, r, speed, 0) / drafted : 1.0;
}

// Plans with and without the weights that only draft, whichever makes steps faster.
stint_status st_bounded_divide_best(const struct stint_model *m, struct st_bounded *r) {
    const struct st_needs with = r->needs, without = st_needs_without_drafts(&with);
    if (!with.drafts) return st_bounded_divide(m, r);
    stint_status status = st_bounded_divide(m, r);
    if (status != STINT_OK && status != STINT_E_LIMIT) return status;
    double drafted = status == STINT_OK ? st_bounded_token_cost(m, r) : INFINITY;
    r->needs = without;
    ST_TRY(st_bounded_divide(m, r));
    if (!(drafted < DRAFT_GAIN * st_bounded_token_cost(m, r))) return STINT_OK;
    r->needs = with;
    return st_bounded_divide(m, r);
}
