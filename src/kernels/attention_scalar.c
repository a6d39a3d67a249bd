// SPDX-License-Identifier: Apache-2.0
// The definitions, with libm.
#include "kernels/elementwise_rows.h"
#include "kernels/kv_codecs.h"

#include <math.h>

static float capped(float score, float scale, float softcap) {
    return softcap == 0.0f ? score * scale : softcap * tanhf(score * scale / softcap);
}

static void softmax_lane(float *scores, size_t n_keys, size_t width, int32_t first_key, int32_t low,
                         int32_t high, float scale, float softcap, float *maximum, float *sum,
                         float *factor) {
    float before = *maximum;
    for (size_t j = 0; j < n_keys; j++) {
        int64_t key = first_key + (int64_t)j;
        float s = capped(scores[j * width], scale, softcap);
        if (key < low || key >= high) s = -INFINITY;
        scores[j * width] = s;
        *maximum = fmaxf(*maximum, s);
    }
    *factor = before == -INFINITY ? 1.0f : expf(before - *maximum);
    *sum *= *factor;
    for (size_t j = 0; j < n_keys; j++) {
        float s = scores[j * width];
        scores[j * width] = s == -INFINITY ? 0.0f : expf(s - *maximum);
        *sum += scores[j * width];
    }
}

static void softmax_tile(float *scores, size_t n_keys, size_t width, int32_t first_key,
                         const int32_t *low, const int32_t *high, float scale, float softcap,
                         float *maximum, float *sum, float *factor) {
    for (size_t l = 0; l < width; l++)
        softmax_lane(scores + l, n_keys, width, first_key, low[l], high[l], scale, softcap,
                     maximum + l, sum + l, factor + l);
}

static void rescale(float *out, size_t n, size_t width, const float *factor) {
    for (size_t d = 0; d < n; d++)
        for (size_t l = 0; l < width; l++) out[d * width + l] *= factor[l];
}

static float at(enum st_kv_type type, const void *rows, size_t row, size_t n, size_t d) {
    const void *from = (const char *)rows + row * st_kv_row_bytes(type, n);
    switch (type) {
#define AT(id, name, bits, scale, mixed)                                                           \
    case ST_KV_##id:                                                                               \
        return kv_##name##_at(from, n, d);
        ST_KV_TYPES(AT)
#undef AT
    default:
        return NAN;
    }
}

// Value d of key j, or of its value.
static float at_key(enum st_kv_type type, const struct st_kv_rows *rows, const void *from, size_t j,
                    size_t head_dim, size_t d) {
    size_t row = rows->first + j;
    return at(type, (const char *)from + row / rows->stretch * rows->apart, row % rows->stretch,
              head_dim, d);
}

static void decode_one(enum st_kv_type type, const float *q, const struct st_kv_rows *rows,
                       size_t n_keys, size_t head_dim, float scale, float softcap, bool begun,
                       float *scores, struct st_attended *attended, float *out) {
    float max = -INFINITY, sum = 0.0f;
    for (size_t j = 0; j < n_keys; j++) {
        float dot = begun ? scores[j] : 0.0f;
        for (size_t d = 0; d < head_dim; d++)
            dot += q[d] * at_key(type, rows, rows->keys, j, head_dim, d);
        scores[j] = capped(dot, scale, softcap);
        max = fmaxf(max, scores[j]);
    }
    for (size_t j = 0; j < n_keys; j++) {
        scores[j] = expf(scores[j] - max);
        sum += scores[j];
    }
    *attended = (struct st_attended){max, sum};
    for (size_t d = 0; d < head_dim; d++) {
        float total = 0.0f;
        for (size_t j = 0; j < n_keys; j++)
            total += scores[j] * at_key(type, rows, rows->values, j, head_dim, d);
        out[d] = total;
    }
}

static void decode(enum st_kv_type type, const float *q, size_t n_queries,
                   const struct st_kv_rows *rows, size_t n_keys, size_t head_dim, float scale,
                   float softcap, bool begun, float *scores, struct st_attended *attended,
                   float *out) {
    for (size_t i = 0; i < n_queries; i++)
        decode_one(type, q + i * head_dim, rows, n_keys, head_dim, scale, softcap, begun,
                   scores + i * n_keys, attended + i, out + i * head_dim);
}

static void score(const float *q, size_t n_queries, const float *rows, size_t n_keys, size_t n,
                  float *scores) {
    for (size_t i = 0; i < n_queries; i++)
        for (size_t j = 0; j < n_keys; j++) {
            float dot = 0.0f;
            for (size_t d = 0; d < n; d++) dot += q[i * n + d] * rows[j * n + d];
            scores[i * n_keys + j] = dot;
        }
}

static void load(enum st_kv_type type, const void *rows, size_t n_rows, size_t n, float *to) {
    for (size_t r = 0; r < n_rows; r++)
        for (size_t d = 0; d < n; d++) to[r * n + d] = at(type, rows, r, n, d);
}

#include "kernels/kv_kernels.h"

const struct st_attention st_attention_scalar = {.name = "attention_scalar",
                                                 .softmax_tile = softmax_tile,
                                                 .rescale = rescale,
                                                 .score = score,
                                                 .kv = {ST_KV_TYPES(KV_KERNEL)}};
