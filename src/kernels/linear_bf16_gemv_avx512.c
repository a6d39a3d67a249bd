// SPDX-License-Identifier: Apache-2.0
#include "kernels/linear_bf16_gemv.h"

#include "base/size.h"

#include <immintrin.h>

#define UNROLL _Pragma("GCC unroll 8")

enum {
    STEP = 64,          // elements per row and step: two registers, four sums
    AHEAD = 4096,       // bytes
    MAX_RESIDENT = 3072 // elements of x that share a first-level cache with the weights' streams
};

bool st_linear_bf16_gemv_takes(enum st_dtype dtype, size_t k, size_t n_tokens) {
    return dtype == ST_DTYPE_BF16 && k % STEP == 0 && n_tokens <= ST_LINEAR_FEW_TOKENS;
}

size_t st_linear_bf16_gemv_block_tokens(const struct st_linear_kernels *kernels) {
    (void)kernels;
    return 1;
}

void st_linear_bf16_gemv_pack(const struct st_linear_kernels *kernels, const float *x,
                              size_t n_tokens, size_t k, size_t block, float *out) {
    (void)kernels, (void)n_tokens;
    x += block * k;
    out += block * k;
    for (size_t i = 0; i < k; i += 32)
        for (size_t j = 0; j < 16; j++) {
            out[i + j] = x[i + 2 * j];
            out[i + 16 + j] = x[i + 2 * j + 1];
        }
}

// 64 weights as floats: even and odd ones of the first 32, and of the others.
static inline __attribute__((always_inline)) void take_apart(const unsigned char *at, __m512 *w) {
    const __m512i mask = _mm512_set1_epi32((int)0xffff0000);
    UNROLL for (size_t h = 0; h < 2; h++) {
        __m512i pairs = _mm512_loadu_si512(at + 64 * h);
        w[2 * h] = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
        w[2 * h + 1] = _mm512_castsi512_ps(_mm512_and_si512(pairs, mask));
    }
}

static inline __attribute__((always_inline)) float total(const __m512 *sum) {
    return _mm512_reduce_add_ps(
        _mm512_add_ps(_mm512_add_ps(sum[0], sum[1]), _mm512_add_ps(sum[2], sum[3])));
}

// Rows `stride` bytes apart whose outputs are y_row apart, times columns of x and y.
struct block {
    const unsigned char *w;
    size_t stride, k;
    const float *x;
    float *y;
    size_t y_row, y_col;
};

// n_rows, n_columns and ahead are constants where this is called. An output's sums are the same
// whatever is computed beside it. Sums and the weights of all rows are in registers: of 32, two
// rows by two columns take 24.
static inline __attribute__((always_inline)) void add_rows(const struct block *b, size_t n_rows,
                                                           size_t n_columns, size_t ahead) {
    __m512 sum[2][2][4];
    UNROLL for (size_t r = 0; r < n_rows; r++) UNROLL for (size_t c = 0; c < n_columns; c++)
        UNROLL for (size_t i = 0; i < 4; i++) sum[r][c][i] = _mm512_setzero_ps();
    for (size_t i = 0; i < b->k; i += STEP) {
        __m512 w[2][4];
        UNROLL for (size_t r = 0; r < n_rows; r++) {
            const unsigned char *at = b->w + r * b->stride + i * 2;
            if (ahead) {
                __builtin_prefetch(at + ahead, 0, 2);
                __builtin_prefetch(at + ahead + 64, 0, 2);
            }
            take_apart(at, w[r]);
        }
        UNROLL for (size_t c = 0; c < n_columns; c++) UNROLL for (size_t j = 0; j < 4; j++) {
            __m512 x = _mm512_loadu_ps(b->x + c * b->k + i + 16 * j);
            UNROLL for (size_t r = 0; r < n_rows; r++) sum[r][c][j] =
                _mm512_fmadd_ps(w[r][j], x, sum[r][c][j]);
        }
    }
    UNROLL for (size_t r = 0; r < n_rows; r++) UNROLL for (size_t c = 0; c < n_columns; c++)
        b->y[r * b->y_row + c * b->y_col] = total(sum[r][c]);
}

// All columns: the first ones bring the rows into the cache.
static inline __attribute__((always_inline)) void add_columns(struct block b, size_t n_rows,
                                                              size_t n_columns, size_t ahead) {
    if (n_columns == 1) {
        add_rows(&b, n_rows, 1, ahead);
        return;
    }
    add_rows(&b, n_rows, 2, ahead);
    for (size_t c = 2; c < n_columns; c += 2) {
        b.x += 2 * b.k;
        b.y += 2 * b.y_col;
        if (c + 1 < n_columns)
            add_rows(&b, n_rows, 2, 0);
        else
            add_rows(&b, n_rows, 1, 0);
    }
}

// The upper and the lower half of the rows at once: two streams that go on for long, which the
// processor's prefetchers like better than many short ones. An input that falls out of the first
// cache stalls the loads, and then the weights must be asked for earlier.
void st_linear_bf16_gemv_rows(const struct st_linear_kernels *kernels,
                              const struct st_linear_args *a, size_t row0, size_t row1,
                              float *scratch) {
    (void)kernels, (void)scratch;
    size_t half = (row1 - row0) / 2, r = row0;
    struct block b = {
        .stride = half * a->row_bytes, .k = a->k, .x = a->x, .y_row = half, .y_col = a->y_row};
    for (; r < row1; r++) {
        b.w = (const unsigned char *)a->w + r * a->row_bytes;
        b.y = a->y + r;
        if (r >= row0 + half) // the last one of an odd number
            add_columns(b, 1, a->n_tokens, 0);
        else if (a->k <= MAX_RESIDENT)
            add_columns(b, 2, a->n_tokens, 0);
        else
            add_columns(b, 2, a->n_tokens, AHEAD);
        if (r + 1 == row0 + half) r += half;
    }
    for (size_t t = 0; a->bias && t < a->n_tokens; t++)
        for (r = row0; r < row1; r++) a->y[t * a->y_row + r] += a->bias[r];
}
