// SPDX-License-Identifier: Apache-2.0
// Softmax over key tiles with queries in lanes, and attention of a single query, for one
// instruction set.
#include "base/cpu.h"
#include "kernels/prefetch.h"
#include "kernels/elementwise_rows.h"
#include "kernels/vec.h"

#include "kernels/kv_codecs.h"

#include <math.h>
#include <string.h>

#define INLINE   static inline __attribute__((always_inline))
#define UNROLLED _Pragma("GCC unroll 8")

enum { MAX_VECTORS = 8 }; // accumulators of one pass over the values

INLINE vf capped(vf score, float scale, float softcap) {
    vf s = vf_mul(score, vf_set1(scale));
    if (softcap == 0.0f) return s;
    vf e = vf_exp(vf_mul(s, vf_set1(2.0f / softcap)));
    vf tanh = vf_sub(vf_set1(1.0f), vf_div(vf_set1(2.0f), vf_add(e, vf_set1(1.0f))));
    return vf_mul(tanh, vf_set1(softcap));
}

// One vector of lanes through all keys of the tile.
INLINE void softmax_lanes(float *scores, size_t n_keys, size_t width, const float *low,
                          const float *high, float scale, float softcap, float *maximum, float *sum,
                          float *factor) {
    const vf minus = vf_set1(-INFINITY);
    vf lowest = vf_load(low), end = vf_load(high), before = vf_load(maximum), max = before;
    for (size_t j = 0; j < n_keys; j++) {
        vf position = vf_set1((float)j);
        vf s = capped(vf_load(scores + j * width), scale, softcap);
        s = vf_select(vf_lt(position, lowest), minus, s);
        s = vf_select(vf_lt(position, end), s, minus);
        vf_store(scores + j * width, s);
        max = vf_max(s, max);
    }
    // A lane without keys so far: subtracting 0 instead of -inf keeps its probabilities at e^-inf =
    // 0.
    vf base = vf_select(vf_lt(minus, max), max, vf_zero());
    vf shrink = vf_exp(vf_sub(before, base));
    shrink = vf_select(vf_lt(minus, before), shrink, vf_set1(1.0f));
    vf total = vf_mul(vf_load(sum), shrink);
    for (size_t j = 0; j < n_keys; j++) {
        vf p = vf_exp(vf_sub(vf_load(scores + j * width), base));
        vf_store(scores + j * width, p);
        total = vf_add(total, p);
    }
    vf_store(maximum, max);
    vf_store(sum, total);
    vf_store(factor, shrink);
}

static void softmax_tile(float *scores, size_t n_keys, size_t width, int32_t first_key,
                         const int32_t *low, const int32_t *high, float scale, float softcap,
                         float *maximum, float *sum, float *factor) {
    for (size_t l = 0; l < width; l += VF_LANES) {
        // Positions as floats relative to the tile: exact for its own keys, and others stay
        // outside.
        float lows[VF_LANES], highs[VF_LANES];
        for (size_t i = 0; i < VF_LANES; i++) {
            lows[i] = (float)((int64_t)low[l + i] - first_key);
            highs[i] = (float)((int64_t)high[l + i] - first_key);
        }
        softmax_lanes(scores + l, n_keys, width, lows, highs, scale, softcap, maximum + l, sum + l,
                      factor + l);
    }
}

static void rescale(float *out, size_t n, size_t width, const float *factor) {
    for (size_t l = 0; l < width; l += VF_LANES) {
        vf f = vf_load(factor + l);
        for (size_t d = 0; d < n; d++)
            vf_store(out + d * width + l, vf_mul(vf_load(out + d * width + l), f));
    }
}

// VF_LANES values of a cache row from value d on, or count < VF_LANES of them and zeros.
INLINE vf row_part(enum st_kv_type type, const void *row, size_t head_dim, size_t d, size_t count) {
    switch (type) {
#define PART(id, name, bits, scale)                                                                \
    case ST_KV_##id:                                                                               \
        return kv_##name##_part(row, head_dim, d, count);
        ST_KV_TYPES(PART)
#undef PART
    default:
        return vf_zero();
    }
}

// Dot products of q with four keys: four chains of additions, one reduction. The order of additions
// is the same for every key.
INLINE void score_four(const float *q, const char *const key[4], enum st_kv_type type,
                       size_t head_dim, float score[4]) {
    vf sum[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    size_t d = 0;
    for (; d + VF_LANES <= head_dim; d += VF_LANES) {
        vf x = vf_load(q + d);
        UNROLLED for (int j = 0; j < 4; j++) sum[j] =
            vf_fma(x, row_part(type, key[j], head_dim, d, VF_LANES), sum[j]);
    }
    if (d < head_dim) {
        vf x = vf_load_n(q + d, head_dim - d);
        UNROLLED for (int j = 0; j < 4; j++) sum[j] =
            vf_fma(x, row_part(type, key[j], head_dim, d, head_dim - d), sum[j]);
    }
    vf_sum4(sum[0], sum[1], sum[2], sum[3], score);
}

INLINE void score_keys(const float *q, const char *keys, enum st_kv_type type, size_t n_keys,
                       size_t head_dim, float *scores) {
    size_t row_bytes = st_kv_row_bytes(type, head_dim);
    for (size_t j = 0; j < n_keys; j += 4) {
        size_t n = n_keys - j < 4 ? n_keys - j : 4;
        const char *key[4]; // the last one stands in for those that are missing
        float four[4];
        st_prefetch(keys + j * row_bytes, 4 * row_bytes);
        for (size_t i = 0; i < 4; i++) key[i] = keys + (j + (i < n ? i : n - 1)) * row_bytes;
        score_four(q, key, type, head_dim, four);
        memcpy(scores + j, four, n * sizeof *four);
    }
}

// scores become probabilities; returns their sum.
INLINE float softmax(float *scores, size_t n, float scale, float softcap) {
    vf max = vf_set1(-INFINITY), total = vf_zero();
    float lanes[VF_LANES], best = -INFINITY;
    for (size_t i = 0; i < n; i += VF_LANES) {
        size_t rest = n - i < VF_LANES ? n - i : VF_LANES;
        vf_store_n(scores + i, capped(vf_load_n(scores + i, rest), scale, softcap), rest);
    }
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) max = vf_max(vf_load(scores + i), max);
    vf_store(lanes, max);
    for (size_t l = 0; l < VF_LANES; l++) best = fmaxf(best, lanes[l]);
    for (; i < n; i++) best = fmaxf(best, scores[i]);
    i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        vf p = vf_exp(vf_sub(vf_load(scores + i), vf_set1(best)));
        vf_store(scores + i, p);
        total = vf_add(total, p);
    }
    float sum = vf_sum(total);
    for (; i < n; i++) {
        vf_store_n(scores + i, vf_exp(vf_set1(scores[i] - best)), 1);
        sum += scores[i];
    }
    return sum;
}

// What the vectors of an output are made of.
struct weighted {
    enum st_kv_type type;
    const float *p;
    const char *values;
    size_t n_keys, head_dim;
    float factor;
};

// out[d, d + vectors * VF_LANES) over all keys; the last vector has `last` elements.
INLINE void weigh(const struct weighted *w, size_t d, size_t vectors, size_t last, float *out) {
    size_t row_bytes = st_kv_row_bytes(w->type, w->head_dim);
    vf sum[MAX_VECTORS];
    UNROLLED for (size_t v = 0; v < vectors; v++) sum[v] = vf_zero();
    for (size_t j = 0; j < w->n_keys; j++) {
        vf weight = vf_set1(w->p[j]);
        const char *row = w->values + j * row_bytes;
        st_prefetch(row, row_bytes);
        UNROLLED for (size_t v = 0; v < vectors; v++) sum[v] =
            vf_fma(weight, row_part(w->type, row, w->head_dim, d + v * VF_LANES, last), sum[v]);
    }
    UNROLLED for (size_t v = 0; v < vectors; v++) {
        vf y = vf_mul(sum[v], vf_set1(w->factor));
        if (last == VF_LANES)
            vf_store(out + d + v * VF_LANES, y);
        else
            vf_store_n(out + d + v * VF_LANES, y, last);
    }
}

// The head in runs of 8, 4, 2, 1 vectors that stay in registers, then what is left of one.
INLINE void weigh_all(const struct weighted *w, float *out) {
    size_t d = 0, n = w->head_dim;
    for (; d + 8 * VF_LANES <= n; d += 8 * VF_LANES) weigh(w, d, 8, VF_LANES, out);
    if (d + 4 * VF_LANES <= n) {
        weigh(w, d, 4, VF_LANES, out);
        d += 4 * VF_LANES;
    }
    if (d + 2 * VF_LANES <= n) {
        weigh(w, d, 2, VF_LANES, out);
        d += 2 * VF_LANES;
    }
    if (d + VF_LANES <= n) {
        weigh(w, d, 1, VF_LANES, out);
        d += VF_LANES;
    }
    if (d < n) weigh(w, d, 1, n - d, out);
}

INLINE void decode(enum st_kv_type type, const float *q, const void *keys, const void *values,
                   size_t n_keys, size_t head_dim, float scale, float softcap, float *scores,
                   float *out) {
    score_keys(q, keys, type, n_keys, head_dim, scores);
    float factor = 1.0f / softmax(scores, n_keys, scale, softcap);
    struct weighted w = {type, scores, values, n_keys, head_dim, factor};
    weigh_all(&w, out);
}

INLINE void load(enum st_kv_type type, const char *rows, size_t n_rows, size_t n, float *to) {
    size_t row_bytes = st_kv_row_bytes(type, n);
    for (size_t r = 0; r < n_rows; r++, rows += row_bytes, to += n) {
        size_t d = 0;
        for (; d + VF_LANES <= n; d += VF_LANES)
            vf_store(to + d, row_part(type, rows, n, d, VF_LANES));
        if (d < n) vf_store_n(to + d, row_part(type, rows, n, d, n - d), n - d);
    }
}

#include "kernels/kv_kernels.h"

const struct st_attention ATTENTION = {.name = ATTENTION_NAME,
                                       .isa = ELEMENTWISE_ISA,
                                       .softmax_tile = softmax_tile,
                                       .rescale = rescale,
                                       .kv = {ST_KV_TYPES(KV_KERNEL)}};
