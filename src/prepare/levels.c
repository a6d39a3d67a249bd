// SPDX-License-Identifier: Apache-2.0
#include "prepare/levels.h"

#include <stdlib.h>
#include <string.h>

static int top_of(size_t scale) {
    return abs(st_neuron_levels[scale][15]);
}

void st_levels_fill(struct st_levels *levels) {
    for (size_t s = 0; s < ST_NEURON_SCALES; s++)
        for (int w = -128; w < 128; w++) {
            uint8_t best = 0;
            for (uint8_t q = 1; q < 16; q++)
                if (abs(st_neuron_levels[s][q] - w) < abs(st_neuron_levels[s][best] - w)) best = q;
            int distance = st_neuron_levels[s][best] - w;
            levels->code[s][(uint8_t)w] = best;
            levels->error[s][(uint8_t)w] = (uint16_t)(distance * distance);
        }
}

static uint32_t error_of(const struct st_levels *levels, size_t scale, const int8_t *w, size_t n,
                         size_t step) {
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += levels->error[scale][(uint8_t)w[i * step]];
    return sum;
}

// Considers the scales from `first` on whose largest level is at most `max`; at least `first`.
static size_t best_scale(const struct st_levels *levels, size_t first, int max, const int8_t *w,
                         size_t n, size_t step, uint32_t *error) {
    size_t best = first;
    *error = error_of(levels, first, w, n, step);
    for (size_t s = first + 1; s < ST_NEURON_SCALES && top_of(s) <= max && *error; s++) {
        uint32_t other = error_of(levels, s, w, n, step);
        if (other < *error) best = s;
        if (other < *error) *error = other;
    }
    return best;
}

// The first scale to try: the largest level of the scales before it is far below *most, the largest
// weight.
static size_t first_scale(const int8_t *w, size_t n, size_t step, int *max) {
    size_t first = 0;
    *max = 0;
    for (size_t i = 0; i < n; i++)
        if (abs(w[i * step]) > *max) *max = abs(w[i * step]);
    while (first + 1 < ST_NEURON_SCALES && 2 * top_of(first) < *max) first++;
    return first;
}

void st_levels_round(const struct st_levels *levels, int8_t *w, size_t n, size_t step) {
    int max;
    uint32_t error;
    size_t first = first_scale(w, n, step, &max);
    size_t scale = best_scale(levels, first, max + max / 4, w, n, step, &error);
    for (size_t i = 0; i < n; i++)
        w[i * step] = st_neuron_levels[scale][levels->code[scale][(uint8_t)w[i * step]]];
}

void st_levels_store(const struct st_levels *levels, const int8_t *w, size_t n, size_t k,
                     uint8_t *row) {
    int max;
    uint32_t error;
    memset(row, 0, st_neuron_row_bytes(k, ST_NEURON_LEVELS));
    for (size_t at = 0; at < n; at += ST_NEURON_K) {
        size_t count = st_min(ST_NEURON_K, n - at);
        size_t first = first_scale(w + at, count, 1, &max);
        size_t scale = best_scale(levels, first, INT8_MAX, w + at, count, 1, &error);
        uint8_t *codes = row + at / 2;
        row[k / 2 + at / ST_NEURON_K] = (uint8_t)scale;
        for (size_t i = 0; i < count; i++) {
            unsigned code = levels->code[scale][(uint8_t)w[at + i]];
            codes[i % (ST_NEURON_K / 2)] |= (uint8_t)(code << (i < ST_NEURON_K / 2 ? 0 : 4));
        }
    }
}
