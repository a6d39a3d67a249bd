// SPDX-License-Identifier: Apache-2.0
// The tile kernels of int8.c's table.
#ifndef ST_KERNELS_INT8_TILES_H
#define ST_KERNELS_INT8_TILES_H

#include "kernels/int8.h"

enum { ST_INT8_AHEAD = 2048 }; // bytes from what is read in a panel to what is prefetched

st_int8_tile_fn st_int8_tile_scalar;
st_int8_tile_fn st_int8_tile_avx2, st_int8_tile_avxvnni, st_int8_tile_avx512vnni, st_int8_tile_amx;
st_int8_two_fn st_int8_two_avx2, st_int8_two_avx512vnni;
st_int8_tile_fn st_int8_tile_neon, st_int8_tile_dotprod, st_int8_tile_i8mm;

// Where to prefetch, from the start of each of n_panels that are read together, once `at` bytes of
// each were read: past their ends lie the panels that are read next.
static inline size_t st_int8_ahead(size_t at, size_t panel_bytes, size_t n_panels) {
    size_t to = at + ST_INT8_AHEAD;
    return to < panel_bytes ? to : to + (n_panels - 1) * panel_bytes;
}

#endif
