// SPDX-License-Identifier: Apache-2.0
// Weights in the order in which the vector unit reads them (struct wire_linear), then their factors
// and biases.
#include "device/hexagon/hexagon.h"
#include "device/hexagon/tiles.h"

#include <stdlib.h>
#include <string.h>

enum { SIGN_BIT = 0x80 }; // w + 128 as an unsigned byte is w with this bit turned

static size_t packed_rows(const struct st_int8_weight *w) {
    return (size_t)w->n_panels * ST_INT8_PANEL;
}

static size_t groups_bytes(const struct st_int8_weight *w) {
    return st_round_up(packed_rows(w), TILE_GROUP) * tile_padded_k(w->n_in);
}

size_t st_hexagon_weights_bytes(const struct st_device *device, const struct st_int8_weight *w) {
    (void)device;
    size_t floats = packed_rows(w) * sizeof(float);
    return groups_bytes(w) + st_round_up(floats, WIRE_ALIGNMENT) * (w->bias ? 2 : 1);
}

// One panel of 16 rows (kernels/int8.h), 4 elements of k at a time.
static void lay_out_panel(const int8_t *panel, size_t k, unsigned char *to) {
    const size_t four = 4 * ST_INT8_PANEL, step = 4 * TILE_GROUP;
    for (size_t i = 0; i < k / 4; i++)
        for (size_t j = 0; j < four; j++)
            to[i * step + j] = (unsigned char)panel[i * four + j] ^ SIGN_BIT;
}

static void lay_out(const struct st_int8_weight *w, unsigned char *groups) {
    const size_t per_group = TILE_GROUP / ST_INT8_PANEL, k = tile_padded_k(w->n_in);
    memset(groups, SIGN_BIT, groups_bytes(w)); // zeros, for rows that are not there
    for (size_t p = 0; p < w->n_panels; p++)
        lay_out_panel(w->panels + p * st_int8_panel_bytes(w->n_in), k,
                      groups + p / per_group * k * TILE_GROUP + p % per_group * 4 * ST_INT8_PANEL);
}

stint_status st_hexagon_import_weights(struct st_device *device, const struct st_int8_weight *from,
                                       bool in_parts, struct st_device_weights **weights) {
    struct hexagon_device *d = (struct hexagon_device *)device;
    (void)in_parts; // never: the DSP does not see the host's memory
    struct hexagon_weights *w = calloc(1, sizeof *w);
    if (!w) return st_fail(STINT_E_NOMEM, "device 'hexagon': no memory for weights");
    stint_status status = st_hexagon_take(d, st_hexagon_weights_bytes(device, from), &w->range);
    if (status != STINT_OK) {
        free(w);
        return status;
    }
    size_t floats = packed_rows(from) * sizeof(float);
    unsigned char *memory = st_hexagon_at(d, w->range), *factor = memory + groups_bytes(from);
    unsigned char *bias = factor + st_round_up(floats, WIRE_ALIGNMENT);
    lay_out(from, memory);
    memcpy(factor, from->factor, floats);
    if (from->bias) memcpy(bias, from->bias, floats);
    w->linear = (struct wire_linear){
        .groups = w->range->offset,
        .factor = (uint32_t)(factor - d->transport->memory),
        .bias = from->bias ? (uint32_t)(bias - d->transport->memory) : 0,
        .n_in = from->n_in,
        .packed_rows = (uint32_t)packed_rows(from),
        .input_scale = from->input_scale,
    };
    *weights = &w->base;
    return STINT_OK;
}

void st_hexagon_free_weights(struct st_device_weights *weights) {
    struct hexagon_weights *w = (struct hexagon_weights *)weights;
    st_hexagon_give((struct hexagon_device *)weights->device, w->range);
    free(w);
}
