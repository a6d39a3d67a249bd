// SPDX-License-Identifier: Apache-2.0
#include "prepare/quantize.h"

#include "base/cpu.h"
#include "prepare/grids.h"

#include <string.h>

const struct st_panel_quantizer st_panel_quantizers[] = {
#if defined(__x86_64__)
    {"panel_avx512", ST_CPU_AVX512, st_panel_quantize_avx512},
    {"panel_avx2", ST_CPU_AVX2, st_panel_quantize_avx2},
#endif
    {"panel_scalar", 0, st_panel_quantize_scalar},
    {0},
};

size_t st_panel_scratch(const struct st_tile *tile, size_t k, unsigned low, unsigned high) {
    return st_panel_grid_floats(k) + st_missed_floats(tile, k, (high - low + 1) * ST_PANEL_ROWS);
}

const struct st_panel_quantizer *st_panel_quantizer_select(uint64_t cpu_flags) {
    const struct st_panel_quantizer *row = st_panel_quantizers;
    while ((row->isa & cpu_flags) != row->isa) row++;
    return row;
}

const struct st_quantizer st_quantizers[] = {
    {"descent", "groups of 32; codes and scales in turns, by the error of the outputs", true},
    {"uniform", "groups of 32, rounded to the nearest", false},
    {0},
};

const struct st_quantizer *st_quantizer_find(const char *name) {
    const struct st_quantizer *q = st_quantizers;
    if (!name) return q;
    while (q->name && strcmp(q->name, name) != 0) q++;
    return q->name ? q : NULL;
}
