// SPDX-License-Identifier: Apache-2.0
#include "prepare/allocate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Bits that a weight may have beyond its precision, so that real models hold (docs/DECISIONS.md):
// the fewer there are, the more a model depends on the linears that need more.
struct budget {
    double least, most; // how many: more than the least only until
    double goal;        // the loss is at most this
};

static const struct budget budgets[ST_NESTED_HIGHEST + 1] = {[2] = {0.94, 0.94, 0.0},
                                                             [3] = {0.7, 0.95, 0.030},
                                                             [4] = {0.5, 0.65, 0.012},
                                                             [5] = {0.5, 0.5, 0.0},
                                                             [6] = {0.5, 0.5, 0.0}};

static const double budget_step = 0.05;

// A linear's next bit.
struct step {
    uint32_t linear;
    uint8_t bits; // before
    double gain;  // of loss, for each weight
};

double st_allocation_budget(unsigned precision) {
    return (double)precision + budgets[precision].most;
}

unsigned st_allocation_most(unsigned high) {
    return high < ST_NESTED_HIGHEST ? high + 1 : high;
}

double st_allocation_mean(const struct st_allocation *linears, size_t n, unsigned precision) {
    double bits = 0.0, weights = 0.0;
    for (size_t i = 0; i < n; i++) {
        bits += (double)linears[i].n_weights * linears[i].bits[precision];
        weights += (double)linears[i].n_weights;
    }
    return bits / weights;
}

static int by_gain(const void *a, const void *b) {
    const struct step *x = a, *y = b;
    if (x->gain > y->gain || x->gain < y->gain) return x->gain > y->gain ? -1 : 1;
    if (x->linear != y->linear) return x->linear < y->linear ? -1 : 1;
    return x->bits < y->bits ? -1 : x->bits > y->bits;
}

// All steps to `most` bits that gain anything, those that gain most first. A linear's steps are in
// their order, as none gains more than the one before it.
static size_t sort_steps(const struct st_allocation *linears, size_t n, unsigned most,
                         struct step *steps) {
    size_t n_steps = 0;
    for (size_t i = 0; i < n; i++) {
        const struct st_allocation *l = &linears[i];
        double gain = INFINITY;
        for (unsigned bits = ST_NESTED_LOWEST; bits < most; bits++) {
            gain = fmin(gain, (l->loss[bits] - l->loss[bits + 1]) / (double)l->n_weights);
            if (!(gain > 0.0)) break;
            steps[n_steps++] = (struct step){(uint32_t)i, (uint8_t)bits, gain};
        }
    }
    qsort(steps, n_steps, sizeof *steps, by_gain);
    return n_steps;
}

struct search {
    const struct st_allocation *linears;
    size_t n, largest; // of the linears, the one with the most weights
    double weights;
    unsigned most;
    struct step *steps;
    size_t n_steps;
    uint8_t *bits, *trial, *best; // [n] so far; what is tried; the best of these
};

static double used_by(const struct search *s, const uint8_t *bits) {
    double used = 0.0;
    for (size_t i = 0; i < s->n; i++) used += (double)s->linears[i].n_weights * bits[i];
    return used;
}

static double loss_of(const struct search *s, const uint8_t *bits) {
    double loss = 0.0;
    for (size_t i = 0; i < s->n; i++) loss += s->linears[i].loss[bits[i]];
    return loss;
}

// Spends what is left of a budget, but for the largest linear.
static void spend(const struct search *s, double budget, uint8_t *bits) {
    double used = used_by(s, bits);
    for (size_t i = 0; i < s->n_steps; i++) {
        const struct step *step = &s->steps[i];
        double more = used + (double)s->linears[step->linear].n_weights;
        if (step->linear == s->largest || bits[step->linear] != step->bits || more > budget)
            continue;
        bits[step->linear]++;
        used = more;
    }
}

// The largest linear, often the head, may have a quarter of all weights: when its turn comes, too
// little is left of a budget. So each number of bits is tried for it. Returns the loss.
static double spend_best(const struct search *s, double budget) {
    const struct st_allocation *largest = &s->linears[s->largest];
    double best = INFINITY;
    for (unsigned b = s->bits[s->largest]; b <= s->most; b++) {
        memcpy(s->trial, s->bits, s->n);
        s->trial[s->largest] = (uint8_t)b;
        if (b > s->bits[s->largest] &&
            (largest->loss[b] >= largest->loss[b - 1] || used_by(s, s->trial) > budget))
            break;
        spend(s, budget, s->trial);
        double loss = loss_of(s, s->trial);
        if (!(loss <= best)) continue;
        best = loss;
        memcpy(s->best, s->trial, s->n);
    }
    return best;
}

static void allocate(const struct search *s, struct st_allocation *linears, unsigned low,
                     unsigned high) {
    for (unsigned at = low; at <= high; at++) {
        const struct budget *b = &budgets[at];
        double more = b->least;
        while (spend_best(s, ((double)at + more) * s->weights) > b->goal && more < b->most)
            more = fmin(more + budget_step, b->most);
        memcpy(s->bits, s->best, s->n);
        for (size_t i = 0; i < s->n; i++) linears[i].bits[at] = s->bits[i];
    }
}

stint_status st_allocate_bits(struct st_allocation *linears, size_t n, unsigned low,
                              unsigned high) {
    struct search s = {.linears = linears, .n = n, .most = st_allocation_most(high)};
    s.steps = malloc((n * (s.most - ST_NESTED_LOWEST) + 1) * sizeof *s.steps);
    s.bits = malloc(3 * n + 1);
    if (!s.steps || !s.bits) {
        free(s.steps);
        free(s.bits);
        return st_fail(STINT_E_NOMEM, "no memory to allocate bits to %zu linears", n);
    }
    s.trial = s.bits + n;
    s.best = s.trial + n;
    memset(s.bits, ST_NESTED_LOWEST, n);
    for (size_t i = 0; i < n; i++) {
        s.weights += (double)linears[i].n_weights;
        if (linears[i].n_weights > linears[s.largest].n_weights) s.largest = i;
    }
    s.n_steps = sort_steps(linears, n, s.most, s.steps);
    if (n) allocate(&s, linears, low, high);
    free(s.steps);
    free(s.bits);
    return STINT_OK;
}
