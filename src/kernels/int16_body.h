// SPDX-License-Identifier: Apache-2.0
// The register tile of products of 16-bit integers for one instruction set, which defines before it
// includes this: M, VECTORS and, of vectors of kernels/vec.h,
//   vi_load, vi_zero, vi_set1
//   add_products(sum, w, x)  *sum += both halves' products of w and x
//   to_floats
// and behind it, for each number of vectors, TILE(name, number).
#include "kernels/vec.h"

#define UNROLL _Pragma("GCC unroll 8")
#define INLINE static inline __attribute__((always_inline))

INLINE void tile(size_t n_vectors, size_t k, const uint32_t *a, size_t a_row, const float *a_scale,
                 const uint32_t *b, const float *b_scale, float *c, size_t c_row) {
    vi sum[M][VECTORS];
    UNROLL for (size_t m = 0; m < M; m++) UNROLL for (size_t v = 0; v < n_vectors; v++) sum[m][v] =
        vi_zero();
    UNROLL for (size_t m = 0; m < M; m++) _mm_prefetch((const char *)(c + m * c_row), _MM_HINT_T0);
    for (size_t i = 0; i < k; i++, a++, b += n_vectors * VF_LANES) {
        vi x[VECTORS];
        UNROLL for (size_t v = 0; v < n_vectors; v++) x[v] = vi_load(b + v * VF_LANES);
        UNROLL for (size_t m = 0; m < M; m++) {
            vi w = vi_set1((int32_t)a[m * a_row]);
            UNROLL for (size_t v = 0; v < n_vectors; v++) add_products(&sum[m][v], w, x[v]);
        }
    }
    UNROLL for (size_t m = 0; m < M; m++) UNROLL for (size_t v = 0; v < n_vectors; v++) {
        float *out = c + m * c_row + v * VF_LANES;
        vf scale = vf_mul(vf_set1(a_scale[m]), vf_load(b_scale + v * VF_LANES));
        vf_store(out, vf_fma(to_floats(sum[m][v]), scale, vf_load(out)));
    }
}

#define TILE(name, n_vectors)                                                                      \
    void name(size_t k, const uint32_t *a, size_t a_row, const float *a_scale, const uint32_t *b,  \
              const float *b_scale, float *c, size_t c_row) {                                      \
        tile(n_vectors, k, a, a_row, a_scale, b, b_scale, c, c_row);                               \
    }
