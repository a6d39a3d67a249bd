// SPDX-License-Identifier: Apache-2.0
// W8A8 products: exact 32-bit sums, then device/epilogue.c's operations in its order. A work item
// has one output (two packed rows where a gate belongs to it) and TOKENS rows of input; items of a
// group read neighbouring rows of a panel, 4 bytes each (kernels/int8.h).

// sum + the products of four bytes of a and b.
#if defined(__opencl_c_integer_dot_product_input_4x8bit)
#pragma OPENCL EXTENSION cl_khr_integer_dot_product : enable
INLINE int add_dot4(int sum, int a, int b) {
    return sum + dot(as_char4(a), as_char4(b));
}
#elif defined(DP4A) // NVIDIA has the instruction, but not the extension
INLINE int add_dot4(int sum, int a, int b) {
    asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}
#else
INLINE int add_dot4(int sum, int a, int b) {
    int4 product = convert_int4(as_char4(a)) * convert_int4(as_char4(b));
    return sum + product.x + product.y + product.z + product.w;
}
#endif

// sums[i] of packed row `row` and row token + i of the input; that of the last one where it ends.
INLINE void multiply(const struct ocl_linear *a, global const char *x, global const char *w,
                     uint row, uint token, int *sums) {
    global const int *weights =
        (global const int *)(w + (ulong)(row / OCL_PANEL) * OCL_PANEL * a->x.k) + row % OCL_PANEL;
    global const int *rows[TOKENS];
    const uint steps = a->x.k / 4, aligned = a->x.rest % 16 == 0 ? steps / 4 * 4 : 0;
    uint k = 0;
    for (uint i = 0; i < TOKENS; i++) {
        rows[i] = (global const int *)(x + min(token + i, a->n_rows - 1) * a->x.rows.row);
        sums[i] = 0;
    }
    for (; k < aligned; k += 4, weights += 4 * OCL_PANEL)
        for (uint i = 0; i < TOKENS; i++) {
            int4 input = *(global const int4 *)(rows[i] + k);
            sums[i] = add_dot4(sums[i], weights[0], input.x);
            sums[i] = add_dot4(sums[i], weights[OCL_PANEL], input.y);
            sums[i] = add_dot4(sums[i], weights[2 * OCL_PANEL], input.z);
            sums[i] = add_dot4(sums[i], weights[3 * OCL_PANEL], input.w);
        }
    for (; k < steps; k++, weights += OCL_PANEL)
        for (uint i = 0; i < TOKENS; i++) sums[i] = add_dot4(sums[i], weights[0], rows[i][k]);
}

// The same in both terms; of one term, rest is 0.
INLINE void multiply_terms(const struct ocl_linear *a, global const char *x, global const char *w,
                           uint row, uint token, int *sums, int *rest) {
    x += a->x.rows.offset;
    multiply(a, x, w, row, token, sums);
    if (a->x.two_term) multiply(a, x + a->x.rest, w, row, token, rest);
}

// y[i]: the floats of a packed row.
INLINE void product_of(const struct ocl_linear *a, global const char *x, global const char *w,
                       global const float *values, uint row, uint token, float *y) {
    int sums[TOKENS], rest[TOKENS] = {0};
    float bias = a->has_bias ? values[a->packed_rows + row] : 0.0f;
    multiply_terms(a, x, w, row, token, sums, rest);
    x += a->x.rows.offset;
    for (uint i = 0; i < TOKENS; i++) {
        uint t = min(token + i, a->n_rows - 1);
        float factor = values[row], own = 1.0f;
        if (a->row_scales) own = *(global const float *)(x + t * a->x.rows.row + a->x.scale);
        if (a->x.two_term) own = vf_div(own, ST_TERM_STEPS);
        factor = own * factor;
        long both = (long)ST_TERM_STEPS * sums[i] + rest[i];
        y[i] = a->x.two_term ? joined((float)both, factor, bias) : (float)sums[i] * factor;
        if (a->has_bias && !a->x.two_term) y[i] += bias;
    }
}

// The exact sums of a packed row as they are: of a token's terms one behind the other.
INLINE void put_sums(const struct ocl_linear *a, global const char *x, global const char *w,
                     uint row, uint token, global char *out, ulong out_row) {
    int sums[TOKENS], rest[TOKENS] = {0};
    uint terms = a->x.two_term ? 2 : 1;
    multiply_terms(a, x, w, row, token, sums, rest);
    for (uint i = 0; i < TOKENS && token + i < a->n_rows; i++) {
        *(global int *)(out + (token + i) * terms * out_row) = sums[i];
        if (terms == 2) *(global int *)(out + ((token + i) * terms + 1) * out_row) = rest[i];
    }
}

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
linear_float(const struct ocl_linear a, global const char *x, global const char *w,
             global const float *values, global char *out0, global char *out1, global char *out2) {
    uint row = get_global_id(0), token = get_global_id(1) * TOKENS, start = 0, part = 0;
    float y[TOKENS];
    if (row >= a.packed_rows) return;
    for (; part + 1 < a.n_parts; part++) {
        uint next = start + (a.rows[part] + OCL_PANEL - 1) / OCL_PANEL * OCL_PANEL;
        if (row < next) break;
        start = next;
    }
    if (row - start >= a.rows[part]) return;
    global char *out = (part == 0 ? out0 : part == 1 ? out1 : out2) + a.out[part].offset;
    if (a.sums) {
        put_sums(&a, x, w, row, token, out + (row - start) * 4ul, a.out[part].row);
        return;
    }
    product_of(&a, x, w, values, row, token, y);
    for (uint i = 0; i < TOKENS && token + i < a.n_rows; i++)
        *(global float *)(out + (token + i) * a.out[part].row + (row - start) * 4ul) = y[i];
}

// ---- A linear before another

INLINE float activate(uint act, float x) {
    switch (act) {
    case ST_ACT_SILU: return silu(x, x, 0.0f);
    case ST_ACT_GELU_TANH: return gelu_tanh(x, x, 0.0f);
    case ST_ACT_GELU_ERF: return gelu_erf(x, x, 0.0f);
    case ST_ACT_RELU2: return relu2(x, x, 0.0f);
    case ST_ACT_SWIGLU_CLAMPED: return clamped_gate(x, x, 0.0f);
    default: return relu(x, x, 0.0f);
    }
}

// What a gate is multiplied with.
INLINE float gated_up(uint act, float x) {
    if (act == ST_ACT_SWIGLU_CLAMPED) return clamped_up(x);
    return act == ST_ACT_DRELU ? activate(act, x) : x;
}

// What is added to a packed row of token t.
INLINE float added(const struct ocl_linear *a, global const char *add, global const char *add_row,
                   uint t, uint row, float y) {
    int at = a->has_add ? ((global const int *)(add_row + a->add_row))[t] : -1;
    if (at < 0) return y;
    return *(global const float *)(add + a->add.offset + at * a->add.row + row * 4ul) + y;
}

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
linear_activated(const struct ocl_linear a, global const char *x, global const char *w,
                 global const float *values, global const char *add, global const char *add_row,
                 global char *next, global char *floats, global char *lists,
                 global uint *counters) {
    const uint half_group = OCL_GROUP / 2;
    uint output = get_global_id(0), token = get_global_id(1) * TOKENS, row = output;
    float y[TOKENS], up[TOKENS];
    if (output >= a.rows[0]) return;
    if (a.gated) {
        row = output / half_group * OCL_GROUP + output % half_group;
        product_of(&a, x, w, values, row + half_group, token, up);
    }
    product_of(&a, x, w, values, row, token, y);
    for (uint i = 0; i < TOKENS && token + i < a.n_rows; i++) {
        uint t = token + i;
        float value = activate(a.act, added(&a, add, add_row, t, row, y[i]));
        if (a.gated) {
            float other = added(&a, add, add_row, t, row + half_group, up[i]);
            value *= gated_up(a.act, other);
        }
        if (a.to_floats)
            *(global float *)(floats + a.floats.offset + t * a.floats.row + output * 4ul) = value;
        else
            quantize_into(value, a.next_scale, t, output, &a.next, next, &a.outliers, lists,
                          counters);
    }
}
