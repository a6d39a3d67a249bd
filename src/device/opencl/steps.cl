// SPDX-License-Identifier: Apache-2.0
// Programs (device/program.h): one token on its way through layers. Operations and their order are
// those of the host's vectors of HOST_LANES, and of products those of the scalar kernel.
enum { BLOCK = 128, SHARES = 16, SHARE = BLOCK / SHARES, MOST_DIM = 1024 };

INLINE float float_at(global const char *from, ulong at, uint i) {
    return ((global const float *)(from + at))[i];
}

// The factor of a norm, from the sums of its group's items [NORM_SUMS * HOST_LANES].
INLINE float factor_of(local const float *sums, uint n, float epsilon) {
    float all[NORM_SUMS * HOST_LANES];
    for (uint j = 0; j < NORM_SUMS * HOST_LANES; j++) all[j] = sums[j];
    float mean = vf_div(norm_total(all, HOST_LANES), (float)n);
    return vf_div(1.0f, norm_root(mean + epsilon));
}

// Element [i] is squared into the sum that the host adds it to.
#define ADD_SQUARES(sums, n, item, x)                                                              \
    do {                                                                                           \
        const uint step_ = NORM_SUMS * HOST_LANES, whole_ = (n) / step_ * step_;                   \
        for (uint j = item; j < step_; j += ITEMS) {                                               \
            float sum_ = 0.0f;                                                                     \
            for (uint i = j; i < whole_; i += step_) sum_ = fma(x, x, sum_);                       \
            for (uint i = whole_ + j; j < HOST_LANES && i < (n); i += HOST_LANES)                  \
                sum_ = fma(x, x, sum_);                                                            \
            sums[j] = sum_;                                                                        \
        }                                                                                          \
    } while (0)

// ---- Inputs of nested linears: a group has a block (kernels/nested_quantize.h)

struct quantized_block {
    local float *values, *largest;
    local int *totals;
};

// values become what the term leaves of them
INLINE void quantize_term(const struct quantized_block *b, global char *q, global float *scale,
                          global short *sums) {
    const uint item = get_local_id(0);
    for (uint s = item; s < SHARES; s += ITEMS) {
        float max = 0.0f;
        for (uint i = 0; i < SHARE; i++) max = vf_max(fabs(b->values[s * SHARE + i]), max);
        b->largest[s] = max;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float max = 0.0f;
    for (uint s = 0; s < SHARES; s++) max = vf_max(b->largest[s], max);
    const float unit = vf_div(max, 127.0f);
    const float inverse = max >= 0x1p-100f ? vf_div(127.0f, max) : 0.0f;
    for (uint s = item; s < SHARES; s += ITEMS) {
        int total = 0;
        for (uint i = s * SHARE; i < (s + 1) * SHARE; i++) {
            const float whole = rint(b->values[i] * inverse);
            q[i] = (char)(int)whole;
            total += (int)whole;
            b->values[i] = b->values[i] - unit * whole;
        }
        b->totals[s] = total;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint g = item; g < 4; g += ITEMS)
        sums[g] = (short)(b->totals[4 * g] + b->totals[4 * g + 1] + b->totals[4 * g + 2] +
                          b->totals[4 * g + 3]);
    if (item == 0) *scale = unit;
}

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
step_quantize(const struct ocl_step_quantize a, global char *memory) {
    local float values[BLOCK], largest[SHARES], squares[NORM_SUMS * HOST_LANES], factor;
    local int totals[SHARES];
    const struct quantized_block block = {values, largest, totals};
    const uint item = get_local_id(0), b = get_group_id(0), first = b * BLOCK;
    if (a.has_norm) {
        if (a.has_add)
            ADD_SQUARES(squares, a.n, item, (float_at(memory, a.x, i) + float_at(memory, a.add, i)));
        else
            ADD_SQUARES(squares, a.n, item, float_at(memory, a.x, i));
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item == 0) factor = factor_of(squares, a.n, a.epsilon);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint i = item; i < BLOCK; i += ITEMS) {
        const uint e = first + i;
        float value = 0.0f;
        if (e < a.n) {
            value = float_at(memory, a.x, e);
            if (a.has_add) {
                value += float_at(memory, a.add, e);
                ((global float *)(memory + a.sum))[e] = value;
            }
            if (a.has_norm) value = value * factor * float_at(memory, a.norm, e);
            if (a.has_up)
                value = activate(a.act, value) * gated_up(a.act, float_at(memory, a.up, e));
        }
        values[i] = value;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    global char *to = memory + a.to;
    for (uint t = 0; t < a.terms; t++) {
        const uint at = b * a.terms + t;
        quantize_term(&block, to + at * BLOCK, (global float *)(to + a.scale) + at,
                      (global short *)(to + a.sums) + at * 4);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// ---- Products with one token's input, of up to three linears

#define USE(i, p2, p3, p4, p5, p6, p7, of_groups, of_rows)                                         \
    w = (struct regions){{p2 + a.linear[i].planes[0], p2 + a.linear[i].planes[0],                  \
                          p2 + a.linear[i].planes[0], p3 + a.linear[i].planes[1],                  \
                          p4 + a.linear[i].planes[2], p5 + a.linear[i].planes[3],                  \
                          p6 + a.linear[i].planes[4], p7 + a.linear[i].planes[5]},                 \
                         of_groups + a.linear[i].groups};                                          \
    rows = (global const float *)((global const char *)of_rows + a.linear[i].rows);                \
    m.y = a.linear[i].y;                                                                           \
    m.bits = a.linear[i].bits;                                                                     \
    m.n_out = a.linear[i].n_out;                                                                   \
    m.first_row = a.linear[i].first_row

// USE_PART(i) sets what there is of linear i.
#define STEP_MULTIPLY(USE_PART)                                                                    \
    local float terms[2][LANES][ROWS][COLUMNS];                                                    \
    struct regions w;                                                                              \
    global const float *rows;                                                                      \
    struct ocl_multiply m = {.x = a.x,                                                             \
                             .scale = a.scale,                                                     \
                             .sums = a.sums,                                                       \
                             .k = a.k,                                                             \
                             .n_columns = a.terms,                                                 \
                             .terms = a.terms};                                                    \
    uint group = get_group_id(0);                                                                  \
    if (group < a.linear[0].n_groups) {                                                            \
        USE_PART(0);                                                                               \
    } else if (group < a.linear[0].n_groups + a.linear[1].n_groups) {                              \
        group -= a.linear[0].n_groups;                                                             \
        USE_PART(1);                                                                               \
    } else {                                                                                       \
        group -= a.linear[0].n_groups + a.linear[1].n_groups;                                      \
        USE_PART(2);                                                                               \
    }                                                                                              \
    multiply_nested_group(&m, memory, &w, rows, memory, group, 0, terms)

// Of regions that are buffers of their own.
#define REGIONS(i)                                                                                 \
    global const uchar *p##i##2, global const uchar *p##i##3, global const uchar *p##i##4,         \
        global const uchar *p##i##5, global const uchar *p##i##6, global const uchar *p##i##7,     \
        global const uchar *groups##i, global const char *rows##i
#define USE_REGIONS(i)                                                                             \
    USE(i, p##i##2, p##i##3, p##i##4, p##i##5, p##i##6, p##i##7, groups##i, rows##i)

kernel GROUP void step_multiply(const struct ocl_step_multiply a, global char *memory, REGIONS(0),
                                REGIONS(1), REGIONS(2)) {
    STEP_MULTIPLY(USE_REGIONS);
}

// Of linears that are one buffer each.
#define USE_WHOLE(i) USE(i, w##i, w##i, w##i, w##i, w##i, w##i, w##i, w##i)

kernel GROUP void step_multiply_whole(const struct ocl_step_multiply a, global char *memory,
                                      global const uchar *w0, global const uchar *w1,
                                      global const uchar *w2) {
    STEP_MULTIPLY(USE_WHOLE);
}

// ---- Norms, rotation and the rows of the cache: a group has a head

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
step_rotate(const struct ocl_step_rotate a, global char *memory, global char *cache) {
    local float head[MOST_DIM], squares[NORM_SUMS * HOST_LANES], factor;
    const uint item = get_local_id(0), group = get_group_id(0);
    const uint part = group < a.n_heads ? 0 : group < a.n_heads + a.n_kv ? 1 : 2;
    const uint h = part == 0 ? group : group - a.n_heads - (part - 1) * a.n_kv;
    const ulong from = part == 0 ? a.x[0] : part == 1 ? a.x[1] : a.x[2];
    const ulong bias = part == 0 ? a.bias[0] : part == 1 ? a.bias[1] : a.bias[2];
    const uint biased = part == 0 ? a.has_bias[0] : part == 1 ? a.has_bias[1] : a.has_bias[2];
    const ulong norm = part == 0 ? a.norm[0] : a.norm[1];
    const uint normed = part == 0 ? a.has_norm[0] : part == 1 ? a.has_norm[1] : 0;
    const uint norm_head = (part == 0 ? a.per_head[0] : a.per_head[1]) ? h * a.dim : 0;
    global const struct ocl_place *place = (global const struct ocl_place *)(memory + a.place);
    for (uint d = item; d < a.dim; d += ITEMS) {
        float value = float_at(memory, from, h * a.dim + d);
        if (biased) value += float_at(memory, bias, h * a.dim + d);
        head[d] = value;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (normed) {
        ADD_SQUARES(squares, a.dim, item, head[i]);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item == 0) factor = factor_of(squares, a.dim, a.epsilon);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint d = item; d < a.dim; d += ITEMS)
            head[d] = head[d] * factor * float_at(memory, norm, norm_head + d);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint i = item; i < a.half_dims && part < 2; i += ITEMS) {
        const uint low = a.interleaved ? 2 * i : i, high = a.interleaved ? low + 1 : i + a.half_dims;
        const float c = float_at(memory, a.cosine, i), s = float_at(memory, a.sine, i);
        const float p = head[low], q = head[high];
        head[low] = p * c - q * s;
        head[high] = p * s + q * c;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part == 0) {
        for (uint d = item; d < a.dim; d += ITEMS)
            ((global float *)(memory + from))[h * a.dim + d] = head[d];
        return;
    }
    const ulong row = (ulong)place->position * a.row_bytes + place->cache;
    global char *to = part == 1 ? cache + a.keys + h * a.key_head + row
                                : cache + a.values + h * a.value_head + row;
    global char *copy = memory + a.rows + ((part - 1) * a.n_kv + h) * a.row_bytes;
    for (uint d = item; d < a.dim; d += ITEMS) {
        if (a.half_floats) {
            vstore_half_rte(head[d], d, (global half *)to);
            vstore_half_rte(head[d], d, (global half *)copy);
        } else {
            ((global float *)to)[d] = head[d];
            ((global float *)copy)[d] = head[d];
        }
    }
}
