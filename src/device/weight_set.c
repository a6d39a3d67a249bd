// SPDX-License-Identifier: Apache-2.0
#include "device/weight_set.h"

#include "base/cpu.h"

#include <stdlib.h>
#include <string.h>

enum { HALF_BYTES = 4 * ST_NESTED_PANEL, STEP_BYTES = 4 * ST_INT8_PANEL };

static void clear_half(size_t k, int8_t *half) {
    for (size_t i = 0; i < st_int8_padded_k(k) / 4; i++)
        memset(half + i * STEP_BYTES, 0, HALF_BYTES);
}

void st_weight_set_halves(const struct st_linear_op *linear_op, const struct st_weight_set *set,
                          const struct st_nested_int8_kernel *kernel, size_t half, size_t n,
                          int8_t *panels) {
    size_t k = linear_op->weight.n_in, first = half / 2;
    for (size_t end = half + n; half < end; half++) {
        int8_t *to = panels + (half / 2 - first) * st_int8_panel_bytes(k) + half % 2 * HALF_BYTES;
        uint32_t part;
        size_t row;
        if (st_linear_op_find_row(linear_op, half * ST_NESTED_PANEL, &part, &row))
            kernel->fn(&set->codes[part], set->rows[part], row / ST_NESTED_PANEL - set->first[part],
                       to);
        else
            clear_half(k, to);
    }
}

void st_weight_set_panels(const struct st_linear_op *linear_op,
                          const struct st_nested_int8_kernel *kernel, size_t panel, size_t n,
                          int8_t *panels) {
    st_weight_set_halves(linear_op, linear_op->weight.set, kernel, 2 * panel, 2 * n, panels);
}

static void clear_sums(size_t n_tokens, int32_t *sums, size_t sum_row) {
    for (size_t t = 0; t < n_tokens; t++)
        memset(sums + t * sum_row, 0, ST_NESTED_PANEL * sizeof *sums);
}

void st_weight_set_products(const struct st_linear_op *linear_op,
                            const struct st_nested_int8_kernel *kernel, size_t panel, size_t n,
                            const uint8_t *x, size_t x_row, size_t n_tokens, int32_t *sums,
                            size_t sum_row) {
    const struct st_weight_set *set = linear_op->weight.set;
    for (size_t half = 2 * panel; half < 2 * (panel + n); half++, sums += ST_NESTED_PANEL) {
        uint32_t part;
        size_t row;
        if (st_linear_op_find_row(linear_op, half * ST_NESTED_PANEL, &part, &row))
            kernel->product(&set->codes[part], set->rows[part],
                            row / ST_NESTED_PANEL - set->first[part], x, x_row, n_tokens, sums,
                            sum_row);
        else
            clear_sums(n_tokens, sums, sum_row);
    }
}

stint_status st_weight_set_all(const struct st_linear_op *linear_op, int8_t **panels) {
    const struct st_int8_weight *w = &linear_op->weight;
    int8_t *all = malloc(w->n_panels * st_int8_panel_bytes(w->n_in));
    if (!all) return st_fail(STINT_E_NOMEM, "no memory for INT8 weights");
    st_weight_set_panels(linear_op, st_nested_int8_select(st_cpu_flags()), 0, w->n_panels, all);
    *panels = all;
    return STINT_OK;
}
