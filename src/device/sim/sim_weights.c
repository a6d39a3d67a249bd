// SPDX-License-Identifier: Apache-2.0
// Weights in the device's own layout: blocks of 8 packed rows, in a block channel by channel, 8
// bytes each, without padding; or the package's panels, for a kernel.
#include "device/sim/sim.h"

#include <stdlib.h>
#include <string.h>

static size_t packed_rows(const struct st_int8_weight *w) {
    return (size_t)w->n_panels * ST_INT8_PANEL;
}

static size_t row_bytes(const struct st_device *device, const struct st_int8_weight *w) {
    return ((const struct sim_device *)device)->kernel ? st_int8_padded_k(w->n_in) : w->n_in;
}

size_t st_sim_weights_bytes(const struct st_device *device, const struct st_int8_weight *w) {
    size_t values = sizeof(int32_t) + sizeof(float) * (w->bias ? 2 : 1);
    return packed_rows(w) * (row_bytes(device, w) + values);
}

// One row of a panel of the package (kernels/int8.h) at channel k.
static int8_t weight_at(const struct st_int8_weight *w, size_t row, size_t k) {
    const int8_t *panel = w->panels + row / ST_INT8_PANEL * st_int8_panel_bytes(w->n_in);
    return panel[k / 4 * 4 * ST_INT8_PANEL + 4 * (row % ST_INT8_PANEL) + k % 4];
}

static void lay_out(const struct st_int8_weight *w, int8_t *blocks) {
    for (size_t block = 0; block < packed_rows(w) / ST_SIM_BLOCK; block++)
        for (size_t k = 0; k < w->n_in; k++)
            for (size_t i = 0; i < ST_SIM_BLOCK; i++)
                *blocks++ = weight_at(w, block * ST_SIM_BLOCK + i, k);
}

static void copy_values(const struct st_int8_weight *from, struct sim_weights *w) {
    size_t rows = packed_rows(from);
    w->weight = (struct st_int8_weight){
        .n_in = from->n_in, .n_panels = from->n_panels, .input_scale = from->input_scale};
    memcpy(w->sums, from->row_sums, rows * sizeof *w->sums);
    memcpy(w->floats, from->factor, rows * sizeof *w->floats);
    w->weight.row_sums = w->sums;
    w->weight.factor = w->floats;
    if (!from->bias) return;
    memcpy(w->floats + rows, from->bias, rows * sizeof *w->floats);
    w->weight.bias = w->floats + rows;
}

stint_status st_sim_import_weights(struct st_device *device, const struct st_int8_weight *weight,
                                   bool in_parts, struct st_device_weights **weights) {
    (void)in_parts; // never: there is no host memory
    size_t rows = packed_rows(weight), bytes = rows * row_bytes(device, weight);
    void *memory;
    ST_TRY(st_sim_allocate((struct sim_device *)device, bytes, &memory));
    struct sim_weights *w = calloc(1, sizeof *w);
    if (w) {
        w->blocks = memory;
        w->sums = malloc(rows * sizeof *w->sums);
        w->floats = malloc(2 * rows * sizeof *w->floats);
    }
    if (!w || !w->sums || !w->floats) {
        if (w) st_sim_free_weights(&w->base);
        if (!w) free(memory);
        return st_fail(STINT_E_NOMEM, "device 'sim': no memory for weights");
    }
    if (((const struct sim_device *)device)->kernel)
        memcpy(w->blocks, weight->panels, bytes);
    else
        lay_out(weight, w->blocks);
    copy_values(weight, w);
    *weights = &w->base;
    return STINT_OK;
}

void st_sim_free_weights(struct st_device_weights *weights) {
    struct sim_weights *w = (struct sim_weights *)weights;
    free(w->blocks);
    free(w->sums);
    free(w->floats);
    free(w);
}
