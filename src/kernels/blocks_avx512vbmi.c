// SPDX-License-Identifier: Apache-2.0
// vpmultishiftqb brings fifth bits to their codes.
#define NAME(type) st_blocks_##type##_avx512vbmi
#include "kernels/blocks_512.h"
