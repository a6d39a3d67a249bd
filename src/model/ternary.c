// SPDX-License-Identifier: Apache-2.0
#include "model/ternary.h"

#include "base/half.h"
#include "base/size.h"
#include "kernels/dequantize.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PER_BYTE = 4, WHOLE = ST_TQ2_0_ITEMS, CODES = ST_TQ2_0_BYTES - 2 };

// Codes 0 to 2 of [n_out, n_in] weights, times a scale.
struct linear {
    const struct st_tensor *stored;
    uint32_t n_out, n_in;
    float scale;
};

typedef void codes_fn(const struct linear *linear, size_t row, size_t first, size_t n,
                      uint8_t *codes);

static void take_codes(const struct linear *l, size_t row, size_t first, size_t n, uint8_t *codes) {
    size_t rows = l->n_out / PER_BYTE;
    const unsigned char *from = l->stored->data;
    from += row % rows * l->n_in + first;
    for (size_t i = 0; i < n; i++) codes[i] = from[i] >> row / rows * 2 & 3;
}

static void take_i2_s(const struct linear *l, size_t row, size_t first, size_t n, uint8_t *codes) {
    const unsigned char *from = l->stored->data;
    for (size_t i = 0; i < n; i++) {
        size_t e = row * l->n_in + first + i, at = e % ST_I2_S_ITEMS;
        unsigned char byte = from[e / ST_I2_S_ITEMS * ST_I2_S_BYTES + at % ST_I2_S_BYTES];
        codes[i] = byte >> (6 - 2 * (at / ST_I2_S_BYTES)) & 3;
    }
}

static void round_codes(const struct linear *l, size_t row, size_t first, size_t n,
                        uint8_t *codes) {
    float w[WHOLE], inverse = 1.0f / l->scale;
    st_dequantize_select(0)->fn[l->stored->dtype](l->stored->data, row * l->n_in + first, n, w);
    for (size_t i = 0; i < n; i++)
        codes[i] = (uint8_t)(1.0f + fminf(fmaxf(rintf(w[i] * inverse), -1.0f), 1.0f));
}

// ---- What they become

// A block's bytes have elements that are 32 apart.
static void write_block(const uint8_t codes[WHOLE], float scale, unsigned char *block) {
    memset(block, 0, CODES);
    for (size_t i = 0; i < WHOLE; i++)
        block[i / 128 * 32 + i % 32] |= (unsigned char)(codes[i] << i % 128 / 32 * 2);
    uint16_t half = st_f16_from_f32(scale);
    memcpy(block + CODES, &half, sizeof half);
}

static void write_floats(const uint8_t *codes, size_t n, float scale, unsigned char *to) {
    for (size_t i = 0; i < n; i++) {
        float value = scale * (float)(codes[i] - 1);
        memcpy(to + i * sizeof value, &value, sizeof value);
    }
}

static void write_all(const struct linear *l, codes_fn *fn, enum st_dtype dtype,
                      unsigned char *to) {
    uint8_t codes[WHOLE];
    for (size_t row = 0; row < l->n_out; row++)
        for (size_t at = 0; at < l->n_in; at += WHOLE) {
            size_t n = st_min(WHOLE, l->n_in - at);
            fn(l, row, at, n, codes);
            if (dtype == ST_DTYPE_TQ2_0)
                write_block(codes, l->scale, to);
            else
                write_floats(codes, n, l->scale, to);
            to += st_dtype_row_bytes(dtype, n);
        }
}

static bool fits_half(float scale) {
    return scale >= 0x1p-14f && scale <= 65504.0f;
}

static void rewrite(const struct linear *l, codes_fn *fn, struct st_arena *arena,
                    struct st_tensor *tensor) {
    bool blocks = l->n_in % WHOLE == 0 && fits_half(l->scale);
    enum st_dtype dtype = blocks ? ST_DTYPE_TQ2_0 : ST_DTYPE_F32;
    size_t row = st_dtype_row_bytes(dtype, l->n_in);
    *tensor = (struct st_tensor){.name = l->stored->name,
                                 .dims = {l->n_out, l->n_in, 1, 1},
                                 .dtype = dtype,
                                 .n_dims = 2,
                                 .bytes = l->n_out * row};
    unsigned char *to = st_arena_take(arena, l->n_out, row);
    tensor->data = to;
    if (to) write_all(l, fn, dtype, to);
}

// ---- Where they come from

static stint_status check_shape(const struct st_tensor *t, uint64_t rows, uint64_t columns) {
    if (t->n_dims == 2 && t->dims[0] == rows && t->dims[1] == columns) return STINT_OK;
    return st_fail(STINT_E_FORMAT, "tensor '%s': expected [%llu, %llu]", t->name,
                   (unsigned long long)rows, (unsigned long long)columns);
}

static stint_status check_scale(const char *name, float scale) {
    if (scale > 0.0f && isfinite(scale)) return STINT_OK;
    return st_fail(STINT_E_FORMAT, "tensor '%s': a scale of %g makes no sense", name,
                   (double)scale);
}

// One number beside the codes, by which they are multiplied or divided.
static stint_status read_scale(const struct st_tensors *tensors, enum st_ternary form,
                               const char *weight, float *scale) {
    char name[ST_MAX_NAME_BYTES + 1];
    snprintf(name, sizeof name, "%s_scale", weight);
    const struct st_tensor *t = st_tensors_find(tensors, name);
    if (!t) return st_tensors_missing(tensors, name);
    if (t->n_dims > 1 || t->dims[0] != 1)
        return st_fail(STINT_E_FORMAT, "tensor '%s': expected one number", name);
    st_dequantize_select(0)->fn[t->dtype](t->data, 0, 1, scale);
    if (form == ST_TERNARY_DIVIDED) *scale = 1.0f / *scale;
    return check_scale(name, *scale);
}

// The mean of all magnitudes, but not below 1e-5.
static float mean_magnitude(const struct st_tensor *t, size_t n) {
    float w[WHOLE];
    double sum = 0.0;
    for (size_t at = 0; at < n; at += WHOLE) {
        size_t some = st_min(WHOLE, n - at);
        st_dequantize_select(0)->fn[t->dtype](t->data, at, some, w);
        for (size_t i = 0; i < some; i++) sum += fabs((double)w[i]);
    }
    return (float)fmax(sum / (double)n, 1e-5);
}

static stint_status open_packed(const struct st_tensors *tensors, enum st_ternary form,
                                struct linear *l) {
    const char *name = l->stored->name;
    if (l->n_out % PER_BYTE)
        return st_fail(STINT_E_UNSUPPORTED, "tensor '%s': %u rows, four in a byte", name, l->n_out);
    ST_TRY(check_shape(l->stored, l->n_out / PER_BYTE, l->n_in));
    return read_scale(tensors, form, name, &l->scale);
}

static stint_status open_rounded(const struct st_tensors *tensors, enum st_ternary form,
                                 struct linear *l) {
    (void)tensors, (void)form;
    ST_TRY(check_shape(l->stored, l->n_out, l->n_in));
    if (st_dtype_traits(l->stored->dtype)->block_items > 1)
        return st_fail(STINT_E_UNSUPPORTED, "tensor '%s' has blocks", l->stored->name);
    l->scale = mean_magnitude(l->stored, (size_t)l->n_out * l->n_in);
    return check_scale(l->stored->name, l->scale);
}

static stint_status open_i2_s(const struct st_tensors *tensors, enum st_ternary form,
                              struct linear *l) {
    size_t codes = l->stored->bytes - ST_I2_S_TAIL, n = (size_t)l->n_out * l->n_in;
    (void)tensors, (void)form;
    if (codes / ST_I2_S_BYTES * ST_I2_S_ITEMS != n)
        return st_fail(STINT_E_FORMAT, "tensor '%s': expected [%u, %u]", l->stored->name, l->n_out,
                       l->n_in);
    memcpy(&l->scale, (const char *)l->stored->data + codes, sizeof l->scale);
    return check_scale(l->stored->name, l->scale);
}

static const struct {
    const struct st_tensor *(*find)(const struct st_tensors *tensors, const char *name);
    stint_status (*open)(const struct st_tensors *tensors, enum st_ternary form,
                         struct linear *linear);
    codes_fn *codes;
} forms[] = {
    [ST_TERNARY_SCALED] = {st_tensors_find_bytes, open_packed, take_codes},
    [ST_TERNARY_DIVIDED] = {st_tensors_find_bytes, open_packed, take_codes},
    [ST_TERNARY_ROUNDED] = {st_tensors_find, open_rounded, round_codes},
    [ST_TERNARY_I2_S] = {st_tensors_find_bytes, open_i2_s, take_i2_s},
};

stint_status st_ternary_rewrite(const struct st_tensors *tensors, enum st_ternary form,
                                const char *name, uint32_t n_out, uint32_t n_in,
                                struct st_arena *arena, struct st_tensor *tensor, bool *found) {
    struct linear l = {.stored = forms[form].find(tensors, name), .n_out = n_out, .n_in = n_in};
    *found = l.stored != NULL;
    if (!*found) return STINT_OK;
    ST_TRY(forms[form].open(tensors, form, &l));
    rewrite(&l, forms[form].codes, arena, tensor);
    return STINT_OK;
}
