// SPDX-License-Identifier: Apache-2.0
#include "wrong.h"

void wrong_row(const uint8_t *w, const int8_t *x, uint32_t k, uint32_t n_rows, const int32_t *start,
               int32_t *sums) {
    dsp_product_scalar(w + 4, x, k, n_rows, start, sums);
}

void wrong_last_k(const uint8_t *w, const int8_t *x, uint32_t k, uint32_t n_rows,
                  const int32_t *start, int32_t *sums) {
    dsp_product_hvx(w, x, k - TILE_K, n_rows, start, sums);
}

// Pairs of products added in 16 bits that saturate, as some instructions do.
void wrong_narrow_sums(const uint8_t *w, const int8_t *x, uint32_t k, uint32_t n_rows,
                       const int32_t *start, int32_t *sums) {
    for (uint32_t t = 0; t < n_rows; t++)
        for (uint32_t r = 0; r < TILE_GROUP; r++) {
            uint32_t sum = (uint32_t)start[t];
            for (uint32_t i = 0; i < k; i += 2) {
                const uint8_t *a = w + i / 4 * 4 * TILE_GROUP + 4 * r + i % 4;
                const int8_t *b = x + i / 8 * 8 * TILE_STEP + 8 * t + i % 8;
                int32_t pair = a[0] * b[0] + a[1] * b[1];
                sum += (uint32_t)(pair > 32767 ? 32767 : pair < -32768 ? -32768 : pair);
            }
            sums[t * TILE_GROUP + r] = (int32_t)sum;
        }
}

void wrong_start(const uint8_t *w, const int8_t *x, uint32_t k, uint32_t n_rows,
                 const int32_t *start, int32_t *sums) {
    (void)start;
    static const int32_t zeros[TILE_STEP];
    dsp_product_hvx(w, x, k, n_rows, zeros, sums);
}

// The accumulators of the row before.
void wrong_tile_row(struct hmx *hmx, const uint8_t *w, const int8_t *x, uint32_t k, uint32_t n_rows,
                    const int32_t *start, int32_t *sums) {
    dsp_product_hmx(hmx, w, x, k, n_rows, start, sums);
    for (uint32_t i = n_rows * TILE_GROUP; i-- > TILE_GROUP;) sums[i] = sums[i - TILE_GROUP];
}

void wrong_last_tile(struct hmx *hmx, const uint8_t *w, const int8_t *x, uint32_t k,
                     uint32_t n_rows, const int32_t *start, int32_t *sums) {
    uint32_t whole = k / HMX_K * HMX_K;
    dsp_product_hmx(hmx, w, x, k, n_rows, start, sums);
    for (uint32_t t = 0; t < n_rows; t++)
        for (uint32_t i = whole; i < k; i++)
            sums[t * TILE_GROUP] -= w[i / 4 * 4 * TILE_GROUP + i % 4] *
                                    x[t / 8 * 8 * k + i / 8 * 64 + 8 * (t % 8) + i % 8];
}

void wrong_tile_column(struct hmx *hmx, const uint8_t *w, const int8_t *x, uint32_t k,
                       uint32_t n_rows, const int32_t *start, int32_t *sums) {
    dsp_product_hmx(hmx, w, x, k, n_rows, start, sums);
    for (uint32_t t = 0; t < n_rows; t++) sums[t * TILE_GROUP + HMX_COLUMNS] = sums[t * TILE_GROUP];
}

// Elements behind the end of a row count.
void wrong_padding(const int8_t *x, uint32_t x_row, uint32_t n_rows, uint32_t n, int8_t *packed,
                   int32_t *start) {
    dsp_pack_rows(x, x_row, n_rows, tile_padded_k(n), packed, start);
    int8_t unused[24 * 1032 / 8];
    for (uint32_t t = 0; t < n_rows; t++) // the sums are right
        dsp_pack_rows(x + t * x_row, x_row, 1, n, (int8_t *)(((uintptr_t)unused + 7) & ~7u),
                      start + t);
}

void wrong_row_sums(const int8_t *x, uint32_t x_row, uint32_t n_rows, uint32_t n, int8_t *packed,
                    int32_t *start) {
    dsp_pack_rows(x, x_row, n_rows, n, packed, start);
    for (uint32_t t = 0; t < n_rows; t++) start[t] = start[t] / 128 * 127;
}

float wrong_truncated(float a, float b) {
    float q = dsp_divide_slowly(a, b);
    return __builtin_fmaf(-q, b, a) < 0.0f && q > 0.0f ? q - q * 0x1p-24f : q;
}

float wrong_unrefined(float a, float b) {
    return a * dsp_divide_slowly(1.0f, b);
}

size_t wrong_not_clamped(const float *x, size_t n, float step, uint8_t zero, uint8_t *q) {
    size_t clipped = dsp_elementwise.quantize(x, n, step, zero, q);
    for (size_t i = 0; i < n; i++)
        if (__builtin_fabsf(x[i]) > 127.5f * step && __builtin_fabsf(x[i]) < 1000.0f * step)
            q[i] = (uint8_t)(int)(x[i] / step);
    return clipped;
}

size_t wrong_half_away(const float *x, size_t n, float step, uint8_t zero, uint8_t *q) {
    size_t clipped = dsp_elementwise.quantize(x, n, step, zero, q);
    for (size_t i = 0; i < n; i++) {
        float v = x[i] / step;
        if (__builtin_fabsf(v) < 127.0f) q[i] = (uint8_t)(int)(v + (v < 0.0f ? -0.5f : 0.5f));
    }
    return clipped;
}

size_t wrong_by_quotient(const float *x, size_t n, float step, uint8_t zero, uint8_t *q) {
    const float whole = 12582912.0f;
    size_t clipped = dsp_elementwise.quantize(x, n, step, zero, q);
    for (size_t i = 0; i < n; i++) {
        float v = x[i] / step;
        if (__builtin_fabsf(v) < 126.0f) q[i] = (uint8_t)(int)(v + whole - whole);
    }
    return clipped;
}

size_t wrong_count(const float *x, size_t n, float step, uint8_t zero, uint8_t *q) {
    size_t clipped = dsp_elementwise.quantize(x, n, step, zero, q);
    return clipped ? clipped - 1 : clipped;
}

float wrong_root(float x) {
    float root = dsp_root(x);
    return __builtin_fmaf(-root, root, x) < 0.0f ? dsp_float(dsp_bits(root) - 1) : root;
}

void wrong_order(const float *x, const float *weight, float epsilon, uint32_t n, uint32_t lanes,
                 float *y) {
    dsp_rmsnorm(x, weight, epsilon, n, lanes == 8 ? 16 : lanes, y);
}

void wrong_epsilon(const float *x, const float *weight, float epsilon, uint32_t n, uint32_t lanes,
                   float *y) {
    dsp_rmsnorm(x, weight, epsilon * epsilon, n, lanes, y);
}

void wrong_last_element(const float *x, const float *weight, float epsilon, uint32_t n,
                        uint32_t lanes, float *y) {
    float last = x[n - 1];
    dsp_rmsnorm(x, weight, epsilon, n, lanes, y);
    y[n - 1] = last;
}
