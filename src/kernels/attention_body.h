// SPDX-License-Identifier: Apache-2.0
// Softmax over key tiles with queries in lanes, and attention of a single query, for one
// instruction set.
#include "base/cpu.h"
#include "base/size.h"
#include "kernels/prefetch.h"
#include "kernels/elementwise_rows.h"
#include "kernels/quantize_float.h"
#include "kernels/vec.h"
#include "kernels/vec_words.h"

#include "kernels/kv_codecs.h"

#include <math.h>
#include <string.h>

#define INLINE   static inline __attribute__((always_inline))
#define UNROLLED _Pragma("GCC unroll 16")

enum { AHEAD = 16384 }; // bytes between what is read of the cache and what is prefetched
enum { ACCUMULATORS = VF_LANES == 8 ? 8 : 16 }; // of a pass over the cache: AVX2 has 16 registers

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
#define PART(id, name, bits, scale, mixed)                                                         \
    case ST_KV_##id:                                                                               \
        return kv_##name##_part(row, head_dim, d, count);
        ST_KV_TYPES(PART)
#undef PART
    default:
        return vf_zero();
    }
}

// Queries that share what is read of the cache. n_queries and type are constants wherever a
// function below is inlined.
struct decoding {
    enum st_kv_type type;
    size_t n_queries, n_keys, head_dim;
    bool begun; // scores are added to
    const struct st_kv_rows *rows;
    const float *q; // [n_queries, head_dim]
    float *scores;  // [n_queries, n_keys]
};

// Keys, or values, that lie one after another: n rows.
struct part {
    const char *rows, *end;
    size_t n;
    const char *after; // what is read then
};

// Where row `row` of stretches is.
INLINE const char *row_at(const struct decoding *c, const void *from, size_t row) {
    const struct st_kv_rows *rows = c->rows;
    return (const char *)from + row / rows->stretch * rows->apart +
           row % rows->stretch * st_kv_row_bytes(c->type, c->head_dim);
}

// The part that begins with key j, or its value. Keys are followed by their values.
INLINE struct part part_at(const struct decoding *c, bool values, size_t j) {
    const struct st_kv_rows *rows = c->rows;
    const void *from = values ? rows->values : rows->keys;
    size_t row = rows->first + j, left = rows->stretch - row % rows->stretch;
    size_t n = left < c->n_keys - j ? left : c->n_keys - j;
    struct part p = {.rows = row_at(c, from, row), .n = n};
    p.end = p.rows + n * st_kv_row_bytes(c->type, c->head_dim);
    if (j + n < c->n_keys)
        p.after = row_at(c, from, row + n);
    else if (!values)
        p.after = row_at(c, rows->values, rows->first);
    else
        p.after = rows->next ? rows->next : p.rows;
    return p;
}

// What is read next, to the second cache: more than the first one has room for, and it can wait for
// more lines at a time.
INLINE void prefetch_part(const struct part *p, const char *at, size_t bytes) {
    at += AHEAD;
    if (at >= p->end) at = p->after + (at - p->end);
    for (size_t i = 0; i < bytes; i += ST_CACHE_LINE) __builtin_prefetch(at + i, 0, 2);
}

// sum[i, k] += parts of query i times key k, from value d on.
INLINE void add_products(const struct decoding *c, size_t n_keys, const char *const *key, size_t d,
                         size_t count, vf *sum) {
    UNROLLED for (size_t k = 0; k < n_keys; k++) {
        vf x = row_part(c->type, key[k], c->head_dim, d, count);
        UNROLLED for (size_t i = 0; i < c->n_queries; i++) {
            const float *q = c->q + i * c->head_dim + d;
            vf y = count == VF_LANES ? vf_load(q) : vf_load_n(q, count);
            sum[i * n_keys + k] = vf_fma(y, x, sum[i * n_keys + k]);
        }
    }
}

// Scores of n_keys keys (constant), of which the first `real` count. The order of additions is the
// same for every key and query.
INLINE void score_some(const struct decoding *c, size_t n_keys, const char *const *key, size_t j,
                       size_t real) {
    size_t n = n_keys * c->n_queries, d = 0;
    vf sum[ACCUMULATORS];
    float score[ACCUMULATORS];
    UNROLLED for (size_t i = 0; i < ACCUMULATORS; i++) sum[i] = vf_zero();
    for (; d + VF_LANES <= c->head_dim; d += VF_LANES)
        add_products(c, n_keys, key, d, VF_LANES, sum);
    if (d < c->head_dim) add_products(c, n_keys, key, d, c->head_dim - d, sum);
    UNROLLED for (size_t i = 0; i < n; i += 4)
        vf_sum4(sum[i], sum[i + 1], sum[i + 2], sum[i + 3], score + i);
    UNROLLED for (size_t i = 0; i < c->n_queries; i++) {
        float *to = c->scores + i * c->n_keys + j, *from = score + i * n_keys;
        for (size_t k = 0; k < real && c->begun; k++) from[k] += to[k];
        if (real == n_keys) // a constant, so this is no call
            memcpy(to, from, n_keys * sizeof *to);
        else
            memcpy(to, from, real * sizeof *to);
    }
}

// Several chains of additions at a time, because each must wait for itself. j: the first key.
INLINE void score_part(const struct decoding *c, const struct part *p, size_t j) {
    size_t row_bytes = st_kv_row_bytes(c->type, c->head_dim);
    const size_t at_a_time = c->n_queries <= 2 ? 4 : ACCUMULATORS / 4;
    for (size_t k = 0; k < p->n; k += at_a_time) {
        size_t n = p->n - k < at_a_time ? p->n - k : at_a_time;
        const char *key[4]; // the last one stands in for those that are missing
        prefetch_part(p, p->rows + k * row_bytes, at_a_time * row_bytes);
        UNROLLED for (size_t i = 0; i < at_a_time; i++) key[i] =
            p->rows + (k + (i < n ? i : n - 1)) * row_bytes;
        score_some(c, at_a_time, key, j + k, n);
    }
}

// scores become their exponentials, relative to the largest.
INLINE struct st_attended softmax(float *scores, size_t n, float scale, float softcap) {
    vf max = vf_set1(-INFINITY), total = vf_zero();
    float lanes[VF_LANES], best = -INFINITY;
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        vf s = capped(vf_load(scores + i), scale, softcap);
        vf_store(scores + i, s);
        max = vf_max(s, max);
    }
    if (i < n) vf_store_n(scores + i, capped(vf_load_n(scores + i, n - i), scale, softcap), n - i);
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
    return (struct st_attended){best, sum};
}

// out[i, d, d + vectors * VF_LANES) over all keys; the last vector has `last` elements.
INLINE void weigh(const struct decoding *c, size_t d, size_t vectors, size_t last, float *out) {
    size_t row_bytes = st_kv_row_bytes(c->type, c->head_dim), n = c->n_queries;
    vf sum[ACCUMULATORS];
    UNROLLED for (size_t i = 0; i < n * vectors; i++) sum[i] = vf_zero();
    for (size_t j = 0; j < c->n_keys;) {
        struct part p = part_at(c, true, j);
        const char *row = p.rows;
        for (size_t end = j + p.n; j < end; j++, row += row_bytes) {
            prefetch_part(&p, row, row_bytes);
            UNROLLED for (size_t v = 0; v < vectors; v++) {
                vf x = row_part(c->type, row, c->head_dim, d + v * VF_LANES, last);
                UNROLLED for (size_t i = 0; i < n; i++) sum[v * n + i] =
                    vf_fma(vf_set1(c->scores[i * c->n_keys + j]), x, sum[v * n + i]);
            }
        }
    }
    UNROLLED for (size_t v = 0; v < vectors; v++) UNROLLED for (size_t i = 0; i < n; i++) {
        float *to = out + i * c->head_dim + d + v * VF_LANES;
        if (last == VF_LANES)
            vf_store(to, sum[v * n + i]);
        else
            vf_store_n(to, sum[v * n + i], last);
    }
}

// As many runs of so many vectors as there are from d on, if their sums fit; returns what follows.
INLINE size_t weigh_run(const struct decoding *c, size_t d, size_t vectors, float *out) {
    if (vectors * c->n_queries > ACCUMULATORS) return d;
    for (; d + vectors * VF_LANES <= c->head_dim; d += vectors * VF_LANES)
        weigh(c, d, vectors, VF_LANES, out);
    return d;
}

// The head in runs of 8, 4, 2, 1 vectors whose sums stay in registers, then what is left of one.
INLINE void weigh_all(const struct decoding *c, float *out) {
    size_t d = 0, n = c->head_dim;
    d = weigh_run(c, d, 8, out);
    d = weigh_run(c, d, 4, out);
    d = weigh_run(c, d, 2, out);
    d = weigh_run(c, d, 1, out);
    if (d < n) weigh(c, d, 1, n - d, out);
}

#ifdef VEC_WORDS
#include "kernels/attention_codes.h"
#endif

INLINE void decode_n(enum st_kv_type type, const float *q, size_t n_queries,
                     const struct st_kv_rows *rows, size_t n_keys, size_t head_dim, float scale,
                     float softcap, bool begun, float *scores, struct st_attended *attended,
                     float *out) {
    const struct decoding c = {type, n_queries, n_keys, head_dim, begun, rows, q, scores};
#ifdef VEC_WORDS
    if (has_codes(type, head_dim)) {
        decode_codes(&c, scale, softcap, attended, out);
        return;
    }
#endif
    struct part p;
    for (size_t j = 0; j < n_keys; j += p.n) {
        p = part_at(&c, false, j);
        score_part(&c, &p, j);
    }
    for (size_t i = 0; i < n_queries; i++)
        attended[i] = softmax(scores + i * n_keys, n_keys, scale, softcap);
    weigh_all(&c, out);
}

INLINE void decode(enum st_kv_type type, const float *q, size_t n_queries,
                   const struct st_kv_rows *rows, size_t n_keys, size_t head_dim, float scale,
                   float softcap, bool begun, float *scores, struct st_attended *attended,
                   float *out) {
    switch (n_queries) {
#define QUERIES(n)                                                                                 \
    case n:                                                                                        \
        decode_n(type, q, n, rows, n_keys, head_dim, scale, softcap, begun, scores, attended,      \
                 out);                                                                             \
        break;
        QUERIES(1)
        QUERIES(2)
        QUERIES(3)
        QUERIES(4)
#undef QUERIES
    default:
        break;
    }
}

INLINE void score_n(const float *q, size_t n_queries, const float *rows, size_t n_keys, size_t n,
                    float *scores) {
    const struct st_kv_rows all = {.keys = rows, .stretch = n_keys};
    const struct decoding c = {ST_KV_F32, n_queries, n_keys, n, false, &all, q, scores};
    struct part p = part_at(&c, false, 0);
    score_part(&c, &p, 0);
}

static void score(const float *q, size_t n_queries, const float *rows, size_t n_keys, size_t n,
                  float *scores) {
    size_t i = 0;
    for (; i + 2 <= n_queries; i += 2) score_n(q + i * n, 2, rows, n_keys, n, scores + i * n_keys);
    if (i < n_queries) score_n(q + i * n, 1, rows, n_keys, n, scores + i * n_keys);
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
                                       .score = score,
                                       .kv = {ST_KV_TYPES(KV_KERNEL)}};
