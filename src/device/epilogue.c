// SPDX-License-Identifier: Apache-2.0
// Each epilogue is compiled for each form of sums, so that none pays for the others' rows.
#include "device/epilogue.h"

#include "device/two_term.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum form { ONE_TERM, TWO_TERMS, JOINT };

struct sums { // of the form that goes with them
    const int32_t *each;
    const float *joint;
};

INLINE size_t quantize_row(const struct st_elementwise *e, const struct st_quantized *to,
                           bool two_term, const float *x, size_t n, float scale, size_t t,
                           size_t first, struct st_outliers *list) {
    uint8_t *q = to->data + t * to->row + first;
    size_t clipped = two_term ? e->quantize_two(x, n, scale, to->zero, q, q + to->rest)
                              : e->quantize(x, n, scale, to->zero, q);
    if (clipped && list)
        st_outliers_collect(list, x, n, scale, (uint32_t)t, (uint32_t)first, to->zero, q);
    return clipped;
}

size_t st_quantize_row(const struct st_elementwise *elementwise, const struct st_quantized *to,
                       const float *x, size_t n, float scale, size_t t, size_t first,
                       struct st_outliers *list) {
    return quantize_row(elementwise, to, to->two_term, x, n, scale, t, first, list);
}

static float scale_of(float max) {
    return max >= 0x1p-100f ? max / 127.0f : 1.0f;
}

void st_quantize_own_scale(const struct st_elementwise *elementwise, const struct st_quantized *to,
                           const float *x, size_t n, size_t t) {
    float scale = scale_of(elementwise->max_magnitude(x, n));
    quantize_row(elementwise, to, to->two_term, x, n, scale, t, 0, NULL);
    memcpy(to->data + t * to->row + to->scale, &scale, sizeof scale);
}

// The scale of row t, where rows have their own.
INLINE float own_scale(const struct st_epilogue_run *r, size_t t) {
    float scale = 1.0f;
    if (r->scales) memcpy(&scale, r->scales + t * r->scales_row, sizeof scale);
    return scale;
}

// Of row `token` of input, whose sums are row t of those given, from `first` on.
INLINE void to_floats(const struct st_epilogue_run *r, enum form form, size_t row, size_t n_rows,
                      size_t token, const struct sums *sums, size_t t, size_t first, float *y) {
    const struct st_int8_weight *w = &r->linear_op->weight;
    const float *bias = w->bias ? w->bias + row : NULL;
    const float *factor = w->factor + row;
    float own = own_scale(r, token);
    if (form == JOINT) {
        r->elementwise->dequantize_joint(sums->joint + t * ST_DEVICE_GROUP + first, own, factor,
                                         bias, n_rows, y);
        return;
    }
    size_t terms = form == TWO_TERMS ? ST_TWO_TERMS : 1;
    const int32_t *each = sums->each + t * terms * ST_DEVICE_GROUP + first;
    if (form == TWO_TERMS)
        r->elementwise->dequantize_two(each, each + ST_DEVICE_GROUP, w->row_sums + row, r->zero,
                                       w->n_in, own, factor, bias, n_rows, y);
    else
        r->elementwise->dequantize(each, w->row_sums + row, r->zero, own, factor, bias, n_rows, y);
}

// The group's rows [row, row1), part by part.
INLINE void float_epilogue(const struct st_epilogue_run *r, enum form form, size_t row, size_t row1,
                           size_t token, size_t n, const struct sums *sums) {
    size_t start = 0;
    for (uint32_t i = 0; i < r->linear_op->n_parts; i++) {
        size_t rows = r->linear_op->rows[i];
        size_t from = st_max(row, start), to = st_min(row1, start + rows);
        for (size_t t = 0; t < n && from < to; t++)
            to_floats(r, form, from, to - from, token + t, sums, t, from - row,
                      r->out[i] + (token + t) * r->out_row[i] + (from - start));
        start += st_round_up(rows, ST_INT8_PANEL);
    }
}

// The group's rows [row, row1) as they are, less what stands for zero.
static void sums_epilogue(const struct st_epilogue_run *r, size_t row, size_t row1, size_t token,
                          size_t n, const int32_t *sums) {
    const struct st_int8_weight *w = &r->linear_op->weight;
    size_t terms = r->two_term ? ST_TWO_TERMS : 1, start = 0;
    for (uint32_t i = 0; i < r->linear_op->n_parts; i++) {
        size_t rows = r->linear_op->rows[i];
        size_t from = st_max(row, start), to = st_min(row1, start + rows);
        for (size_t t = 0; t < n * terms && from < to; t++) {
            int32_t *out = (int32_t *)(void *)r->out[i] + (token * terms + t) * r->out_row[i];
            for (size_t j = from; j < to; j++)
                out[j - start] = sums[t * ST_DEVICE_GROUP + j - row] - r->zero * w->row_sums[j];
        }
        start += st_round_up(rows, ST_INT8_PANEL);
    }
}

// Of the first linear, where something is to be added before its activation.
static const float *added(const struct st_epilogue_run *r, size_t token, size_t row) {
    if (!r->add || r->add_row[token] < 0) return NULL;
    return r->add + (size_t)r->add_row[token] * r->add_row_floats + row;
}

// Floats of one row of input at a time, activated and quantized.
INLINE size_t act_epilogue(const struct st_epilogue_run *r, enum form form, size_t row,
                           size_t n_rows, size_t token, size_t n, const struct sums *sums) {
    const struct st_elementwise *e = r->elementwise;
    const struct st_linear_op *linear_op = r->linear_op;
    bool gated = linear_op->epilogue == ST_EPILOGUE_GATED;
    size_t first = gated ? row / 2 : row, clipped = 0;
    if (first >= linear_op->rows[0]) return 0;
    size_t n_out = st_min(gated ? ST_GATED_GROUP : n_rows, linear_op->rows[0] - first);
    for (size_t t = 0; t < n; t++) {
        float y[ST_DEVICE_GROUP];
        to_floats(r, form, row, n_rows, token + t, sums, t, 0, y);
        const float *add = added(r, token + t, row);
        if (add) e->add(add, n_rows, y);
        if (gated)
            e->act_gated(linear_op->act, y, y + ST_GATED_GROUP, n_out, y);
        else
            e->act(linear_op->act, y, n_out, y);
        if (r->next_floats)
            memcpy(r->next_floats + (token + t) * r->next_row + first, y, n_out * sizeof *y);
        else
            clipped += quantize_row(e, &r->next, r->next.two_term, y, n_out, r->next_scale,
                                    token + t, first, r->outliers);
    }
    return clipped;
}

INLINE size_t run(const struct st_epilogue_run *r, enum form form, size_t row, size_t n_rows,
                  size_t token, size_t n, const struct sums *sums) {
    if (r->linear_op->epilogue != ST_EPILOGUE_FLOAT)
        return act_epilogue(r, form, row, n_rows, token, n, sums);
    float_epilogue(r, form, row, row + n_rows, token, n, sums);
    return 0;
}

size_t st_epilogue(const struct st_epilogue_run *r, size_t row, size_t n_rows, size_t token,
                   size_t n, const int32_t *each) {
    const struct sums sums = {.each = each};
    if (r->linear_op->epilogue == ST_EPILOGUE_SUMS) {
        sums_epilogue(r, row, row + n_rows, token, n, each);
        return 0;
    }
    return r->two_term ? run(r, TWO_TERMS, row, n_rows, token, n, &sums)
                       : run(r, ONE_TERM, row, n_rows, token, n, &sums);
}

size_t st_epilogue_joint(const struct st_epilogue_run *r, size_t row, size_t n_rows, size_t token,
                         size_t n, const float *joint) {
    const struct sums sums = {.joint = joint};
    return run(r, JOINT, row, n_rows, token, n, &sums);
}
