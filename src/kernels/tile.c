// SPDX-License-Identifier: Apache-2.0
#include "kernels/tile.h"

#include "base/cpu.h"
#include "base/size.h"
#include "kernels/tile_rows.h"

#include <stdbool.h>
#include <string.h>

const struct st_tile st_tiles[] = {
#if defined(__x86_64__)
    {"tile_f32_avx512",
     ST_CPU_AVX512,
     8,
     16,
     3,
     {st_tile_f32_avx512_1, st_tile_f32_avx512_2, st_tile_f32_avx512_3},
     st_tile_transpose_avx512},
    {"tile_f32_avx2",
     ST_CPU_AVX2,
     6,
     8,
     2,
     {st_tile_f32_avx2_1, st_tile_f32_avx2_2},
     st_tile_transpose_avx2},
#elif defined(__aarch64__)
    {"tile_f32_neon",
     ST_CPU_NEON,
     8,
     4,
     3,
     {st_tile_f32_neon_1, st_tile_f32_neon_2, st_tile_f32_neon_3},
     st_tile_transpose_neon},
#endif
    {"tile_f32_scalar", 0, 4, 4, 1, {st_tile_f32_scalar}, st_tile_transpose_scalar},
    {0},
};

const struct st_tile *st_tile_select(uint64_t cpu_flags) {
    const struct st_tile *row = st_tiles;
    while ((row->isa & cpu_flags) != row->isa) row++;
    return row;
}

size_t st_tile_padded(const struct st_tile *tile, size_t n_tokens) {
    return st_round_up(n_tokens, tile->lanes);
}

// One vector of tokens alone keeps too few sums to hide the latency of a multiply-add, so that the
// block before a last one of that width gives it a vector.
static bool shares(const struct st_tile *tile, size_t rest) {
    return tile->vectors > 2 && rest == (tile->vectors + 1) * tile->lanes;
}

size_t st_tile_width(const struct st_tile *tile, size_t n_tokens, size_t t0) {
    size_t widest = tile->vectors * tile->lanes, rest = st_tile_padded(tile, n_tokens) - t0;
    return shares(tile, rest) ? widest - tile->lanes : st_min(widest, rest);
}

size_t st_tile_block_start(const struct st_tile *tile, size_t n_tokens, size_t block) {
    size_t widest = tile->vectors * tile->lanes, t = block * widest;
    bool after_one_that_shares =
        block > 0 && shares(tile, st_tile_padded(tile, n_tokens) - (t - widest));
    return after_one_that_shares ? t - tile->lanes : t;
}

void st_tile_transpose(const struct st_tile *tile, const float *a, size_t a_row, size_t n_rows,
                       size_t n_columns, float *b, size_t b_row) {
    size_t lanes = tile->lanes;
    for (size_t j0 = 0; j0 < n_columns; j0 += lanes)
        for (size_t i0 = 0; i0 < n_rows; i0 += lanes) {
            size_t i1 = st_min(i0 + lanes, n_rows), j1 = st_min(j0 + lanes, n_columns);
            if (i1 - i0 == lanes && j1 - j0 == lanes) {
                tile->transpose(a + i0 * a_row + j0, a_row, b + j0 * b_row + i0, b_row);
                continue;
            }
            for (size_t j = j0; j < j1; j++)
                for (size_t i = i0; i < i1; i++) b[j * b_row + i] = a[i * a_row + j];
        }
}

// One block: out[k, width] from the rows of x.
static void pack_block(const struct st_tile *tile, const float *x, size_t x_row, size_t n_rows,
                       size_t width, size_t k, float *out) {
    st_tile_transpose(tile, x, x_row, n_rows, k, out, width);
    for (size_t i = 0; i < k && n_rows < width; i++)
        memset(out + i * width + n_rows, 0, (width - n_rows) * sizeof *out);
}

size_t st_tile_pack(const struct st_tile *tile, const float *x, size_t x_row, size_t n_tokens,
                    size_t k, float *out) {
    size_t padded = st_tile_padded(tile, n_tokens);
    for (size_t t = 0; t < padded;) {
        size_t width = st_tile_width(tile, n_tokens, t);
        pack_block(tile, x + t * x_row, x_row, st_min(width, n_tokens - t), width, k, out + t * k);
        t += width;
    }
    return padded;
}
