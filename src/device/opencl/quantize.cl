// SPDX-License-Identifier: Apache-2.0
// Floats to INT8. ITEMS work items are a group.

// Returns whether x is beyond INT8.
INLINE bool quantize_one(float x, float scale, bool two_term, global char *q, ulong rest) {
    float edge = 127.0f * scale, per_step = vf_div(1.0f, scale), first = quantized(x, per_step);
    *q = (char)(int)first;
    if (two_term)
        q[rest] = (char)(int)quantized(left_over(x, first, scale, edge), per_step * ST_TERM_STEPS);
    return edge < fabs(x);
}

// One element of a row with the linear's scale.
INLINE void quantize_into(float x, float scale, uint row, uint channel,
                          const struct ocl_quantized *to, global char *rows,
                          const struct ocl_outliers *o, global char *lists, global uint *counters) {
    global char *q = rows + to->rows.offset + row * to->rows.row + channel;
    if (!quantize_one(x, scale, to->two_term, q, to->rest)) return;
    atomic_inc(counters + o->counter);
    if (!o->has_list) return;
    global uint *list = (global uint *)(lists + o->list); // count, capacity, entries of 3
    uint at = atomic_inc(list);
    *q = 0;
    if (at >= o->capacity) return;
    list[2 + 3 * at] = row;
    list[3 + 3 * at] = channel;
    list[4 + 3 * at] = as_uint(x);
}

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
quantize_static(const struct ocl_quantize a, global const char *x, global char *to,
                global char *lists, global uint *counters) {
    uint channel = get_global_id(0), row = get_global_id(1);
    if (channel >= a.n) return;
    float value = *(global const float *)(x + a.x.offset + row * a.x.row + channel * 4ul);
    quantize_into(value, a.scale, row, channel, &a.to, to, &a.outliers, lists, counters);
}

// A group has a row.
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
quantize_rows(const struct ocl_quantize a, global const char *x, global char *to) {
    local float largest[ITEMS];
    uint item = get_local_id(0), row = get_global_id(1);
    global const float *from = (global const float *)(x + a.x.offset + row * a.x.row);
    global char *q = to + a.to.rows.offset + row * a.to.rows.row;
    float max = 0.0f;
    for (uint i = item; i < a.n; i += ITEMS) max = vf_max(fabs(from[i]), max);
    largest[item] = max;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < ITEMS; i++) max = vf_max(largest[i], max);
    float scale = max >= 0x1p-100f ? vf_div(max, 127.0f) : 1.0f;
    for (uint i = item; i < a.n; i += ITEMS)
        quantize_one(from[i], scale, a.to.two_term, q + i, a.to.rest);
    if (item == 0) *(global float *)(q + a.to.scale) = scale;
}
