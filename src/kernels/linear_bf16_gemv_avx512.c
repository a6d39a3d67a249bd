// SPDX-License-Identifier: Apache-2.0
#include "kernels/linear_bf16_gemv.h"

#include "base/size.h"

#include <immintrin.h>

enum {
    STEP = 64,          // elements per row and step: two registers, four sums
    AHEAD = 4096,       // bytes
    MAX_RESIDENT = 3072 // elements of x that share a first-level cache with the weights' streams
};

bool st_linear_bf16_gemv_takes(enum st_dtype dtype, size_t k, size_t n_tokens) {
    return dtype == ST_DTYPE_BF16 && k % STEP == 0 && n_tokens == 1;
}

size_t st_linear_bf16_gemv_block_tokens(const struct st_linear_kernels *kernels) {
    (void)kernels;
    return 1;
}

void st_linear_bf16_gemv_pack(const struct st_linear_kernels *kernels, const float *x,
                              size_t n_tokens, size_t k, size_t block, float *out) {
    (void)kernels, (void)n_tokens, (void)block;
    for (size_t i = 0; i < k; i += 32)
        for (size_t j = 0; j < 16; j++) {
            out[i + j] = x[i + 2 * j];
            out[i + 16 + j] = x[i + 2 * j + 1];
        }
}

// sum[0] += even elements, sum[1] += odd ones, of 32 weights at w.
static inline __attribute__((always_inline)) void add_32(const unsigned char *w, const float *x,
                                                         __m512 *sum) {
    __m512i v = _mm512_loadu_si512(w), odd = _mm512_set1_epi32((int)0xffff0000);
    sum[0] =
        _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(v, 16)), _mm512_loadu_ps(x), sum[0]);
    sum[1] = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(v, odd)), _mm512_loadu_ps(x + 16),
                             sum[1]);
}

static inline __attribute__((always_inline)) float total(const __m512 *sum) {
    return _mm512_reduce_add_ps(
        _mm512_add_ps(_mm512_add_ps(sum[0], sum[1]), _mm512_add_ps(sum[2], sum[3])));
}

// n_rows and ahead are constants where this is called.
static inline __attribute__((always_inline)) void add_rows(const unsigned char *w, size_t stride,
                                                           size_t n_rows, size_t ahead, size_t k,
                                                           const float *x, float *y, size_t y_row) {
    __m512 sum[2][4];
    for (size_t r = 0; r < n_rows; r++)
        for (size_t i = 0; i < 4; i++) sum[r][i] = _mm512_setzero_ps();
    for (size_t i = 0; i < k; i += STEP)
        for (size_t r = 0; r < n_rows; r++) {
            const unsigned char *at = w + r * stride + i * 2;
            if (ahead) {
                __builtin_prefetch(at + ahead, 0, 2);
                __builtin_prefetch(at + ahead + 64, 0, 2);
            }
            add_32(at, x + i, sum[r]);
            add_32(at + 64, x + i + 32, sum[r] + 2);
        }
    for (size_t r = 0; r < n_rows; r++) y[r * y_row] = total(sum[r]);
}

// The upper and the lower half of the rows at once: two streams that go on for long, which the
// processor's prefetchers like better than many short ones. An input that falls out of the first
// cache stalls the loads, and then the weights must be asked for earlier.
void st_linear_bf16_gemv_rows(const struct st_linear_kernels *kernels,
                              const struct st_linear_args *a, size_t row0, size_t row1,
                              float *scratch) {
    (void)kernels, (void)scratch;
    size_t half = (row1 - row0) / 2, stride = half * a->row_bytes, r = row0;
    const unsigned char *w = a->w;
    for (; r < row0 + half; r++) {
        if (a->k <= MAX_RESIDENT)
            add_rows(w + r * a->row_bytes, stride, 2, 0, a->k, a->x, a->y + r, half);
        else
            add_rows(w + r * a->row_bytes, stride, 2, AHEAD, a->k, a->x, a->y + r, half);
    }
    for (r += half; r < row1; r++) add_rows(w + r * a->row_bytes, 0, 1, 0, a->k, a->x, a->y + r, 0);
    for (r = row0; a->bias && r < row1; r++) a->y[r] += a->bias[r];
}
