// SPDX-License-Identifier: Apache-2.0
// The parts of attention that are no matrix product. Two forms: queries in vector lanes with an
// online softmax over tiles of keys (prompts; after FlashAttention, Dao et al. 2022, section 3),
// and one query at a time (decoding).
#ifndef ST_KERNELS_ATTENTION_H
#define ST_KERNELS_ATTENTION_H

#include "kernels/kv_types.h"

#include <stddef.h>
#include <stdint.h>

enum {
    ST_KV_QUERIES = 4,
    ST_KV_TILE = 128, // rows whose 8-bit values are summed in whole numbers
};

// What a query has found among some keys (struct st_kv_kernel), beside its `out`.
struct st_attended {
    float maximum, sum;
};

// Where the rows of a head lie: stretches of so many rows, each one after another, `apart` bytes
// from one to the next. Key 0 is row `first` of the stretches at keys, and its value that of
// values. `next` is where the same thread is likely to read then, NULL: not known.
struct st_kv_rows {
    const void *keys, *values;
    size_t first, stretch, apart;
    const void *next;
};

// What depends on the cache's type. Rows of n values each, one after another (kv_types.h); f32 rows
// are 4-byte aligned, f16 rows 2-byte aligned.
struct st_kv_kernel {
    void (*store)(const float *x, size_t n, void *row);
    void (*load)(const void *rows, size_t n_rows, size_t n, float *to);
    // Queries that share keys and values: q, out [n_queries, head_dim], attended [n_queries]. For
    // each of them, over keys [0, n_keys), at least one: s_j = scale * q . key_j, their maximum,
    // sum = sum_j exp(s_j - maximum), out[d] = sum_j exp(s_j - maximum) * value_j[d]. At most
    // ST_KV_QUERIES; what a query gets depends neither on the others nor on how long stretches are,
    // if that is a multiple of ST_KV_TILE or there is one. scores: scratch, [n_queries, n_keys]; if
    // `begun`, they are added to q . key_j. softcap as below.
    void (*decode)(const float *q, size_t n_queries, const struct st_kv_rows *rows, size_t n_keys,
                   size_t head_dim, float scale, float softcap, bool begun, float *scores,
                   struct st_attended *attended, float *out);
};

struct st_attention {
    const char *name;
    uint64_t isa;

    // One step of the online softmax over a tile of keys, for `width` queries in lanes (width a
    // multiple of the tile's lanes, at most ST_TILE_MAX_WIDTH). scores [n_keys, width] become
    // exp(score - maximum) in place, where score = softcap * tanh(scale * s / softcap), or scale *
    // s if softcap is 0. The key at row j has position first_key + j; lane l attends to positions
    // in [low[l], high[l]), others count as minus infinity (probability 0). maximum[l] and sum[l]
    // are carried along (start: -INFINITY and 0, or a sink's score and 1); factor[l] = what the
    // output so far must be multiplied with. A lane that has seen no key yet keeps maximum
    // -INFINITY, sum 0, factor 1.
    void (*softmax_tile)(float *scores, size_t n_keys, size_t width, int32_t first_key,
                         const int32_t *low, const int32_t *high, float scale, float softcap,
                         float *maximum, float *sum, float *factor);
    // out[d, lane] *= factor[lane] for d in [0, n)
    void (*rescale)(float *out, size_t n, size_t width, const float *factor);

    // scores[i, j] = q_i . row_j, with q [n_queries, n] and rows [n_keys, n]; at most
    // ST_KV_QUERIES.
    void (*score)(const float *q, size_t n_queries, const float *rows, size_t n_keys, size_t n,
                  float *scores);
    struct st_kv_kernel kv[ST_N_KV_TYPES];
};

// Attention of a query over several spans of keys: begun with none, or with a sink, a score without
// a value (NULL: none); joined with what it found in each; and ended, which divides. The order of
// the spans decides how it rounds.
void st_attended_begin(const float *sink, size_t head_dim, struct st_attended *all, float *out);
void st_attended_join(const struct st_attended *span, const float *span_out, size_t head_dim,
                      struct st_attended *all, float *out);
void st_attended_end(const struct st_attended *all, size_t head_dim, float *out);

extern const struct st_attention *const st_attentions[]; // best first; ends with NULL
const struct st_attention *st_attention_select(uint64_t cpu_flags);

#endif
