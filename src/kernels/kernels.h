// SPDX-License-Identifier: Apache-2.0
// The kernels a process uses: one table per family, best row first, scalar last with no
// instruction-set bits, so that the choice cannot fail. Kernels are pure functions on arrays: no
// allocation, lock, errno, global or print. Sizes are in elements. Pointers to floats are aligned
// to 4 bytes and no more unless a contract says otherwise; weights may have any alignment. No
// kernel reads or writes outside the arrays that its contract names.
#ifndef ST_KERNELS_KERNELS_H
#define ST_KERNELS_KERNELS_H

#include "kernels/attention.h"
#include "kernels/blocks.h"
#include "kernels/elementwise.h"
#include "kernels/dequantize.h"
#include "kernels/gemv.h"
#include "kernels/nested.h"
#include "kernels/pairs.h"
#include "kernels/peak.h"
#include "kernels/recurrence.h"
#include "kernels/tile.h"

#endif
