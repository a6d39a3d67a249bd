// SPDX-License-Identifier: Apache-2.0
#include "neuron/expect.h"

#include "base/loader.h"

#include <math.h>

enum { HALVINGS = 40 };
static const double max_exponent = 1e4, max_age = 1e9;

// The pieces that stay, all but those that are held, are hit; which ones these are moves on slowly,
// so each piece is among them for its share of the rounds.
double st_expect_cyclic(double n_ids, double n_entries, double held) {
    if (n_entries >= n_ids) return 0.0;
    if (n_entries <= held) return n_ids;
    return n_ids * (n_ids - n_entries) / (n_ids - held);
}

// ---- Cold neurons

// What is in the package may be no probability.
static double rate_of(const struct st_cold_region *r, uint32_t layer, uint32_t entry) {
    return fmin(fmax((double)r->rates[(size_t)layer * r->n_entries + entry], 0.0), 1.0);
}

// Entries that were wanted at least once within `age` tokens; of those that stay.
static double distinct(const struct st_cold_region *r, double age) {
    double sum = 0.0;
    for (uint32_t i = 0; i < r->n_layers; i++)
        for (uint32_t e = r->first[i]; e < r->kept[i]; e++)
            sum += st_expect_predicted(rate_of(r, i, e), age);
    return sum;
}

// The region holds what was wanted since the entry that is evicted next: as many as there is room
// for (Che's approximation).
double st_expect_age(const struct st_cold_region *r, double room) {
    double low = 0.0, high = max_age;
    if (room <= 0.0) return 0.0;
    if (distinct(r, max_age) <= room) return INFINITY;
    for (int step = 0; step < HALVINGS; step++) {
        double middle = (low + high) / 2;
        if (distinct(r, middle) < room)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static double sum_rates(const struct st_cold_region *r, uint32_t layer, uint32_t from) {
    double sum = 0.0;
    for (uint32_t e = from; e < r->n_entries; e++) sum += rate_of(r, layer, e);
    return sum;
}

double st_expect_wanted(const struct st_cold_region *region, uint32_t layer) {
    return sum_rates(region, layer, region->first[layer]);
}

// Whether it was wanted within the last tokens, of which there are whole ones only.
static double within(double rate, double age) {
    double whole = floor(age), part = age - whole, low = st_expect_predicted(rate, whole);
    if (isinf(age)) return 1.0;
    return low + part * (st_expect_predicted(rate, whole + 1.0) - low);
}

// What does not stay is read by every token that wants it, and takes the room of its layer's from
// the others until the next layer runs.
void st_expect_cold(const struct st_cold_region *r, double n_cold, double *misses) {
    double passing = 0.0;
    for (uint32_t i = 0; i < r->n_layers; i++) passing += misses[i] = sum_rates(r, i, r->kept[i]);
    double age = st_expect_age(r, n_cold - passing / r->n_layers);
    for (uint32_t i = 0; i < r->n_layers; i++)
        for (uint32_t e = r->first[i]; e < r->kept[i]; e++) {
            double rate = rate_of(r, i, e);
            misses[i] += rate * (1.0 - within(rate, age));
        }
}

// ---- Predictors

double st_expect_predicted(double rate, double exponent) {
    if (rate <= 0.0 || exponent <= 0.0) return 0.0;
    return rate < 1.0 ? -expm1(exponent * log1p(-rate)) : 1.0;
}

static double mean_predicted(const float *rates, size_t n, double exponent) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += st_expect_predicted((double)rates[i], exponent);
    return n ? sum / (double)n : 0.0;
}

double st_expect_exponent(const float *rates, size_t n, double mean) {
    double low = 0.0, high = 1.0;
    while (high < max_exponent && mean_predicted(rates, n, high) < mean) high *= 2;
    for (int step = 0; step < HALVINGS; step++) {
        double middle = (low + high) / 2;
        if (mean_predicted(rates, n, middle) < mean)
            low = middle;
        else
            high = middle;
    }
    return high;
}

// ---- Columns

static size_t common_divisor(size_t a, size_t b) {
    while (b) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// That one of the next `n` columns is wanted.
static double any_of(double n, double rate) {
    return 1.0 - pow(1.0 - rate, n);
}

// A column ends so many bytes before the end of a block, as likely one number as another. The next
// that is wanted begins in that block, or in the one behind it, and then joins the read.
struct st_expected_reads st_expect_columns(size_t bytes, double rate) {
    size_t step = common_divisor(bytes, ST_LOAD_BLOCK), n_ends = ST_LOAD_BLOCK / step;
    double joins = 0.0, shares = 0.0, column = (double)bytes;
    rate = fmin(fmax(rate, 0.0), 1.0);
    for (size_t left = 0; left < ST_LOAD_BLOCK; left += step) {
        joins += any_of(ceil((double)(left + ST_LOAD_BLOCK) / column), rate);
        shares += any_of(ceil((double)left / column), rate);
    }
    double blocks = (double)(bytes + ST_LOAD_BLOCK - step) / ST_LOAD_BLOCK;
    return (struct st_expected_reads){
        .reads = rate * (1.0 - joins / (double)n_ends),
        .bytes = rate * (blocks - shares / (double)n_ends) * ST_LOAD_BLOCK,
    };
}
