// SPDX-License-Identifier: Apache-2.0
// RMSNorm in the order of sums of the host's vectors (kernels/vec_norm.h). A group has a row.
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
norm_rows(const struct ocl_norm a, global const char *x, global const char *weights,
          global char *y) {
    local float sums[NORM_SUMS * NORM_MAX_LANES], factor;
    const uint item = get_local_id(0), row = get_global_id(1);
    const uint step = NORM_SUMS * a.lanes, whole = a.n / step * step;
    global const float *from = (global const float *)(x + a.x.offset + row * a.x.row);
    global const float *weight = (global const float *)(weights + a.weight);
    global float *to = (global float *)(y + a.y.offset + row * a.y.row);
    for (uint j = item; j < step; j += ITEMS) {
        float sum = 0.0f;
        for (uint i = j; i < whole; i += step) sum = fma(from[i], from[i], sum);
        for (uint i = whole + j; j < a.lanes && i < a.n; i += a.lanes)
            sum = fma(from[i], from[i], sum);
        sums[j] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
        float all[NORM_SUMS * NORM_MAX_LANES];
        for (uint j = 0; j < step; j++) all[j] = sums[j];
        float mean = vf_div(norm_total(all, a.lanes), (float)a.n);
        factor = vf_div(1.0f, norm_root(mean + a.epsilon));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = item; i < a.n; i += ITEMS) to[i] = from[i] * factor * weight[i];
}
