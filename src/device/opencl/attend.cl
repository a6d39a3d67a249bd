// SPDX-License-Identifier: Apache-2.0
// Attention of prompts: what the host's kernels compute in floats, operation for operation
// (kernels/attention_body.h, tile_body.h), so that bits are the host's. A group has LANES_AT_ONCE
// queries of the heads that share keys: lane l is token l / shared, head l % shared. It walks the
// keys in tiles and keeps queries, sums and scores in local memory. Of scores neighbouring items
// have neighbouring keys, of sums neighbouring elements of values; each has QUAD lanes, so that
// what it reads of the cache serves all of them.
enum { LANES_AT_ONCE = OCL_ATTEND_LANES, KEYS = OCL_KEY_TILE, QUAD = 4 };

// Four elements from d on, in one read: vload4 and vload_half4 need not be aligned, so they may be
// four. d is a multiple of four, and rows are aligned to their length.
INLINE float4 f32_four(global const char *row, uint d) {
    return *(global const float4 *)(row + 4 * d);
}
INLINE float4 f16_four(global const char *row, uint d) {
    const uint2 bits = *(global const uint2 *)(row + 2 * d);
    return vload_half4(0, (const half *)&bits);
}
INLINE float f32_one(global const char *row, uint d) {
    return ((global const float *)row)[d];
}
INLINE float f16_one(global const char *row, uint d) {
    return vload_half(d, (global const half *)row);
}

// The position of a lane's query.
INLINE uint position_of(const struct ocl_attend *a, uint lane) {
    return a->position + lane / a->shared;
}

INLINE uint first_key(const struct ocl_attend *a, uint position) {
    return a->window && position + 1 > a->window ? position + 1 - a->window : 0;
}

INLINE ulong place_of_query(const struct ocl_attend *a, uint lane) {
    return lane / a->shared * a->token_bytes +
           (get_global_id(1) * a->shared + lane % a->shared) * a->dim * 4ul;
}

INLINE float capped_score(const struct ocl_attend *a, float score) {
    float s = score * a->scale;
    if (a->softcap == 0.0f) return s;
    float e = vf_exp(s * a->to_cap);
    return (1.0f - vf_div(2.0f, e + 1.0f)) * a->softcap;
}

// One step of the online softmax of a lane: its new maximum, and what its sums shrink by. A lane
// without keys so far: subtracting 0 instead of -inf keeps its weights at e^-inf = 0.
struct softmax {
    float maximum, base, factor, total;
};

INLINE void meet_scores(local struct softmax *lane, local const float *scores, uint n_keys) {
    float before = lane->maximum, max = before;
    for (uint j = 0; j < n_keys; j++) max = vf_max(scores[j], max);
    lane->maximum = max;
    lane->base = -__builtin_inff() < max ? max : 0.0f;
    lane->factor = -__builtin_inff() < before ? vf_exp(before - lane->base) : 1.0f;
}

INLINE void add_weights(local struct softmax *lane, local const float *weights, uint n_keys) {
    float total = lane->total * lane->factor;
    for (uint j = 0; j < n_keys; j++) total += weights[j];
    lane->total = total;
}

#define ATTEND(type)                                                                               \
    INLINE void scores_##type(const struct ocl_attend *a, global const char *keys, uint key0,      \
                              uint n_keys, uint lane0, local const float *q,                       \
                              local float *scores) {                                               \
        for (uint i = get_local_id(0); i < n_keys * (LANES_AT_ONCE / QUAD); i += ITEMS) {          \
            const uint j = i % n_keys, l = i / n_keys * QUAD;                                      \
            global const char *row = keys + (ulong)(key0 + j) * a->row_bytes;                      \
            float sum[QUAD] = {0.0f};                                                              \
            for (uint d = 0; d < a->dim; d += 4) {                                                 \
                const float4 key = type##_four(row, d);                                            \
                for (uint c = 0; c < QUAD; c++) {                                                  \
                    const float4 query = vload4(0, q + (l + c) * a->dim + d);                      \
                    sum[c] = fma(key.s0, query.s0, sum[c]);                                        \
                    sum[c] = fma(key.s1, query.s1, sum[c]);                                        \
                    sum[c] = fma(key.s2, query.s2, sum[c]);                                        \
                    sum[c] = fma(key.s3, query.s3, sum[c]);                                        \
                }                                                                                  \
            }                                                                                      \
            for (uint c = 0; c < QUAD; c++) {                                                      \
                const uint position = position_of(a, lane0 + l + c);                               \
                const bool sees = key0 + j <= position && key0 + j >= first_key(a, position);      \
                scores[(l + c) * KEYS + j] = sees ? capped_score(a, sum[c]) : -__builtin_inff();   \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    INLINE void weigh_##type(const struct ocl_attend *a, global const char *values, uint key0,     \
                             uint n_keys, local const float *weights,                              \
                             local const struct softmax *lanes, local float *sums) {               \
        for (uint i = get_local_id(0); i < a->dim * (LANES_AT_ONCE / QUAD); i += ITEMS) {          \
            const uint d = i % a->dim, l = i / a->dim * QUAD;                                      \
            float sum[QUAD];                                                                       \
            for (uint c = 0; c < QUAD; c++)                                                        \
                sum[c] = sums[(l + c) * a->dim + d] * lanes[l + c].factor;                         \
            for (uint j = 0; j < n_keys; j++) {                                                    \
                const float value = type##_one(values + (ulong)(key0 + j) * a->row_bytes, d);      \
                for (uint c = 0; c < QUAD; c++)                                                    \
                    sum[c] = fma(value, weights[(l + c) * KEYS + j], sum[c]);                      \
            }                                                                                      \
            for (uint c = 0; c < QUAD; c++) sums[(l + c) * a->dim + d] = sum[c];                   \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void                                 \
    attend_##type(const struct ocl_attend a, global const char *queries, global const char *keys,  \
                  global const char *values, global char *out, local float *work) {                \
        local struct softmax lanes[LANES_AT_ONCE];                                                 \
        const uint item = get_local_id(0), lane0 = get_group_id(0) * LANES_AT_ONCE;                \
        const uint n_lanes = min((uint)LANES_AT_ONCE, a.n * a.shared - lane0);                     \
        const uint floats = LANES_AT_ONCE * a.dim;                                                 \
        local float *q = work, *sums = q + floats, *scores = sums + floats;                        \
        keys += a.keys + get_global_id(1) * a.key_head;                                            \
        values += a.values + get_global_id(1) * a.value_head;                                      \
        for (uint i = item; i < floats; i += ITEMS) {                                              \
            const uint l = i / a.dim;                                                              \
            global const char *row = queries + a.q + place_of_query(&a, lane0 + l);                \
            q[i] = l < n_lanes ? ((global const float *)row)[i % a.dim] : 0.0f;                    \
            sums[i] = 0.0f;                                                                        \
        }                                                                                          \
        for (uint l = item; l < LANES_AT_ONCE; l += ITEMS) {                                       \
            lanes[l].maximum = -__builtin_inff();                                                  \
            lanes[l].total = 0.0f;                                                                 \
        }                                                                                          \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        const uint end = position_of(&a, lane0 + n_lanes - 1) + 1;                                 \
        for (uint key0 = first_key(&a, position_of(&a, lane0)) / KEYS * KEYS; key0 < end;          \
             key0 += KEYS) {                                                                       \
            const uint n_keys = min((uint)KEYS, end - key0);                                       \
            scores_##type(&a, keys, key0, n_keys, lane0, q, scores);                               \
            barrier(CLK_LOCAL_MEM_FENCE);                                                          \
            for (uint l = item; l < LANES_AT_ONCE; l += ITEMS)                                     \
                meet_scores(lanes + l, scores + l * KEYS, n_keys);                                 \
            barrier(CLK_LOCAL_MEM_FENCE);                                                          \
            for (uint i = item; i < LANES_AT_ONCE * KEYS; i += ITEMS)                              \
                if (i % KEYS < n_keys) scores[i] = vf_exp(scores[i] - lanes[i / KEYS].base);       \
            barrier(CLK_LOCAL_MEM_FENCE);                                                          \
            for (uint l = item; l < LANES_AT_ONCE; l += ITEMS)                                     \
                add_weights(lanes + l, scores + l * KEYS, n_keys);                                 \
            weigh_##type(&a, values, key0, n_keys, scores, lanes, sums);                           \
            barrier(CLK_LOCAL_MEM_FENCE);                                                          \
        }                                                                                          \
        for (uint i = item; i < n_lanes * a.dim; i += ITEMS) {                                     \
            const uint l = i / a.dim;                                                              \
            global char *row = out + a.out + place_of_query(&a, lane0 + l);                        \
            ((global float *)row)[i % a.dim] = sums[i] * vf_div(1.0f, lanes[l].total);             \
        }                                                                                          \
    }

ATTEND(f32)
ATTEND(f16)
