// SPDX-License-Identifier: Apache-2.0
#include "prepare/activity.h"

#include "base/size.h"
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

void st_activity_lay_out(struct st_activity *a, size_t hidden, size_t ffn, size_t max,
                         struct st_arena *arena) {
    *a = (struct st_activity){
        .hidden = hidden, .ffn = ffn, .max = max, .words = st_ceil_div(ffn, 64)};
    a->inputs = ST_TAKE(arena, float, max *hidden);
    a->active = ST_TAKE(arena, uint64_t, max * a->words);
    a->rates = ST_TAKE(arena, float, ST_NEURON_RATES *ffn);
    a->order = ST_TAKE(arena, int32_t, ffn);
}

void st_activity_clear(struct st_activity *a) {
    a->n = 0;
    memset(a->active, 0, a->max * a->words * sizeof *a->active);
}

void st_activity_see_inputs(struct st_activity *a, const float *x, size_t n) {
    size_t room = st_min(n, a->max - a->n);
    memcpy(a->inputs + a->n * a->hidden, x, room * a->hidden * sizeof *x);
}

void st_activity_see_neurons(struct st_activity *a, const float *middle, size_t n) {
    for (size_t t = 0; t < n && a->n < a->max; t++, a->n++) {
        uint64_t *bits = a->active + a->n * a->words;
        for (size_t i = 0; i < a->ffn; i++)
            bits[i / 64] |= (uint64_t)(middle[t * a->ffn + i] != 0.0f) << i % 64;
    }
}

// The rate at which a neuron is active for at least one token of a batch.
static void count_batches(const struct st_activity *a, size_t batch, float *rates) {
    size_t n = a->n / batch;
    memset(rates, 0, a->ffn * sizeof *rates);
    for (size_t t = 0; t < n; t++)
        for (size_t w = 0; w < a->words; w++) {
            uint64_t any = 0;
            for (size_t b = 0; b < batch; b++) any |= a->active[(t + b * n) * a->words + w];
            for (; any; any &= any - 1) rates[64 * w + (size_t)__builtin_ctzll(any)] += 1.0f;
        }
    for (size_t i = 0; i < a->ffn && n; i++) rates[i] /= (float)n;
}

static int by_rate(const void *a, const void *b, void *context) {
    const float *rates = context;
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    if (rates[x] != rates[y]) return rates[x] < rates[y] ? 1 : -1;
    return x < y ? -1 : x > y;
}

void st_activity_count(struct st_activity *a) {
    for (size_t i = 0; i < ST_NEURON_RATES; i++)
        count_batches(a, (size_t)1 << i, a->rates + i * a->ffn);
    for (size_t i = 0; i < a->ffn; i++) a->order[i] = (int32_t)i;
    st_sort(a->order, a->ffn, sizeof *a->order, by_rate, a->rates);
}
