// SPDX-License-Identifier: Apache-2.0
// A row of accumulators is one vector: 32 sums. Eight vrmpy bring 32 elements of k to it.
#include "hmx.h"

#include <hexagon_protos.h>
#include <hexagon_types.h>
#include <hvx_hexagon_protos.h>

void dsp_hmx_start(struct hmx *hmx, const int32_t *start) {
    HVX_Vector *sums = (HVX_Vector *)(void *)hmx->sums;
    for (uint32_t t = 0; t < HMX_ROWS; t++) sums[t] = Q6_V_vsplat_R(start[t]);
}

void dsp_hmx_multiply(struct hmx *hmx, const int8_t *x, const uint8_t *w) {
    HVX_Vector *sums = (HVX_Vector *)(void *)hmx->sums;
    const HVX_Vector *weights = (const HVX_Vector *)(const void *)w;
    const int32_t *fours = (const int32_t *)(const void *)x;
    for (uint32_t t = 0; t < HMX_ROWS; t++)
        for (uint32_t i = 0; i < HMX_K / 4; i++)
            sums[t] = Q6_Vw_vrmpyacc_VwVubRb(sums[t], weights[i], fours[t * (HMX_K / 4) + i]);
    hmx->n_products++;
}
