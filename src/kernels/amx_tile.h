// SPDX-License-Identifier: Apache-2.0
// The tile instructions that the kernels use, all tiles of 64 bytes a row; or, with
// ST_AMX_EMULATED, the same in plain C (Intel's instruction set reference, TDPBF16PS and TDPBSSD),
// so that what is built on them can be tested anywhere.
#ifndef ST_KERNELS_AMX_TILE_H
#define ST_KERNELS_AMX_TILE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { ST_AMX_TILES = 8 };

#if !defined(ST_AMX_EMULATED)
#include <immintrin.h>

// GCC's intrinsics do not say that a load reads memory (nor that a configuration is longer than
// 8 bytes): without this the compiler drops or moves the stores before it.
static inline void st_amx_memory(const void *from) {
    __asm__ volatile("" : : "r"(from) : "memory");
}

#define st_amx_load(tile, from, bytes)                                                             \
    do {                                                                                           \
        st_amx_memory(from);                                                                       \
        _tile_loadd(tile, from, bytes);                                                            \
    } while (0)
#define st_amx_zero(tile)             _tile_zero(tile)
#define st_amx_store(tile, to, bytes) _tile_stored(tile, to, bytes)
#define st_amx_bf16(c, a, b)          _tile_dpbf16ps(c, a, b)
#define st_amx_int8(c, a, b)          _tile_dpbssd(c, a, b)
#define st_amx_release()              _tile_release()

static inline void st_amx_configure_rows(const uint8_t rows[ST_AMX_TILES]) {
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1};
    for (int i = 0; i < ST_AMX_TILES; i++) {
        config.row_bytes[i] = 64;
        config.rows[i] = rows[i];
    }
    st_amx_memory(&config);
    _tile_loadconfig(&config);
}

#else
#include "base/half.h"

static _Thread_local unsigned char st_amx_tiles[ST_AMX_TILES][16][64];
static _Thread_local uint8_t st_amx_tile_rows[ST_AMX_TILES];

static inline void st_amx_configure_rows(const uint8_t rows[ST_AMX_TILES]) {
    memset(st_amx_tiles, 0, sizeof st_amx_tiles);
    memcpy(st_amx_tile_rows, rows, ST_AMX_TILES);
}
static inline void st_amx_release(void) {}
static inline void st_amx_zero(int tile) {
    memset(st_amx_tiles[tile], 0, 1024);
}
static inline void st_amx_load(int tile, const void *from, size_t bytes) {
    for (int r = 0; r < st_amx_tile_rows[tile]; r++)
        memcpy(st_amx_tiles[tile][r], (const char *)from + (size_t)r * bytes, 64);
}
static inline void st_amx_store(int tile, void *to, size_t bytes) {
    for (int r = 0; r < st_amx_tile_rows[tile]; r++)
        memcpy((char *)to + (size_t)r * bytes, st_amx_tiles[tile][r], 64);
}
static inline void st_amx_bf16(int c, int a, int b) {
    for (int m = 0; m < st_amx_tile_rows[c]; m++)
        for (int k = 0; k < 16; k++)
            for (int n = 0; n < 16; n++) {
                float sum;
                uint16_t x[2], y[2];
                memcpy(&sum, &st_amx_tiles[c][m][4 * n], 4);
                memcpy(x, &st_amx_tiles[a][m][4 * k], 4);
                memcpy(y, &st_amx_tiles[b][k][4 * n], 4);
                sum += st_f32_from_bf16(x[0]) * st_f32_from_bf16(y[0]);
                sum += st_f32_from_bf16(x[1]) * st_f32_from_bf16(y[1]);
                memcpy(&st_amx_tiles[c][m][4 * n], &sum, 4);
            }
}
static inline void st_amx_int8(int c, int a, int b) {
    for (int m = 0; m < st_amx_tile_rows[c]; m++)
        for (int k = 0; k < 16; k++)
            for (int n = 0; n < 16; n++) {
                int32_t sum;
                memcpy(&sum, &st_amx_tiles[c][m][4 * n], 4);
                for (int i = 0; i < 4; i++)
                    sum += (int8_t)st_amx_tiles[a][m][4 * k + i] *
                           (int8_t)st_amx_tiles[b][k][4 * n + i];
                memcpy(&st_amx_tiles[c][m][4 * n], &sum, 4);
            }
}
#endif

static inline void st_amx_configure(void) {
    st_amx_configure_rows((const uint8_t[ST_AMX_TILES]){16, 16, 16, 16, 16, 16, 16, 16});
}

#endif
