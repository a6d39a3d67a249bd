// SPDX-License-Identifier: Apache-2.0
// Softmax over key tiles with queries in lanes, and attention of a single query, for one
// instruction set.
#include "base/cpu.h"
#include "base/half.h"
#include "kernels/elementwise_rows.h"
#include "kernels/vec.h"

#include <math.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

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
    vf lowest = vf_load(low), end = vf_load(high), before = vf_load(maximum), most = before;
    for (size_t j = 0; j < n_keys; j++) {
        vf position = vf_set1((float)j);
        vf s = capped(vf_load(scores + j * width), scale, softcap);
        s = vf_select(vf_lt(position, lowest), minus, s);
        s = vf_select(vf_lt(position, end), s, minus);
        vf_store(scores + j * width, s);
        most = vf_max(s, most);
    }
    // A lane without keys so far: subtracting 0 instead of -inf keeps its probabilities at e^-inf =
    // 0.
    vf base = vf_select(vf_lt(minus, most), most, vf_zero());
    vf shrink = vf_exp(vf_sub(before, base));
    shrink = vf_select(vf_lt(minus, before), shrink, vf_set1(1.0f));
    vf total = vf_mul(vf_load(sum), shrink);
    for (size_t j = 0; j < n_keys; j++) {
        vf p = vf_exp(vf_sub(vf_load(scores + j * width), base));
        vf_store(scores + j * width, p);
        total = vf_add(total, p);
    }
    vf_store(maximum, most);
    vf_store(sum, total);
    vf_store(factor, shrink);
}

static void softmax_tile(float *scores, size_t n_keys, size_t width, int32_t first_key,
                         const int32_t *low, const int32_t *high, float scale, float softcap,
                         float *maximum, float *sum, float *factor) {
    for (size_t l = 0; l < width; l += VF_LANES) {
        // Positions as floats relative to the tile, where they are exact.
        float lows[VF_LANES], highs[VF_LANES];
        for (size_t i = 0; i < VF_LANES; i++) {
            lows[i] = (float)(low[l + i] - first_key);
            highs[i] = (float)(high[l + i] - first_key);
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

// VF_LANES elements of a cache row from element d on, or n < VF_LANES of them and zeros.
INLINE vf row_part(const void *row, bool half, size_t d, size_t n) {
    if (!half)
        return n == VF_LANES ? vf_load((const float *)row + d)
                             : vf_load_n((const float *)row + d, n);
    if (n == VF_LANES) return vf_load_f16((const uint16_t *)row + d);
    uint16_t t[VF_LANES] = {0};
    memcpy(t, (const uint16_t *)row + d, n * sizeof *t);
    return vf_load_f16(t);
}

INLINE float score(const float *q, const void *key, bool half, size_t head_dim) {
    vf sum = vf_zero();
    for (size_t d = 0; d < head_dim; d += VF_LANES) {
        size_t n = head_dim - d < VF_LANES ? head_dim - d : VF_LANES;
        vf x = n == VF_LANES ? vf_load(q + d) : vf_load_n(q + d, n);
        sum = vf_fma(x, row_part(key, half, d, n), sum);
    }
    return vf_sum(sum);
}

// scores become probabilities; returns their sum.
INLINE float softmax(float *scores, size_t n, float scale, float softcap) {
    vf most = vf_set1(-INFINITY), total = vf_zero();
    float lanes[VF_LANES], best = -INFINITY;
    for (size_t i = 0; i < n; i += VF_LANES) {
        size_t rest = n - i < VF_LANES ? n - i : VF_LANES;
        vf_store_n(scores + i, capped(vf_load_n(scores + i, rest), scale, softcap), rest);
    }
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) most = vf_max(vf_load(scores + i), most);
    vf_store(lanes, most);
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

// out[d..] for one run of at most 4 vectors of the head, over all keys.
INLINE void weighted_sum(const float *p, const char *values, bool half, size_t row_bytes,
                         size_t n_keys, size_t d, size_t n, float factor, float *out) {
    vf sum[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    for (size_t j = 0; j < n_keys; j++) {
        vf weight = vf_set1(p[j]);
        const char *row = values + j * row_bytes;
        for (size_t v = 0; v * VF_LANES < n; v++) {
            size_t rest = n - v * VF_LANES < VF_LANES ? n - v * VF_LANES : VF_LANES;
            sum[v] = vf_fma(weight, row_part(row, half, d + v * VF_LANES, rest), sum[v]);
        }
    }
    for (size_t v = 0; v * VF_LANES < n; v++) {
        size_t rest = n - v * VF_LANES < VF_LANES ? n - v * VF_LANES : VF_LANES;
        vf_store_n(out + d + v * VF_LANES, vf_mul(sum[v], vf_set1(factor)), rest);
    }
}

INLINE void attend(const float *q, const char *keys, const char *values, bool half, size_t n_keys,
                   size_t head_dim, float scale, float softcap, float *scores, float *out) {
    size_t row_bytes = head_dim * (half ? sizeof(uint16_t) : sizeof(float));
    for (size_t j = 0; j < n_keys; j++) scores[j] = score(q, keys + j * row_bytes, half, head_dim);
    float factor = 1.0f / softmax(scores, n_keys, scale, softcap);
    size_t d = 0;
    for (; d + 4 * VF_LANES <= head_dim; d += 4 * VF_LANES)
        weighted_sum(scores, values, half, row_bytes, n_keys, d, 4 * VF_LANES, factor, out);
    if (d < head_dim)
        weighted_sum(scores, values, half, row_bytes, n_keys, d, head_dim - d, factor, out);
}

static void decode(const float *q, const void *keys, const void *values, enum st_dtype kv,
                   size_t n_keys, size_t head_dim, float scale, float softcap, float *scores,
                   float *out) {
    if (kv == ST_DTYPE_F16)
        attend(q, keys, values, true, n_keys, head_dim, scale, softcap, scores, out);
    else
        attend(q, keys, values, false, n_keys, head_dim, scale, softcap, scores, out);
}

static void to_f16(const float *x, size_t n, uint16_t *y) {
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) vf_store_f16(y + i, vf_load(x + i));
    for (; i < n; i++) y[i] = st_f16_from_f32(x[i]);
}

const struct st_attention ATTENTION = {.name = ATTENTION_NAME,
                                       .isa = ELEMENTWISE_ISA,
                                       .softmax_tile = softmax_tile,
                                       .rescale = rescale,
                                       .decode = decode,
                                       .to_f16 = to_f16};
