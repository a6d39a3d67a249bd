// SPDX-License-Identifier: Apache-2.0
#define NAME(type) st_blocks_##type##_avx512vnni
#include "kernels/blocks_512.h"

void st_blocks_arrange_avx512(struct st_blocks_chunk *x) {
    arrange_half(x->high, x->by_blocks[0]);
    arrange_half(x->low, x->by_blocks[1]);
}
