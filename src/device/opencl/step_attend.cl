// SPDX-License-Identifier: Apache-2.0
// Attention of one query (kernels/attention_body.h), an operation of programs: a group has a head.
// An element's values are added in the host's order, by one item. So that it need not wait for
// them, other items read the next tile of keys into local memory meanwhile.
enum { TILE_KEYS = 128, MAX_SHARES = 32 };

// What is said one by one stays in registers, and reads do not wait for each other: not all
// compilers unroll loops.
#define EIGHT(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

// A score is a sum of HOST_LANES lanes, added as by vf_sum4(): of four, then of all. Four of them
// are an item's, so that neighbouring items read what lies side by side.
enum { QUADS = HOST_LANES / 4, KEYS_AT_ONCE = STEP_ITEMS / QUADS };

#if HOST_LANES == 16
INLINE float quad_total(float4 x) {
    return (x.s0 + x.s2) + (x.s1 + x.s3);
}
INLINE float quads_total(local const float *quads) {
    return (quads[0] + quads[2]) + (quads[1] + quads[3]);
}
#else
INLINE float quad_total(float4 x) {
    return (x.s0 + x.s1) + (x.s2 + x.s3);
}
INLINE float quads_total(local const float *quads) {
    return QUADS == 2 ? quads[0] + quads[1] : quads[0];
}
#endif

#define QUAD_SCORE(type)                                                                           \
    INLINE float quad_score_##type(global const char *key, local const float4 *q, uint dim,        \
                                   uint quad) {                                                    \
        float4 sum = 0.0f;                                                                         \
        for (uint d = 4 * quad; d < dim; d += HOST_LANES)                                          \
            sum = fma(q[d / 4], type##_four(key, d), sum);                                         \
        return quad_total(sum);                                                                    \
    }
QUAD_SCORE(f32)
QUAD_SCORE(f16)

// The group's maximum of what each of its items has.
INLINE float group_max(local float *all, float own) {
    const uint item = get_local_id(0), shares = min((uint)MAX_SHARES, (uint)STEP_ITEMS);
    all[item] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    float max = own;
    for (uint i = item % shares; i < STEP_ITEMS; i += shares) max = vf_max(all[i], max);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < shares) all[item] = max;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < shares; i++) max = vf_max(all[i], max);
    return max;
}

// Values [n_keys, dim] and weights e^(score - max) of a tile. `rest` has those of the last keys of
// all, which fill no vector of the host, from key `whole` on.
struct step_tile {
    local float4 *values;
    local float *weights;
    uint first, n_keys;
};
struct step_sums {
    local float *values, *lanes, *rest;
    uint whole;
};

#define READ_TILE(type)                                                                            \
    INLINE void read_tile_##type(const struct ocl_attend *a, const struct step_tile *t,            \
                                 global const char *values, global const float *scores, float max, \
                                 uint reader, uint n_readers) {                                    \
        const uint quads = a->dim / 4;                                                             \
        for (uint i = reader; i < t->n_keys * quads; i += n_readers) {                             \
            const uint key = i / quads, d = i % quads * 4;                                         \
            t->values[i] = type##_four(values + (ulong)(t->first + key) * a->row_bytes, d);        \
        }                                                                                          \
        for (uint j = reader; j < t->n_keys; j += n_readers)                                       \
            t->weights[j] = vf_exp(scores[t->first + j] - max);                                    \
    }
READ_TILE(f32)
READ_TILE(f16)

// The last items add the weights: the first ones have the values to add.
INLINE void add_weights_of(const struct step_tile *t, const struct step_sums *s) {
    for (uint l = STEP_ITEMS - 1 - get_local_id(0); l < HOST_LANES; l += STEP_ITEMS) {
        float sum = s->lanes[l];
        for (uint i = (l - t->first) % HOST_LANES; i < t->n_keys; i += HOST_LANES) {
            if (t->first + i < s->whole)
                sum += t->weights[i];
            else
                s->rest[l] = t->weights[i];
        }
        s->lanes[l] = sum;
    }
}

#define READ_VALUE(i) const float value##i = values[i * dim], weight##i = weights[i];
#define ADD_VALUE(i)  sum = fma(weight##i, value##i, sum);

INLINE void add_values_of(const struct step_tile *t, const struct step_sums *s, uint dim) {
    for (uint d = get_local_id(0); d < dim; d += STEP_ITEMS) {
        local const float *values = (local const float *)t->values + d, *weights = t->weights;
        float sum = s->values[d];
        uint left = t->n_keys;
        for (; left >= 8; left -= 8, values += 8 * dim, weights += 8) {
            EIGHT(READ_VALUE)
            EIGHT(ADD_VALUE)
        }
        for (; left; left--, values += dim, weights++) sum = fma(*weights, *values, sum);
        s->values[d] = sum;
    }
}

// The sum of all weights, as softmax() adds them.
INLINE float weights_total(const struct step_sums *s, uint n) {
    float all[HOST_LANES];
    for (uint l = 0; l < HOST_LANES; l++) all[l] = s->lanes[l];
    float total = norm_lanes_total(all, HOST_LANES);
    for (uint j = s->whole; j < n; j++) total += s->rest[j - s->whole];
    return total;
}

#define ATTEND_STEP(type)                                                                          \
    kernel __attribute__((reqd_work_group_size(STEP_ITEMS, 1, 1))) void step_attend_##type(        \
        const struct ocl_step_attend s, global char *memory, global const char *cache) {           \
        local float4 q[MOST_DIM / 4];                                                              \
        local float all[STEP_ITEMS], lanes[HOST_LANES], rest[HOST_LANES], values_sum[MOST_DIM];    \
        local float4 read[2][STEP_TILE / 4];                                                       \
        local float weights[2][TILE_KEYS];                                                         \
        const struct ocl_attend a = s.attention;                                                   \
        const uint item = get_local_id(0), head = get_group_id(0);                                 \
        global const struct ocl_place *place = (global const struct ocl_place *)(memory + s.place);\
        const uint first = first_key(&a, place->position), n = place->position + 1 - first;        \
        const ulong rows = place->cache + (ulong)first * a.row_bytes;                              \
        global float *p = (global float *)(memory + s.scores + head * s.scores_row);               \
        global const char *keys = cache + a.keys + head / a.shared * a.key_head + rows;            \
        global const char *values = cache + a.values + head / a.shared * a.value_head + rows;      \
        const struct step_sums sums = {values_sum, lanes, rest, n / HOST_LANES * HOST_LANES};      \
        for (uint i = item; i < a.dim / 4; i += STEP_ITEMS)                                        \
            q[i] = f32_four(memory + a.q, head * a.dim + 4 * i);                                   \
        for (uint d = item; d < a.dim; d += STEP_ITEMS) values_sum[d] = 0.0f;                      \
        for (uint l = item; l < HOST_LANES; l += STEP_ITEMS) lanes[l] = 0.0f;                      \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        float max = -__builtin_inff();                                                             \
        for (uint begin = 0; begin < n; begin += KEYS_AT_ONCE) {                                   \
            const uint key = item / QUADS, left = min((uint)KEYS_AT_ONCE, n - begin);              \
            if (key < left)                                                                        \
                all[item] = quad_score_##type(keys + (ulong)(begin + key) * a.row_bytes, q, a.dim, \
                                              item % QUADS);                                       \
            barrier(CLK_LOCAL_MEM_FENCE);                                                          \
            if (item < left) {                                                                     \
                const float score = capped_score(&a, quads_total(all + item * QUADS));             \
                p[begin + item] = score;                                                           \
                max = vf_max(score, max);                                                          \
            }                                                                                      \
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);                                   \
        }                                                                                          \
        max = group_max(all, max);                                                                 \
        const uint at_once = min((uint)(STEP_TILE / a.dim), (uint)TILE_KEYS);                      \
        const uint first_reader = STEP_ITEMS >= 2 * a.dim ? a.dim : 0;                             \
        struct step_tile next = {read[0], weights[0], 0, min(at_once, n)}, last = {0};             \
        while (next.n_keys || last.n_keys) {                                                       \
            if (item >= first_reader)                                                              \
                read_tile_##type(&a, &next, values, p, max, item - first_reader,                   \
                                 STEP_ITEMS - first_reader);                                       \
            add_values_of(&last, &sums, a.dim);                                                    \
            add_weights_of(&last, &sums);                                                          \
            barrier(CLK_LOCAL_MEM_FENCE);                                                          \
            const uint from = next.first + next.n_keys, other = next.values == read[0];            \
            last = next;                                                                           \
            next = (struct step_tile){read[other], weights[other], from, min(at_once, n - from)};  \
        }                                                                                          \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        const float factor = vf_div(1.0f, weights_total(&sums, n));                                \
        for (uint d = item; d < a.dim; d += STEP_ITEMS)                                            \
            ((global float *)(memory + a.out))[head * a.dim + d] = values_sum[d] * factor;         \
    }

ATTEND_STEP(f32)
ATTEND_STEP(f16)
