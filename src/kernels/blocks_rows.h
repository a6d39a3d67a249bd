// SPDX-License-Identifier: Apache-2.0
// The functions behind the rows of blocks.c: every block type for every instruction set.
#ifndef ST_KERNELS_BLOCKS_ROWS_H
#define ST_KERNELS_BLOCKS_ROWS_H

#include "kernels/block_types.h"
#include "kernels/blocks.h"

#define DECLARE(id, type, isa) st_blocks_fn st_blocks_##type##_##isa;
ST_BLOCK_TYPES(DECLARE, scalar)
ST_BLOCK_TYPES(DECLARE, avx2)
ST_BLOCK_TYPES(DECLARE, avxvnni)
ST_BLOCK_TYPES(DECLARE, avx512vnni)
ST_BLOCK_TYPES(DECLARE, avx512vbmi)
ST_BLOCK_TYPES(DECLARE, neon)
ST_BLOCK_TYPES(DECLARE, dotprod)
ST_BLOCK_TYPES(DECLARE, i8mm)
#undef DECLARE

st_blocks_quantize_fn st_blocks_quantize_plain;
st_blocks_quantize_fn st_blocks_quantize_avx2;
st_blocks_quantize_fn st_blocks_quantize_neon;
st_blocks_arrange_fn st_blocks_arrange_avx2, st_blocks_arrange_avx512;

#endif
