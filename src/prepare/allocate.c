// SPDX-License-Identifier: Apache-2.0
#include "prepare/allocate.h"

#include <math.h>
#include <stdlib.h>

// Bits that a weight may have beyond its precision, so that real models hold (docs/DECISIONS.md):
// the fewer there are, the more a model depends on the linears that need more.
static const double more_bits[ST_NESTED_HIGHEST + 1] = {
    [2] = 0.94, [3] = 0.7, [4] = 0.5, [5] = 0.5, [6] = 0.5};

// A linear's next bit.
struct step {
    uint32_t linear;
    uint8_t bits; // before
    double gain;  // of loss, for each weight
};

double st_allocation_budget(unsigned precision) {
    return (double)precision + more_bits[precision];
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

stint_status st_allocate_bits(struct st_allocation *linears, size_t n, unsigned low,
                              unsigned high) {
    unsigned most = st_allocation_most(high);
    struct step *steps = malloc((n * (most - ST_NESTED_LOWEST) + 1) * sizeof *steps);
    uint8_t *bits = malloc(n + 1);
    double weights = 0.0;
    if (!steps || !bits) {
        free(steps);
        free(bits);
        return st_fail(STINT_E_NOMEM, "no memory to allocate bits to %zu linears", n);
    }
    for (size_t i = 0; i < n; i++) {
        bits[i] = ST_NESTED_LOWEST;
        weights += (double)linears[i].n_weights;
    }
    size_t n_steps = sort_steps(linears, n, most, steps);
    double used = ST_NESTED_LOWEST * weights;
    for (unsigned precision = low; precision <= high; precision++) {
        double budget = st_allocation_budget(precision) * weights;
        for (size_t s = 0; s < n_steps; s++) {
            const struct step *step = &steps[s];
            double more = used + (double)linears[step->linear].n_weights;
            if (bits[step->linear] != step->bits || more > budget) continue;
            bits[step->linear]++;
            used = more;
        }
        for (size_t i = 0; i < n; i++) linears[i].bits[precision] = bits[i];
    }
    free(steps);
    free(bits);
    return STINT_OK;
}
