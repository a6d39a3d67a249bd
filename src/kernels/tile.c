// SPDX-License-Identifier: Apache-2.0
#include "kernels/tile.h"

#include "base/cpu.h"
#include "base/size.h"
#include "kernels/tile_rows.h"

const struct st_tile st_tiles[] = {
#if defined(__x86_64__)
    {"tile_f32_avx512",
     ST_CPU_AVX512,
     8,
     16,
     3,
     {st_tile_f32_avx512_1, st_tile_f32_avx512_2, st_tile_f32_avx512_3}},
    {"tile_f32_avx2", ST_CPU_AVX2, 6, 8, 2, {st_tile_f32_avx2_1, st_tile_f32_avx2_2}},
#elif defined(__aarch64__)
    {"tile_f32_neon",
     ST_CPU_NEON,
     8,
     4,
     3,
     {st_tile_f32_neon_1, st_tile_f32_neon_2, st_tile_f32_neon_3}},
#endif
    {"tile_f32_scalar", 0, 4, 4, 1, {st_tile_f32_scalar}},
    {NULL, 0, 0, 0, 0, {NULL}},
};

const struct st_tile *st_tile_select(uint64_t cpu_flags) {
    const struct st_tile *row = st_tiles;
    while ((row->isa & cpu_flags) != row->isa) row++;
    return row;
}

size_t st_tile_padded(const struct st_tile *tile, size_t n_tokens) {
    return st_round_up(n_tokens, tile->lanes);
}

size_t st_tile_width(const struct st_tile *tile, size_t n_tokens, size_t t0) {
    return st_min(tile->vectors * tile->lanes, st_tile_padded(tile, n_tokens) - t0);
}

// One block: out[k, width] from rows t0..; in squares, so that both sides stay in cache.
static void pack_block(const float *x, size_t x_row, size_t n_rows, size_t width, size_t k,
                       float *out) {
    enum { SQUARE = 16 };
    for (size_t k0 = 0; k0 < k; k0 += SQUARE)
        for (size_t l0 = 0; l0 < width; l0 += SQUARE)
            for (size_t l = l0; l < st_min(l0 + SQUARE, width); l++)
                for (size_t i = k0; i < st_min(k0 + SQUARE, k); i++)
                    out[i * width + l] = l < n_rows ? x[l * x_row + i] : 0.0f;
}

size_t st_tile_pack(const struct st_tile *tile, const float *x, size_t x_row, size_t n_tokens,
                    size_t k, float *out) {
    size_t padded = st_tile_padded(tile, n_tokens);
    for (size_t t = 0; t < padded;) {
        size_t width = st_tile_width(tile, n_tokens, t);
        pack_block(x + t * x_row, x_row, st_min(width, n_tokens - t), width, k, out + t * k);
        t += width;
    }
    return padded;
}
